//! Comparisons as rows of tables that can be pasted into the documentation.

use std::time::Duration;

use crate::support::report::{Figure, Report, Target};
use crate::support::rounds::Measured;

/// The head of a table of comparisons.
pub(crate) const HEAD: &str =
    "| work | ours p50 | p99 | seen | yardstick | p50 | p99 | seen | ratio (rounds) | target |";

/// Prints ours beside a yardstick, and the ratio beside what it may be at most.
pub(crate) fn compare(
    report: &mut Report,
    work: &str,
    [ours, yardstick]: [&Measured; 2],
    at_most: Option<f64>,
) {
    let ratio = Figure::ratio(ours, yardstick);
    let against = format!("{work}, of {}", yardstick.name);
    let target = report.judge(against, &ratio, at_most.map(Target::AtMost));
    let (name, ours, theirs) = (yardstick.name, figures(ours), figures(yardstick));
    println!("| {work} | {ours} | {name} | {theirs} | {ratio} | {target} |");
}

fn figures(measured: &Measured) -> String {
    let seen = measured.seen() * 100.0;
    format!("{} | {} | {seen:.0} %", micros(measured.all.median()), micros(measured.all.p99()))
}

/// A time in microseconds.
pub(crate) fn micros(time: Duration) -> String {
    Figure::new(time.as_secs_f64() * 1e6, " µs").to_string()
}
