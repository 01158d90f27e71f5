//! Where clients are looked up before they come in: on a thread of its own, at a bounded pace.
//!
//! It decides nothing about rights. However many come and go, those who are inside keep their workers;
//! whoever was found inside a session is known by its number and its start.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nix::libc;
use nix::sys::socket::{getsockopt, sockopt};
use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::holder::family::Member;
use crate::session::pty::ProcessId;
use crate::transport::unix::peer::{Peer, Place};

/// Clients that are let wait to be looked up; the others wait at the socket.
const WAITING_MAX: usize = 64;

/// How many clients are taken from the sockets in a slice of time, also of those that are gone again:
/// as many as a worker takes in half a millisecond.
const SLICE: Duration = Duration::from_millis(2);
const SLICE_CLIENTS: usize = 32;

/// Processes inside sessions that are remembered.
const INSIDERS_MAX: usize = 256;

/// A client and who it is, or why that cannot be said now.
pub type Placed = (UnixStream, io::Result<Peer>);

/// Looks clients up; clones do it together.
#[derive(Clone, Debug)]
pub struct Reception {
    daemon: ProcessId,
    room: Arc<Semaphore>,
    pace: Arc<Mutex<Pace>>,
    desk: Arc<Mutex<Option<mpsc::Sender<Client>>>>,
}

/// The slice of time that runs.
#[derive(Debug)]
struct Pace {
    until: Instant,
    left: usize,
}

/// A client's turn to be looked up, until it is dropped.
#[must_use = "without it the next client comes too early"]
#[derive(Debug)]
pub struct Turn {
    _room: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    reply: oneshot::Sender<Placed>,
}

impl Reception {
    /// Looks up the clients of `daemon`, which is our own process; call it within a runtime.
    pub fn new(daemon: ProcessId) -> Self {
        let pace = Pace { until: Instant::now(), left: 0 };
        Self {
            daemon,
            room: Arc::new(Semaphore::new(WAITING_MAX)),
            pace: Arc::new(Mutex::new(pace)),
            desk: Arc::default(),
        }
    }

    /// Waits until another client may be taken from a socket. Cancel-safe.
    pub async fn pace(&self) {
        while let Err(later) = self.take(Instant::now()) {
            sleep_until(later).await;
        }
    }

    /// Waits until another client may be looked up. Cancel-safe.
    pub async fn turn(&self) -> Turn {
        // It is never closed.
        Turn { _room: Arc::clone(&self.room).acquire_owned().await.ok() }
    }

    /// Finds out who a client is.
    ///
    /// # Errors
    /// When there can be no thread for it. With what it gives back for want of a descriptor it can be
    /// asked again.
    pub async fn place(&self, stream: UnixStream) -> io::Result<Placed> {
        let (reply, placed) = oneshot::channel();
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        self.desk()?.send(Client { stream, reply }).await.map_err(|_| gone())?;
        placed.await.map_err(|_| gone())
    }

    /// The way to the thread, which is started when the first client comes.
    fn desk(&self) -> io::Result<mpsc::Sender<Client>> {
        let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(desk) = desk.as_ref().filter(|desk| !desk.is_closed()) {
            return Ok(desk.clone());
        }
        let (clients, mut waiting) = mpsc::channel::<Client>(WAITING_MAX);
        let mut insiders = Insiders { daemon: self.daemon, known: HashMap::new() };
        // It ends with the last who can send it a client.
        thread::Builder::new().name("reception".to_owned()).spawn(move || {
            while let Some(Client { stream, reply }) = waiting.blocking_recv() {
                let peer = insiders.look(&stream);
                // Whoever asked may have gone.
                let _ = reply.send((stream, peer));
            }
        })?;
        *desk = Some(clients.clone());
        Ok(clients)
    }

    fn take(&self, now: Instant) -> Result<(), Instant> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner).take(now)
    }
}

impl Pace {
    /// Takes one client's share of this slice, or says when the next one begins.
    fn take(&mut self, now: Instant) -> Result<(), Instant> {
        if now >= self.until {
            *self = Self { until: now + SLICE, left: SLICE_CLIENTS };
        }
        self.left = self.left.checked_sub(1).ok_or(self.until)?;
        Ok(())
    }
}

/// Whether something failed for want of a descriptor, which says nothing about a client.
pub fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// The processes that were found inside sessions.
struct Insiders {
    daemon: ProcessId,
    /// With the start of each, in clock ticks since boot.
    known: HashMap<i32, (u64, Place)>,
}

impl Insiders {
    /// Finds out who is at the other end. Nobody who is inside ever gets out, so they are looked up once.
    fn look(&mut self, stream: &UnixStream) -> io::Result<Peer> {
        let credentials = getsockopt(stream, sockopt::PeerCredentials)?;
        let pid = credentials.pid();
        let started = || Member::find(pid).map(|member| member.started);
        if let Some((since, place)) = self.known.get(&pid) {
            if started() == Some(*since) {
                let (uid, gid, place) = (credentials.uid(), credentials.gid(), *place);
                return Ok(Peer { uid, gid, pid: Some(pid), place });
            }
            self.known.remove(&pid);
        }
        let before = started();
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
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn clients_are_taken_at_a_bounded_pace() {
        let reception = Reception::new(ProcessId(1));
        let begin = Instant::now();
        for _ in 0..10 * SLICE_CLIENTS {
            reception.pace().await;
        }
        assert!((9 * SLICE..10 * SLICE).contains(&begin.elapsed()), "{:?}", begin.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn only_some_wait_inside_to_be_looked_up() {
        let reception = Reception::new(ProcessId(1));
        let mut turns = Vec::new();
        for _ in 0..WAITING_MAX {
            turns.push(reception.turn().await);
        }
        let hour = Duration::from_secs(3_600);
        assert!(tokio::time::timeout(hour, reception.turn()).await.is_err());
        turns.pop();
        let _turn = reception.turn().await;
    }

    #[tokio::test]
    async fn who_was_found_inside_is_known_again() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let (own, place) = (std::process::id().cast_signed(), Place::Inside { holder: Some(7) });
        let started = Member::find(own).unwrap().started;
        let mut insiders = Insiders { daemon: ProcessId(own), known: HashMap::new() };
        insiders.known.insert(own, (started, place));
        assert_eq!(insiders.look(&ours).unwrap().place, place);
        // Of another process with that number nothing is known.
        insiders.known.insert(own, (started + 1, place));
        assert_eq!(insiders.look(&ours).unwrap().place, Place::Outside);
        assert!(insiders.known.is_empty());
    }

    #[tokio::test]
    async fn a_client_comes_back_with_who_it_is() {
        let reception = Reception::new(ProcessId(std::process::id().cast_signed()));
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (mut back, peer) = reception.place(ours).await.unwrap();
        assert_eq!(peer.unwrap().place, Place::Outside);
        tokio::io::AsyncWriteExt::write_all(&mut back, b"x").await.unwrap();
        assert_eq!(tokio::io::AsyncReadExt::read_u8(&mut theirs).await.unwrap(), b'x');
    }
}
