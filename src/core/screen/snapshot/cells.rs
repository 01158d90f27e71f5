//! The stored form of one screen's cells and cursors.
//!
//! A row is stretches of cells that look alike, so that blanks cost nothing and text little more than
//! itself. Named palette colours are stored as indexed ones.

use std::borrow::Cow;

use alacritty_terminal::grid::{Cursor, Dimensions, Grid};
use alacritty_terminal::index::{Column, Line, Point};
use alacritty_terminal::term::cell::{Cell, Flags, Hyperlink};
use alacritty_terminal::vte::ansi::{
    CharsetIndex, Color as CellColor, NamedColor, Rgb, StandardCharset,
};
use serde::{Deserialize, Serialize};

use crate::core::frame::kept::{KeptColor, KeptLink};
use crate::core::frame::line::{Color, Link as FrameLink};
use crate::core::screen::cells;
use crate::core::screen::links::Links;

/// The flags of a cell. The index of each is its bit in a snapshot.
const FLAGS: [Flags; 16] = [
    Flags::INVERSE,
    Flags::BOLD,
    Flags::ITALIC,
    Flags::UNDERLINE,
    Flags::WRAPLINE,
    Flags::WIDE_CHAR,
    Flags::WIDE_CHAR_SPACER,
    Flags::DIM,
    Flags::HIDDEN,
    Flags::STRIKEOUT,
    Flags::LEADING_WIDE_CHAR_SPACER,
    Flags::DOUBLE_UNDERLINE,
    Flags::UNDERCURL,
    Flags::DOTTED_UNDERLINE,
    Flags::DASHED_UNDERLINE,
    cells::BLINK,
];

pub(crate) const CHARSETS: [CharsetIndex; 4] =
    [CharsetIndex::G0, CharsetIndex::G1, CharsetIndex::G2, CharsetIndex::G3];

pub(crate) type Damage = &'static str;

/// How a cell looks, without its character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CellLook {
    foreground: KeptColor,
    background: KeptColor,
    flags: u16,
}

/// Cells that look alike. Cells beyond the text are blank.
#[derive(Debug, Serialize, Deserialize)]
struct KeptStretch<'a> {
    look: CellLook,
    columns: u16,
    #[serde(borrow)]
    text: Cow<'a, str>,
}

/// Combining marks on the character in a column.
#[derive(Debug, Serialize, Deserialize)]
struct KeptMarks<'a> {
    column: u16,
    #[serde(borrow)]
    marks: Cow<'a, str>,
}

/// A row; cells after the last stretch are empty.
#[derive(Debug, Serialize, Deserialize)]
struct KeptCells<'a> {
    #[serde(borrow)]
    stretches: Vec<KeptStretch<'a>>,
    marks: Vec<KeptMarks<'a>>,
    links: Vec<KeptLink<'a>>,
}

/// A cursor: the position, and the look and the link of the next character.
#[derive(Debug, Serialize, Deserialize)]
struct KeptCursor<'a> {
    row: u16,
    col: u16,
    look: CellLook,
    /// One bit for each character set that maps to line drawing.
    charsets: u8,
    needs_wrap: bool,
    #[serde(borrow)]
    target: Option<Cow<'a, str>>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct KeptGrid<'a> {
    /// How many rows lie above the screen, scrolled off behind the alternate one.
    above: u16,
    /// Rows after the last one are empty.
    #[serde(borrow)]
    rows: Vec<KeptCells<'a>>,
    cursor: KeptCursor<'a>,
    saved: KeptCursor<'a>,
}

