//! A terminal in memory, and the controller that plays the program in it.
//!
//! It knows no process and no clock, so that a session can be driven through every situation, such
//! as a program that stops reading, on paused time.

mod program;

use std::sync::Arc;
use std::{fmt, io};

use tokio::sync::watch;

use crate::core::frame::{Exit, Size};
use crate::core::shell::activity::{Foreground, Idleness, KernelView, LeaderRest};
use crate::session::pty::kill::{KillError, Survivor};
use crate::session::pty::signal::Signal;
use crate::session::pty::surroundings::ReaderSearch;
pub(crate) use crate::session::pty::tests::fake::program::FakeTerminal;
use crate::session::pty::{
    Note, OutputEnd, ProcessId, Pty, READ_MAX, ReadOutput, Stamp, TerminalCheckpoint,
    TerminalEvidence,
};

/// Makes a terminal in memory and the controller of what happens in it.
///
/// At first the program is a shell at its prompt: it leads the foreground group, the terminal is
/// canonical with echo, and takes any number of bytes.
pub(crate) fn pair() -> (FakePty, FakeTerminal) {
    let state = watch::Sender::new(State::new());
    (FakePty { state: state.clone() }, FakeTerminal { state })
}

#[derive(Debug)]
struct State {
    output: Vec<u8>,
    /// The output before this offset is not there any more.
    lost: u64,
    ended: bool,
    exit: Option<Exit>,
    /// How much uncommitted output makes a checkpoint due.
    checkpoint_after: Option<u64>,
    checkpoints: Vec<TerminalCheckpoint>,
    refuses_checkpoints: bool,
    is_loose: bool,
    notes: Vec<(Note, Vec<u8>)>,
    entrusted: Vec<Vec<u8>>,
    witness: Option<Witness<Look>>,
    receiver: Option<Witness<Receive>>,
    written: Vec<u8>,
    stamps: Vec<Stamp>,
    room: Option<usize>,
    evidence: TerminalEvidence,
    /// Whether somebody waits in a read, once the terminal has settled.
    reading: Option<bool>,
    looks: usize,
    output_on_its_way: bool,
    /// Questions are answered when the test says so, and how many were asked and answered.
    answers_late: bool,
    /// So soon that nobody needs to wait.
    answers_at_once: bool,
    asked: u64,
    answered: u64,
    sizes: Vec<Size>,
    refuses_sizes: bool,
    /// It takes sizes, and says that it does not.
    denies_sizes: bool,
    signals: Vec<Signal>,
    killed: bool,
    /// Who does not end when all is killed.
    survivor: Option<Survivor>,
    kill_hangs: bool,
    superseded: bool,
    /// What is killed ends, and nobody says so.
    ends_untold: bool,
    silent: bool,
    outlives_daemon: bool,
    forgotten: bool,
}

impl State {
    fn new() -> Self {
        let leader = ProcessId(1_000);
        Self {
            output: Vec::new(),
            lost: 0,
            ended: false,
            exit: None,
            checkpoint_after: None,
            checkpoints: Vec::new(),
            refuses_checkpoints: false,
            is_loose: false,
            notes: Vec::new(),
            entrusted: Vec::new(),
            witness: None,
            receiver: None,
            written: Vec::new(),
            stamps: Vec::new(),
            room: None,
            evidence: TerminalEvidence {
                leader,
                foreground: Some(leader),
                canonical: true,
                echo: true,
                enter_ends_line: true,
                line_kill: None,
            },
            reading: None,
            looks: 0,
            output_on_its_way: false,
            answers_late: false,
            answers_at_once: false,
            asked: 0,
            answered: 0,
            sizes: Vec::new(),
            refuses_sizes: false,
            denies_sizes: false,
            signals: Vec::new(),
            killed: false,
            survivor: None,
            kill_hangs: false,
            superseded: false,
            ends_untold: false,
            silent: false,
            outlives_daemon: true,
            forgotten: false,
        }
    }

