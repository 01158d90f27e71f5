//! The seam between a session and its terminal: bytes out, bytes in, size, signals, evidence, end.
//!
//! Above it nobody sees a file descriptor; below it nobody knows what a screen or a lease is. It is
//! a trait so that a process that outlives the daemon, a terminal of the daemon's own and a fake in
//! memory can stand behind one session task.

pub mod census;
pub mod command;
pub mod environment;
pub mod held;
pub mod kill;
pub mod orphaned;
pub mod own;
pub mod processes;
pub mod reaper;
pub mod shell;
pub mod sidecar_files;
pub mod signal;
pub mod spare;
pub mod spawn;
pub mod surroundings;
#[cfg(test)]
pub(in crate::session) mod tests;
pub mod watch;

use std::fmt;
use std::future::Future;
use std::io;

use nix::libc;
use nix::sys::termios::{LocalFlags, SpecialCharacterIndices, Termios};

use crate::core::frame::{Exit, Size};
use crate::core::ids::{Epoch, RowNumber};
use crate::core::input::idempotency::earlier_writes::WriteStamp;
use crate::core::shell::activity::KernelView;
use crate::session::pty::kill::KillError;
use crate::session::pty::signal::Signal;
use crate::shim::wire;

/// How many bytes one [`Pty::read`] hands over at most, so that a busy terminal leaves the others
/// their turn.
pub const READ_MAX: usize = 256 * 1024;

/// The kernel's number of a process or of a process group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub i32);

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// This many bytes were appended, at least one and at most [`READ_MAX`].
    Bytes(usize),
    /// The program ended and all it wrote was handed over.
    End,
}

/// What the kernel knows about the terminal at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The process the session was started with.
    pub leader: ProcessId,
    /// The process group that may read the terminal; none once the leader has ended.
    pub foreground: Option<ProcessId>,
    /// Whether the kernel collects input into lines.
    pub canonical: bool,
    /// Whether the kernel shows what is typed.
    pub echo: bool,
    /// What takes back all of a line that the kernel collects; none where nothing does, or none is
    /// collected.
    pub line_kill: Option<u8>,
}

impl Evidence {
    /// What the modes of a terminal and its groups say.
    fn of(leader: ProcessId, foreground: Option<ProcessId>, modes: &Termios) -> Self {
        let canonical = modes.local_flags.contains(LocalFlags::ICANON);
        let kill = modes.control_chars[SpecialCharacterIndices::VKILL as usize];
        Self {
            leader,
            foreground,
            canonical,
            echo: modes.local_flags.contains(LocalFlags::ECHO),
            line_kill: Some(kill).filter(|kill| canonical && *kill != libc::_POSIX_VDISABLE),
        }
    }

    /// Whether the program the session was started with has the terminal to itself; for a shell
    /// with job control, that it is at its prompt.
    pub fn leader_in_front(&self) -> bool {
        self.foreground == Some(self.leader)
    }

    /// Whether a line is asked for that must not be shown, such as a password.
    pub fn secret_prompt(&self) -> bool {
        self.canonical && !self.echo
    }
}

/// What a program does about what was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// It is in front, has read all of it, and waits for more.
    Waits,
    /// The same, but what it waits for may be another part of itself, for a moment.
    Pauses,
    /// Not all of it was read.
    Unread,
    /// All of it was read, by a program that does something now, or is not in front.
    Works,
    /// All of it was read; what is done now, the kernel does not say.
    Unknown,
}

/// What goes with input, so that whoever keeps the terminal can judge and remember it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The epoch of the lease it was typed under; none for what needs no lease: the terminal's own
    /// answers, and the end of what was begun. Input of a lower epoch than the highest seen is
    /// refused.
    pub epoch: Option<Epoch>,
    /// The queries in the output before this offset have had their answers once this is taken.
    pub answered: u64,
    /// The write it is a part of, so that how much of it was taken can be told after a restart.
    pub write: Option<WriteStamp>,
}

