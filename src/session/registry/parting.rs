//! The end of a daemon, as its sessions meet it: they end with it, or go on without it.
//!
//! It must not know why the daemon ends. How long that may take is for whoever asks.

use std::sync::atomic::Ordering;

use crate::session::registry::Registry;
use crate::session::urgent::Parting;

impl Registry {
    /// Ends every session and waits until all their processes are gone.
    pub async fn shut_down(&self) {
        self.part(Parting::End).await;
    }

    /// Leaves every session to the next daemon, and waits until each has handed over what that one
    /// needs. A session whose terminal is this daemon's own ends.
    ///
    /// To a caller who still waits here its session is gone, so those should have been let go.
    pub async fn leave(&self) {
        self.part(Parting::Leave).await;
    }

    /// Tells every session that callers are sent away now, which gives no command up.
    pub fn spare_commands(&self) {
        for session in self.all() {
            session.spare_commands();
        }
    }

    async fn part(&self, parting: Parting) {
        self.0.ending.store(true, Ordering::SeqCst);
        for session in self.all() {
            session.part(parting);
        }
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}
