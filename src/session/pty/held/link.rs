//! The connection to a shim: what is said to it, and what it says whenever it likes.
//!
//! It knows frames and nothing of what they are for. Input is answered before anything else is
//! done, so that every byte is accounted for; all other news is kept for whoever asks next.

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
use crate::session::pty::watch::watch;
use crate::shim::readiness::{self, READABLE, WRITABLE};
use crate::shim::socket::{self, Descriptors};
use crate::shim::wire::from_shim::{FromShim, Outcome, Taken};
use crate::shim::wire::to_shim::{Input, ToShim};
use crate::shim::wire::{Ended, FRAME_MAX, Frame};

/// How long a shim may take for an answer; one that takes longer is silent.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// How long it gets after that, in which it runs if anything does.
const AFTER_A_STALL: Duration = Duration::from_millis(200);
/// How long an answer is waited for before the other tasks of this thread go to another one; nearly every
/// answer comes within it.
const AT_ONCE: Duration = Duration::from_millis(1);

/// How many frames are heard in a row; more than a socket holds, and not for ever when somebody goes on
/// and on.
const HEARD_MAX: usize = 4096;

/// What the shim said last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// How the program ended, and where its output ends.
    pub(super) exit: Option<(Exit, u64)>,
    pub(super) presence: Presence,
    pub(super) room: Room,
}

/// Whether there is somebody to speak with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Presence {
    #[default]
    There,
    /// It does not answer or has hung up, and is not listened to any more at this connection. That alone
    /// says neither that it ended nor that another daemon has it.
    Silent,
    /// It ended, or another daemon has it.
    Gone,
}

/// Whether the terminal takes input, as far as is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Room {
    #[default]
    Free,
    Full,
    /// The shim will say when it is free again.
    Awaited,
}

/// The connection to one shim.
#[derive(Debug)]
pub(super) struct Link {
    socket: AsyncFd<OwnedFd>,
    exchange: Mutex<Exchange>,
    standing: watch::Sender<Standing>,
    /// Whether it was the shim that closed the connection.
    hung_up: AtomicBool,
}

/// What one thread at a time uses to speak and to hear.
#[derive(Debug)]
struct Exchange {
    room: Box<Frame>,
    sequence: u32,
}

/// Makes room for a frame.
pub(super) fn frame() -> Box<Frame> {
    let zeros = vec![0; FRAME_MAX].into_boxed_slice();
    zeros.try_into().expect("it was made with this length")
}

/// How a shim says that a program ended.
pub(super) fn exit_of(ended: Ended) -> Exit {
    match ended {
        Ended::Code(code) => Exit::Code(code),
        Ended::Signal(signal) => Exit::Signal(signal),
        Ended::Unknown => Exit::Unknown,
    }
}

impl Link {
    /// A connection that was just attached; `exit` is what the shim said then.
    pub(super) fn new(socket: OwnedFd, exit: Option<(Exit, u64)>) -> io::Result<Self> {
        Ok(Self {
            socket: watch(socket, Interest::READABLE)?,
            exchange: Mutex::new(Exchange { room: frame(), sequence: 0 }),
            standing: watch::Sender::new(Standing { exit, ..Standing::default() }),
            hung_up: AtomicBool::new(false),
        })
    }

    /// What the shim said last, and whatever it says next.
    pub(super) fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    /// Whether nobody hears what is said at this connection, as of this moment.
    pub(super) fn is_lost(&self) -> bool {
        self.hear_all();
        self.presence() != Presence::There
    }

    /// Whether the shim closed the connection, as of this moment. One that lives does so when another daemon
    /// comes to it; a program in its session can only have it stand still.
    pub(super) fn has_hung_up(&self) -> bool {
        self.hear_all();
        self.hung_up.load(Ordering::Relaxed)
    }

    /// Whether somebody was there when this was last found out.
    pub(super) fn presence(&self) -> Presence {
        self.standing.borrow().presence
    }

    /// Says something that needs no answer.
    ///
    /// # Errors
    /// `BrokenPipe` when the shim is gone, `TimedOut` when it is silent or has hung up.
    pub(super) fn say(&self, frame: &ToShim<'_>, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut exchange = self.exchange();
        self.send(&mut exchange, frame, descriptors)
    }

    /// Hands over input and says what became of it.
    ///
    /// # Errors
    /// `BrokenPipe` when the shim is gone. `TimedOut` when it is silent or has hung up: it takes none of
    /// this input any more, unless it was about to then.
    pub(super) fn input(&self, input: Input<'_>) -> io::Result<Outcome> {
        let mut exchange = self.exchange();
        exchange.sequence = exchange.sequence.wrapping_add(1);
        let sequence = exchange.sequence;
        self.send(&mut exchange, &ToShim::Input(Input { sequence, ..input }), &[])?;
        let until = readiness::now() + PATIENCE;
        loop {
            match self.receive(&mut exchange) {
                Heard::Taken(taken) if taken.sequence == sequence => return Ok(taken.outcome),
                // Whoever talks on and does not answer is as good as silent.
                Heard::Taken(_) | Heard::News if readiness::now() >= until => {
                    self.lose(Presence::Silent);
                    return Err(self.absence().into());
                }
                Heard::Taken(_) | Heard::News => {}
                Heard::Nothing => self.wait(READABLE, until)?,
                Heard::Lost => return Err(self.absence().into()),
            }
        }
    }

