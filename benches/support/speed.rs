//! How fast contenders took in the same bytes, and what it cost them, as rows of a table.
//!
//! It judges nothing but whether a ratio keeps to its target, and says so; it never fails a run.

use std::time::Duration;

use crate::support::rounds::Measured;

/// One comparison of speeds: ours, a yardstick, and the ratio that is to be reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Speeds<'a> {
    pub(crate) work: &'a str,
    /// How many bytes each of them took in at a time.
    pub(crate) bytes: usize,
    pub(crate) ours: &'a Measured,
    pub(crate) yardstick: &'a Measured,
    /// The processor time of both for these bytes.
    pub(crate) used: [Duration; 2],
    pub(crate) target: Option<f64>,
}

/// The head of a table of speeds.
pub(crate) const HEAD: &str = "| work | ours | MB/s | CPU ms/MB | yardstick | MB/s | CPU ms/MB | \
    ratio (rounds) | target |\n|---|---|---|---|---|---|---|---|---|";

impl std::fmt::Display for Speeds<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { work, bytes, ours, yardstick, used, target } = self;
        // The times are compared the other way round, since the faster one takes less.
        let ratios = yardstick.ratios(ours);
        let (least, ratio, most) = (ratios[0], ratios[ratios.len() / 2], ratios[ratios.len() - 1]);
        let verdict = match target {
            Some(target) if ratio >= *target => format!("≥ {target}: met"),
            Some(target) => format!("≥ {target}: missed"),
            None => "none".to_owned(),
        };
        let speed = |time: Duration| *bytes as f64 / 1e6 / time.as_secs_f64();
        let used = used.map(|time| time.as_secs_f64() * 1e3 / (*bytes as f64 / 1e6));
        write!(
            f,
            "| {work} | {} | {:.0} | {:.1} | {} | {:.0} | {:.1} | {ratio:.2} ({least:.2}–{most:.2}) | {verdict} |",
            ours.name,
            speed(ours.all.median()),
            used[0],
            yardstick.name,
            speed(yardstick.all.median()),
            used[1],
        )
    }
}
