//! The clock of the daemon: boot time, and waiting for a moment on it.
//! Boot time continues while a laptop sleeps, unlike tokio's timers. So all deadlines share one kernel timer
//! on that clock.

pub mod boot;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use tokio_util::sync::ReusableBoxFuture;

use crate::core::moment::Moment;
use crate::session::clock::boot::BootTimers;

/// The first reading of a paused clock. It is not zero, so that a confusion of moment and duration shows.
const PAUSED_START: Duration = Duration::from_secs(1_000);

/// Tells the time and waits for moments. Clones share one clock.
#[derive(Clone, Debug)]
pub struct Clock {
    source: ClockSource,
}

#[derive(Clone, Debug)]
enum ClockSource {
    Boot(Arc<BootTimers>),
    Paused { start: Instant },
}

impl Clock {
    /// The clock of the machine; one per daemon.
    ///
    /// Must be called inside the runtime that serves its timer. When that runtime ends, all waits stop for
    /// good.
    pub fn boot() -> io::Result<Self> {
        Ok(Self { source: ClockSource::Boot(Arc::new(BootTimers::start()?)) })
    }

    /// A clock that follows tokio's paused time, for tests.
    ///
    /// Must be called inside a runtime. It starts at 1,000 s.
    pub fn paused() -> Self {
        Self { source: ClockSource::Paused { start: Instant::now() } }
    }

    pub fn now(&self) -> Moment {
        match &self.source {
            ClockSource::Boot(_) => boot::now(),
            ClockSource::Paused { start } => Moment::from_boot(PAUSED_START + start.elapsed()),
        }
    }

    /// This moment and the wall clock's time at it, for display only.
    ///
    /// A pause between the two readings would make the pair wrong. So both are read again, a few times, until
    /// they are within a millisecond.
    pub fn now_by_wall(&self) -> (Moment, SystemTime) {
        const APART_MAX: Duration = Duration::from_millis(1);
        const READINGS: usize = 4;
        let read = || {
            let now = self.now();
            let wall = self.wall_time();
            (self.now().since(now), now, wall)
        };
        let mut best = read();
        for _ in 1..READINGS {
            if best.0 < APART_MAX {
                break;
            }
            best = read().min(best);
        }
        (best.1, best.2)
    }

    /// Waits until `deadline`; returns at once if it has passed.
    ///
    /// Dropping the future discards the deadline.
    pub async fn sleep_until(&self, deadline: Moment) {
        match &self.source {
            ClockSource::Boot(timers) => timers.sleep_until(deadline).await,
            ClockSource::Paused { start } => {
                let since_start = deadline.since(Moment::from_boot(PAUSED_START));
                match start.checked_add(since_start) {
                    Some(instant) => tokio::time::sleep_until(instant).await,
                    None => std::future::pending().await,
                }
            }
        }
    }

    /// The wall clock's time, for display only. A paused clock counts from the Unix epoch.
    pub fn wall_time(&self) -> SystemTime {
        match &self.source {
            ClockSource::Boot(_) => wall_time(),
            ClockSource::Paused { start } => {
                SystemTime::UNIX_EPOCH + PAUSED_START + start.elapsed()
            }
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
fn wall_time() -> SystemTime {
    SystemTime::now()
}

pub struct Alarm {
    clock: Clock,
    armed: Option<Moment>,
    sleep: ReusableBoxFuture<'static, ()>,
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarm").field("armed", &self.armed).finish_non_exhaustive()
    }
}

impl Alarm {
    /// An alarm without a deadline.
    pub fn new(clock: Clock) -> Self {
        Self { clock, armed: None, sleep: ReusableBoxFuture::new(std::future::pending()) }
    }

    /// Makes the alarm ring at `deadline` at the latest. It may ring earlier.
    pub fn set(&mut self, deadline: Option<Moment>) {
        let Some(deadline) = deadline else { return };
        if self.armed.is_some_and(|at| at <= deadline) {
            return;
        }
        let clock = self.clock.clone();
        self.sleep.set(async move { clock.sleep_until(deadline).await });
        self.armed = Some(deadline);
    }

    /// Waits until the alarm rings; forever if it is not set. Cancel-safe.
    pub async fn ring(&mut self) {
        match self.armed {
            Some(_) => (&mut self.sleep).await,
            None => std::future::pending().await,
        }
        self.armed = None;
    }
}

#[cfg(test)]
mod tests;