impl KeptGrid<'static> {
    pub(crate) fn of(grid: &Grid<Cell>, links: &Links) -> Self {
        let lines = -(grid.history_size() as i32)..grid.screen_lines() as i32;
        let row = |line| KeptCells::of(&grid[Line(line)][..], links);
        let mut rows: Vec<_> = lines.map(row).collect();
        let used = rows.iter().rposition(|row| !row.is_empty()).map_or(0, |at| at + 1);
        rows.truncate(used);
        Self { above: grid.history_size() as u16, rows, ..Self::without_rows(grid, links) }
    }

    /// Stores only the cursors, for a screen that is cleared before it is shown again.
    pub(crate) fn without_rows(grid: &Grid<Cell>, links: &Links) -> Self {
        let cursor = KeptCursor::of(&grid.cursor, links);
        let saved = KeptCursor::of(&grid.saved_cursor, links);
        Self { above: 0, rows: Vec::new(), cursor, saved }
    }
}

impl KeptGrid<'_> {
    /// Writes rows and cursors to an empty screen, with at most `above_max` rows above it.
    pub(crate) fn put(
        &self,
        grid: &mut Grid<Cell>,
        above_max: usize,
        links: &mut Links,
    ) -> Result<(), Damage> {
        let (above, lines) = (usize::from(self.above), grid.screen_lines());
        if above > above_max || self.rows.len() > above + lines {
            return Err("a screen has too many rows");
        }
        let region = Line(0)..Line(lines as i32);
        for line in 0..lines {
            // The alternate screen starts with the cursor's colour.
            grid[Line(line as i32)][..].fill(Cell::default());
        }
        for index in 0..above.max(self.rows.len()) {
            let line = Line(index.saturating_sub(above) as i32);
            let cells = &mut grid[line][..];
            if let Some(row) = self.rows.get(index) {
                row.put(cells, links)?;
            }
            if index < above {
                grid.scroll_up(&region, 1);
            }
        }
        grid.cursor = self.cursor.cursor(grid, links)?;
        grid.saved_cursor = self.saved.cursor(grid, links)?;
        Ok(())
    }
}

impl KeptCells<'static> {
    fn of(cells: &[Cell], links: &Links) -> Self {
        let blank = Cell::default();
        let looks_empty = |cell: &Cell| cell.c == ' ' && look_alike(cell, &blank);
        let used = cells.iter().rposition(|cell| !looks_empty(cell)).map_or(0, |at| at + 1);
        let alike = cells[..used].chunk_by(look_alike);
        let marked = cells.iter().enumerate().filter_map(|(column, cell)| {
            let marks: String = cell.zerowidth()?.iter().collect();
            (!marks.is_empty()).then(|| KeptMarks { column: column as u16, marks: marks.into() })
        });
        let mut linked = Vec::new();
        links.read(cells, &mut linked);
        Self {
            stretches: alike.map(KeptStretch::of).collect(),
            marks: marked.collect(),
            links: linked.iter().map(|link| KeptLink::of(link).into_owned()).collect(),
        }
    }
}

impl KeptCells<'_> {
    fn is_empty(&self) -> bool {
        self.stretches.is_empty() && self.marks.is_empty() && self.links.is_empty()
    }

    fn put(&self, cells: &mut [Cell], links: &mut Links) -> Result<(), Damage> {
        let mut rest = &mut *cells;
        for stretch in &self.stretches {
            let (these, behind) = rest
                .split_at_mut_checked(stretch.columns.into())
                .ok_or("a row has too many columns")?;
            stretch.put(these)?;
            rest = behind;
        }
        for KeptMarks { column, marks } in &self.marks {
            let cell = cells.get_mut(usize::from(*column)).ok_or("a mark lies beside its row")?;
            marks.chars().for_each(|mark| cell.push_zerowidth(mark));
        }
        for KeptLink { column, columns, target } in &self.links {
            let columns = usize::from(*column)..usize::from(*column) + usize::from(*columns);
            let linked = cells.get_mut(columns).ok_or("a link lies beside its row")?;
            let link = opened(links, target)?;
            linked.iter_mut().for_each(|cell| cell.set_hyperlink(Some(link.clone())));
        }
        Ok(())
    }
}

fn opened(links: &mut Links, target: &str) -> Result<Hyperlink, Damage> {
    let allowed = FrameLink::is_allowed(target).then(|| links.open(target).into());
    allowed.ok_or("a link has a target that no terminal may show")
}

