//! Where clients come in: on a thread of its own they are taken from the sockets, looked up and handed on.
//!
//! It decides nothing about rights. However many come and go, those who are inside keep their workers.
//! Whoever has hung up is dropped at once; the others are looked up in turn, peer by peer, so that a peer with
//! many clients waits behind itself. Whoever was found inside a session is known by its number and its start.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nix::libc;
use nix::sys::socket::{getsockopt, sockopt};
use tokio::net::UnixStream;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::{JoinSet, LocalSet, spawn_local, yield_now};
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::session::pty::ProcessId;
use crate::shim::stat::{ProcessStat, seen};
use crate::transport::connection::link::{self, Hangup, UnixLink};
use crate::transport::unix::fair_queue::FairQueue;
use crate::transport::unix::listener::{Accepted, Listener, SocketFile};
use crate::transport::unix::peer::{Peer, Place, Source};
use crate::transport::unix::reserve;

/// Clients that wait to be looked up; when more come, the newest of the peer that has most is hung up on.
const WAITING_MAX: usize = 512;

/// Clients that are looked up before others are taken from the sockets: about half a millisecond.
const LOOKS: usize = 8;

/// Doors that wait to be opened.
const OPENINGS_MAX: usize = 16;

/// Processes inside sessions that are remembered.
const INSIDERS_MAX: usize = 4_096;

/// How long a client waits for descriptors to be looked up with, and how often that is tried.
const PLACING_MAX: Duration = Duration::from_secs(10);
const PLACING_INTERVAL: Duration = Duration::from_millis(100);

/// A client that was looked up.
#[derive(Debug)]
pub struct Arrival {
    pub link: UnixLink,
    pub peer: Peer,
}

/// What is done with each client of a door, on the thread where all others wait.
type Admit = Box<dyn Fn(Arrival) + Send>;

/// Takes clients in; clones do it together.
#[derive(Clone, Debug)]
pub struct Reception {
    daemon: ProcessId,
    desk: Arc<Mutex<Option<mpsc::Sender<Opening>>>>,
}

/// A door that is open, until this is dropped.
#[must_use = "the door is open only as long as this lives"]
#[derive(Debug)]
pub struct OpenDoor {
    closing: DropGuard,
    closed: oneshot::Receiver<()>,
    /// It goes with this, also where the process ends before the thread has heard of it.
    file: Option<SocketFile>,
}

impl OpenDoor {
    /// Closes it; afterwards its socket is gone.
    pub async fn close(self) {
        let Self { closing, closed, file } = self;
        drop(closing);
        // A reception that ended has closed all doors.
        let _ = closed.await;
        drop(file);
    }
}

struct Opening {
    listener: Listener,
    admit: Admit,
    closing: CancellationToken,
    closed: oneshot::Sender<()>,
}

impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opening").field("listener", &self.listener).finish_non_exhaustive()
    }
}

impl Reception {
    /// Takes in the clients of `daemon`, which is our own process.
    pub fn new(daemon: ProcessId) -> Self {
        Self { daemon, desk: Arc::default() }
    }

    /// Hands every client of a listener to `admit`, which must not wait, once it is known who it is. Call it within
    /// a runtime, in which `admit` is called, too.
    ///
    /// # Errors
    /// When there can be no thread for it.
    pub async fn open(
        &self,
        mut listener: Listener,
        admit: impl Fn(Arrival) + Send + 'static,
    ) -> io::Result<OpenDoor> {
        let (closing, (on_closed, closed)) = (CancellationToken::new(), oneshot::channel());
        let file = listener.take_file();
        let open = OpenDoor { closing: closing.clone().drop_guard(), closed, file };
        let opening = Opening { listener, admit: Box::new(admit), closing, closed: on_closed };
        let sent = self.desk()?.send(opening).await;
        sent.map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(open)
    }

    /// The way to the thread, which is started with the first door.
    fn desk(&self) -> io::Result<mpsc::Sender<Opening>> {
        let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(desk) = desk.as_ref().filter(|desk| !desk.is_closed()) {
            return Ok(desk.clone());
        }
        let (desk_of_all, openings) = mpsc::channel(OPENINGS_MAX);
        let (runtime, daemon) = (Handle::current(), self.daemon);
        // It ends with the last who can open a door.
        thread::Builder::new().name("reception".to_owned()).spawn(move || {
            let room = Rc::new(Room::of(daemon));
            runtime.block_on(LocalSet::new().run_until(room.keep(openings)));
        })?;
        *desk = Some(desk_of_all.clone());
        Ok(desk_of_all)
    }
}

/// Where clients wait to be looked up.
struct Room {
    waiting: RefCell<FairQueue<Source, Waiting>>,
    insiders: RefCell<Insiders>,
    arrived: Notify,
}

struct Waiting {
    accepted: Accepted,
    /// Whether it may have what is held back.
    lends: bool,
    give_up_at: Instant,
    admit: Rc<Admit>,
}

impl Room {
    fn of(daemon: ProcessId) -> Self {
        let waiting = RefCell::new(FairQueue::of(WAITING_MAX));
        Self { waiting, insiders: RefCell::new(Insiders::of(daemon)), arrived: Notify::new() }
    }

