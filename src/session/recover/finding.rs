//! Finds the terminals that a previous daemon left, and their stored state.
//! A terminal becomes a session only once that is certain: a shim may have ended, may not answer, or may keep
//! a session that no client knows.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
use crate::session::pty::held::ended::{self, EndedFiles};
use crate::session::pty::held::recovered::Recovered;
use crate::session::pty::held::shims::{Shims, socket_of};
use crate::session::pty::orphaned::GonePty;
use crate::session::pty::sidecar_files::Remains;
use crate::session::pty::spawn::{OF_A_SESSION, is_want_of_descriptors, spare_descriptors};
use crate::session::pty::{Note, Pty};
use crate::session::records::commands::CommandsRecord;
use crate::session::records::identity::SessionRecord;
use crate::session::recover::leftovers::{Living, living_in, sort_out};
use crate::session::recover::{FoundTerminal, RecoveredNotes};
use crate::session::registry::Registry;
use crate::session::restore::{OpeningState, UNTIL_END};

/// The most shims to attach to at once.
const AT_A_TIME: usize = 16;

/// What was found at the path of a shim's socket.
enum SocketFinding {
    Survivor(Box<FoundTerminal<HeldPty>>),
    /// A session that has ended, or whose shim was killed, with possibly programs that survived it.
    Remains(Box<FoundTerminal<GonePty>>),
    /// No shim, or a session that no client knows.
    Nothing,
    /// A process that does not answer as a shim, or a shim that must not be asked now.
    Silent(SessionId),
    /// Too few file descriptors to take the session over.
    Crowded(SessionId),
}

/// Sessions that exist but could not be taken over yet.
#[derive(Clone, Debug, Default)]
pub struct Unanswered {
    /// Their shims do not answer.
    pub silent: Vec<SessionId>,
    /// Too few file descriptors were free for them.
    pub crowded: Vec<SessionId>,
}

/// How many of `sessions` sessions the free file descriptors allow, with a reserve for clients.
fn room_for(sessions: usize) -> usize {
    /// The reserve for the daemon's own sockets and for a few clients, which can end a session to make room.
    /// It is smaller than the reserve at a session's creation, so that the next daemon with the same limit
    /// finds all sessions.
    const LEFT_FREE: usize = 12;
    let spare = spare_descriptors(LEFT_FREE + sessions * OF_A_SESSION);
    spare.saturating_sub(LEFT_FREE) / OF_A_SESSION
}

impl Registry {
    /// The sessions that another daemon left, in no order. Files of other sessions are removed.
    ///
    /// A running shim counts even if its socket was removed or replaced.
    pub fn left_behind(&self) -> Vec<SessionId> {
        let Some(directory) = self.own_shims().map(|own| &own.directory) else {
            return Vec::new();
        };
        match sort_out(directory, living_in(directory)) {
            Ok(ids) => ids.into_iter().filter(|id| self.get(*id).is_none()).collect(),
            Err(error) => {
                tracing::warn!(path = %directory.display(), %error, "cannot look for shims");
                Vec::new()
            }
        }
    }

    /// Takes these sessions over. `window` says what the write switches allow for each. Returns the sessions
    /// to retry; meanwhile they are listed by their records.
    pub async fn recover_left(
        &self,
        left: Vec<SessionId>,
        window: impl Fn(&TenantId, SessionId) -> WriteWindow + Sync,
    ) -> Unanswered {
        let Unanswered { mut silent, crowded } =
            self.recover_some(left.clone(), AT_A_TIME, &window).await;
        // At once they need more descriptors for a moment than one after the other.
        let again = self.recover_some(crowded, 1, &window).await;
        silent.extend(again.silent);
        let crowded = again.crowded;
        if crowded.iter().any(|id| !self.is_silent(*id)) {
            tracing::warn!(
                sessions = crowded.len(),
                "no file descriptors are left for these sessions; they keep running and are found later; \
                 raise the hard limit (ulimit -Hn, LimitNOFILE=), or remove sessions that have ended"
            );
        }
        self.set_silent(&[silent.as_slice(), &crowded].concat());
        // At the start of a daemon, clients can connect only after all sessions were searched.
        left.iter().filter_map(|id| self.get(*id)).for_each(|session| session.begin_reclaim());
        Unanswered { silent, crowded }
    }

