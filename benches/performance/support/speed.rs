//! How fast contenders took in the same bytes, and what it cost them, as rows of a table.

use std::time::Duration;

use crate::support::report::{Figure, Report, Target};
use crate::support::rounds::Measured;

/// The head of a table of speeds.
pub(crate) const HEAD: &str = "| work | ours | MB/s | CPU ms/MB | yardstick | MB/s | CPU ms/MB | \
    ratio (rounds) | target |";

/// One contender: what was measured, and the processor time that it took for these bytes.
pub(crate) type Speed<'a> = (&'a Measured, Duration);

/// Prints ours beside a yardstick for so many bytes, and the ratio beside what it is to be at least.
pub(crate) fn compare(
    report: &mut Report,
    (work, bytes): (&str, usize),
    [ours, yardstick]: [Speed<'_>; 2],
    at_least: Option<f64>,
) {
    // The times are compared the other way round, since the faster one takes less.
    let ratio = Figure::ratio(yardstick.0, ours.0);
    let against = format!("{work}, {} of {}", ours.0.name, yardstick.0.name);
    let target = report.judge(against, &ratio, at_least.map(Target::AtLeast));
    let megabytes = bytes as f64 / 1e6;
    let figures = |(measured, used): Speed<'_>| {
        let speed = megabytes / measured.all.median().as_secs_f64();
        format!("{} | {speed:.1} | {:.1}", measured.name, used.as_secs_f64() * 1e3 / megabytes)
    };
    println!("| {work} | {} | {} | {ratio} | {target} |", figures(ours), figures(yardstick));
}
