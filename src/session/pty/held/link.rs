//! The connection to a shim: frames that the daemon sends, and frames that arrive at any time and update a state
//! that callers watch. Input goes through the memory that came with the connection.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{Shutdown, shutdown};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;

use crate::core::frame::Exit;
use crate::session::off_worker::while_others_go_on;
use crate::session::pty::held::input_line::{PATIENCE, ShimInput};
use crate::session::pty::watch::watch;
use crate::shim::readiness::{self, WRITABLE};
use crate::shim::socket::{self, Descriptors};
use crate::shim::wire::from_shim::FromShim;
use crate::shim::wire::to_shim::ToShim;
use crate::shim::wire::{Frame, ProgramEnd, frame};

/// The most frames to read in a row: more than a socket holds, but a limit for a shim that never stops
/// sending.
const HEARD_MAX: usize = 4096;

/// The last known state of the shim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LinkState {
    /// How the program ended, and where its output ends.
    pub(super) exit: Option<(Exit, u64)>,
    pub(super) presence: ShimPresence,
}

/// Whether the shim can be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ShimPresence {
    #[default]
    There,
    /// The shim does not answer or has hung up. This connection is closed. The shim may have ended, may serve
    /// another daemon, or may stand still.
    Silent,
    /// The shim has ended or serves another daemon.
    Gone,
}

#[derive(Debug)]
pub(super) struct ShimLink {
    socket: AsyncFd<OwnedFd>,
    /// The room for a frame, used by one thread at a time.
    room: Mutex<Box<Frame>>,
    pub(super) input: ShimInput,
    standing: watch::Sender<LinkState>,
    /// Whether the shim closed the connection.
    hung_up: AtomicBool,
}

pub(super) fn exit_of(ended: ProgramEnd) -> Exit {
    match ended {
        ProgramEnd::Code(code) => Exit::Code(code),
        ProgramEnd::Signal(signal) => Exit::Signal(signal),
        ProgramEnd::Unknown => Exit::Unknown,
    }
}

impl ShimLink {
    /// Wraps a connection that was just attached. `exit` is what the shim reported then.
    pub(super) fn new(
        socket: OwnedFd,
        input: ShimInput,
        exit: Option<(Exit, u64)>,
    ) -> io::Result<Self> {
        Ok(Self {
            socket: watch(socket, Interest::READABLE)?,
            room: Mutex::new(frame()),
            input,
            standing: watch::Sender::new(LinkState { exit, ..LinkState::default() }),
            hung_up: AtomicBool::new(false),
        })
    }

    /// Watches the shim's state.
    pub(super) fn standing(&self) -> watch::Receiver<LinkState> {
        self.standing.subscribe()
    }

    /// Whether the connection is lost at this moment.
    pub(super) fn is_lost(&self) -> bool {
        self.hear_all();
        self.presence() != ShimPresence::There
    }

    /// Whether the shim has closed the connection at this moment. A running shim does so only when another
    /// daemon attaches. A program in the session can stop the shim, but cannot make it hang up.
    pub(super) fn has_hung_up(&self) -> bool {
        self.hear_all();
        self.hung_up.load(Ordering::Relaxed)
    }

    /// The last known presence.
    pub(super) fn presence(&self) -> ShimPresence {
        self.standing.borrow().presence
    }

    /// Sends a frame that needs no answer.
    ///
    /// # Errors
    /// `BrokenPipe` if the shim is gone, `TimedOut` if it is silent or has hung up.
    pub(super) fn say(&self, frame: &ToShim<'_>, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut room = self.room();
        self.send(&mut room, frame, descriptors)
    }

    /// Waits for news from the shim that `standing` has not seen.
    pub(super) async fn hear(&self, standing: &mut watch::Receiver<LinkState>) -> io::Result<()> {
        tokio::select! {
            // The channel cannot close while `self` owns the sender.
            _ = standing.changed() => {}
            // A closed connection would stay readable forever.
            ready = self.socket.readable(), if self.presence() == ShimPresence::There => {
                let mut ready = ready?;
                if self.hear_all() {
                    ready.clear_ready();
                }
            }
        }
        Ok(())
    }

