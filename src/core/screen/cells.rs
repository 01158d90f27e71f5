//! Reads rows of emulator cells as lines: text, runs of style, and whether the line wraps.
//!
//! A reader is reused, so that an unchanged row costs no allocation.

use std::sync::Arc;

use alacritty_terminal::grid::Row;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{Color as CellColor, NamedColor};

use crate::core::frame::history::HistoryRow;
use crate::core::frame::line::{Attributes, Color, Line, Link, Run, Style};
use crate::core::ids::Watermark;
use crate::core::screen::links::Links;

/// How many cells are read at once.
const ASCII_CELLS: usize = 64;

/// The flags that make a blank cell visible.
const DRAWN: Flags = Flags::INVERSE.union(Flags::ALL_UNDERLINES).union(Flags::STRIKEOUT);

/// Blinking text. The emulator has no flag for it, and keeps this one, which it does not use.
pub(crate) const BLINK: Flags = Flags::from_bits_retain(1 << 15);

/// The flags that a style is made of.
const STYLED: Flags = DRAWN
    .union(Flags::BOLD)
    .union(Flags::DIM)
    .union(Flags::ITALIC)
    .union(Flags::HIDDEN)
    .union(BLINK);

const FOREGROUND: CellColor = CellColor::Named(NamedColor::Foreground);
const BACKGROUND: CellColor = CellColor::Named(NamedColor::Background);

/// The buffers of the last row that was read.
#[derive(Debug, Default)]
pub(crate) struct RowReader {
    text: String,
    runs: Vec<Run>,
    links: Vec<Link>,
    wrapped: bool,
    /// The targets of the links in cells.
    pub(crate) targets: Links,
}

impl RowReader {
    pub(crate) fn read(&mut self, row: &Row<Cell>) {
        let cells = &row[..];
        self.text.clear();
        self.runs.clear();
        self.links.clear();
        self.wrapped = cells.last().is_some_and(|cell| cell.flags.contains(Flags::WRAPLINE));
        let painted = cells.iter().rposition(|cell| !is_plain(cell)).map_or(0, |at| at + 1);
        let written = (0..painted).rev().find(|at| !is_blank(&cells[*at]) && !is_torn(cells, *at));
        let written = written.map_or(0, |at| at + 1);
        if self.read_text(cells, written) {
            self.targets.read(&cells[..written], &mut self.links);
        }
        if cells[..painted].iter().any(has_style) {
            self.read_runs(&cells[..painted], written);
        }
    }

    /// Reads the text, and returns whether a cell has more than its character and look.
    fn read_text(&mut self, cells: &[Cell], written: usize) -> bool {
        let mut more = false;
        self.text.reserve(written);
        for start in (0..written).step_by(ASCII_CELLS) {
            let end = written.min(start + ASCII_CELLS);
            if self.read_ascii(&cells[start..end]) {
                continue;
            }
            for at in start..end {
                let cell = &cells[at];
                more |= cell.extra.is_some();
                match place(cells, at) {
                    CellPlace::Character => {
                        self.text.push(if cell.c == '\t' { ' ' } else { cell.c });
                        self.text.extend(cell.zerowidth().unwrap_or_default());
                    }
                    CellPlace::Concealed | CellPlace::Torn => self.text.push(' '),
                    CellPlace::Nothing => {}
                }
            }
        }
        self.text.truncate(self.text.trim_end_matches(' ').len());
        more
    }

    /// Reads these cells if each has a printable ASCII character and no more, as nearly all have.
    fn read_ascii(&mut self, cells: &[Cell]) -> bool {
        let mut bytes = [0; ASCII_CELLS];
        let mut single = true;
        for (byte, cell) in bytes.iter_mut().zip(cells) {
            *byte = cell.c as u8;
            let printable = (' '..='~').contains(&cell.c);
            single &= printable & !cell.flags.intersects(UNUSUAL) & cell.extra.is_none();
        }
        let text = str::from_utf8(&bytes[..cells.len()]).ok().filter(|_| single);
        self.text.push_str(text.unwrap_or_default());
        text.is_some()
    }

    fn read_runs(&mut self, cells: &[Cell], written: usize) {
        let mut at = 0;
        while at < cells.len() {
            let first = &cells[at];
            let (end, style) = if at < written {
                (written, style(first))
            } else {
                (cells.len(), blank_style(first))
            };
            let alike = cells[at..end].iter().take_while(|cell| looks_like(cell, first)).count();
            self.add_run(Run { column: at as u16, columns: alike as u16, style });
            at += alike;
        }
    }

    fn add_run(&mut self, run: Run) {
        let before = self.runs.last_mut().filter(|last| last.column + last.columns == run.column);
        match before.filter(|last| last.style == run.style) {
            Some(last) => last.columns += run.columns,
            None if run.style == Style::default() => {}
            None => self.runs.push(run),
        }
    }

    pub(crate) fn equals(&self, line: &Line) -> bool {
        *self.text == *line.text
            && *self.runs == *line.runs
            && *self.links == *line.links
            && self.wrapped == line.wrapped
    }

    pub(crate) fn row(&self, changed: Watermark) -> HistoryRow<'_> {
        let Self { text, runs, links, wrapped, .. } = self;
        HistoryRow { text, runs, links, wrapped: *wrapped, changed }
    }

    pub(crate) fn line(&self) -> Line {
        Line {
            // One for all empty rows.
            text: if self.text.is_empty() { Arc::default() } else { self.text.as_str().into() },
            runs: self.runs.as_slice().into(),
            links: self.links.as_slice().into(),
            wrapped: self.wrapped,
        }
    }
}

