//! The controller of a terminal in memory: it plays the program, the kernel and the shim.
//!
//! It is no terminal itself, and knows nothing of sessions.

use std::sync::Arc;

use tokio::sync::watch;

use crate::core::frame::{Exit, Size};
use crate::session::pty::kill::Survivor;
use crate::session::pty::signal::Signal;
use crate::session::pty::tests::fake::{State, Witness};
use crate::session::pty::{Note, Stamp, TerminalCheckpoint, TerminalEvidence};

/// The program's end of a terminal in memory: tests write output with it and look at what arrived.
#[derive(Clone, Debug)]
pub(crate) struct FakeTerminal {
    pub(super) state: watch::Sender<State>,
}

impl FakeTerminal {
    /// Lets the program write these bytes.
    pub(crate) fn push(&self, output: impl AsRef<[u8]>) {
        self.state.send_modify(|state| state.output.extend_from_slice(output.as_ref()));
    }

    /// Lets the program write these bytes, and loses them before anybody reads them.
    pub(crate) fn lose(&self, output: impl AsRef<[u8]>) {
        self.state.send_modify(|state| {
            state.output.extend_from_slice(output.as_ref());
            state.lost = state.output.len() as u64;
        });
    }

    /// Lets the program exit; what it wrote before can still be read, then comes the end.
    pub(crate) fn exit(&self, exit: Exit) {
        self.state.send_modify(|state| state.exit(exit));
    }

    /// Lets whoever keeps the terminal fall silent, or answer again.
    pub(crate) fn set_silent(&self, silent: bool) {
        self.state.send_modify(|state| state.silent = silent);
    }

    /// Lets nobody tell that the program has ended once it is killed.
    pub(crate) fn keep_end_untold(&self) {
        self.state.send_modify(|state| state.ends_untold = true);
    }

    /// Lets the terminal take this many more bytes of input and then nothing; `None` lifts the
    /// limit.
    pub(crate) fn limit_writes(&self, room: Option<usize>) {
        self.state.send_modify(|state| state.room = room);
    }

    /// Says what the kernel shall answer from now on.
    pub(crate) fn set_evidence(&self, evidence: TerminalEvidence) {
        self.state.send_modify(|state| state.evidence = evidence);
    }

    /// Says whether somebody waits in a read from now on.
    pub(crate) fn set_reading(&self, reading: Option<bool>) {
        self.state.send_modify(|state| state.reading = reading);
    }

    /// Says whether the program has written more than can be read yet.
    pub(crate) fn set_output_on_its_way(&self, on_its_way: bool) {
        self.state.send_modify(|state| state.output_on_its_way = on_its_way);
    }

    /// Keeps those waiting who ask where the output ends.
    pub(crate) fn answer_late(&self) {
        self.state.send_modify(|state| state.answers_late = true);
    }

    /// Answers what is asked from now on before anybody waits for it.
    pub(crate) fn answer_at_once(&self) {
        self.state.send_modify(|state| state.answers_at_once = true);
    }

    /// Answers them.
    pub(crate) fn answer(&self) {
        self.state.send_modify(|state| state.answered = state.asked);
    }

    /// How many were not answered.
    pub(crate) fn unanswered(&self) -> u64 {
        let state = self.state.borrow();
        state.asked - state.answered
    }

    /// How often it was asked.
    pub(crate) fn looks(&self) -> usize {
        self.state.borrow().looks
    }

    /// What the kernel answers now.
    pub(crate) fn evidence(&self) -> TerminalEvidence {
        self.state.borrow().evidence
    }

    /// All bytes the program was sent so far.
    pub(crate) fn written(&self) -> Vec<u8> {
        self.state.borrow().written.clone()
    }

    /// The bytes the program was sent since this was last asked.
    pub(crate) fn take_written(&self) -> Vec<u8> {
        let mut taken = Vec::new();
        self.state.send_modify(|state| taken = std::mem::take(&mut state.written));
        taken
    }

    /// Makes it a terminal of the daemon's own, which cannot outlive it.
    pub(crate) fn belong_to_daemon(&self) {
        self.state.send_modify(|state| state.outlives_daemon = false);
    }

