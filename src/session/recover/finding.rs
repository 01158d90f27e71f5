//! Finding the terminals that a daemon before has left, and what it kept beside them.
//!
//! It makes no session before it knows that there is one to be had: a shim may have ended, may be
//! too busy to answer, or may hold what was never told to anybody.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tokio::task::{JoinSet, spawn_blocking};
use uuid::Uuid;

use crate::core::frame::Size;
use crate::core::ids::{Epoch, SessionId, TenantId};
use crate::core::input::WriteWindow;
use crate::core::lease::record::LeaseRecord;
use crate::core::moment::Moment;
use crate::session::handle::Session;
use crate::session::pty::held::HeldPty;
use crate::session::pty::held::contact::AttachError;
use crate::session::pty::held::living::living_shims;
use crate::session::pty::held::options::{Shims, socket_of};
use crate::session::pty::held::recovered::Recovered;
use crate::session::pty::orphaned::GonePty;
use crate::session::pty::sidecar_files::Remains;
use crate::session::pty::spare::{OF_A_SESSION, is_want_of_descriptors, spare_descriptors};
use crate::session::pty::{Note, Pty};
use crate::session::records::commands::CommandsRecord;
use crate::session::records::identity::SessionRecord;
use crate::session::recover::{Notes, Survivor};
use crate::session::registry::Registry;
use crate::session::restore::Opening;
use crate::shim::socket;

/// So many shims are spoken with at a time.
const AT_A_TIME: usize = 16;

/// What was found where a shim should listen.
enum Found {
    Survivor(Box<Survivor<HeldPty>>),
    /// A shim that was killed, and perhaps programs of it.
    Remains(Box<Survivor<GonePty>>),
    /// Nobody is there, or nothing that anybody was told of.
    Nothing,
    /// Somebody is there and does not answer as a shim does, or may not be asked now.
    Silent(SessionId),
    /// There are no descriptors for what somebody holds.
    Crowded(SessionId),
}

/// The sessions that are there and could not be taken over yet.
#[derive(Clone, Debug, Default)]
pub struct Unanswered {
    /// Their shims do not answer.
    pub silent: Vec<SessionId>,
    /// There are no descriptors for them.
    pub crowded: Vec<SessionId>,
}

/// For how many of so many sessions there are descriptors, beside those for clients.
fn room_for(sessions: usize) -> usize {
    /// For the daemon's own sockets, and for some clients, who may end a session to make room. Less than
    /// is asked for when a session is created, so that the next daemon with as many finds them all.
    const LEFT_FREE: usize = 12;
    let spare = spare_descriptors(LEFT_FREE + sessions * OF_A_SESSION);
    spare.saturating_sub(LEFT_FREE) / OF_A_SESSION
}

impl Registry {
    /// The sessions whose shims another daemon has left, in no order; what lies there of other sessions
    /// is removed.
    ///
    /// A shim that lives counts also where its socket was removed or is another's.
    pub fn left_behind(&self) -> Vec<SessionId> {
        let Some(directory) = self.own_shims().map(|own| &own.directory) else {
            return Vec::new();
        };
        match sort_out(directory, living_in(directory)) {
            Ok(ids) => ids.into_iter().filter(|id| self.get(*id).is_none()).collect(),
            Err(error) => {
                tracing::warn!(path = %directory.display(), %error, "no shims can be looked for");
                Vec::new()
            }
        }
    }

    /// Takes these sessions over, with what `window` says that the write switches leave open for
    /// each. Gives back those to be asked for again; they are known by their records meanwhile.
    pub async fn recover_left(
        &self,
        left: Vec<SessionId>,
        window: impl Fn(&TenantId, SessionId) -> WriteWindow + Sync,
    ) -> Unanswered {
        let Unanswered { mut silent, crowded } =
            self.recover_some(left.clone(), AT_A_TIME, &window).await;
        // Together they need more for a moment than one after the other.
        let again = self.recover_some(crowded, 1, &window).await;
        silent.extend(again.silent);
        let crowded = again.crowded;
        if crowded.iter().any(|id| !self.is_silent(*id)) {
            tracing::warn!(
                sessions = crowded.len(),
                "there are no descriptors for these sessions, which go on and are found once there are; \
                 raise the hard limit (ulimit -Hn, LimitNOFILE=), or remove sessions that have ended"
            );
        }
        self.set_silent(&[silent.as_slice(), &crowded].concat());
        // At the start of a daemon nobody comes in before all were looked for.
        left.iter().filter_map(|id| self.get(*id)).for_each(|session| session.begin_reclaim());
        Unanswered { silent, crowded }
    }

