//! What was found, beside what is to be reached: cells of tables, and the summary at the end.

use std::fmt::{self, Display};
use std::process::ExitCode;
use std::time::Duration;

use crate::support::placement::Placement;
use crate::support::rounds::Measured;

/// A figure, and where rounds were compared, the smallest and the largest of them.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    value: f64,
    spread: Option<(f64, f64)>,
    unit: &'static str,
}

impl Figure {
    /// One without rounds.
    pub(crate) fn new(value: f64, unit: &'static str) -> Self {
        Self { value, spread: None, unit }
    }

    /// In milliseconds.
    pub(crate) fn millis(time: Duration) -> Self {
        Self::new(time.as_secs_f64() * 1e3, " ms")
    }

    /// The median of the ratios of the rounds.
    pub(crate) fn ratio(ours: &Measured, yardstick: &Measured) -> Self {
        let ratios = ours.ratios(yardstick);
        let spread = Some((ratios[0], ratios[ratios.len() - 1]));
        Self { value: ratios[ratios.len() / 2], spread, unit: "" }
    }
}

impl Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Rounded(self.value), self.unit)?;
        match self.spread {
            Some((least, most)) => write!(f, " ({}–{})", Rounded(least), Rounded(most)),
            None => Ok(()),
        }
    }
}

/// With two decimals, fewer where the number is large.
struct Rounded(f64);

impl Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = match self.0 {
            value if value >= 100.0 => 0,
            value if value >= 10.0 => 1,
            _ => 2,
        };
        write!(f, "{:.decimals$}", self.0)
    }
}

/// What a figure is to reach.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
}

impl Target {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtMost(bound) => value <= bound,
            Self::AtLeast(bound) => value >= bound,
        }
    }
}

impl Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(bound) => write!(f, "≤ {bound}"),
            Self::AtLeast(bound) => write!(f, "≥ {bound}"),
        }
    }
}

/// The figures of all rows that have a target, and the rows that failed.
#[derive(Debug, Default)]
pub(crate) struct Report {
    row: &'static str,
    part: String,
    lines: Vec<String>,
    failed: bool,
}

impl Report {
    /// Measures a row. One that fails is told, and the others are measured nevertheless.
    pub(crate) fn measure(
        &mut self,
        row: &'static str,
        measure: fn(&mut Self) -> anyhow::Result<()>,
    ) {
        self.row = row;
        self.part.clear();
        if let Err(error) = measure(self) {
            println!("\nfailed: {error:#}");
            self.lines.push(format!("| {row} | | | | failed |"));
            self.failed = true;
        }
    }

    /// Measures on one core and on two, each with a table of its own below this head.
    ///
    /// # Errors
    /// The first thing that fails.
    pub(crate) fn on_each_placement(
        &mut self,
        head: &str,
        mut measure: impl FnMut(Placement, &mut Self) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        for placement in Placement::ALL {
            placement.enter()?;
            self.table(placement, head);
            measure(placement, self)?;
        }
        Ok(())
    }

    /// Begins a table.
    pub(crate) fn table(&mut self, part: impl Display, head: &str) {
        self.part = part.to_string();
        let rule = "---|".repeat(head.matches('|').count() - 1);
        println!("\n{part}\n\n{head}\n|{rule}");
    }

    /// Keeps a figure for the summary, and gives back the cell that says what it was to reach.
    pub(crate) fn judge(
        &mut self,
        work: impl Display,
        figure: &Figure,
        target: impl Into<Option<Target>>,
    ) -> String {
        let Some(target) = target.into() else { return "none".to_owned() };
        let verdict = if target.is_met(figure.value) { "met" } else { "missed" };
        let target = format!("{target}{}", figure.unit);
        let Self { row, part, lines, .. } = self;
        lines.push(format!("| {row} | {work} ({part}) | {figure} | {target} | {verdict} |"));
        format!("{target}: {verdict}")
    }

    /// Prints the summary.
    pub(crate) fn finish(&self) -> ExitCode {
        println!("\n## Summary\n\n| row | work | figure (smallest–largest) | target | |");
        println!("|---|---|---|---|---|\n{}", self.lines.join("\n"));
        if self.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}
