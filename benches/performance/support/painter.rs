//! A program in a terminal that paints a second of frames for each line that it is sent.

use std::io::{Write as _, stdin, stdout};
use std::time::Duration;

use crate::support::samples::{now, wait_until};

/// The argument that makes the bench a painter.
pub(crate) const PAINT: &str = "--paint";
/// Frames of a second, and the time from one to the next.
pub(crate) const FRAMES: u32 = 60;
pub(crate) const INTERVAL: Duration = Duration::from_nanos(1_000_000_000 / FRAMES as u64);
/// Each frame changes so many rows of so many characters, which make a delta of about 2 KB.
const ROWS: usize = 20;
const COLS: usize = 64;

/// Paints, if that is what this process was started for, until its input ends.
///
/// # Errors
/// When the terminal has gone.
pub(crate) fn serve_if_asked() -> anyhow::Result<bool> {
    if std::env::args().nth(1).as_deref() != Some(PAINT) {
        return Ok(false);
    }
    let (mut line, mut frame) = (String::new(), 0u64);
    while stdin().read_line(&mut line)? > 0 {
        let started = now();
        for count in 1..=FRAMES {
            frame += 1;
            let row = format!("{frame:>COLS$}\r\n").repeat(ROWS);
            let mut terminal = stdout().lock();
            write!(terminal, "\x1b[H{row}")?;
            terminal.flush()?;
            wait_until(started + INTERVAL * count);
        }
    }
    Ok(true)
}
