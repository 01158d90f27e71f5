//! Accepts clients on a separate thread, looks up their processes and passes them on.
//!
//! Sources take turns, so a source with many clients delays only itself. Programs inside sessions wait apart from all
//! others and get every second turn, however many they are. Clients that hung up are dropped first. A process found
//! inside a session is cached by its number and start time.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nix::libc;
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::{Pid, getsid};
use tokio::net::UnixStream;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::{JoinSet, LocalSet, spawn_local, yield_now};
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::session::pty::ProcessId;
use crate::shim::mark;
use crate::shim::stat::{ProcessStat, seen};
use crate::transport::connection::link::{self, Hangup, UnixLink};
use crate::transport::unix::fair_queue::FairQueue;
use crate::transport::unix::listener::{AcceptedClient, Listener, SocketFile};
use crate::transport::unix::peer::{Peer, Place, Source, groups_of};
use crate::transport::unix::reserve;

/// Clients that wait to be looked up, inside and outside of sessions each. Above this, the source with the most
/// clients loses its newest one. Each client has a descriptor, so the bound is lower where the process may have few.
const WAITING_MAX: usize = 256;
const WAITING_MIN: usize = 4;

/// Listeners that wait to be opened.
const OPENINGS_MAX: usize = 16;

/// Cached processes inside sessions.
const INSIDERS_MAX: usize = 4_096;

/// How long a client waits when no descriptor is left for its lookup, and the interval of the retries.
const PLACING_MAX: Duration = Duration::from_secs(10);
const PLACING_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct Arrival {
    pub link: UnixLink,
    pub peer: Peer,
}

/// Receives each client of a listener. It runs on the reception thread and must not block.
type Admit = Box<dyn Fn(Arrival) + Send>;

/// Accepts clients for all listeners. Clones share one thread.
#[derive(Clone, Debug)]
pub struct Reception {
    daemon: ProcessId,
    desk: Arc<Mutex<Option<mpsc::Sender<Opening>>>>,
}

/// An open listener; dropping this closes it.
#[must_use = "the door is open only as long as this lives"]
#[derive(Debug)]
pub struct OpenDoor {
    closing: DropGuard,
    closed: oneshot::Receiver<()>,
    /// Dropped with this, because the process may end before the thread closes the listener.
    file: Option<SocketFile>,
}

impl OpenDoor {
    /// The file of the listener's socket, if this removes it.
    pub fn file(&self) -> Option<&SocketFile> {
        self.file.as_ref()
    }

    /// Closes the listener; afterwards its socket file is removed.
    pub async fn close(self) {
        let Self { closing, closed, file } = self;
        drop(closing);
        // If the thread has ended, it has closed all listeners.
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
    /// Creates a reception; `daemon` is our own process.
    pub fn new(daemon: ProcessId) -> Self {
        Self { daemon, desk: Arc::default() }
    }

    /// Passes every client of a listener to `admit` after its lookup. `admit` must not block.
    ///
    /// Call it within a runtime; `admit` runs in the same one.
    ///
    /// # Errors
    /// Fails when the thread cannot be started.
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

    /// Starts the thread with the first listener and returns its channel.
    fn desk(&self) -> io::Result<mpsc::Sender<Opening>> {
        let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(desk) = desk.as_ref().filter(|desk| !desk.is_closed()) {
            return Ok(desk.clone());
        }
        let (desk_of_all, openings) = mpsc::channel(OPENINGS_MAX);
        let (runtime, daemon) = (Handle::current(), self.daemon);
        // The thread ends when the last sender is dropped.
        thread::Builder::new().name("reception".to_owned()).spawn(move || {
            let room = Rc::new(Room::of(daemon));
            runtime.block_on(LocalSet::new().run_until(room.keep(openings)));
        })?;
        *desk = Some(desk_of_all.clone());
        Ok(desk_of_all)
    }
}

/// The clients that wait to be looked up.
#[derive(Debug)]
struct Queues<T> {
    outside: FairQueue<Source, T>,
    inside: FairQueue<Source, T>,
    is_turn_of_inside: bool,
}

impl<T> Queues<T> {
    fn of(most: usize) -> Self {
        let queue = || FairQueue::of(most);
        Self { outside: queue(), inside: queue(), is_turn_of_inside: false }
    }

    fn count(&self) -> usize {
        self.outside.count() + self.inside.count()
    }

    /// Adds a client. Returns the source that lost one because its queue was full.
    fn push(&mut self, source: Source, client: T) -> Option<Source> {
        let queue = if source.is_inside() { &mut self.inside } else { &mut self.outside };
        queue.push(source, client).map(|(source, _hung_up_on)| source)
    }

    fn pop(&mut self) -> Option<T> {
        self.is_turn_of_inside = !self.is_turn_of_inside;
        let Self { outside, inside, .. } = self;
        let queues = if self.is_turn_of_inside { [inside, outside] } else { [outside, inside] };
        queues.into_iter().find_map(FairQueue::pop).map(|(_, client)| client)
    }
}

struct Room {
    waiting: RefCell<Queues<Waiting>>,
    insiders: RefCell<Insiders>,
    arrived: Notify,
}

struct Waiting {
    accepted: AcceptedClient,
    /// Whether it may use the reserve of descriptors.
    lends: bool,
    give_up_at: Instant,
    admit: Rc<Admit>,
}

impl Room {
    fn of(daemon: ProcessId) -> Self {
        let descriptors = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft as usize);
        let most = (descriptors / 32).clamp(WAITING_MIN, WAITING_MAX);
        let waiting = RefCell::new(Queues::of(most));
        Self { waiting, insiders: RefCell::new(Insiders::of(daemon)), arrived: Notify::new() }
    }