    /// Takes sessions over, `at_a_time` at once, while descriptors are free.
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
            // A shim that answers waits neither for silent ones nor for those with much to read.
            loop {
                let found = tokio::select! {
                    Some(found) = finding.join_next() => found,
                    Some(session) = recovering.join_next() => {
                        let session: Session = session.expect("it neither panics nor is given up");
                        // The write switches may have changed before this session was registered.
                        session.set_window(window(session.tenant(), session.id()));
                        continue;
                    }
                    else => break,
                };
                match found.expect("looking neither panics nor is given up") {
                    SocketFinding::Survivor(mut survivor) => {
                        let SessionRecord { id, tenant, .. } = &survivor.notes.session;
                        survivor.window = window(tenant, *id);
                        let registry = self.clone();
                        recovering.spawn(async move { registry.recover(*survivor).await });
                    }
                    SocketFinding::Remains(remains) => {
                        let registry = self.clone();
                        recovering.spawn(async move { registry.recover(*remains).await });
                    }
                    SocketFinding::Nothing => {}
                    SocketFinding::Silent(id) => silent.push(id),
                    SocketFinding::Crowded(id) => crowded.push(id),
                }
            }
            rest = others;
        }
        Unanswered { silent, crowded }
    }

    fn find_all(&self, sessions: &[SessionId], living: &Arc<Living>) -> JoinSet<SocketFinding> {
        let mut finding = JoinSet::new();
        for id in sessions {
            let (registry, id, living) = (self.clone(), *id, Arc::clone(living));
            finding.spawn(async move {
                let found = spawn_blocking(move || registry.find(id, &living)).await;
                found.unwrap_or(SocketFinding::Silent(id))
            });
        }
        finding
    }

    /// `None` if another daemon owns the sessions by now.
    fn own_shims(&self) -> Option<&Shims> {
        self.shims().filter(|shims| shims.are_ours())
    }

    /// Looks at one session. Blocks until the shim answers.
    fn find(&self, id: SessionId, living: &Living) -> SocketFinding {
        let Some(shims) = self.own_shims() else { return SocketFinding::Silent(id) };
        match HeldPty::attach(shims, id) {
            Ok((pty, recovered)) => self.survivor(id, pty, &recovered),
            Err(error) if error.is_of_place() => {
                self.without_shim(id, &error, socket_of(&shims.directory, id), living)
            }
            Err(AttachError::Gone { source, .. } | AttachError::Memory { source, .. })
                if is_want_of_descriptors(&source) =>
            {
                SocketFinding::Crowded(id)
            }
            Err(error) => {
                if !self.is_silent(id) {
                    tracing::warn!(session = %id, %error, "its shim gives no valid answer yet");
                }
                SocketFinding::Silent(id)
            }
        }
    }

    /// Handles a session whose shim was not found at its socket.
    ///
    /// If the shim runs, whatever blocks its path is removed, so that the shim can listen there again.
    fn without_shim(
        &self,
        id: SessionId,
        error: &AttachError,
        socket: PathBuf,
        living: &Living,
    ) -> SocketFinding {
        let lies_there = socket.symlink_metadata().is_ok();
        let lives = living.has(id, socket.parent().unwrap_or(&socket));
        if !lives && let Some(retired) = self.retired(id, &socket) {
            return retired;
        }
        if self.own_shims().is_none() {
            return SocketFinding::Silent(id);
        }
        if lives {
            if !self.is_silent(id) {
                tracing::warn!(session = %id, %error, "its shim is alive and will listen there again");
            }
            if lies_there
                && self.own_shims().is_some()
                && let Err(error) = clear_away(&socket)
            {
                tracing::warn!(session = %id, %error, "its shim cannot listen: its place is taken");
            }
            SocketFinding::Silent(id)
        } else if lies_there {
            tracing::warn!(session = %id, %error, "its terminal is gone: the process that held it died");
            self.remains(id, socket)
        } else {
            // The shim ended by itself.
            Remains::beside(&socket).clear();
            SocketFinding::Nothing
        }
    }

    /// The session that files tell of, since its program has ended; none if they do not.
    fn retired(&self, id: SessionId, socket: &Path) -> Option<SocketFinding> {
        let (shims, remains) = (self.own_shims()?.clone(), Remains::beside(socket));
        let (recovered, exit) = match ended::read(&remains, id) {
            Ok(read) => read?,
            Err(error) if is_want_of_descriptors(&error) => {
                return Some(SocketFinding::Crowded(id));
            }
            Err(error) => {
                tracing::warn!(session = %id, %error, "what was stored at its end cannot be read");
                let damaged = [ErrorKind::InvalidData, ErrorKind::UnexpectedEof];
                return Some(if damaged.contains(&error.kind()) {
                    self.remains(id, socket.to_owned())
                } else if error.kind() == ErrorKind::Unsupported {
                    // It is left to whoever wrote it.
                    SocketFinding::Nothing
                } else {
                    SocketFinding::Silent(id)
                });
            }
        };
        let (notes, opening) = self.restored(id, &recovered);
        let ended = (exit, EndedFiles::found(remains, shims, recovered.notes.clone()));
        let pty = GonePty::retired(socket.to_owned(), id, notes.session.created_at, ended);
        Some(SocketFinding::Remains(found(notes, pty, opening, &recovered)))
    }

    /// Makes a session that has ended, so that clients learn of it. Its task ends the remaining processes.
    fn remains(&self, id: SessionId, socket: PathBuf) -> SocketFinding {
        /// The size if it is unknown.
        const SIZE: Size = Size { rows: 24, cols: 80 };
        let now = self.clock().now();
        let remains = Remains::beside(&socket);
        let screen = remains.screen();
        // Programs of an unknown session can be of any age.
        let mut since = Moment::default();
        let session = match remains.identity().map(|kept| SessionRecord::from_note(&kept, id)) {
            Some(Ok(kept)) => {
                // A file on a disk may be from before the last boot.
                since = kept.created_at.min(now);
                SessionRecord { created_at: since, ..kept }
            }
            None => SessionRecord::unknown(id, self.own_tenant().clone(), now),
            Some(Err(error)) => {
                tracing::warn!(session = %id, %error, "the session's name cannot be read");
                SessionRecord::unknown(id, self.own_tenant().clone(), now)
            }
        };
        let (size, limits) = (session.size.unwrap_or(SIZE), self.rules(&session.tenant).screen);
        let opening = screen.and_then(|it| OpeningState::left(&it.snapshot, it.kept_at, limits));
        let opening = opening.unwrap_or_else(|| OpeningState::empty(size, limits));
        SocketFinding::Remains(Box::new(FoundTerminal {
            notes: RecoveredNotes {
                session,
                lease: LeaseRecord::default(),
                commands: CommandsRecord::default(),
            },
            pty: GonePty::left_at(socket, id, since),
            pid: 0,
            opening: OpeningState { unread_until: UNTIL_END, ..opening },
            newest: Epoch::default(),
            typed: None,
            writes: Vec::new(),
            window: WriteWindow::Closed,
        }))
    }

    fn survivor(&self, id: SessionId, pty: HeldPty, recovered: &Recovered) -> SocketFinding {
        if recovered.notes.get(Note::Identity).is_empty() {
            // The previous daemon ended before it announced this session.
            pty.forget();
            return SocketFinding::Nothing;
        }
        // Its shim says it all, and more.
        pty.remove_stale_files();
        let (notes, mut opening) = self.restored(id, recovered);
        if opening.screen.size() != recovered.size()
            && let Err(error) = pty.resize(opening.screen.size())
        {
            tracing::warn!(session = %id, %error, "its terminal keeps another size");
            let _ = pty.resize(recovered.size());
            opening.screen.resize(recovered.size());
        }
        SocketFinding::Survivor(found(notes, pty, opening, recovered))
    }

    fn restored(&self, id: SessionId, recovered: &Recovered) -> (RecoveredNotes, OpeningState) {
        let now = self.clock().now();
        let notes =
            RecoveredNotes::read((id, self.own_tenant()), |note| recovered.notes.get(note), now);
        let limits = self.rules(&notes.session.tenant).screen;
        (notes, OpeningState::restored(&id, recovered, limits, now))
    }
}

fn found<P>(
    notes: RecoveredNotes,
    pty: P,
    opening: OpeningState,
    recovered: &Recovered,
) -> Box<FoundTerminal<P>> {
    Box::new(FoundTerminal {
        notes,
        pty,
        pid: recovered.attached.leader.pid,
        opening,
        newest: Epoch(recovered.attached.epoch),
        typed: recovered.attached.typed,
        writes: recovered.writes(),
        window: WriteWindow::Closed,
    })
}

/// Moves away whatever blocks the path of a shim's socket.
fn clear_away(place: &Path) -> io::Result<()> {
    let aside = place.with_file_name(format!(".{}.aside", Uuid::new_v4()));
    fs::rename(place, &aside)?;
    // A non-empty directory stays under its new name.
    let _ = fs::remove_file(&aside).or_else(|_| fs::remove_dir(&aside));
    Ok(())
}
