//! A single timer for a task. It wakes at the earliest deadline and re-arms only if it must.
//! Each key press renews a lease and moves its deadline. A wake-up that is too early is cheaper than
//! re-arming a kernel timer each time.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use crate::core::moment::Moment;
use crate::session::clock::Clock;

type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

pub struct Alarm {
    clock: Clock,
    armed: Option<(Moment, Sleep)>,
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.armed.as_ref().map(|(at, _)| at);
        f.debug_struct("Alarm").field("armed", &at).finish()
    }
}

impl Alarm {
    /// An alarm without a deadline.
    pub fn new(clock: Clock) -> Self {
        Self { clock, armed: None }
    }

    /// Makes the alarm ring at `deadline` at the latest. It may ring earlier.
    pub fn set(&mut self, deadline: Option<Moment>) {
        let Some(deadline) = deadline else { return };
        if self.armed.as_ref().is_some_and(|(at, _)| *at <= deadline) {
            return;
        }
        let clock = self.clock.clone();
        let sleep = Box::pin(async move { clock.sleep_until(deadline).await });
        self.armed = Some((deadline, sleep));
    }

    /// Waits until the alarm rings; forever if it is not set. Cancel-safe.
    pub async fn ring(&mut self) {
        match &mut self.armed {
            Some((_, sleep)) => sleep.as_mut().await,
            None => std::future::pending().await,
        }
        self.armed = None;
    }
}
