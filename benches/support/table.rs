//! Results as tables that can be pasted into the documentation.
//!
//! It judges nothing but whether a ratio keeps to its target, and says so; it never fails a run.

use std::time::Duration;

use crate::support::rounds::Measured;

/// One comparison: ours, a yardstick, and the ratio that is to be kept, where there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison<'a> {
    pub(crate) work: &'a str,
    pub(crate) ours: &'a Measured,
    pub(crate) yardstick: &'a Measured,
    pub(crate) target: Option<f64>,
}

/// The head of a table of comparisons.
pub(crate) const HEAD: &str = "| work | ours p50 | p99 | seen | yardstick | p50 | p99 | seen | ratio \
    (rounds) | target |\n|---|---|---|---|---|---|---|---|---|---|";

impl std::fmt::Display for Comparison<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { work, ours, yardstick, target } = self;
        let ratios = ours.ratios(yardstick);
        let (least, ratio, most) = (ratios[0], ratios[ratios.len() / 2], ratios[ratios.len() - 1]);
        let verdict = match target {
            Some(target) if ratio <= *target => format!("≤ {target}: met"),
            Some(target) => format!("≤ {target}: missed"),
            None => "none".to_owned(),
        };
        write!(
            f,
            "| {work} | {} | {} | {} | {ratio:.2} ({least:.2}–{most:.2}) | {verdict} |",
            figures(ours),
            yardstick.name,
            figures(yardstick)
        )
    }
}

fn figures(measured: &Measured) -> String {
    let micros = |time: Duration| format!("{:.0} µs", time.as_secs_f64() * 1e6);
    let seen = measured.seen() * 100.0;
    format!("{} | {} | {seen:.0} %", micros(measured.all.median()), micros(measured.all.p99()))
}