/// All that a daemon to come needs to know of the output before an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The output before it will not be asked for again.
    pub offset: u64,
    /// The screen at this offset, in the screen's own writing; the one before it still counts when
    /// it is empty.
    pub snapshot: Vec<u8>,
    /// The rows that went into history since the last checkpoint, in history's own writing.
    pub rows: Vec<u8>,
    /// Whether these are all rows of history, so that those kept before are not needed any more.
    pub whole: bool,
    /// The oldest row that history still has.
    pub first_row: RowNumber,
    /// The row after the newest one in history.
    pub end_row: RowNumber,
    /// Whether nothing more is expected soon, so that memory may be given back.
    pub quiet: bool,
}

/// What is kept beside a terminal for the next daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Note {
    /// Which session it is of.
    Identity,
    /// How its lease stands.
    Lease,
    /// What a screen does not tell of the terminal: since when it is as it is.
    Terminal,
    /// How far its commands are numbered.
    Commands,
    /// Which output was lost.
    Gaps,
}

impl Note {
    /// Every note there is.
    pub const ALL: [Self; 5] =
        [Self::Identity, Self::Lease, Self::Terminal, Self::Commands, Self::Gaps];

    /// How many bytes a note may have.
    pub const BYTES_MAX: usize = wire::NOTE_MAX;
}