/// The flags of cells whose neighbours belong to them.
pub(crate) const WIDE: Flags =
    Flags::WIDE_CHAR.union(Flags::WIDE_CHAR_SPACER).union(Flags::LEADING_WIDE_CHAR_SPACER);

/// The flags of cells whose text may differ from their character.
const UNUSUAL: Flags = WIDE.union(Flags::HIDDEN);

/// What a cell adds to the text.
enum CellPlace {
    Character,
    /// A hidden cell; each half of a wide character counts separately.
    Concealed,
    /// Half of a wide character whose other half was overwritten.
    Torn,
    Nothing,
}

fn place(cells: &[Cell], at: usize) -> CellPlace {
    let flags = cells[at].flags;
    if flags.contains(Flags::HIDDEN) {
        return CellPlace::Concealed;
    }
    let has = |at: Option<usize>, flag| {
        at.and_then(|at| cells.get(at)).is_some_and(|cell| cell.flags.contains(flag))
    };
    if flags.contains(Flags::WIDE_CHAR_SPACER) {
        let owned = has(at.checked_sub(1), Flags::WIDE_CHAR);
        return if owned { CellPlace::Nothing } else { CellPlace::Torn };
    }
    if flags.contains(Flags::WIDE_CHAR) && !has(Some(at + 1), Flags::WIDE_CHAR_SPACER) {
        return CellPlace::Torn;
    }
    CellPlace::Character
}

/// Whether the cell is the first half of a wide character that lost the other.
fn is_torn(cells: &[Cell], at: usize) -> bool {
    cells[at].flags.contains(Flags::WIDE_CHAR) && matches!(place(cells, at), CellPlace::Torn)
}

/// Whether the cell has no readable text.
fn is_blank(cell: &Cell) -> bool {
    if cell.flags.contains(Flags::HIDDEN) {
        return true;
    }
    (cell.c == ' ' || cell.c == '\t')
        && !cell.flags.contains(Flags::WIDE_CHAR)
        && cell.zerowidth().is_none_or(<[char]>::is_empty)
}

/// Whether the cell looks the same as an empty one.
#[inline(always)]
fn is_plain(cell: &Cell) -> bool {
    cell.c == ' '
        && !cell.flags.intersects(DRAWN.union(WIDE))
        && matches!(cell.bg, BACKGROUND)
        && cell.extra.is_none()
}

/// Whether the cell's style differs from the plain style.
#[inline(always)]
fn has_style(cell: &Cell) -> bool {
    cell.flags.intersects(STYLED)
        || !matches!(cell.fg, FOREGROUND)
        || !matches!(cell.bg, BACKGROUND)
}

fn looks_like(cell: &Cell, other: &Cell) -> bool {
    cell.fg == other.fg
        && cell.bg == other.bg
        && cell.flags.intersection(STYLED) == other.flags.intersection(STYLED)
}

pub(crate) fn style(cell: &Cell) -> Style {
    Style {
        foreground: color(cell.fg),
        background: color(cell.bg),
        attributes: attributes(cell.flags),
    }
}

/// The style of a cell after the end of the text, without what a blank cell does not show.
fn blank_style(cell: &Cell) -> Style {
    if cell.flags.intersects(DRAWN.union(Flags::HIDDEN)) {
        return style(cell);
    }
    Style { background: color(cell.bg), ..Style::default() }
}

/// Converts a colour to the one that frames use. Named palette colours become indexed ones.
pub(crate) fn color(color: CellColor) -> Color {
    match color {
        CellColor::Indexed(index) => Color::Indexed(index),
        CellColor::Spec(rgb) => Color::Rgb(rgb.r, rgb.g, rgb.b),
        // The sixteen named palette colours come first; the rest are the terminal's own.
        CellColor::Named(name) => match u8::try_from(name as usize) {
            Ok(index) => Color::Indexed(index),
            Err(_) => Color::Default,
        },
    }
}

fn attributes(flags: Flags) -> Attributes {
    if !flags.intersects(STYLED) {
        return Attributes::default();
    }
    const PAIRS: [(Flags, Attributes); 12] = [
        (Flags::BOLD, Attributes::BOLD),
        (Flags::DIM, Attributes::DIM),
        (Flags::ITALIC, Attributes::ITALIC),
        (Flags::UNDERLINE, Attributes::UNDERLINE),
        (Flags::DOTTED_UNDERLINE, Attributes::UNDERLINE),
        (Flags::DASHED_UNDERLINE, Attributes::UNDERLINE),
        (Flags::DOUBLE_UNDERLINE, Attributes::DOUBLE_UNDERLINE),
        (Flags::UNDERCURL, Attributes::CURLY_UNDERLINE),
        (Flags::INVERSE, Attributes::INVERSE),
        (Flags::HIDDEN, Attributes::CONCEALED),
        (Flags::STRIKEOUT, Attributes::STRIKE),
        (BLINK, Attributes::BLINK),
    ];
    let set = PAIRS.iter().filter(|(flag, _)| flags.contains(*flag));
    set.fold(Attributes::default(), |all, (_, attribute)| all.with(*attribute))
}