    /// Reads all frames that have arrived. Returns whether the socket is now empty.
    pub(super) fn hear_all(&self) -> bool {
        self.hear_rest(&mut self.room())
    }

    fn hear_rest(&self, room: &mut Frame) -> bool {
        (0..HEARD_MAX).any(|_| match self.receive(room) {
            Heard::News => false,
            Heard::Nothing | Heard::Lost => true,
        })
    }

    fn room(&self) -> MutexGuard<'_, Box<Frame>> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(
        &self,
        room: &mut Frame,
        frame: &ToShim<'_>,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        if self.presence() != ShimPresence::There {
            return Err(self.absence().into());
        }
        let length = frame.encode(room);
        let until = readiness::now() + PATIENCE;
        loop {
            let frame = &room[..length];
            match socket::send(self.socket.get_ref().as_fd(), frame, descriptors) {
                Ok(()) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => self.wait_until_writable(until)?,
                Err(Errno::EPIPE | Errno::ECONNRESET) => {
                    // Reads what the shim sent before it went.
                    self.hear_rest(room);
                    self.on_hang_up();
                    return Err(self.absence().into());
                }
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Reads one frame and updates the state.
    fn receive(&self, room: &mut Frame) -> Heard {
        if self.presence() != ShimPresence::There {
            return Heard::Lost;
        }
        let socket = self.socket.get_ref().as_fd();
        let mut descriptors = Descriptors::default();
        let length = match socket::receive(socket, room, &mut descriptors) {
            Ok(length @ 1..) => length,
            // The shim closed with frames unread. The kernel reports this once, before the shim's last
            // frames.
            Err(Errno::EINTR | Errno::ECONNRESET) => return Heard::News,
            Err(Errno::EAGAIN) => return Heard::Nothing,
            Ok(_) | Err(_) => {
                self.on_hang_up();
                return Heard::Lost;
            }
        };
        match FromShim::decode(&room[..length]) {
            Ok(Some(FromShim::Exited { ended, head })) => self.standing.send_modify(|standing| {
                standing.exit = Some((exit_of(ended), head));
            }),
            // A later protocol version may have more kinds.
            Ok(None | Some(FromShim::Attached(_) | FromShim::Failed(_) | FromShim::Note(_))) => {}
            Err(_) => {
                self.lose(ShimPresence::Silent);
                return Heard::Lost;
            }
        }
        Heard::News
    }

    /// Waits for a shim that has not read hundreds of frames. At the deadline it counts as silent. The other tasks
    /// of this thread go on meanwhile.
    fn wait_until_writable(&self, until: Duration) -> io::Result<()> {
        let socket = self.socket.get_ref().as_fd();
        let left = until.saturating_sub(readiness::now());
        let wait = || readiness::wait([(Some(socket), WRITABLE)], Some(left));
        let [ready] = while_others_go_on(wait)?;
        if ready == 0 && readiness::now() >= until {
            self.lose(ShimPresence::Silent);
            return Err(self.absence().into());
        }
        Ok(())
    }

    /// Notes that the shim has closed the connection, or the memory for input just before it does.
    pub(super) fn on_hang_up(&self) {
        self.hung_up.store(true, Ordering::Relaxed);
        self.lose(ShimPresence::Silent);
    }

    /// Closes this connection. A shim that is gone stays gone.
    pub(super) fn lose(&self, presence: ShimPresence) {
        // A running shim must neither keep this connection as its daemon nor take input that it has not
        // begun.
        let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Both);
        self.standing.send_if_modified(|standing| {
            let changed = standing.presence != presence && standing.presence != ShimPresence::Gone;
            if changed {
                standing.presence = presence;
            }
            changed
        });
    }

    /// The error for a caller that cannot reach the shim.
    pub(super) fn absence(&self) -> io::ErrorKind {
        match self.presence() {
            ShimPresence::Silent => io::ErrorKind::TimedOut,
            ShimPresence::There | ShimPresence::Gone => io::ErrorKind::BrokenPipe,
        }
    }
}

/// The result of one attempt to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    News,
    Nothing,
    Lost,
}
