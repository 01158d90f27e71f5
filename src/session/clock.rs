//! The one clock of the daemon: boot time, and waiting for a moment of it.
//!
//! It knows nothing of what the deadlines mean. Boot time goes on while a laptop sleeps, which
//! tokio's own timers do not see, so live deadlines share one timer of the kernel on that clock.

pub mod boot;

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::core::moment::Moment;
use crate::session::clock::boot::BootTimers;

/// What a paused clock shows when it is made: not zero, so that a moment is not taken for a
/// duration unnoticed.
const PAUSED_START: Duration = Duration::from_secs(1_000);

/// Tells the time and waits for moments; clones are the same clock.
#[derive(Clone, Debug)]
pub struct Clock {
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Boot(Arc<BootTimers>),
    Paused { start: Instant },
}

impl Clock {
    /// The clock of the machine; one per daemon.
    ///
    /// Must be called inside the runtime that serves its timer; that runtime's end stops the
    /// waiting for good.
    ///
    /// # Errors
    /// What the kernel said when it refused a timer.
    pub fn boot() -> io::Result<Self> {
        Ok(Self { source: Source::Boot(Arc::new(BootTimers::start()?)) })
    }

    /// A clock that follows tokio's, for tests on paused time.
    ///
    /// Must be called inside a runtime. It shows 1,000 s at first.
    pub fn paused() -> Self {
        Self { source: Source::Paused { start: Instant::now() } }
    }

    /// The moment it is now.
    pub fn now(&self) -> Moment {
        match &self.source {
            Source::Boot(_) => boot::now(),
            Source::Paused { start } => Moment::from_boot(PAUSED_START + start.elapsed()),
        }
    }

    /// This moment, and what the wall clock shows at it, for display only.
    ///
    /// Whoever reads them one after the other may be kept waiting in between, and then is wrong by as
    /// much; so they are read again, a few times, unless they are of one millisecond.
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

    /// Waits until `deadline`; returns at once when it has passed.
    ///
    /// Dropping the future forgets the deadline.
    pub async fn sleep_until(&self, deadline: Moment) {
        match &self.source {
            Source::Boot(timers) => timers.sleep_until(deadline).await,
            Source::Paused { start } => {
                let since_start = deadline.since(Moment::from_boot(PAUSED_START));
                match start.checked_add(since_start) {
                    Some(instant) => tokio::time::sleep_until(instant).await,
                    None => std::future::pending().await,
                }
            }
        }
    }

    /// The wall clock's time, for display only; a paused clock counts from the Unix epoch.
    pub fn wall_time(&self) -> SystemTime {
        match &self.source {
            Source::Boot(_) => wall_time(),
            Source::Paused { start } => SystemTime::UNIX_EPOCH + PAUSED_START + start.elapsed(),
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
fn wall_time() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests;