    fn committed(&self) -> u64 {
        self.checkpoints.last().map_or(0, |checkpoint| checkpoint.offset)
    }

    fn output_end(&self) -> u64 {
        if self.output_on_its_way { u64::MAX } else { self.output.len() as u64 }
    }

    fn exit(&mut self, exit: Exit) {
        self.exit.get_or_insert(exit);
        self.ended = true;
    }
}

type Look = dyn Fn(Note, &[u8]) + Send + Sync;

type Receive = dyn Fn(&TerminalCheckpoint) + Send + Sync;

/// Who looks around whenever something is kept.
struct Witness<F: ?Sized>(Arc<F>);

impl<F: ?Sized> Clone for Witness<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F: ?Sized> fmt::Debug for Witness<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Witness")
    }
}

/// The session's end of a terminal in memory.
#[derive(Debug)]
pub(crate) struct FakePty {
    state: watch::Sender<State>,
}

impl FakePty {
    async fn wait_for(&self, mut condition: impl FnMut(&State) -> bool + Send) {
        // The channel cannot close while `self` holds a sender.
        let _ = self.state.subscribe().wait_for(|state| condition(state)).await;
    }
}

impl Pty for FakePty {
    async fn read(&self, offset: u64, into: &mut Vec<u8>) -> io::Result<ReadOutput> {
        let start = {
            let state = self.state.borrow();
            let from = usize::try_from(offset).ok().filter(|from| *from <= state.output.len());
            from.filter(|_| offset >= state.committed()).ok_or(io::ErrorKind::InvalidInput)?
        };
        self.wait_for(|state| state.output.len() > start || state.ended).await;
        let state = self.state.borrow();
        if offset < state.lost {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let fresh = &state.output[start..];
        let taken = fresh.len().min(READ_MAX);
        into.extend_from_slice(&fresh[..taken]);
        Ok(if taken == 0 { ReadOutput::End } else { ReadOutput::Bytes(taken) })
    }

    fn oldest(&self) -> u64 {
        self.state.borrow().lost
    }

    fn owes(&self, offset: u64) -> bool {
        let state = self.state.borrow();
        let uncommitted = offset.saturating_sub(state.committed());
        state.checkpoint_after.is_some_and(|after| uncommitted > after)
    }

    fn is_loose(&self) -> bool {
        self.state.borrow().is_loose
    }

    fn outlives_daemon(&self) -> bool {
        self.state.borrow().outlives_daemon
    }

    fn commit(&self, checkpoint: &TerminalCheckpoint) -> io::Result<()> {
        if self.state.borrow().refuses_checkpoints {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let receiver = self.state.borrow().receiver.clone();
        if let Some(Witness(receive)) = receiver {
            receive(checkpoint);
        }
        self.state.send_modify(|state| state.checkpoints.push(checkpoint.clone()));
        Ok(())
    }

    fn remember(&self, note: Note, bytes: &[u8]) {
        let witness = self.state.borrow().witness.clone();
        if let Some(Witness(witness)) = witness {
            witness(note, bytes);
        }
        self.state.send_modify(|state| state.notes.push((note, bytes.to_vec())));
    }

    fn entrust(&self, identity: &[u8]) {
        self.state.send_modify(|state| state.entrusted.push(identity.to_vec()));
    }

    fn try_write(&self, bytes: &[u8], stamp: Stamp) -> io::Result<usize> {
        if self.state.borrow().exit.is_some() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if self.state.borrow().silent {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut taken = 0;
        self.state.send_modify(|state| {
            taken = state.room.map_or(bytes.len(), |room| room.min(bytes.len()));
            state.room = state.room.map(|room| room - taken);
            state.written.extend_from_slice(&bytes[..taken]);
            state.stamps.push(stamp);
        });
        Ok(taken)
    }

    async fn writable(&self) -> io::Result<()> {
        let may_try = |state: &State| state.room != Some(0) && !state.silent;
        self.wait_for(|state| may_try(state) || state.exit.is_some()).await;
        Ok(())
    }

    fn resize(&self, size: Size) -> io::Result<()> {
        if self.state.borrow().refuses_sizes {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.state.send_modify(|state| state.sizes.push(size));
        if self.state.borrow().denies_sizes { Err(io::ErrorKind::Other.into()) } else { Ok(()) }
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        self.state.send_modify(|state| state.signals.push(signal));
        Ok(())
    }

    fn evidence(&self) -> io::Result<TerminalEvidence> {
        Ok(self.state.borrow().evidence)
    }

    fn look(&self, search: ReaderSearch) -> io::Result<KernelView> {
        self.state.send_modify(|state| state.looks += 1);
        let evidence = self.evidence()?;
        let group = |group: ProcessId| Foreground { group: group.0, program: None };
        Ok(KernelView {
            foreground: evidence.foreground.map(group),
            shell_in_front: evidence.leader_in_front(),
            canonical: evidence.canonical,
            echo: evidence.echo,
            reading: self.state.borrow().reading.filter(|_| search != ReaderSearch::Nowhere),
            selects: false,
            works: false,
            relaying: false,
        })
    }

    fn look_at_prompt(&self, _known: &KernelView) -> io::Result<KernelView> {
        self.look(ReaderSearch::Nowhere)
    }

    fn unread(&self) -> io::Result<bool> {
        Ok(false)
    }

    fn idleness(&self) -> io::Result<Idleness> {
        let reads = self.state.borrow().reading == Some(true);
        Ok(if reads { Idleness::Waits } else { Idleness::Works })
    }

    fn leader_rest(&self) -> io::Result<LeaderRest> {
        let in_front = self.evidence()?.leader_in_front();
        Ok(if in_front { LeaderRest::Waits } else { LeaderRest::Works })
    }

    fn ask_output_end(&self) -> io::Result<OutputEnd> {
        if !self.state.borrow().answers_late {
            return Ok(OutputEnd::Known(self.state.borrow().output_end()));
        }
        self.state.send_modify(|state| state.asked += 1);
        Ok(OutputEnd::Asked(self.state.borrow().asked))
    }

    fn known_output_end(&self, _question: u64) -> Option<io::Result<Option<u64>>> {
        let state = self.state.borrow();
        state.answers_at_once.then(|| Ok(Some(state.output_end())))
    }

    async fn output_end(&self, question: u64) -> io::Result<Option<u64>> {
        self.wait_for(|state| state.answered >= question).await;
        Ok(Some(self.state.borrow().output_end()))
    }

    async fn exited(&self) -> Exit {
        let mut state = self.state.subscribe();
        let ended = state.wait_for(|state| state.exit.is_some()).await;
        ended.ok().and_then(|state| state.exit).unwrap_or(Exit::Unknown)
    }

    async fn kill(&self) -> Result<(), KillError> {
        if self.state.borrow().superseded {
            return Err(KillError::NotOurs);
        }
        self.state.send_modify(|state| {
            state.killed = true;
            if !state.ends_untold && state.survivor.is_none() && !state.kill_hangs {
                state.exit(Exit::Signal(Signal::Kill.number()));
            }
        });
        self.wait_for(|state| !state.kill_hangs).await;
        match self.state.borrow().survivor.clone() {
            Some(survivor) => Err(KillError::Survivors { left: vec![survivor] }),
            None => Ok(()),
        }
    }

    fn is_silent(&self) -> bool {
        self.state.borrow().silent
    }

    async fn returned(&self) {
        self.wait_for(|state| !state.silent).await;
    }

    async fn vanished(&self) {}

    fn forget(&self) {
        self.state.send_modify(|state| state.forgotten = true);
    }
}

#[cfg(test)]
mod tests;
