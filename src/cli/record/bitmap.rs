//! A screen as pixels.

use crate::cli::record::font::{CELL, COVERED, FontStyle, GlyphFont};
use crate::cli::record::palette::{BACKGROUND, FOREGROUND, Rgb, blend, colours};
use crate::core::frame::Size;
use crate::core::frame::line::{Attributes, Glyph, Line, Style};

/// The room around the screen, in pixels.
const MARGIN: usize = 10;

/// A part of a bitmap, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PixelArea {
    pub(super) left: usize,
    pub(super) top: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// The pixels of a screen, row by row from the top.
#[derive(Clone, Debug)]
pub(super) struct Bitmap {
    width: usize,
    cols: u16,
    pixels: Vec<Rgb>,
}

impl Bitmap {
    /// An empty screen.
    pub(super) fn new(Size { rows, cols }: Size) -> Self {
        let width = usize::from(cols) * CELL.0 + 2 * MARGIN;
        let height = usize::from(rows) * CELL.1 + 2 * MARGIN;
        Self { width, cols, pixels: vec![BACKGROUND; width * height] }
    }

    pub(super) fn width(&self) -> usize {
        self.width
    }

    pub(super) fn height(&self) -> usize {
        self.pixels.len() / self.width
    }

    /// All of it.
    pub(super) fn area(&self) -> PixelArea {
        PixelArea { left: 0, top: 0, width: self.width, height: self.height() }
    }

    /// Becomes the same as another one of this size in an area.
    pub(super) fn copy_area(&mut self, from: &Self, area: PixelArea) {
        let rows = self.pixels.chunks_mut(self.width).zip(from.pixels.chunks(self.width));
        for (to, from) in rows.skip(area.top).take(area.height) {
            let columns = area.left..area.left + area.width;
            to[columns.clone()].copy_from_slice(&from[columns]);
        }
    }

    /// The pixels of an area, row by row from the top.
    pub(super) fn pixels_in(&self, area: PixelArea) -> impl Iterator<Item = Rgb> {
        let PixelArea { left, top, width, height } = area;
        let rows = self.pixels.chunks(self.width).skip(top).take(height);
        rows.flat_map(move |row| &row[left..left + width]).copied()
    }

    /// Where a row of the screen is.
    pub(super) fn area_of_row(&self, row: usize) -> PixelArea {
        let (left, top) = (MARGIN, MARGIN + row * CELL.1);
        PixelArea { left, top, width: usize::from(self.cols) * CELL.0, height: CELL.1 }
    }

    /// Draws a row of the screen, and a cursor on one of its columns.
    pub(super) fn draw_row(
        &mut self,
        row: usize,
        line: &Line,
        cursor: Option<u16>,
        font: &mut GlyphFont,
    ) {
        self.fill(self.area_of_row(row), |_| BACKGROUND);
        for run in &line.runs {
            let (_, background) = colours(run.style);
            self.fill(self.area_of_cells(row, run.column, run.columns), |_| background);
        }
        for glyph in line.glyphs() {
            self.draw_glyph(row, &glyph, line.style_at(glyph.column), font);
        }
        for run in &line.runs {
            self.draw_lines(self.area_of_cells(row, run.column, run.columns), run.style);
        }
        if let Some(column) = cursor {
            let area = self.area_of_cells(row, column, 1);
            self.fill(area, |below| blend(below, FOREGROUND, 1, 2));
        }
    }

    fn draw_glyph(&mut self, row: usize, glyph: &Glyph<'_>, style: Style, font: &mut GlyphFont) {
        let has = |bit| style.attributes.contains(bit);
        if has(Attributes::CONCEALED) {
            return;
        }
        let font_style = FontStyle { bold: has(Attributes::BOLD), italic: has(Attributes::ITALIC) };
        let area = self.area_of_cells(row, glyph.column, glyph.columns);
        let colour = ink(style);
        for mask in font.masks(glyph.text, glyph.columns, font_style) {
            let columns = usize::from(glyph.columns) * CELL.0;
            for (y, covered) in mask.chunks(columns).enumerate() {
                let start = (area.top + y) * self.width + area.left;
                let pixels = &mut self.pixels[start..start + area.width];
                for (pixel, coverage) in pixels.iter_mut().zip(covered) {
                    *pixel = blend(*pixel, colour, u32::from(*coverage), u32::from(COVERED));
                }
            }
        }
    }

    /// Draws the lines below and through text.
    fn draw_lines(&mut self, area: PixelArea, style: Style) {
        let has = |bit| style.attributes.contains(bit);
        let below = [
            (Attributes::UNDERLINE, &[17][..]),
            (Attributes::CURLY_UNDERLINE, &[17]),
            (Attributes::DOUBLE_UNDERLINE, &[16, 18]),
            (Attributes::STRIKE, &[11]),
        ];
        let colour = ink(style);
        for (_, rows) in below.into_iter().filter(|(bit, _)| has(*bit)) {
            for y in rows {
                self.fill(PixelArea { top: area.top + y, height: 1, ..area }, |_| colour);
            }
        }
    }

    /// The area of some cells of a row, as far as the screen goes.
    fn area_of_cells(&self, row: usize, column: u16, columns: u16) -> PixelArea {
        let column = column.min(self.cols);
        let columns = columns.min(self.cols - column);
        let area = self.area_of_row(row);
        let (left, width) = (area.left + usize::from(column) * CELL.0, usize::from(columns));
        PixelArea { left, width: width * CELL.0, ..area }
    }

    fn fill(&mut self, area: PixelArea, colour: impl Fn(Rgb) -> Rgb) {
        for row in self.pixels.chunks_mut(self.width).skip(area.top).take(area.height) {
            for pixel in &mut row[area.left..area.left + area.width] {
                *pixel = colour(*pixel);
            }
        }
    }
}

/// The colour of text.
fn ink(style: Style) -> Rgb {
    let (foreground, background) = colours(style);
    match style.attributes.contains(Attributes::DIM) {
        true => blend(background, foreground, 3, 5),
        false => foreground,
    }
}
