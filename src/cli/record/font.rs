//! The font of images of pixels: DejaVu Sans Mono, scaled so that its line drawings fill their cells.
//!
//! The scale differs by a few percent between width and height: only then do whole pixels of a cell fit the font.

use std::collections::{BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::rc::Rc;

use ab_glyph_rasterizer::{Point, Rasterizer, point};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

/// The width and height of a cell, in pixels.
pub(super) const CELL: (usize, usize) = (10, 20);

/// The coverage of a pixel that a character hides; 0 is one that it leaves as it is. Few steps need few colours.
pub(super) const COVERED: u8 = 7;

/// How far italic characters lean.
const SLANT: f32 = 0.2;

/// Lines and blocks that meet those of other cells.
const LINE_DRAWINGS: RangeInclusive<char> = '\u{2500}'..='\u{259f}';

/// The first character of the block of Braille patterns, and the bits of its dots, from the top.
const BRAILLE: char = '\u{2800}';
const BRAILLE_DOTS: [(u32, u32); 4] = [(0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80)];

/// The coverage of each pixel of a character, row by row from the top.
pub(super) type GlyphMask = Rc<[u8]>;

/// A character as it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct GlyphKey {
    character: char,
    columns: u16,
    style: FontStyle,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct FontStyle {
    pub(super) bold: bool,
    pub(super) italic: bool,
}

/// The font, with the characters that were drawn.
pub(super) struct GlyphFont {
    regular: Face<'static>,
    bold: Face<'static>,
    masks: HashMap<GlyphKey, Option<GlyphMask>>,
    missing: BTreeSet<char>,
}

impl GlyphFont {
    pub(super) fn new() -> Self {
        let face = |bytes| Face::parse(bytes, 0).expect("the bundled font is valid");
        Self {
            regular: face(dejavu::sans_mono::regular()),
            bold: face(dejavu::sans_mono::bold()),
            masks: HashMap::new(),
            missing: BTreeSet::new(),
        }
    }

    /// The characters that the font does not have, so far.
    pub(super) fn missing(&self) -> &BTreeSet<char> {
        &self.missing
    }

    /// The masks of a character and the marks on it; none for a blank. Marks that the font does not have are left out.
    pub(super) fn masks(&mut self, text: &str, columns: u16, style: FontStyle) -> Vec<GlyphMask> {
        let mut masks = Vec::new();
        for (at, character) in text.chars().enumerate() {
            if at == 0 || self.regular.glyph_index(character).is_some() {
                masks.extend(self.mask(GlyphKey { character, columns, style }));
            }
        }
        masks
    }

    fn mask(&mut self, key: GlyphKey) -> Option<GlyphMask> {
        if let Some(known) = self.masks.get(&key) {
            return known.clone();
        }
        let mask = self.draw(key);
        self.masks.insert(key, mask.clone());
        mask
    }

    fn draw(&mut self, GlyphKey { character, columns, style }: GlyphKey) -> Option<GlyphMask> {
        let width = usize::from(columns) * CELL.0;
        if let dots @ 0..=0xff = u32::from(character).wrapping_sub(u32::from(BRAILLE)) {
            return Some(braille(dots, width));
        }
        let faces = match style.bold {
            true => [&self.bold, &self.regular],
            false => [&self.regular, &self.bold],
        };
        let found = faces.iter().find_map(|face| Some((*face, face.glyph_index(character)?)));
        let Some((face, glyph)) = found else {
            self.missing.insert(character);
            return Some(hollow_box(width));
        };
        let leans = style.italic && !LINE_DRAWINGS.contains(&character);
        outlined(face, glyph, width, if leans { SLANT } else { 0.0 })
    }
}

/// What stands for a character that the font does not have.
fn hollow_box(width: usize) -> GlyphMask {
    let is_edge = |x: usize, y: usize| {
        let (columns, rows) = (1..=width - 2, 3..=CELL.1 - 4);
        let is_inside = columns.contains(&x) && rows.contains(&y);
        is_inside && (x == 1 || x == width - 2 || y == *rows.start() || y == *rows.end())
    };
    mask_of(width, |x, y| if is_edge(x, y) { COVERED } else { 0 })
}

/// Two columns of four dots.
fn braille(dots: u32, width: usize) -> GlyphMask {
    let (wide, high) = (width / 2, CELL.1 / BRAILLE_DOTS.len());
    mask_of(width, |x, y| {
        let (left, right) = BRAILLE_DOTS[y / high];
        let bit = if x < wide { left } else { right };
        let is_dot = (1..wide - 1).contains(&(x % wide)) && (1..high - 1).contains(&(y % high));
        if is_dot && dots & bit != 0 { COVERED } else { 0 }
    })
}

fn mask_of(width: usize, coverage: impl Fn(usize, usize) -> u8) -> GlyphMask {
    (0..width * CELL.1).map(|at| coverage(at % width, at / width)).collect()
}

/// A character of the font in the middle of its columns; `None` if it is blank.
fn outlined(face: &Face<'_>, glyph: GlyphId, width: usize, slant: f32) -> Option<GlyphMask> {
    let height = f32::from(face.ascender()) - f32::from(face.descender());
    let advance = f32::from(face.glyph_hor_advance(glyph)?).max(1.0);
    let scale = (CELL.0 as f32 / advance, CELL.1 as f32 / height);
    let margin = CELL.0;
    let mut pen = OutlinePen {
        raster: Rasterizer::new(width + 2 * margin, CELL.1),
        scale,
        left: margin as f32 + (width - CELL.0) as f32 / 2.0,
        baseline: f32::from(face.ascender()) * scale.1,
        slant,
        start: point(0.0, 0.0),
        at: point(0.0, 0.0),
    };
    face.outline_glyph(glyph, &mut pen)?;
    let mut mask = vec![0; width * CELL.1];
    pen.raster.for_each_pixel_2d(|x, y, coverage| {
        let x = (x as usize).checked_sub(margin).filter(|x| *x < width);
        if let (Some(x), true) = (x, (y as usize) < CELL.1) {
            let coverage = coverage.clamp(0.0, 1.0) * f32::from(COVERED);
            mask[y as usize * width + x] = coverage.round() as u8;
        }
    });
    Some(mask.into())
}

/// Draws an outline in units of the font to pixels.
struct OutlinePen {
    raster: Rasterizer,
    scale: (f32, f32),
    /// Where the character begins, in pixels.
    left: f32,
    baseline: f32,
    slant: f32,
    start: Point,
    at: Point,
}

impl OutlinePen {
    fn pixel(&self, x: f32, y: f32) -> Point {
        let across = self.left + (x + self.slant * y) * self.scale.0;
        // The rasterizer takes what is left and right of its rows for parts of other rows.
        let across = across.clamp(0.0, self.raster.dimensions().0 as f32 - 1.0);
        point(across, self.baseline - y * self.scale.1)
    }
}

impl OutlineBuilder for OutlinePen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.at = self.pixel(x, y);
        self.start = self.at;
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let to = self.pixel(x, y);
        self.raster.draw_line(self.at, to);
        self.at = to;
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let (control, to) = (self.pixel(x1, y1), self.pixel(x, y));
        self.raster.draw_quad(self.at, control, to);
        self.at = to;
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let controls = (self.pixel(x1, y1), self.pixel(x2, y2));
        let to = self.pixel(x, y);
        self.raster.draw_cubic(self.at, controls.0, controls.1, to);
        self.at = to;
    }

    fn close(&mut self) {
        self.raster.draw_line(self.at, self.start);
        self.at = self.start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(text: &str, columns: u16) -> GlyphMask {
        GlyphFont::new().masks(text, columns, FontStyle::default()).remove(0)
    }

    /// One row of a mask, or one column.
    fn row(mask: &[u8], y: usize) -> &[u8] {
        &mask[y * CELL.0..][..CELL.0]
    }

    fn column(mask: &[u8], x: usize) -> Vec<u8> {
        mask.chunks(CELL.0).map(|row| row[x]).collect()
    }

    #[test]
    fn blocks_fill_exactly_their_part_of_the_cell() {
        assert!(mask("█", 1).iter().all(|pixel| *pixel == COVERED));
        let lower = mask("▄", 1);
        assert!(row(&lower, 0).iter().all(|pixel| *pixel == 0));
        assert!(row(&lower, CELL.1 - 1).iter().all(|pixel| *pixel == COVERED));
        let left = mask("▌", 1);
        assert!(column(&left, 0).iter().all(|pixel| *pixel == COVERED));
        assert!(column(&left, CELL.0 - 1).iter().all(|pixel| *pixel == 0));
    }

    #[test]
    fn lines_meet_at_the_edges_of_their_cells() {
        let horizontal = mask("─", 1);
        let across = column(&horizontal, 0);
        assert!(across.iter().any(|pixel| *pixel > COVERED / 2), "{across:?}");
        assert!((1..CELL.0).all(|x| column(&horizontal, x) == across));
        let vertical = mask("│", 1);
        let down = row(&vertical, 0).to_vec();
        assert!(down.iter().any(|pixel| *pixel > COVERED / 2), "{down:?}");
        assert!((1..CELL.1).all(|y| *row(&vertical, y) == down));
        let corner = mask("┌", 1);
        assert_eq!(column(&corner, CELL.0 - 1), across);
        assert_eq!(row(&corner, CELL.1 - 1), down);
        assert!(column(&corner, 0).iter().chain(row(&corner, 0)).all(|pixel| *pixel == 0));
    }

    #[test]
    fn a_character_that_the_font_lacks_is_a_box_and_is_told_once() {
        let mut font = GlyphFont::new();
        for _ in 0..2 {
            let [mask] = &font.masks("漢", 2, FontStyle::default())[..] else { panic!("no mask") };
            assert_eq!(mask.len(), 2 * CELL.0 * CELL.1);
            let top: Vec<_> = mask.chunks(2 * CELL.0).nth(3).unwrap().to_vec();
            let full = vec![COVERED; 2 * CELL.0 - 2];
            assert_eq!(top, [&[0], &full[..], &[0]].concat());
        }
        assert_eq!(font.missing(), &BTreeSet::from(['漢']));
        assert!(font.masks(" ", 1, FontStyle::default()).is_empty());
        assert!(font.masks("\u{a0}", 1, FontStyle::default()).is_empty());
        // A choice of colour that only some fonts know.
        assert_eq!(font.masks("✓\u{fe0f}", 1, FontStyle::default()).len(), 1);
        assert_eq!(font.missing().len(), 1);
    }

    #[test]
    fn braille_has_a_dot_for_each_bit() {
        let dots = |character: &str| mask(character, 1).iter().filter(|it| **it > 0).count();
        let one = dots("⠁");
        assert!(one > 0);
        assert_eq!([dots("⠀"), dots("⠋"), dots("⣿")], [0, 3 * one, 8 * one]);
        let first = mask("⠁", 1);
        assert!(
            first
                .iter()
                .enumerate()
                .all(|(at, pixel)| *pixel == 0
                    || at % CELL.0 < CELL.0 / 2 && at / CELL.0 < CELL.1 / 4)
        );
    }

    #[test]
    fn bold_is_heavier_and_italic_leans_to_the_right() {
        let mut font = GlyphFont::new();
        let mut drawn = |bold, italic| font.masks("l", 1, FontStyle { bold, italic }).remove(0);
        let weight = |mask: &[u8]| mask.iter().map(|pixel| u32::from(*pixel)).sum::<u32>();
        let (plain, bold, italic) = (drawn(false, false), drawn(true, false), drawn(false, true));
        assert!(weight(&bold) > weight(&plain));
        let center = |row: &[u8]| {
            let sum: usize = row.iter().enumerate().map(|(x, it)| x * usize::from(*it)).sum();
            sum as f32 / row.iter().map(|it| usize::from(*it)).sum::<usize>() as f32
        };
        let lean = |mask: &[u8]| center(row(mask, 5)) - center(row(mask, 13));
        assert!(lean(&italic) > lean(&plain) + 1.0);
        let block = font.masks("█", 1, FontStyle { bold: true, italic: true }).remove(0);
        assert!(block.iter().all(|pixel| *pixel == COVERED));
    }
}
