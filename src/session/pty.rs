//! The interface between a session and its terminal: output, input, size, signals, process facts and exit.
//! No code above it sees a file descriptor; no code below it knows a screen or a lease.
//! It is a trait because a shim, the daemon itself or a fake in tests can keep the terminal.

pub mod account;
pub mod blocking_call;
pub mod census;
pub mod command;
pub mod condemned;
pub mod environment;
pub mod held;
pub mod kill;
pub mod leader_files;
pub mod lone_process;
pub mod orphaned;
pub mod own;
pub mod processes;
pub mod reaper;
pub mod sandbox;
pub mod served;
pub mod shell;
pub mod sidecar_files;
pub mod signal;
pub mod spawn;
pub mod surroundings;
pub mod terminal_wait;
#[cfg(test)]
pub(crate) mod tests;
pub mod watch;

use std::future::Future;
use std::{fmt, io};

use nix::libc;
use nix::sys::termios::{InputFlags, LocalFlags, SpecialCharacterIndices, Termios};

use crate::core::frame::{Exit, Size};
use crate::core::ids::{Epoch, RowNumber};
use crate::core::input::idempotency::earlier_writes::WriteStamp;
use crate::core::shell::activity::{Idleness, KernelView, LeaderRest};
use crate::session::pty::kill::KillError;
use crate::session::pty::leader_files::LeaderFiles;
use crate::session::pty::signal::Signal;
use crate::session::pty::surroundings::ReaderSearch;
use crate::shim::wire;

/// The most bytes that one [`Pty::read`] returns, so that a busy terminal does not delay the others.
pub const READ_MAX: usize = 256 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub i32);

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOutput {
    /// The number of bytes appended: at least 1, at most [`READ_MAX`].
    Bytes(usize),
    /// The program has ended and all its output was read.
    End,
}

/// Where all output ends that was written before a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputEnd {
    /// At this offset, or beyond all that was read.
    Known(u64),
    /// [`Pty::output_end`] answers the question with this number.
    Asked(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalEvidence {
    pub leader: ProcessId,
    /// The process group that may read the terminal; `None` once the leader has ended.
    pub foreground: Option<ProcessId>,
    pub canonical: bool,
    pub echo: bool,
    /// Whether Enter ends a line: it is a carriage return, which the kernel may pass on as it is.
    pub enter_ends_line: bool,
    /// The character that erases the line that the kernel collects. `None` if no character does, or if the
    /// kernel collects no lines.
    pub line_kill: Option<u8>,
}

impl TerminalEvidence {
    fn of(leader: ProcessId, foreground: Option<ProcessId>, modes: &Termios) -> Self {
        let canonical = modes.local_flags.contains(LocalFlags::ICANON);
        let kill = modes.control_chars[SpecialCharacterIndices::VKILL as usize];
        Self {
            leader,
            foreground,
            canonical,
            echo: modes.local_flags.contains(LocalFlags::ECHO),
            enter_ends_line: modes.input_flags & (InputFlags::ICRNL | InputFlags::IGNCR)
                == InputFlags::ICRNL,
            line_kill: Some(kill).filter(|kill| canonical && *kill != libc::_POSIX_VDISABLE),
        }
    }

    /// Whether the kernel collects a line without showing it, as for a password.
    pub fn hides_typing(&self) -> bool {
        self.canonical && !self.echo
    }

    /// Whether the session's program is in the foreground. A shell with job control then shows its prompt.
    pub fn leader_in_front(&self) -> bool {
        self.foreground == Some(self.leader)
    }
}

/// Facts that accompany input, so that the shim can check and remember it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The epoch of the lease; `None` for input without a lease: the terminal's own answers, and the end of a
    /// write that has begun. The shim refuses input with a lower epoch than the highest it has seen.
    pub epoch: Option<Epoch>,
    /// Once the terminal has taken this input, all queries in the output before this offset are answered.
    pub answered: u64,
    /// The write that the input belongs to, so that its progress is known after a restart.
    pub write: Option<WriteStamp>,
}

/// All that the next daemon needs to know of the output before an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalCheckpoint {
    /// Output before this offset will not be read again.
    pub offset: u64,
    /// The encoded screen at this offset. If empty, the previous snapshot stays valid.
    pub snapshot: Vec<u8>,
    /// The encoded rows that entered history since the last checkpoint.
    pub rows: Vec<u8>,
    /// Whether `rows` is the whole history, so that the shim can drop all earlier rows.
    pub whole: bool,
    /// The oldest row in history.
    pub first_row: RowNumber,
    /// The row after the newest one in history.
    pub end_row: RowNumber,
    /// Whether no more output is expected soon, so that the shim may free memory.
    pub quiet: bool,
}

