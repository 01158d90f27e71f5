//! Retries a silent shim until it answers or has ended.
//! A program in the session can stop its shim for any time. The daemon keeps the session meanwhile.

use std::fs;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::core::ids::RowNumber;
use crate::session::pty::condemned::Shim;
use crate::session::pty::held::HeldPty;
use crate::session::pty::held::contact::{self, Contact, Told};
use crate::session::pty::held::link::{Link, Presence, exit_of};
use crate::session::pty::held::store::Store;
use crate::session::pty::processes::Process;
use crate::session::pty::signal::Signal;

/// The time between two attempts.
const ASK_AGAIN: Duration = Duration::from_millis(500);

impl HeldPty {
    /// Whether the shim counts as silent.
    pub(super) fn is_left_alone(&self) -> bool {
        self.link().presence() == Presence::Silent
    }

    /// Retries a silent shim until it answers or has ended.
    pub(super) async fn ask_until_answered(&self) {
        while self.is_left_alone() {
            // A shim that serves another daemon must not be taken back.
            self.mind_successor(&self.link());
            if !self.is_left_alone() {
                return;
            }
            let asking_again = async {
                sleep(ASK_AGAIN).await;
                let (shims, socket) = (self.shims.clone(), self.socket.clone());
                let ask = move || shims.are_ours().then(|| contact::attach(&socket));
                spawn_blocking(ask).await
            };
            tokio::select! {
                _ = self.shim_ended.readable() => self.on_shim_ended(&self.link()),
                answered = asking_again => if let Ok(Some(Ok(contact))) = answered
                    && let Err(error) = self.resume(contact)
                {
                    tracing::warn!(session = %self.session, %error, "its shim is another one");
                }
            }
        }
    }

    /// Continues with a new connection to the same shim. What it stored last is unknown.
    fn resume(&self, contact: Contact) -> io::Result<()> {
        let Contact { socket, told: Told { attached, .. } } = contact;
        let (pid, started) = (attached.shim.pid, attached.shim.started);
        if (pid, started) != (self.shim.pid.0, self.shim.started) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let exit = attached.ended.map(|ended| (exit_of(ended), attached.head));
        let link = Arc::new(Link::new(socket, exit)?);
        let extents = attached.segments.as_slice().iter().map(|bytes| (RowNumber(0), *bytes));
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = Store::behind(extents);
        self.committed.store(attached.committed, Ordering::Relaxed);
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = link;
        Ok(())
    }

    /// Signals the shim process, if it still runs.
    pub(super) fn signal_shim(&self, signal: Signal) -> io::Result<()> {
        let Shim { pid, started } = self.shim;
        let process = Process::find(pid).filter(|found| found.started == started);
        process.ok_or(io::ErrorKind::NotFound)?.open()?.signal(signal.number())
    }

    /// Kills a shim that cannot be asked to end.
    pub(super) fn end_silent_shim(&self) {
        // The session is forgotten, so the shim's content has no further use.
        if let Err(error) = self.signal_shim(Signal::Kill) {
            tracing::debug!(session = %self.session, %error, "its shim is gone");
        }
        let _ = fs::remove_file(&self.socket);
    }
}
