//! Finding the terminals that a daemon before has left, and what it kept beside them.
//!
//! It makes no session before it knows that there is one to be had: a holder may have ended, may be
//! too busy to answer, or may hold what was never told to anybody.

use std::fs;
use std::io;
use std::path::Path;

use tokio::task::{JoinSet, spawn_blocking};

use crate::core::ids::{SessionId, TenantId};
use crate::core::input::WriteWindow;
use crate::session::opening::Opening;
use crate::session::pty::held::HeldPty;
use crate::session::pty::held::contact::AttachError;
use crate::session::pty::held::recovered::Recovered;
use crate::session::pty::{Note, Pty};
use crate::session::recover::{Notes, Survivor};
use crate::session::registry::Registry;

/// So many holders are spoken with at a time.
const AT_A_TIME: usize = 16;

/// What was found where a holder should listen.
enum Found {
    Survivor(Box<Survivor<HeldPty>>),
    /// Nobody is there, or nothing that anybody was told of.
    Nothing,
    /// Somebody is there and does not answer.
    Silent(SessionId),
}

impl Registry {
    /// The sessions whose holders another daemon has left, in no order.
    pub fn left_behind(&self) -> Vec<SessionId> {
        let Some(directory) = self.holders() else { return Vec::new() };
        match ids_in(directory) {
            Ok(ids) => ids.into_iter().filter(|id| self.get(*id).is_none()).collect(),
            Err(error) => {
                tracing::warn!(path = %directory.display(), %error, "no holders can be looked for");
                Vec::new()
            }
        }
    }

    /// Takes these sessions over, with what `window` says that the write switches leave open for
    /// each. Gives back those whose holders do not answer, to be asked again.
    pub async fn recover_left(
        &self,
        left: Vec<SessionId>,
        window: impl Fn(&TenantId, SessionId) -> WriteWindow + Sync,
    ) -> Vec<SessionId> {
        let mut silent = Vec::new();
        for some in left.chunks(AT_A_TIME) {
            let mut finding = JoinSet::new();
            for id in some {
                let (registry, id) = (self.clone(), *id);
                finding.spawn(async move {
                    let found = spawn_blocking(move || registry.find(id)).await;
                    found.unwrap_or(Found::Silent(id))
                });
            }
            for found in finding.join_all().await {
                match found {
                    Found::Survivor(survivor) => self.take_over(*survivor, &window).await,
                    Found::Nothing => {}
                    Found::Silent(id) => silent.push(id),
                }
            }
        }
        silent
    }

    async fn take_over(
        &self,
        mut survivor: Survivor<HeldPty>,
        window: &impl Fn(&TenantId, SessionId) -> WriteWindow,
    ) {
        let (id, tenant) = (survivor.notes.session.id, survivor.notes.session.tenant.clone());
        survivor.window = window(&tenant, id);
        let session = self.recover(survivor).await;
        // The switches may have changed before they found the session here.
        session.set_window(window(&tenant, id));
        tracing::info!(session = %id, name = %session.name(), "a session of before goes on");
    }

    /// Blocks for the time of an answer.
    fn find(&self, id: SessionId) -> Found {
        let Some(directory) = self.holders() else { return Found::Nothing };
        match HeldPty::attach(directory, id) {
            Ok((pty, recovered)) => self.survivor(id, pty, &recovered),
            Err(AttachError::Gone { path, source }) if is_nobody(&source) => {
                tracing::warn!(session = %id, "its terminal is gone: the process that held it died");
                // Nobody may have told it before.
                let _ = fs::remove_file(path);
                Found::Nothing
            }
            Err(error @ (AttachError::Gone { .. } | AttachError::Silent { .. })) => {
                tracing::warn!(session = %id, %error, "its holder does not answer yet");
                Found::Silent(id)
            }
            Err(error @ (AttachError::Malformed { .. } | AttachError::Memory { .. })) => {
                tracing::error!(session = %id, %error, "it cannot be gone on with, and is left alone");
                Found::Nothing
            }
        }
    }

    fn survivor(&self, id: SessionId, pty: HeldPty, recovered: &Recovered) -> Found {
        let notes = &recovered.notes;
        let (identity, lease) = (notes.get(Note::Identity), notes.get(Note::Lease));
        if identity.is_empty() {
            // Its daemon ended before it told anybody that it had started it.
            pty.forget();
            return Found::Nothing;
        }
        let now = self.clock().now();
        let notes = Notes::read((id, self.own_tenant()), identity, lease, now);
        let opening = Opening::restored(&id, recovered, self.limits().screen, now);
        if opening.screen.size() != recovered.size
            && let Err(error) = pty.resize(opening.screen.size())
        {
            tracing::warn!(session = %id, %error, "its terminal keeps another size");
        }
        Found::Survivor(Box::new(Survivor {
            notes,
            pty,
            pid: recovered.leader.0,
            opening,
            newest: recovered.epoch,
            writes: recovered.writes.clone(),
            window: WriteWindow::Closed,
        }))
    }
}

fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound)
}

/// The sessions that have a socket in this directory.
fn ids_in(directory: &Path) -> io::Result<Vec<SessionId>> {
    let mut ids = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let id = name.to_str().and_then(|name| name.strip_suffix(".sock"));
        // What has another name is none of ours.
        ids.extend(id.and_then(|id| id.parse::<SessionId>().ok()));
    }
    Ok(ids)
}
