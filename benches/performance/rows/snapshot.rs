//! How long it takes to keep a screen and to make it anew, and how many bytes it is kept in.
//!
//! No daemon runs: this is what the task of one session does between two pieces of output, when it
//! can do nothing else.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Duration;

use anyhow::ensure;
use termgate::core::frame::Size;
use termgate::core::ids::RowNumber;
use termgate::core::moment::Moment;
use termgate::core::screen::{Origin, Screen, ScreenLimits};

use crate::support::report::Report;
use crate::support::samples::{Samples, now};

/// How often each work is done in a turn, and how many turns there are.
const TIMES: usize = 200;
const ROUNDS: usize = 5;

/// How many rows scroll off before the large checkpoint is made.
const HISTORY_ROWS: usize = 10_000;

pub(crate) fn measure(_report: &mut Report) -> anyhow::Result<()> {
    println!("\n| screen | bytes | checkpoint p50 | p99 | restore p50 | p99 |");
    println!("|---|---|---|---|---|---|");
    for size in [Size { rows: 24, cols: 80 }, Size { rows: 60, cols: 200 }] {
        for (name, text) in
            [("empty", String::new()), ("plain", plain(size)), ("styled", styled(size))]
        {
            let mut screen = screen(size);
            screen.feed(Moment::default(), text.as_bytes());
            let since = screen.history_end();
            let Size { rows, cols } = size;
            compare(&format!("{cols} x {rows}, {name}"), &mut screen, since)?;
        }
    }
    let mut screen = screen(Size { rows: 24, cols: 80 });
    let lines = "a line of a log as it is usual, sixty characters of it or so\r\n";
    screen.feed(Moment::default(), lines.repeat(HISTORY_ROWS).as_bytes());
    compare("80 x 24, with 10,000 rows of history", &mut screen, RowNumber(0))?;
    Ok(())
}

fn compare(name: &str, screen: &mut Screen, since: RowNumber) -> anyhow::Result<()> {
    let kept = screen.checkpoint(since);
    let (mut checkpoints, mut restores) = (Samples::default(), Samples::default());
    for _ in 0..ROUNDS {
        checkpoints.extend(&timed(|| drop(black_box(screen.checkpoint(since)))));
        restores.extend(&timed(|| {
            let limits = ScreenLimits::default();
            drop(black_box(Screen::restore(&kept.snapshot, [&kept.rows], limits)));
        }));
    }
    let restored = Screen::restore(&kept.snapshot, [&kept.rows], ScreenLimits::default())?;
    ensure!(restored.history_end() == kept.end_row, "the rows are not as they were");
    let micros = |time: Duration| format!("{:.0} µs", time.as_secs_f64() * 1e6);
    println!(
        "| {name} | {} | {} | {} | {} | {} |",
        kept.snapshot.len() + kept.rows.len(),
        micros(checkpoints.median()),
        micros(checkpoints.p99()),
        micros(restores.median()),
        micros(restores.p99()),
    );
    Ok(())
}

fn timed(mut work: impl FnMut()) -> Samples {
    let mut samples = Samples::default();
    for _ in 0..TIMES {
        let start = now();
        work();
        samples.push(now() - start);
    }
    samples
}

fn screen(size: Size) -> Screen {
    Screen::new(size, ScreenLimits::default(), Origin::default())
}

/// Every row full of text in one style.
fn plain(size: Size) -> String {
    "abcdefg ".repeat(usize::from(size.rows) * usize::from(size.cols) / 8)
}

/// Every row full of words of seven characters, each in a style of its own.
fn styled(size: Size) -> String {
    let words = usize::from(size.rows) * usize::from(size.cols) / 8;
    let mut text = String::new();
    for word in 0..words {
        let (red, attribute) = (word % 256, 1 + word % 4);
        write!(text, "\x1b[0;{attribute};38;2;{red};80;90mabcdefg\x1b[m ")
            .expect("a string takes all that is written");
    }
    text
}
