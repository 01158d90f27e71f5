//! What daemon and shims take of memory, descriptors, threads and processes, and whether it grows.

use std::fs;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::soak::world::World;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    DaemonMemory,
    ShimMemory,
    DaemonDescriptors,
    DaemonThreads,
    Shims,
}

impl Quantity {
    pub(crate) const ALL: [Self; 5] = [
        Self::DaemonMemory,
        Self::ShimMemory,
        Self::DaemonDescriptors,
        Self::DaemonThreads,
        Self::Shims,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::DaemonMemory => "daemon, resident KiB",
            Self::ShimMemory => "shims, proportional KiB",
            Self::DaemonDescriptors => "daemon, descriptors",
            Self::DaemonThreads => "daemon, threads",
            Self::Shims => "shims",
        }
    }

    /// By how much it may seem to grow though it does not.
    fn tolerance(self, median: f64) -> f64 {
        match self {
            Self::DaemonMemory | Self::ShimMemory => (median / 20.0).max(2_048.0),
            Self::DaemonDescriptors | Self::DaemonThreads => 4.0,
            Self::Shims => 0.5,
        }
    }
}

/// One look at all of it.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Duration,
    values: [f64; Quantity::ALL.len()],
}

/// How a quantity went while it was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth {
    pub(crate) median: f64,
    /// The median of the slopes between any two samples (Theil and Sen), over the whole time.
    pub(crate) grown: f64,
    /// More than this is too much.
    pub(crate) most: f64,
}

/// The samples of a run.
#[derive(Debug, Default)]
pub(crate) struct Samples(Mutex<Vec<Sample>>);

impl Samples {
    /// Looks again and again while no fault lasts.
    pub(crate) async fn take(&self, world: &World) {
        let mut turn = interval(world.plan.between_samples);
        turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while world.goes_on() {
            turn.tick().await;
            let before = world.faults();
            let values = tokio::task::block_in_place(|| look(world));
            if let Some(values) = values.filter(|_| world.is_calm_since(before)) {
                self.0.lock().unwrap().push(Sample { at: world.began.elapsed(), values });
            }
        }
    }

    /// The newest value.
    pub(crate) fn last(&self, quantity: Quantity) -> f64 {
        self.0.lock().unwrap().last().map_or(0.0, |sample| sample.values[quantity as usize])
    }

    /// How a quantity went from this time on; none if it was hardly measured.
    pub(crate) fn growth(&self, quantity: Quantity, from: Duration) -> Option<Growth> {
        let samples = self.0.lock().unwrap();
        let points: Vec<(f64, f64)> = samples
            .iter()
            .filter(|sample| sample.at >= from)
            .map(|sample| (sample.at.as_secs_f64(), sample.values[quantity as usize]))
            .collect();
        let (first, last) = (points.first()?.0, points.last()?.0);
        let median = median(points.iter().map(|(_, value)| *value).collect())?;
        let grown = slope(&points)? * (last - first);
        let most = quantity.tolerance(median);
        Some(Growth { median, grown, most })
    }
}

/// The slope of Theil and Sen, which single samples do not change.
pub(crate) fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let mut slopes = Vec::new();
    for (index, (at, value)) in points.iter().enumerate() {
        let later = points[index + 1..].iter().filter(|(later, _)| later > at);
        slopes.extend(later.map(|(later, then)| (then - value) / (later - at)));
    }
    median(slopes)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn look(world: &World) -> Option<[f64; Quantity::ALL.len()]> {
    let lock = fs::read_to_string(world.home.runtime("daemon.lock")).ok()?;
    let daemon: i32 = lock.trim().parse().ok()?;
    let shims = world.home.shims();
    let mut proportional = 0.0;
    for shim in &shims {
        proportional += kib_of(&format!("/proc/{shim}/smaps_rollup"), "Pss:")?;
    }
    Some([
        kib_of(&format!("/proc/{daemon}/status"), "VmRSS:")?,
        proportional,
        fs::read_dir(format!("/proc/{daemon}/fd")).ok()?.count() as f64,
        fs::read_dir(format!("/proc/{daemon}/task")).ok()?.count() as f64,
        shims.len() as f64,
    ])
}

fn kib_of(file: &str, name: &str) -> Option<f64> {
    let text = fs::read_to_string(file).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}
