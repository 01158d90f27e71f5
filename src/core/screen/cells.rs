//! Reads rows of emulator cells as lines: text, runs of style, and whether the line wraps.
//!
//! A reader is reused, so that an unchanged row costs no allocation.

use alacritty_terminal::grid::Row;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{Color as CellColor, NamedColor};

use crate::core::frame::history::HistoryRow;
use crate::core::frame::line::{Attributes, Color, Line, Link, Run, Style};
use crate::core::ids::Watermark;
use crate::core::screen::links::Links;

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
        for (at, cell) in cells[..written].iter().enumerate() {
            // Nearly every cell is a single plain character.
            if cell.extra.is_none() && !cell.flags.intersects(UNUSUAL) && cell.c != '\t' {
                self.text.push(cell.c);
                continue;
            }
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
        self.text.truncate(self.text.trim_end_matches(' ').len());
        more
    }

    fn read_runs(&mut self, cells: &[Cell], written: usize) {
        let mut open: Option<(Run, &Cell)> = None;
        for (at, cell) in cells.iter().enumerate() {
            if at != written
                && let Some((run, first)) = &mut open
                && looks_like(cell, first)
            {
                run.columns += 1;
                continue;
            }
            let style = if at < written { style(cell) } else { blank_style(cell) };
            match &mut open {
                Some((run, _)) if run.style == style => run.columns += 1,
                Some(_) | None => {
                    self.close(open.take());
                    open = Some((Run { column: at as u16, columns: 1, style }, cell));
                }
            }
        }
        self.close(open);
    }

    fn close(&mut self, open: Option<(Run, &Cell)>) {
        self.runs.extend(open.map(|(run, _)| run).filter(|run| run.style != Style::default()));
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
            text: self.text.as_str().into(),
            runs: self.runs.as_slice().into(),
            links: self.links.as_slice().into(),
            wrapped: self.wrapped,
        }
    }
}

const WIDE: Flags =
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

fn style(cell: &Cell) -> Style {
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