    /// Notes that the terminal took nothing.
    pub(super) fn set_room(&self, room: Room) {
        self.standing.send_if_modified(|standing| {
            let changed = standing.room != room;
            standing.room = room;
            changed
        });
    }

    /// Waits until the shim has said something that whoever has `standing` did not know.
    pub(super) async fn hear(&self, standing: &mut watch::Receiver<Standing>) -> io::Result<()> {
        tokio::select! {
            // The channel cannot close while `self` has its sending end.
            _ = standing.changed() => {}
            // A connection that is over stays readable for ever.
            ready = self.socket.readable(), if self.presence() == Presence::There => {
                let mut ready = ready?;
                if self.hear_all() {
                    ready.clear_ready();
                }
            }
        }
        Ok(())
    }

    /// Hears all that had been said when this was called, and tells whether there is no more by now.
    pub(super) fn hear_all(&self) -> bool {
        self.hear_rest(&mut self.exchange())
    }

    fn hear_rest(&self, exchange: &mut Exchange) -> bool {
        (0..HEARD_MAX).any(|_| match self.receive(exchange) {
            Heard::Taken(_) | Heard::News => false,
            Heard::Nothing | Heard::Lost => true,
        })
    }

    fn exchange(&self) -> MutexGuard<'_, Exchange> {
        self.exchange.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(
        &self,
        exchange: &mut Exchange,
        frame: &ToShim<'_>,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        if self.presence() != Presence::There {
            return Err(self.absence().into());
        }
        let length = frame.encode(&mut exchange.room);
        let until = readiness::now() + PATIENCE;
        loop {
            let frame = &exchange.room[..length];
            match socket::send(self.socket.get_ref().as_fd(), frame, descriptors) {
                Ok(()) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => self.wait(WRITABLE, until)?,
                Err(Errno::EPIPE | Errno::ECONNRESET) => {
                    // What it said before it went is still to be heard.
                    self.hear_rest(exchange);
                    self.on_hang_up();
                    return Err(self.absence().into());
                }
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Hears one thing and keeps what is news.
    fn receive(&self, exchange: &mut Exchange) -> Heard {
        if self.presence() != Presence::There {
            return Heard::Lost;
        }
        let socket = self.socket.get_ref().as_fd();
        let mut descriptors = Descriptors::default();
        let length = match socket::receive(socket, &mut exchange.room, &mut descriptors) {
            Ok(length @ 1..) => length,
            // A shim that ended without hearing all we said is told once, before what it said.
            Err(Errno::EINTR | Errno::ECONNRESET) => return Heard::News,
            Err(Errno::EAGAIN) => return Heard::Nothing,
            Ok(_) | Err(_) => {
                self.on_hang_up();
                return Heard::Lost;
            }
        };
        match FromShim::decode(&exchange.room[..length]) {
            Ok(Some(FromShim::Taken(taken))) => return Heard::Taken(taken),
            Ok(Some(FromShim::Writable)) => self.set_room(Room::Free),
            Ok(Some(FromShim::Exited { ended, head })) => self.standing.send_modify(|standing| {
                standing.exit = Some((exit_of(ended), head));
            }),
            // Later versions may say more than this one knows.
            Ok(None | Some(FromShim::Attached(_) | FromShim::Failed(_) | FromShim::Note(_))) => {}
            Err(_) => {
                self.lose(Presence::Silent);
                return Heard::Lost;
            }
        }
        Heard::News
    }

    /// Waits for the socket until a moment; afterwards the shim is silent.
    fn wait(&self, events: readiness::Events, until: Duration) -> io::Result<()> {
        let socket = self.socket.get_ref().as_fd();
        let wait = |most| readiness::wait([(Some(socket), events)], Some(most));
        let left = until.saturating_sub(readiness::now());
        let [mut ready] = wait(left.min(AT_ONCE))?;
        if ready == 0 && left > AT_ONCE {
            [ready] = while_others_go_on(|| wait(left.saturating_sub(AT_ONCE)))?;
        }
        if ready == 0 && readiness::now() >= until {
            // Where the machine itself stood still, the shim could not answer any sooner.
            [ready] = while_others_go_on(|| wait(AFTER_A_STALL))?;
        }
        if ready == 0 && readiness::now() >= until {
            self.lose(Presence::Silent);
            return Err(self.absence().into());
        }
        Ok(())
    }

    fn on_hang_up(&self) {
        self.hung_up.store(true, Ordering::Relaxed);
        self.lose(Presence::Silent);
    }

    /// Speaks no more at this connection. Who is gone does not come back.
    pub(super) fn lose(&self, presence: Presence) {
        // A shim that lives must not take this connection for a daemon any longer, nor input that
        // it has not begun with.
        let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Both);
        self.standing.send_if_modified(|standing| {
            let changed = standing.presence != presence && standing.presence != Presence::Gone;
            if changed {
                standing.presence = presence;
            }
            changed
        });
    }

    /// What whoever wants to speak is told when it cannot.
    fn absence(&self) -> io::ErrorKind {
        match self.presence() {
            Presence::Silent => io::ErrorKind::TimedOut,
            Presence::There | Presence::Gone => io::ErrorKind::BrokenPipe,
        }
    }
}

/// What came of listening once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Taken(Taken),
    News,
    Nothing,
    Lost,
}