    /// Serves the listeners that arrive and looks up their clients.
    async fn keep(self: Rc<Self>, mut openings: mpsc::Receiver<Opening>) {
        let mut tasks = JoinSet::new();
        let room = Rc::clone(&self);
        tasks.spawn_local(async move {
            // A panic costs only the client that was being looked up.
            while let Err(error) = spawn_local(Rc::clone(&room).look_up()).await {
                tracing::error!(%error, "identifying a client failed");
            }
        });
        while let Some(opening) = openings.recv().await {
            while tasks.try_join_next().is_some() {}
            tasks.spawn_local(Rc::clone(&self).take_in(opening));
        }
    }

    /// Accepts clients until the listener is closed.
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
        // The receiver may be gone.
        let _ = closed.send(());
    }

    fn wait(&self, client: Waiting) {
        let Some(source) = self.insiders.borrow().source_of(&client.accepted.stream) else {
            return;
        };
        if let Some(source) = self.waiting.borrow_mut().push(source, client) {
            tracing::warn!(peer = %source, "too many clients wait for their connection");
        }
    }

    async fn look_up(self: Rc<Self>) {
        // The number of consecutive clients that could not be looked up.
        let mut short = 0;
        loop {
            let next = self.waiting.borrow_mut().pop();
            let Some(client) = next else {
                self.arrived.notified().await;
                continue;
            };
            short = if self.place(client) { 0 } else { short + 1 };
            if short > 0 && short >= self.waiting.borrow().count() {
                // Every waiting client had its turn. The next client may be an operator.
                let _ = timeout(PLACING_INTERVAL, self.arrived.notified()).await;
                short = 0;
            }
            // A lookup may take milliseconds, and listeners accept clients between two of them.
            yield_now().await;
        }
    }

    /// Looks up a client and passes it on. Returns `false` when the client must wait for a descriptor.
    fn place(&self, mut client: Waiting) -> bool {
        let mut looked = self.look(&client.accepted.stream);
        if client.lends && looked.as_ref().is_err_and(is_shortage) {
            client.accepted.lent.get_or_insert_with(reserve::lend);
            looked = self.look(&client.accepted.stream);
        }
        match looked {
            Ok((peer, hangup)) => {
                // The reserve is refilled before the client is served.
                let Waiting { accepted: AcceptedClient { stream, .. }, admit, .. } = client;
                match link::unix(stream, hangup) {
                    Ok(link) => admit(Arrival { link, peer }),
                    Err(error) => {
                        tracing::warn!(%error, "cannot serve a client; its connection is closed")
                    }
                }
            }
            Err(error) if is_shortage(&error) && Instant::now() < client.give_up_at => {
                self.wait(client);
                return false;
            }
            Err(error) => {
                tracing::warn!(%error, "cannot identify a client; its connection is closed")
            }
        }
        true
    }

    fn look(&self, stream: &UnixStream) -> io::Result<(Peer, Hangup)> {
        let peer = self.insiders.borrow_mut().look(stream)?;
        Ok((peer, link::watch_hangup(stream)?))
    }
}

/// Whether an operation failed because no descriptor was left. Such a failure says nothing about the client.
fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// The cache of processes that were found inside sessions.
#[derive(Debug)]
pub(super) struct Insiders {
    daemon: ProcessId,
    /// The start time of each, in clock ticks since boot, and its place.
    known: HashMap<i32, (u64, Place)>,
}

impl Insiders {
    pub(super) fn of(daemon: ProcessId) -> Self {
        Self { daemon, known: HashMap::new() }
    }

    /// The source of a client, as far as it is known before the lookup. `None` if the socket has no peer.
    fn source_of(&self, stream: &UnixStream) -> Option<Source> {
        let pid = getsockopt(stream, sockopt::PeerCredentials).ok()?.pid();
        // A program that forks for each connection stays one source, also if each process leads a session.
        if let Some(session) = mark::deeper_session_of(pid) {
            return Some(Source::Marked(session));
        }
        if let Some((_, place)) = self.known.get(&pid) {
            return Some(Source::of(pid, *place));
        }
        let leader = getsid(Some(Pid::from_raw(pid)));
        Some(leader.map_or(Source::Ended, |leader| Source::Leader(leader.as_raw())))
    }

    /// Looks up the peer. A process inside a session can never leave it, so such a result is cached.
    ///
    /// # Errors
    /// See [`Peer::of`].
    pub(super) fn look(&mut self, stream: &UnixStream) -> io::Result<Peer> {
        let credentials = getsockopt(stream, sockopt::PeerCredentials)?;
        let pid = credentials.pid();
        let started = || seen(ProcessStat::look(pid).map(|found| found.started));
        let before = started()?;
        if let Some((since, place)) = self.known.get(&pid) {
            if before == Some(*since) {
                let (uid, gid, place) = (credentials.uid(), credentials.gid(), *place);
                // Its groups may have changed since.
                let groups = groups_of(stream);
                return Ok(Peer { uid, gid, groups, pid: Some(pid), place });
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