    /// Takes sessions over as long as there are descriptors, so many at a time.
    async fn recover_some(
        &self,
        left: Vec<SessionId>,
        at_a_time: usize,
        window: &(impl Fn(&TenantId, SessionId) -> WriteWindow + Sync),
    ) -> Unanswered {
        let Unanswered { mut silent, mut crowded } = Unanswered::default();
        let mut rest = left.as_slice();
        while !rest.is_empty() {
            let (some, others) = rest.split_at(room_for(at_a_time.min(rest.len())));
            if some.is_empty() {
                crowded.extend(others);
                break;
            }
            let mut finding = self.find_all(some, &Arc::default());
            let mut recovering = JoinSet::new();
            // Whoever answers does not wait for those who do not, nor for those who have much to tell.
            loop {
                let found = tokio::select! {
                    Some(found) = finding.join_next() => found,
                    Some(session) = recovering.join_next() => {
                        let session: Session = session.expect("it neither panics nor is given up");
                        // The switches may have changed before they found the session here.
                        session.set_window(window(session.tenant(), session.id()));
                        continue;
                    }
                    else => break,
                };
                match found.expect("looking neither panics nor is given up") {
                    Found::Survivor(mut survivor) => {
                        let SessionRecord { id, tenant, .. } = &survivor.notes.session;
                        survivor.window = window(tenant, *id);
                        let registry = self.clone();
                        recovering.spawn(async move { registry.recover(*survivor).await });
                    }
                    Found::Remains(remains) => drop(self.recover(*remains).await),
                    Found::Nothing => {}
                    Found::Silent(id) => silent.push(id),
                    Found::Crowded(id) => crowded.push(id),
                }
            }
            rest = others;
        }
        Unanswered { silent, crowded }
    }

    fn find_all(&self, sessions: &[SessionId], living: &Arc<Living>) -> JoinSet<Found> {
        let mut finding = JoinSet::new();
        for id in sessions {
            let (registry, id, living) = (self.clone(), *id, Arc::clone(living));
            finding.spawn(async move {
                let found = spawn_blocking(move || registry.find(id, &living)).await;
                found.unwrap_or(Found::Silent(id))
            });
        }
        finding
    }

    /// None where another daemon has the sessions by now.
    fn own_shims(&self) -> Option<&Shims> {
        self.shims().filter(|shims| shims.are_ours())
    }

    /// Blocks for the time of an answer.
    fn find(&self, id: SessionId, living: &Living) -> Found {
        let Some(shims) = self.own_shims() else { return Found::Silent(id) };
        match HeldPty::attach(shims, id) {
            Ok((pty, recovered)) => self.survivor(id, pty, &recovered),
            Err(error) if error.is_of_place() => {
                self.without_shim(id, &error, socket_of(&shims.directory, id), living)
            }
            Err(AttachError::Gone { source, .. } | AttachError::Memory { source, .. })
                if is_want_of_descriptors(&source) =>
            {
                Found::Crowded(id)
            }
            Err(error) => {
                if !self.is_silent(id) {
                    tracing::warn!(session = %id, %error, "its shim does not answer as it should yet");
                }
                Found::Silent(id)
            }
        }
    }

    /// A session whose shim was not found where it should listen.
    ///
    /// If it lives, what lies in its place is removed, so that it can listen there again.
    fn without_shim(
        &self,
        id: SessionId,
        error: &AttachError,
        socket: PathBuf,
        living: &Living,
    ) -> Found {
        let lies_there = socket.symlink_metadata().is_ok();
        if living.has(id, socket.parent().unwrap_or(&socket)) {
            if !self.is_silent(id) {
                tracing::warn!(session = %id, %error, "its shim lives, and will listen there again");
            }
            if lies_there
                && self.own_shims().is_some()
                && let Err(error) = clear_away(&socket)
            {
                tracing::warn!(session = %id, %error, "its shim cannot listen: its place is taken");
            }
            Found::Silent(id)
        } else if lies_there {
            tracing::warn!(session = %id, %error, "its terminal is gone: the process that held it died");
            self.remains(id, socket)
        } else {
            // It ended by itself.
            Remains::beside(&socket).clear();
            Found::Nothing
        }
    }

    /// A session that has ended, so that somebody is told; its task ends what is left of it.
    fn remains(&self, id: SessionId, socket: PathBuf) -> Found {
        /// The size of a screen that nobody knows any more.
        const SIZE: Size = Size { rows: 24, cols: 80 };
        let (now, limits) = (self.clock().now(), self.limits().screen);
        let remains = Remains::beside(&socket);
        let screen = remains.screen();
        let opening = screen.and_then(|it| Opening::left(&it.snapshot, it.kept_at, limits));
        // Programs of a session that nobody knows may be of any age.
        let mut since = Moment::default();
        let session = match remains.identity().map(|kept| SessionRecord::from_note(&kept, id)) {
            Some(Ok(kept)) => {
                // One that lies on a disk may be of a run of the machine that is over.
                since = kept.created_at.min(now);
                SessionRecord { created_at: since, ..kept }
            }
            None => SessionRecord::unknown(id, self.own_tenant().clone(), now),
            Some(Err(error)) => {
                tracing::warn!(session = %id, %error, "nobody knows what the session was called");
                SessionRecord::unknown(id, self.own_tenant().clone(), now)
            }
        };
        let size = session.size.unwrap_or(SIZE);
        let opening = opening.unwrap_or_else(|| Opening::empty(size, limits));
        Found::Remains(Box::new(Survivor {
            notes: Notes {
                session,
                lease: LeaseRecord::default(),
                commands: CommandsRecord::default(),
            },
            pty: GonePty::left_at(socket, id, since),
            pid: 0,
            // It is shown once its end is.
            opening: Opening { unread_until: u64::MAX, ..opening },
            newest: Epoch::default(),
            writes: Vec::new(),
            window: WriteWindow::Closed,
        }))
    }