/// What a shim stores beside a terminal for the next daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Note {
    Identity,
    Lease,
    /// Facts about the terminal that a screen does not contain, such as when it last changed.
    Terminal,
    Commands,
    Gaps,
}

impl Note {
    pub const ALL: [Self; 5] =
        [Self::Identity, Self::Lease, Self::Terminal, Self::Commands, Self::Gaps];

    pub const BYTES_MAX: usize = wire::NOTE_MAX;
}

/// A terminal with a program in it.
///
/// All operations take `&self`, so that one task can wait for several at once. Every future is cancel-safe.
/// Only one task reads. An error without a word about it is the kernel's, as once the terminal is gone.
pub trait Pty: Send + Sync + 'static {
    /// Waits for output at the absolute `offset` and appends it to `into`.
    ///
    /// Offsets count bytes since the program started. Output without a checkpoint can be read again while it
    /// is kept. After the program's exit, and once all output was read, every call returns [`ReadOutput::End`].
    ///
    /// # Errors
    /// `InvalidInput` if the offset is not available; `InvalidData` if the ring's marks are damaged;
    /// otherwise the kernel's error.
    fn read(
        &self,
        offset: u64,
        into: &mut Vec<u8>,
    ) -> impl Future<Output = io::Result<ReadOutput>> + Send;

    /// The offset of the oldest output that can still be read.
    fn oldest(&self) -> u64;

    /// Whether a checkpoint is due after the output was read up to `offset`. Without one the buffer would
    /// soon be full.
    fn owes(&self, offset: u64) -> bool;

    /// Whether the rows of history that are kept would take much less room if all were handed over again.
    fn is_loose(&self) -> bool {
        false
    }

    /// Whether the terminal outlives the daemon, so that checkpoints and notes are useful.
    fn outlives_daemon(&self) -> bool;

    /// Stores a checkpoint. The output before its offset will not be read again.
    ///
    /// # Errors
    /// If it was not stored. The previous checkpoint stays valid.
    fn commit(&self, checkpoint: &TerminalCheckpoint) -> io::Result<()>;

    /// Replaces a note of at most [`Note::BYTES_MAX`] bytes for the next daemon. A terminal that ends with
    /// its daemon stores nothing.
    ///
    /// Once this returns, the note survives a crash of this daemon.
    fn remember(&self, note: Note, bytes: &[u8]);

    /// Stores the session's identity in a file that survives even the shim, if possible. `identity` must
    /// contain no secret.
    fn entrust(&self, identity: &[u8]) {
        let _ = identity;
    }

    /// Writes as much as is taken at once and returns the byte count; 0 if nothing is taken now. Never waits.
    ///
    /// What is taken reaches the terminal even if this daemon is killed.
    ///
    /// # Errors
    /// `BrokenPipe` once the program has ended; `PermissionDenied` if the epoch is outdated; `TimedOut` while
    /// the shim is silent; otherwise the kernel's error.
    fn try_write(&self, bytes: &[u8], stamp: Stamp) -> io::Result<usize>;

    /// How many bytes with an epoch this terminal has taken in all, from all daemons; `None` if nobody counts them.
    fn typed(&self) -> Option<u64> {
        None
    }

    /// Waits until [`Pty::try_write`] may succeed again.
    fn writable(&self) -> impl Future<Output = io::Result<()>> + Send;

    /// Sets the size. The kernel sends SIGWINCH to the foreground group if the size changes.
    ///
    /// # Errors
    /// Returns the kernel's error, or `TimedOut` while the shim is silent.
    fn resize(&self, size: Size) -> io::Result<()>;

    /// Sends a signal to every process of the foreground group. May block for milliseconds.
    ///
    /// # Errors
    /// `NotFound` if the group is gone.
    fn signal(&self, signal: Signal) -> io::Result<()>;

    /// Reads what the kernel knows about the terminal now.
    fn evidence(&self) -> io::Result<TerminalEvidence>;

    /// Whether the kernel collects a line now without showing it.
    fn hides_typing(&self) -> io::Result<bool> {
        Ok(self.evidence()?.hides_typing())
    }

    /// The open files of the process that leads the session, if there are any.
    fn leader_files(&self) -> Option<&LeaderFiles> {
        None
    }

    /// Reads more from the kernel. The search for a process that waits for input may take some hundred
    /// microseconds.
    fn look(&self, search: ReaderSearch) -> io::Result<KernelView> {
        Ok(surroundings::look(self.evidence()?, search, self.leader_files()))
    }

    /// Reads what can have changed since `known`, just after the session's shell has marked its prompt. Takes
    /// microseconds if that shell was in the foreground before.
    fn look_at_prompt(&self, known: &KernelView) -> io::Result<KernelView> {
        let evidence = self.evidence()?;
        let again = surroundings::look_again(evidence, known);
        let anew = || surroundings::look(evidence, ReaderSearch::Nowhere, self.leader_files());
        Ok(again.unwrap_or_else(anew))
    }

    /// Whether the program has not read all input. May wait until the kernel passes on recent input.
    fn unread(&self) -> io::Result<bool>;

    /// What the session's program does about the input that was typed.
    fn leader_rest(&self) -> io::Result<LeaderRest> {
        let evidence = self.evidence()?;
        // Checks the input first: a program that waits with all input read has finished with it.
        if self.unread()? {
            return Ok(LeaderRest::Unread);
        }
        let in_front = evidence.leader_in_front();
        Ok(if in_front { terminal_wait::rest_of(evidence.leader) } else { LeaderRest::Works })
    }

    /// Whether the program in front has done all that it does about what was typed.
    fn idleness(&self) -> io::Result<Idleness> {
        let Some(front) = self.evidence()?.foreground else { return Ok(Idleness::Works) };
        Ok(if self.unread()? { Idleness::Works } else { surroundings::idleness_of(front) })
    }

    /// Whether the terminal is about to get input that was written, so that process facts cannot follow from it yet.
    fn is_input_on_its_way(&self) -> bool {
        false
    }

    /// Asks for the end of all output that was written before this call. Where it equals the offset that was read,
    /// process facts from before this call belong to what was read.
    ///
    /// # Errors
    /// Returns the error of the kernel, or `TimedOut` while the shim is silent.
    fn ask_output_end(&self) -> io::Result<OutputEnd>;

    /// The answer to such a question, if it is there already.
    fn known_output_end(&self, question: u64) -> Option<io::Result<Option<u64>>> {
        let _ = question;
        None
    }

    /// Waits for the answer to such a question; `None` if nobody knows how much the kernel still has. Questions
    /// before it are answered then as well.
    ///
    /// # Errors
    /// Returns the error of the kernel, or `TimedOut` once the shim is silent.
    fn output_end(&self, question: u64) -> impl Future<Output = io::Result<Option<u64>>> + Send {
        let _ = question;
        std::future::pending()
    }

    /// Waits for the end of the program. Every call returns the same answer.
    fn exited(&self) -> impl Future<Output = Exit> + Send;

    /// Ends the program and all its descendants, within [`kill::LADDER_MAX`].
    fn kill(&self) -> impl Future<Output = Result<(), KillError>> + Send;

    /// Ends what still runs in the session. No caller will use the terminal or its exit again.
    fn forget(&self);

    /// Whether the shim does not answer, though it may still run. Meanwhile nothing can be written or stored.
    fn is_silent(&self) -> bool {
        false
    }

    /// Waits until the shim is silent: it takes no input and answers no question that came before this call.
    fn fell_silent(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Whether another daemon has taken over the terminal, so that this one knows nothing about it.
    fn is_superseded(&self) -> bool {
        false
    }

    /// Waits until a silent shim answers again or is gone. The last checkpoint and notes may be lost.
    fn returned(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }

    /// Keeps what the next daemon needs of a terminal whose program has ended where no process is needed for it, and
    /// ends that process. Returns whether none is left. All output was committed before. A history that is cleared
    /// later, and notes, are stored as before.
    ///
    /// May block: for milliseconds, or for some seconds if the process stands still.
    ///
    /// # Errors
    /// If it was not kept. The process goes on then.
    fn retire(&self) -> io::Result<bool> {
        Ok(false)
    }

    /// Waits until a forgotten terminal has ended, at most half a second.
    fn vanished(&self) -> impl Future<Output = ()> + Send;
}
