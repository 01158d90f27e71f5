//! Rounds: contenders that do the same work take turns, so that a busy machine is busy for all.
//!
//! It knows nothing of the work.

use std::time::Duration;

use crate::support::samples::{Samples, now};

/// How often every contender has its turn.
pub(crate) const ROUNDS: usize = 5;

/// Whether the effect of a repetition showed in what it read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Seen,
    NotYet,
}

/// One way to do the work.
pub(crate) struct Contender<'a> {
    name: &'static str,
    times: usize,
    work: Box<dyn FnMut() -> anyhow::Result<(Duration, Effect)> + 'a>,
}

impl<'a> Contender<'a> {
    /// Does `work` so many times in a turn.
    pub(crate) fn new(
        name: &'static str,
        times: usize,
        mut work: impl FnMut() -> anyhow::Result<Effect> + 'a,
    ) -> Self {
        let timed = move || {
            let started = now();
            let effect = work()?;
            Ok((now() - started, effect))
        };
        Self { name, times, work: Box::new(timed) }
    }

    /// Does work that says itself what it took, since not all of it counts.
    pub(crate) fn told(
        name: &'static str,
        times: usize,
        mut work: impl FnMut() -> anyhow::Result<Duration> + 'a,
    ) -> Self {
        Self { name, times, work: Box::new(move || Ok((work()?, Effect::Seen))) }
    }

    /// The same, but before each repetition this is done, which does not count.
    pub(crate) fn after(self, mut before: impl FnMut() -> anyhow::Result<()> + 'a) -> Self {
        let Self { name, times, mut work } = self;
        let work = move || {
            before()?;
            work()
        };
        Self { name, times, work: Box::new(work) }
    }
}

impl std::fmt::Debug for Contender<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contender").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What was measured of one contender.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) name: &'static str,
    /// The samples of all rounds.
    pub(crate) all: Samples,
    /// The median of each round.
    pub(crate) medians: Vec<Duration>,
    seen: usize,
    done: usize,
}

impl Measured {
    /// The share of repetitions whose effect showed, from 0 to 1.
    pub(crate) fn seen(&self) -> f64 {
        self.seen as f64 / self.done.max(1) as f64
    }

    /// How many times the yardstick's time this takes: the medians of each round compared, smallest
    /// first, so that a round that met a busy machine counts for no more than any other.
    pub(crate) fn ratios(&self, yardstick: &Self) -> Vec<f64> {
        let rounds = self.medians.iter().zip(&yardstick.medians);
        let mut ratios: Vec<f64> =
            rounds.map(|(ours, theirs)| ours.as_secs_f64() / theirs.as_secs_f64()).collect();
        ratios.sort_by(f64::total_cmp);
        ratios
    }
}

/// Lets the contenders take turns; the first turn of each is not counted.
///
/// # Errors
/// The first thing that fails.
pub(crate) fn take_turns(mut contenders: Vec<Contender<'_>>) -> anyhow::Result<Vec<Measured>> {
    let mut measured: Vec<Measured> = Vec::new();
    for contender in &mut contenders {
        turn(contender)?;
        let (all, medians) = (Samples::default(), Vec::new());
        measured.push(Measured { name: contender.name, all, medians, seen: 0, done: 0 });
    }
    for _ in 0..ROUNDS {
        for (contender, measured) in contenders.iter_mut().zip(&mut measured) {
            let (samples, seen) = turn(contender)?;
            measured.all.extend(&samples);
            measured.medians.push(samples.median());
            measured.seen += seen;
            measured.done += contender.times;
        }
    }
    Ok(measured)
}

fn turn(contender: &mut Contender<'_>) -> anyhow::Result<(Samples, usize)> {
    let mut samples = Samples::default();
    let mut seen = 0;
    for _ in 0..contender.times {
        let (took, effect) = (contender.work)()?;
        samples.push(took);
        seen += usize::from(effect == Effect::Seen);
    }
    Ok((samples, seen))
}
