//! The end of a daemon, as its sessions meet it: they end with it, or go on without it.
//!
//! It must not know why the daemon ends. How long that may take is for whoever asks.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::timeout;

use crate::core::ids::SessionId;
use crate::session::control::Parting;
use crate::session::handle::Session;
use crate::session::registry::Registry;

/// A session of which something did not end with the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unended {
    pub session: SessionId,
    pub name: Arc<str>,
    /// What did not, and why.
    pub what: String,
}

impl Registry {
    /// Ends every session and waits until all their processes are gone, for so long at most; says what is
    /// left.
    pub async fn shut_down(&self, most: Duration) -> Arc<[Unended]> {
        let sessions = self.all();
        let late = timeout(most, self.part(Parting::End)).await.is_err();
        let left = |session: &Session| {
            let told = session.live().unended().map(str::to_owned);
            let is_late = late && self.get(session.id()).is_some();
            let what = told.or_else(|| is_late.then(|| "it takes longer to end".to_owned()))?;
            Some(Unended { session: session.id(), name: session.name(), what })
        };
        let silent = self.silent_names().into_iter().map(|(session, name)| Unended {
            session,
            name,
            what: "the process that holds its terminal does not answer as it should".to_owned(),
        });
        let left: Arc<[Unended]> = sessions.iter().filter_map(left).chain(silent).collect();
        self.0.unended.send_replace(Some(Arc::clone(&left)));
        left
    }

    /// Waits until all sessions were told to end, and says what was left then.
    pub async fn ended(&self) -> Arc<[Unended]> {
        let mut unended = self.0.unended.subscribe();
        // The sender lives as long as this registry.
        let told = unended.wait_for(Option::is_some).await;
        told.ok().and_then(|told| told.clone()).unwrap_or_default()
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