/// A terminal with a program in it.
///
/// All operations take `&self`, so that one task may wait for several of them at once. Every
/// future is cancel-safe: when it is dropped, nothing is lost and it may be asked for again. One
/// task reads.
pub trait Pty: Send + Sync + 'static {
    /// Waits for output from the absolute `offset` on and appends it to `into`.
    ///
    /// Offsets count the bytes the program has written since its start. Output that no checkpoint covers
    /// can be read again, as far as it is kept. [`Output::End`] comes after
    /// the program's exit, when all it wrote before was handed over, and again at each later call.
    ///
    /// # Errors
    /// `InvalidInput` for an offset that is no longer, or not yet, to be had; `InvalidData` when the
    /// keeper's marks make no sense; otherwise what the kernel said.
    fn read(
        &self,
        offset: u64,
        into: &mut Vec<u8>,
    ) -> impl Future<Output = io::Result<Output>> + Send;

    /// The first byte of output that can still be read; what came before is lost if nobody read it.
    fn oldest(&self) -> u64;

    /// Whether a checkpoint is due, now that the output was read up to `offset`; without one there
    /// would soon be no room for more.
    fn owes(&self, offset: u64) -> bool;

    /// Whether it goes on when the daemon ends, so that checkpoints and notes are of use.
    fn outlives_daemon(&self) -> bool;

    /// Hands over a checkpoint. The output before its offset will not be asked for again.
    ///
    /// # Errors
    /// Why it was not kept; the one before still counts.
    fn commit(&self, checkpoint: &Checkpoint) -> io::Result<()>;

    /// Keeps a note of at most [`Note::BYTES_MAX`] for the next daemon, in place of the one before;
    /// a terminal that ends with its daemon keeps nothing.
    ///
    /// Once this returns, a daemon that comes after the death of this one finds it.
    fn remember(&self, note: Note, bytes: &[u8]);

    /// Keeps which session it is where even the end of whoever keeps the terminal leaves it, as far as
    /// that can be done; nothing secret may be in it.
    fn entrust(&self, identity: &[u8]) {
        let _ = identity;
    }

    /// Writes what the terminal takes at once and says how many bytes that was; 0 when it takes
    /// nothing now.
    ///
    /// # Errors
    /// `BrokenPipe` once the program has ended; `PermissionDenied` when its epoch is over;
    /// `TimedOut` when the terminal is silent, which may have taken some of this just before;
    /// otherwise what the kernel said.
    fn try_write(&self, bytes: &[u8], stamp: Stamp) -> io::Result<usize>;

    /// Waits until [`Pty::try_write`] is worth another attempt.
    ///
    /// # Errors
    /// What the kernel said.
    fn writable(&self) -> impl Future<Output = io::Result<()>> + Send;

    /// Sets the size; the foreground group is told by SIGWINCH when it differs from before.
    ///
    /// # Errors
    /// What the kernel said, or that the terminal is silent; it has the size that it had then.
    fn resize(&self, size: Size) -> io::Result<()>;

    /// Sends a signal to every process of the foreground group; may block for milliseconds.
    ///
    /// # Errors
    /// `NotFound` when there is no such group any more.
    fn signal(&self, signal: Signal) -> io::Result<()>;

    /// Reads what the kernel knows about the terminal now.
    ///
    /// # Errors
    /// What the kernel said, once the terminal is gone.
    fn evidence(&self) -> io::Result<Evidence>;

    /// Reads what else the kernel knows; once the terminal has `settled`, also whether somebody
    /// waits in a read of it. May take some hundred microseconds.
    ///
    /// # Errors
    /// What the kernel said, once the terminal is gone.
    fn look(&self, settled: bool) -> io::Result<KernelView> {
        Ok(surroundings::look(self.evidence()?, settled))
    }

    /// Reads what can have changed since something was `known`, when the session's shell has just marked
    /// its prompt. Takes some microseconds where that shell was in front already.
    ///
    /// # Errors
    /// What the kernel said, once the terminal is gone.
    fn look_at_prompt(&self, known: &KernelView) -> io::Result<KernelView> {
        let evidence = self.evidence()?;
        let again = surroundings::look_again(evidence, known);
        Ok(again.unwrap_or_else(|| surroundings::look(evidence, false)))
    }

    /// Whether something was typed that nobody has read yet. May wait for the kernel to pass on what
    /// was typed just before.
    ///
    /// # Errors
    /// What the kernel said, once the terminal is gone.
    fn unread(&self) -> io::Result<bool>;

    /// What the program that the session was started with does about what was typed.
    ///
    /// # Errors
    /// What the kernel said, once the terminal is gone.
    fn leader_rest(&self) -> io::Result<Rest> {
        let evidence = self.evidence()?;
        // What was typed is looked for first: whoever has read all and waits now is done with it.
        if self.unread()? {
            return Ok(Rest::Unread);
        }
        let in_front = evidence.leader_in_front();
        Ok(if in_front { surroundings::rest_of(evidence.leader) } else { Rest::Works })
    }

    /// Whether `offset` is the end of all that was written to the terminal before this call, so that
    /// what is known of the program and what is shown of it belong together.
    ///
    /// # Errors
    /// What the kernel or the shim said; `TimedOut` when the shim is silent.
    fn all_read(&self, offset: u64) -> io::Result<bool>;

    /// Waits for the end of the program and says how it ended; the same answer every time.
    fn exited(&self) -> impl Future<Output = Exit> + Send;

    /// Ends the program and every process that came of it, within [`kill::LADDER_MAX`].
    ///
    /// # Errors
    /// Who is left, when the kernel would not let somebody go.
    fn kill(&self) -> impl Future<Output = Result<(), KillError>> + Send;

    /// Says that the session is forgotten: nobody will ask for its terminal or its exit again, and
    /// whatever still runs in it ends.
    fn forget(&self);

    /// Whether whoever keeps the terminal does not answer, though nothing says that it is gone.
    /// Nothing can be written or kept meanwhile.
    fn is_silent(&self) -> bool {
        false
    }

    /// Waits until the terminal is silent.
    fn fell_silent(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Whether another daemon has the terminal by now, so that nothing of it is known here any more.
    fn is_superseded(&self) -> bool {
        false
    }

    /// Waits until a terminal that is silent is so no more: it can be used again, or it is gone.
    /// Of what was kept beside it last, nothing can be relied on.
    fn returned(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Waits until nothing is left of a terminal that was forgotten, half a second at most.
    fn vanished(&self) -> impl Future<Output = ()> + Send;
}
