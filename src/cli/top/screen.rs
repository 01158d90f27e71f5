//! Takes over the user's terminal for `top`, and restores it when dropped.

use std::env;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use crate::cli::failure::Failure;
use crate::cli::raw_terminal::RawTerminal;

/// The alternate screen, without a cursor and without line wrap.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
/// The keys that leave `top`; the last one is C-c.
const LEAVING: [u8; 3] = [b'q', b'Q', 0x03];

/// A terminal that was taken over. Dropping it restores the terminal.
#[derive(Debug)]
pub(super) struct Screen {
    terminal: RawTerminal,
    coloured: bool,
}

impl Screen {
    /// Takes the terminal over. Returns none when standard input or output is not a terminal.
    ///
    /// # Errors
    /// The terminal's error.
    pub(super) fn take() -> Result<Option<Self>, Failure> {
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return Ok(None);
        }
        let terminal = RawTerminal::open().map_err(Failure::Output)?;
        terminal.enter().map_err(Failure::Output)?;
        let coloured = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let screen = Self { terminal, coloured };
        put(ENTER)?;
        Ok(Some(screen))
    }

    /// Shows only these lines; the second one is the head of a table.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(super) fn paint(&self, lines: &[&str]) -> Result<(), Failure> {
        let (height, width) = self.terminal.size();
        let (height, width) = (usize::from(height), usize::from(width));
        let (on, off) = if self.coloured { ("\x1b[7m", "\x1b[0m") } else { ("", "") };
        let mut text = "\x1b[H".to_owned();
        for (index, line) in fitting(lines, height).into_iter().enumerate() {
            let line: String = line.chars().take(width).collect();
            let end = if index == 0 { "" } else { "\r\n" };
            let (on, off) = if index == 1 { (on, off) } else { ("", "") };
            write!(text, "{end}{on}{line}{off}\x1b[K")
                .expect("text takes all that is written to it");
        }
        text.push_str("\x1b[J");
        put(&text)
    }

    /// Waits until the user leaves or the terminal is gone.
    pub(super) async fn left(&self) {
        let mut keys = [0; 64];
        while let Ok(count @ 1..) = self.terminal.read(&mut keys).await {
            if keys[..count].iter().any(|key| LEAVING.contains(key)) {
                return;
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.terminal.leave();
        // A closed terminal cannot show anything.
        let _ = put(LEAVE);
    }
}

/// The lines that fit. If some do not, the last line shows how many.
fn fitting<'a>(lines: &[&'a str], height: usize) -> Vec<std::borrow::Cow<'a, str>> {
    let mut shown: Vec<_> = lines.iter().take(height).map(|line| (*line).into()).collect();
    let hidden = lines.len() - shown.len();
    if let (true, Some(last)) = (hidden > 0, shown.last_mut()) {
        *last = format!("… and {} more", hidden + 1).into();
    }
    shown
}

fn put(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::Output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted_in_the_last_line() {
        assert_eq!(fitting(&["a", "b", "c"], 3), ["a", "b", "c"]);
        assert_eq!(fitting(&["a", "b", "c", "d"], 3), ["a", "b", "… and 2 more"]);
        assert!(fitting(&["a"], 0).is_empty());
    }
}