    fn survivor(&self, id: SessionId, pty: HeldPty, recovered: &Recovered) -> Found {
        if recovered.notes.get(Note::Identity).is_empty() {
            // Its daemon ended before it told anybody that it had started it.
            pty.forget();
            return Found::Nothing;
        }
        let now = self.clock().now();
        let notes = Notes::read((id, self.own_tenant()), |note| recovered.notes.get(note), now);
        let mut opening = Opening::restored(&id, recovered, self.limits().screen, now);
        if opening.screen.size() != recovered.size
            && let Err(error) = pty.resize(opening.screen.size())
        {
            tracing::warn!(session = %id, %error, "its terminal keeps another size");
            opening.screen.resize(recovered.size);
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

/// Makes room where a shim listens, whatever lies there.
fn clear_away(place: &Path) -> io::Result<()> {
    let aside = place.with_file_name(format!(".{}.aside", Uuid::new_v4()));
    fs::rename(place, &aside)?;
    // A directory with something in it stays aside.
    let _ = fs::remove_file(&aside).or_else(|_| fs::remove_dir(&aside));
    Ok(())
}

/// The shims that lived when somebody first asked, which is after a shim was not found.
#[derive(Debug, Default)]
struct Living(OnceLock<Option<BTreeSet<SessionId>>>);

impl Living {
    fn has(&self, id: SessionId, directory: &Path) -> bool {
        // Of whom nobody can say that it died, it is not assumed.
        self.0.get_or_init(|| living_in(directory)).as_ref().is_none_or(|all| all.contains(&id))
    }
}

/// The sessions whose shims live; none when nobody can say.
fn living_in(directory: &Path) -> Option<BTreeSet<SessionId>> {
    let living = living_shims(directory).inspect_err(
        |error| tracing::warn!(%error, "nobody can say which shims live; none is given up"),
    );
    living.ok().map(|living| living.into_keys().collect())
}

/// The sessions that have a socket in this directory, beside those whose shims live. What lies there of
/// another is removed: its shim has ended by itself. Where nobody can say who lives, nothing is removed.
fn sort_out(directory: &Path, living: Option<BTreeSet<SessionId>>) -> io::Result<Vec<SessionId>> {
    let mut ids = living.clone().unwrap_or_default();
    let (mut others, mut unfinished) = (BTreeSet::new(), Vec::new());
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else { continue };
        let parse = |id: &str| id.parse::<SessionId>().ok();
        // What has another name is none of ours.
        ids.extend(name.strip_suffix(".sock").and_then(parse));
        others.extend(Remains::owner(name).and_then(parse));
        unfinished
            .extend(name.strip_prefix('.').and_then(|it| it.strip_suffix(".new")).and_then(parse));
    }
    let Some(living) = living else {
        ids.extend(others);
        return Ok(ids.into_iter().collect());
    };
    // Their shims were to be started by the daemon before, and nobody was told of them: one that is
    // still about to listen finds that it cannot, and ends.
    for id in unfinished.into_iter().filter(|id| !living.contains(id)) {
        let _ = fs::remove_file(socket::unfinished(&socket_of(directory, id)));
    }
    for id in others.difference(&ids) {
        Remains::beside(&socket_of(directory, *id)).clear();
    }
    Ok(ids.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nobody_can_say_who_lives_every_session_stays_and_nothing_is_removed() {
        let ground = tempfile::tempdir().unwrap();
        let names = ["00000000000a.sock", "00000000000b.session", ".00000000000c.sock.new"];
        for name in names {
            fs::write(ground.path().join(name), "").unwrap();
        }
        let ids = sort_out(ground.path(), None).unwrap();
        assert_eq!(ids, ["00000000000a", "00000000000b"].map(|id| id.parse().unwrap()));
        assert!(names.iter().all(|name| ground.path().join(name).exists()));
        let living = BTreeSet::from(["00000000000a".parse().unwrap()]);
        assert_eq!(sort_out(ground.path(), Some(living)).unwrap(), ids[..1]);
        assert!(!ground.path().join("00000000000b.session").exists());
    }
}