    /// Opens the doors that are to be opened, and looks up who comes in.
    async fn keep(self: Rc<Self>, mut openings: mpsc::Receiver<Opening>) {
        let mut tasks = JoinSet::new();
        let room = Rc::clone(&self);
        tasks.spawn_local(async move {
            // A failure costs the client that was looked up, and no other.
            while let Err(error) = spawn_local(Rc::clone(&room).look_up()).await {
                tracing::error!(%error, "looking up a client failed");
            }
        });
        while let Some(opening) = openings.recv().await {
            while tasks.try_join_next().is_some() {}
            tasks.spawn_local(Rc::clone(&self).take_in(opening));
        }
    }

    /// Takes clients from a socket until its door closes.
    async fn take_in(self: Rc<Self>, opening: Opening) {
        let Opening { listener, admit, closing, closed } = opening;
        let admit = Rc::new(admit);
        let taking = async {
            loop {
                let accepted = listener.accept().await;
                if !accepted.has_hung_up() {
                    let give_up_at = Instant::now() + PLACING_MAX;
                    let (lends, admit) = (listener.is_always_open(), Rc::clone(&admit));
                    self.wait(Waiting { accepted, lends, give_up_at, admit });
                    self.arrived.notify_one();
                }
            }
        };
        closing.run_until_cancelled(taking).await;
        drop(listener);
        // Who opened it may have let go of it.
        let _ = closed.send(());
    }

    /// Has a client wait for its turn.
    fn wait(&self, client: Waiting) {
        let Some(source) = self.insiders.borrow().source_of(&client.accepted.stream) else {
            return;
        };
        if let Some((source, _hung_up_on)) = self.waiting.borrow_mut().push(source, client) {
            tracing::warn!(peer = %source, "too many clients wait to be let in");
        }
    }

    async fn look_up(self: Rc<Self>) {
        // How many clients in a row could not be looked up.
        let mut short = 0;
        loop {
            for _ in 0..LOOKS {
                let next = self.waiting.borrow_mut().pop();
                let Some((_, client)) = next else {
                    self.arrived.notified().await;
                    continue;
                };
                short = if self.place(client) { 0 } else { short + 1 };
                if short > 0 && short >= self.waiting.borrow().count() {
                    // All who wait have had their turn; one who comes now may be an operator.
                    let _ = timeout(PLACING_INTERVAL, self.arrived.notified()).await;
                    short = 0;
                }
            }
            yield_now().await;
        }
    }

    /// Finds out who a client is, and hands it on. `false` where it waits on for want of a descriptor.
    fn place(&self, mut client: Waiting) -> bool {
        let mut looked = self.look(&client.accepted.stream);
        if client.lends && looked.as_ref().is_err_and(is_shortage) {
            client.accepted.lent.get_or_insert_with(reserve::lend);
            looked = self.look(&client.accepted.stream);
        }
        match looked {
            Ok((peer, hangup)) => {
                // What was lent goes back before it is served.
                let Waiting { accepted: Accepted { stream, .. }, admit, .. } = client;
                admit(Arrival { link: link::unix(stream, hangup), peer });
            }
            Err(error) if is_shortage(&error) && Instant::now() < client.give_up_at => {
                self.wait(client);
                return false;
            }
            Err(error) => tracing::warn!(%error, "a client cannot be looked up, and is hung up on"),
        }
        true
    }

    fn look(&self, stream: &UnixStream) -> io::Result<(Peer, Hangup)> {
        let peer = self.insiders.borrow_mut().look(stream)?;
        Ok((peer, link::watch_hangup(stream)?))
    }
}

/// Whether something failed for want of a descriptor, which says nothing about a client.
fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// The processes that were found inside sessions.
#[derive(Debug)]
pub(super) struct Insiders {
    daemon: ProcessId,
    /// With the start of each, in clock ticks since boot.
    known: HashMap<i32, (u64, Place)>,
}

impl Insiders {
    pub(super) fn of(daemon: ProcessId) -> Self {
        Self { daemon, known: HashMap::new() }
    }

    /// With whom a client takes turns, as far as that is known before it is looked up; none if it has no peer.
    fn source_of(&self, stream: &UnixStream) -> Option<Source> {
        let pid = getsockopt(stream, sockopt::PeerCredentials).ok()?.pid();
        let place = self.known.get(&pid).map_or(Place::Unknown, |(_, place)| *place);
        Some(Source::of(pid, place))
    }

    /// Finds out who is at the other end. Nobody who is inside ever gets out, so they are looked up once.
    ///
    /// # Errors
    /// As of [`Peer::of`].
    pub(super) fn look(&mut self, stream: &UnixStream) -> io::Result<Peer> {
        let credentials = getsockopt(stream, sockopt::PeerCredentials)?;
        let pid = credentials.pid();
        let started = || seen(ProcessStat::look(pid).map(|found| found.started));
        let before = started()?;
        if let Some((since, place)) = self.known.get(&pid) {
            if before == Some(*since) {
                let (uid, gid, place) = (credentials.uid(), credentials.gid(), *place);
                return Ok(Peer { uid, gid, pid: Some(pid), place });
            }
            self.known.remove(&pid);
        }
        let peer = Peer::of(stream, self.daemon)?;
        if let (Some(since), Place::Inside { .. }) = (before, peer.place) {
            if self.known.len() >= INSIDERS_MAX {
                self.known.clear();
            }
            self.known.insert(pid, (since, peer.place));
        }
        Ok(peer)
    }
}

#[cfg(test)]
mod tests;
