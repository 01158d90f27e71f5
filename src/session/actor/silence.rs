//! A terminal that nobody answers for: the session can be read and ended, and waits for the rest.
//!
//! It must not know who keeps the terminal. What was kept beside it is kept again once it is back.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::core::input::request::DiscardCause;
use crate::session::actor::Actor;
use crate::session::pty::Pty;

/// Waits until the terminal answers again, or is gone.
pub(super) type Returning = Pin<Box<dyn Future<Output = ()> + Send>>;

impl<P: Pty> Actor<P> {
    /// Whether it matters if the terminal is silent.
    pub(super) fn minds_silence(&self) -> bool {
        self.returning.is_some() || self.ending.exit.is_none()
    }

    /// Begins to wait for a terminal that has fallen silent.
    pub(super) fn mind_silence(&mut self) {
        if self.returning.is_none() && self.ending.exit.is_none() && self.pty.is_silent() {
            tracing::warn!(session = %self.identity.id, "its shim does not answer, and is asked again");
            let pty = Arc::clone(&self.pty);
            self.returning = Some(Box::pin(async move { pty.returned().await }));
        }
    }

    /// Nobody knows how much of the input on its way was taken, so none of it is written again.
    pub(super) fn on_silence(&mut self) {
        self.input.discard(self.clock.now(), DiscardCause::TerminalSilent);
        self.mind_silence();
    }

    pub(super) fn on_returned(&mut self) {
        self.returning = None;
        tracing::info!(session = %self.identity.id, "its shim answers again, or has ended");
        self.records.keep_again(&*self.pty);
        self.kept.forget();
        self.checkpoint_now(false);
        if let Err(error) = self.pty.resize(self.size) {
            tracing::debug!(session = %self.identity.id, %error, "the terminal takes no size");
        }
    }
}

/// Waits until a terminal falls silent, or until one that is silent answers again or is gone; says whether
/// it was the latter.
pub(super) async fn silence_changes(pty: &impl Pty, returning: &mut Option<Returning>) -> bool {
    match returning {
        Some(returning) => returning.as_mut().await,
        None => pty.fell_silent().await,
    }
    returning.is_some()
}