impl KeptStretch<'static> {
    fn of(cells: &[Cell]) -> Self {
        let text: String = cells.iter().map(|cell| cell.c).collect();
        let text = text.trim_end_matches(' ').to_owned().into();
        Self { look: CellLook::of(&cells[0]), columns: cells.len() as u16, text }
    }
}

impl KeptStretch<'_> {
    fn put(&self, cells: &mut [Cell]) -> Result<(), Damage> {
        let template = self.look.template();
        let mut characters = self.text.chars();
        for cell in cells {
            *cell = Cell { c: characters.next().unwrap_or(' '), ..template.clone() };
            if cell.c.is_control() && cell.c != '\t' {
                return Err("a cell has a control character");
            }
        }
        characters.next().map_or(Ok(()), |_| Err("a stretch has more text than columns"))
    }
}

/// Whether two cells are stored with the same look. Most neighbours are equal in the emulator already,
/// which costs a fraction of the conversion.
fn look_alike(one: &Cell, other: &Cell) -> bool {
    (one.fg, one.bg, one.flags) == (other.fg, other.bg, other.flags)
        || CellLook::of(one) == CellLook::of(other)
}

impl CellLook {
    fn of(cell: &Cell) -> Self {
        let bit = |(at, flag): (usize, &Flags)| u16::from(cell.flags.contains(*flag)) << at;
        Self {
            foreground: cells::color(cell.fg).into(),
            background: cells::color(cell.bg).into(),
            flags: FLAGS.iter().enumerate().map(bit).sum(),
        }
    }

    /// A blank cell with this look.
    fn template(self) -> Cell {
        let set = FLAGS.iter().enumerate().filter(|(at, _)| self.flags & 1 << at != 0);
        Cell {
            fg: cell_color(self.foreground, NamedColor::Foreground),
            bg: cell_color(self.background, NamedColor::Background),
            flags: set.map(|(_, flag)| *flag).collect(),
            ..Cell::default()
        }
    }
}

fn cell_color(color: KeptColor, default: NamedColor) -> CellColor {
    match color.into() {
        Color::Default => CellColor::Named(default),
        Color::Indexed(index) => CellColor::Indexed(index),
        Color::Rgb(r, g, b) => CellColor::Spec(Rgb { r, g, b }),
    }
}

impl KeptCursor<'static> {
    fn of(cursor: &Cursor<Cell>, links: &Links) -> Self {
        let lines = |index| cursor.charsets[index] != StandardCharset::Ascii;
        let bit = |(at, index)| u8::from(lines(index)) << at;
        Self {
            row: cursor.point.line.0 as u16,
            col: cursor.point.column.0 as u16,
            look: CellLook::of(&cursor.template),
            charsets: CHARSETS.into_iter().enumerate().map(bit).sum(),
            needs_wrap: cursor.input_needs_wrap,
            target: links.target(&cursor.template).map(|target| target.to_string().into()),
        }
    }
}

impl KeptCursor<'_> {
    fn cursor(&self, grid: &Grid<Cell>, links: &mut Links) -> Result<Cursor<Cell>, Damage> {
        let point = Point::new(Line(self.row.into()), Column(self.col.into()));
        if point.line >= grid.screen_lines() || point.column >= grid.columns() {
            return Err("a cursor lies beside the screen");
        }
        let mut cursor = Cursor { point, template: self.look.template(), ..Cursor::default() };
        cursor.input_needs_wrap = self.needs_wrap;
        if let Some(target) = &self.target {
            cursor.template.set_hyperlink(Some(opened(links, target)?));
        }
        for (at, index) in CHARSETS.into_iter().enumerate() {
            if self.charsets & 1 << at != 0 {
                cursor.charsets[index] = StandardCharset::SpecialCharacterAndLineDrawing;
            }
        }
        Ok(cursor)
    }
}
