//! Waiting until a terminal takes a command, by what its session publishes. It judges and sends nothing.

use std::sync::Arc;

use tokio::sync::watch;

use crate::core::frame::Frame;
use crate::core::moment::Moment;
use crate::core::shell::readiness::{Readiness, ReadyPrompt};
use crate::session::clock::Clock;
use crate::session::error::SessionError;
use crate::session::handle::Session;
use crate::session::stats::Attending;

/// A terminal that is watched until it is ready for a command.
#[derive(Debug)]
pub struct ReadyWatch<'a> {
    clock: &'a Clock,
    frames: watch::Receiver<Arc<Frame>>,
    until: Moment,
    /// The frame that was read last.
    read: Option<Arc<Frame>>,
    /// The frame by which it was ready, and was not any more. Readiness can change without the watermark.
    outdated: Option<Arc<Frame>>,
    _attending: Attending,
}

impl<'a> ReadyWatch<'a> {
    /// Begins to watch a terminal, until this moment at most.
    pub fn begin(session: &Session, clock: &'a Clock, until: Moment) -> Self {
        let _attending = session.attend();
        let frames = session.frames();
        Self { clock, frames, until, read: None, outdated: None, _attending }
    }

    /// Whether it is ready at this moment.
    ///
    /// # Errors
    /// Why it is not, and will not be before long.
    pub fn now(&mut self) -> Result<Option<ReadyPrompt>, SessionError> {
        let frame = Arc::clone(&self.frames.borrow_and_update());
        self.read = Some(Arc::clone(&frame));
        if let Some(exit) = frame.exit.value {
            return Err(SessionError::Exited(exit));
        }
        let in_time = self.clock.now() < self.until;
        let outdated = self.outdated.as_ref().is_some_and(|it| Arc::ptr_eq(it, &frame));
        match &frame.shell.readiness {
            Readiness::Ready(_) if outdated && in_time => Ok(None),
            Readiness::Ready(_) if outdated => Err(SessionError::CommandRunning),
            Readiness::Ready(ready) => Ok(Some(*ready)),
            Readiness::Starting | Readiness::Soon if in_time => Ok(None),
            Readiness::Starting => Err(SessionError::NoPromptYet),
            Readiness::Soon | Readiness::Busy => Err(SessionError::CommandRunning),
            Readiness::Asks(prompt) => Err(SessionError::Asks(prompt.to_string())),
        }
    }

    /// Notes that it was not ready any more when a command came to it.
    pub fn was_outdated(&mut self) {
        self.outdated = self.read.take();
    }

    /// Waits until it is ready.
    ///
    /// # Errors
    /// [`SessionError::CommandRunning`] when a command runs, [`SessionError::Asks`] when something asks,
    /// [`SessionError::NoPromptYet`] and [`SessionError::Exited`].
    pub async fn reached(&mut self) -> Result<ReadyPrompt, SessionError> {
        loop {
            if let Some(ready) = self.now()? {
                return Ok(ready);
            }
            tokio::select! {
                changed = self.frames.changed() => changed.map_err(|_| SessionError::Closed)?,
                () = self.clock.sleep_until(self.until) => {}
            }
        }
    }
}
