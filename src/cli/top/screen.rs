//! The terminal of `top`, painted as a whole.

use std::env;
use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::ops::Range;

use crate::cli::failure::CliFailure;
use crate::cli::output::put;
use crate::cli::raw_terminal::RawTerminal;

/// The alternate screen, without a cursor and without line wrap.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// What is shown.
#[derive(Debug)]
pub(super) struct Painting<'a> {
    pub(super) summary: &'a str,
    pub(super) head: &'a str,
    pub(super) rows: &'a [&'a str],
    /// The index of the selected row.
    pub(super) selected: usize,
    /// The last line of the screen.
    pub(super) bottom: &'a str,
}

/// A terminal that was taken over. Dropping it restores the terminal.
#[derive(Debug)]
pub(super) struct TopScreen {
    terminal: RawTerminal,
    coloured: bool,
}

impl TopScreen {
    /// Takes the terminal over. Returns none when standard input or output is not a terminal.
    pub(super) fn take() -> Result<Option<Self>, CliFailure> {
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return Ok(None);
        }
        let terminal = RawTerminal::open().map_err(CliFailure::Output)?;
        terminal.enter().map_err(CliFailure::Output)?;
        let coloured = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let screen = Self { terminal, coloured };
        put(ENTER)?;
        Ok(Some(screen))
    }

    pub(super) fn cols(&self) -> usize {
        self.terminal.size().1.into()
    }

    pub(super) fn paint(&self, painting: &Painting<'_>) -> Result<(), CliFailure> {
        let (height, width) = self.terminal.size();
        let (height, width) = (usize::from(height), usize::from(width));
        let mut text = "\x1b[H".to_owned();
        for (index, (style, line)) in lines(painting, height).into_iter().enumerate() {
            let line: String = line.chars().take(width).collect();
            let end = if index == 0 { "" } else { "\r\n" };
            let (on, off) = match style {
                LineStyle::Reverse if self.coloured => ("\x1b[7m", "\x1b[0m"),
                LineStyle::Bold if self.coloured => ("\x1b[1m", "\x1b[0m"),
                LineStyle::Plain | LineStyle::Reverse | LineStyle::Bold => ("", ""),
            };
            write!(text, "{end}{on}{line}{off}\x1b[K")
                .expect("text takes all that is written to it");
        }
        text.push_str("\x1b[J");
        put(&text)
    }

    /// Waits for keys. Returns 0 when the terminal is gone.
    pub(super) async fn read(&self, keys: &mut [u8]) -> usize {
        self.terminal.read(keys).await.unwrap_or(0)
    }
}

impl Drop for TopScreen {
    fn drop(&mut self) {
        self.terminal.leave();
        // A closed terminal cannot show anything.
        let _ = put(LEAVE);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineStyle {
    Plain,
    Reverse,
    Bold,
}

/// The lines of a screen of this height, from the top.
fn lines(painting: &Painting<'_>, height: usize) -> Vec<(LineStyle, String)> {
    let Painting { summary, head, rows, selected, bottom } = painting;
    let shown = visible(rows.len(), *selected, height.saturating_sub(3));
    let hidden = rows.len() - shown.len();
    let summary = match hidden {
        0 => (*summary).to_owned(),
        hidden => format!("{summary}, {hidden} not shown"),
    };
    let rows = shown.map(|index| match index == *selected {
        true => (LineStyle::Bold, format!("> {}", rows[index])),
        false => (LineStyle::Plain, format!("  {}", rows[index])),
    });
    let mut lines = vec![(LineStyle::Plain, summary), (LineStyle::Reverse, format!("  {head}"))];
    lines.extend(rows);
    lines.push((LineStyle::Plain, (*bottom).to_owned()));
    lines.truncate(height);
    lines
}

/// The rows that fit, the selected one among them.
fn visible(count: usize, selected: usize, room: usize) -> Range<usize> {
    let first = (selected + 1).saturating_sub(room).min(count);
    first..(first + room).min(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selected_row_is_always_among_those_that_fit() {
        assert_eq!(visible(3, 2, 10), 0..3);
        assert_eq!(visible(10, 0, 4), 0..4);
        assert_eq!(visible(10, 3, 4), 0..4);
        assert_eq!(visible(10, 9, 4), 6..10);
        assert_eq!(visible(0, 0, 4), 0..0);
        assert_eq!(visible(5, 2, 0), 3..3);
    }

    #[test]
    fn the_screen_says_how_many_rows_do_not_fit_and_ends_with_the_keys() {
        let rows = ["a", "b", "c"];
        let painting = Painting {
            summary: "3 sessions",
            head: "NAME",
            rows: &rows,
            selected: 1,
            bottom: "keys",
        };
        let shown =
            |height| lines(&painting, height).into_iter().map(|(_, line)| line).collect::<Vec<_>>();
        assert_eq!(shown(6), ["3 sessions", "  NAME", "  a", "> b", "  c", "keys"]);
        assert_eq!(shown(4), ["3 sessions, 2 not shown", "  NAME", "> b", "keys"]);
        assert_eq!(shown(1).len(), 1);
        assert!(shown(0).is_empty());
    }
}