    /// Waits until at least this many bytes were sent and not yet taken, and returns all of them.
    pub(crate) async fn until_written(&self, count: usize) -> Vec<u8> {
        let mut state = self.state.subscribe();
        let arrived = state.wait_for(|state| state.written.len() >= count).await;
        arrived.map(|state| state.written.clone()).unwrap_or_default()
    }

    /// Refuses sizes, or takes them again.
    pub(crate) fn refuse_sizes(&self, refuses: bool) {
        self.state.send_modify(|state| state.refuses_sizes = refuses);
    }

    /// Takes sizes from now on, and says that it does not.
    pub(crate) fn deny_sizes(&self) {
        self.state.send_modify(|state| state.denies_sizes = true);
    }

    /// The sizes that were set, in order.
    pub(crate) fn sizes(&self) -> Vec<Size> {
        self.state.borrow().sizes.clone()
    }

    /// The signals that were sent, in order.
    pub(crate) fn signals(&self) -> Vec<Signal> {
        self.state.borrow().signals.clone()
    }

    /// Lets checkpoints be due when more than this many bytes are not committed.
    pub(crate) fn ask_for_checkpoints(&self, after: u64) {
        self.state.send_modify(|state| state.checkpoint_after = Some(after));
    }

    /// Refuses checkpoints, or takes them again.
    pub(crate) fn refuse_checkpoints(&self, refuses: bool) {
        self.state.send_modify(|state| state.refuses_checkpoints = refuses);
    }

    /// Has what is kept of history take more room than it needs.
    pub(crate) fn set_loose(&self, loose: bool) {
        self.state.send_modify(|state| state.is_loose = loose);
    }

    /// The checkpoints that were handed over, in order.
    pub(crate) fn checkpoints(&self) -> Vec<TerminalCheckpoint> {
        self.state.borrow().checkpoints.clone()
    }

    /// What was last to be remembered by this note.
    pub(crate) fn note(&self, note: Note) -> Option<Vec<u8>> {
        let state = self.state.borrow();
        state.notes.iter().rev().find(|(known, _)| *known == note).map(|(_, bytes)| bytes.clone())
    }

    /// What came with each write of which any was asked, in order.
    pub(crate) fn stamps(&self) -> Vec<Stamp> {
        self.state.borrow().stamps.clone()
    }

    /// Whether the session said that it is forgotten.
    pub(crate) fn forgotten(&self) -> bool {
        self.state.borrow().forgotten
    }

    /// The notes that were kept, in order.
    pub(crate) fn notes(&self) -> Vec<(Note, Vec<u8>)> {
        self.state.borrow().notes.clone()
    }

    /// What was to outlast even whoever keeps the terminal, in order.
    pub(crate) fn entrusted(&self) -> Vec<Vec<u8>> {
        self.state.borrow().entrusted.clone()
    }

    /// Calls this just before each note is kept, so that it sees what was told and written until
    /// then.
    pub(crate) fn on_note(&self, witness: impl Fn(Note, &[u8]) + Send + Sync + 'static) {
        self.state.send_modify(|state| state.witness = Some(Witness(Arc::new(witness))));
    }

    /// Calls this just before each checkpoint is taken.
    pub(crate) fn on_commit(&self, receive: impl Fn(&TerminalCheckpoint) + Send + Sync + 'static) {
        self.state.send_modify(|state| state.receiver = Some(Witness(Arc::new(receive))));
    }

    /// Has a process of the terminal go on whatever it is told.
    pub(crate) fn survive(&self, survivor: Survivor) {
        self.state.send_modify(|state| state.survivor = Some(survivor));
    }

    /// Has another daemon's session nobody ends here.
    pub(crate) fn be_superseded(&self) {
        self.state.send_modify(|state| state.superseded = true);
    }

    /// Has the end of everything in the terminal never come, nor an answer to whoever asked for it.
    pub(crate) fn kill_takes_for_ever(&self) {
        self.state.send_modify(|state| state.kill_hangs = true);
    }

    /// Whether the session asked for the end of everything in the terminal.
    pub(crate) fn killed(&self) -> bool {
        self.state.borrow().killed
    }
}
