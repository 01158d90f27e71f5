//! What a soak prints: a line a minute, a table at the end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::soak::fault::Fault;
use crate::soak::growth::{Quantity, Samples};
use crate::soak::latency::Latency;
use crate::soak::plan::{READ_P99_MAX, WRITE_P99_MAX};
use crate::soak::world::World;

/// All that is known at the end.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    pub(crate) world: &'a World,
    pub(crate) samples: &'a Samples,
    pub(crate) made: &'a [(Fault, usize)],
    pub(crate) slowest_start: Duration,
}

impl Report<'_> {
    /// Prints how it goes after so many minutes.
    pub(crate) fn print_minute(world: &World, samples: &Samples, at: Duration) {
        println!(
            "{:>4}m: {} calls, reads p99 {:.1} ms, writes p99 {:.1} ms, daemon {:.1} MiB, shims {:.1} MiB, \
             descriptors {}, faults {}, found {}",
            at.as_secs() / 60,
            world.calls.load(Ordering::Relaxed),
            milliseconds(world.reads.of_thousand(990)),
            milliseconds(world.writes.of_thousand(990)),
            samples.last(Quantity::DaemonMemory) / 1_024.0,
            samples.last(Quantity::ShimMemory) / 1_024.0,
            samples.last(Quantity::DaemonDescriptors),
            world.faults() / 2,
            world.found(),
        );
    }

    /// Prints the table, and says whether all is as it must be.
    pub(crate) fn print(&self) -> bool {
        let Self { world, .. } = self;
        let plan = &world.plan;
        println!(
            "\n{:?}: {} sessions, {} readers, {} + {} writers, {} observers, {} flooding",
            plan.span,
            plan.sessions,
            plan.readers,
            plan.writers,
            plan.churners,
            plan.observers,
            plan.flooding
        );
        let calls = world.calls.load(Ordering::Relaxed);
        let span = world.began.elapsed().as_secs_f64();
        println!("calls                     {calls}, {:.0} a second", calls as f64 / span);
        let mut good = self.print_latency("reads", &world.reads, READ_P99_MAX);
        good &= self.print_latency("writes", &world.writes, WRITE_P99_MAX);
        for quantity in Quantity::ALL {
            good &= self.print_growth(quantity);
        }
        println!("slowest start             {:.0} ms", milliseconds(self.slowest_start));
        println!("numbered lines read       {}", world.checked_rows.load(Ordering::Relaxed));
        println!("bytes to observers        {}", world.observed_bytes.load(Ordering::Relaxed));
        for (fault, count) in self.made {
            println!("{:<25} {count}", fault.name());
        }
        if world.disk.is_none() {
            println!("NOT RUN: a full disk: nobody may mount anything here");
        }
        let found = world.found();
        println!("found wrong               {found}");
        if !good || found > 0 {
            println!("FAILED: soak");
        }
        good && found == 0
    }

    fn print_latency(&self, name: &str, latency: &Latency, most: Duration) -> bool {
        let p99 = latency.of_thousand(990);
        let good = p99 <= most || !self.world.plan.judges_figures;
        println!(
            "{name:<25} p50 {:.1} ms, p99 {:.1}, p99.9 {:.1}, of {} between faults (p99 at most {}){}",
            milliseconds(latency.of_thousand(500)),
            milliseconds(p99),
            milliseconds(latency.of_thousand(999)),
            latency.count(),
            milliseconds(most),
            missed(good),
        );
        good
    }

    fn print_growth(&self, quantity: Quantity) -> bool {
        let plan = &self.world.plan;
        let from = if plan.judges_figures { plan.measured_from() } else { Duration::ZERO };
        let Some(growth) = self.samples.growth(quantity, from) else {
            println!("{:<25} not measured", quantity.name());
            return !plan.judges_figures;
        };
        let good = growth.grown <= growth.most || !plan.judges_figures;
        println!(
            "{:<25} {:.0}, grown by {:.1} since {:?} (at most {:.1}){}",
            quantity.name(),
            growth.median,
            growth.grown,
            from,
            growth.most,
            missed(good)
        );
        good
    }
}

fn missed(good: bool) -> &'static str {
    if good { "" } else { "  MISSED" }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
