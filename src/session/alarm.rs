//! One alarm of a task: waits for the earliest moment it was set to, and re-arms only when it must.
//!
//! Renewing a lease moves its deadline with every key press; an alarm that rings too early costs one
//! look, re-arming a kernel timer each time would cost far more.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use crate::core::moment::Moment;
use crate::session::clock::Clock;

type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The alarm.
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
    /// An alarm that is not set.
    pub fn new(clock: Clock) -> Self {
        Self { clock, armed: None }
    }

    /// Makes it ring at `deadline` at the latest; it may ring before.
    pub fn set(&mut self, deadline: Option<Moment>) {
        let Some(deadline) = deadline else { return };
        if self.armed.as_ref().is_some_and(|(at, _)| *at <= deadline) {
            return;
        }
        let clock = self.clock.clone();
        let sleep = Box::pin(async move { clock.sleep_until(deadline).await });
        self.armed = Some((deadline, sleep));
    }

    /// Waits until it rings; for ever while it is not set. Cancel-safe.
    pub async fn ring(&mut self) {
        match &mut self.armed {
            Some((_, sleep)) => sleep.as_mut().await,
            None => std::future::pending().await,
        }
        self.armed = None;
    }
}
