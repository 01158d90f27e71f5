//! Terminals of either kind, opened and waited for in the same way.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use termgate::core::frame::{Exit, Size};
use termgate::core::ids::{RowNumber, SessionId};
use termgate::session::pty::command::{Launch, SpawnSpec};
use termgate::session::pty::environment::{ClientEnvironment, Environment, clean_environment};
use termgate::session::pty::held::HeldPty;
use termgate::session::pty::held::recovered::Recovered;
use termgate::session::pty::held::shims::{HoldOptions, HoldingLimits, Shims, socket_of};
use termgate::session::pty::held::starter::ShimStarter;
use termgate::session::pty::kill::KillError;
use termgate::session::pty::own::OwnPty;
use termgate::session::pty::processes::{self, Process};
use termgate::session::pty::signal::Signal;
use termgate::session::pty::spawn::SpawnError;
use termgate::session::pty::watch::watch;
use termgate::session::pty::{
    Note, OutputEnd, ProcessId, Pty, ReadOutput, Stamp, TerminalCheckpoint, TerminalEvidence,
};
use termgate::shim::wire::to_shim::Unread;
use tokio::io::Interest;

use crate::harness::processes::PROGRAM;
use crate::harness::waiting::soon;

pub(crate) const SIZE: Size = Size { rows: 24, cols: 80 };

/// Who has the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Own,
    Held,
}

impl Kind {
    pub(crate) const BOTH: [Self; 2] = [Self::Own, Self::Held];

    pub(crate) fn line(self, line: &str) -> Terminal {
        Terminal::open(self, &spec(Launch::Line(line.to_owned()))).unwrap()
    }

    pub(crate) fn program(self, name: &str, args: &[&str]) -> Terminal {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let launch = Launch::Program { name: name.to_owned(), args };
        Terminal::open(self, &spec(launch)).unwrap()
    }
}

/// A terminal that leaves nothing behind when it is dropped.
#[derive(Debug)]
pub(crate) struct Terminal {
    pub(crate) session: SessionId,
    pub(crate) pty: Either,
    directory: tempfile::TempDir,
    /// Whether no other daemon has taken the place of the one that has it.
    ours: Arc<AtomicBool>,
}

impl Terminal {
    pub(crate) fn open(kind: Kind, spec: &SpawnSpec) -> Result<Self, SpawnError> {
        Self::open_with(kind, spec, |_| {})
    }

    pub(crate) fn open_with(
        kind: Kind,
        spec: &SpawnSpec,
        change: impl FnOnce(&mut HoldOptions),
    ) -> Result<Self, SpawnError> {
        let directory = tempfile::tempdir().unwrap();
        let ours = Arc::new(AtomicBool::new(true));
        let mut options = HoldOptions {
            shims: claimed(directory.path(), &ours),
            starter: ShimStarter::of(PROGRAM),
            limits: HoldingLimits { orphan_ttl: None, ring_bytes: 1 << 20, unread: Unread::Block },
        };
        change(&mut options);
        let pty = match kind {
            Kind::Own => Either::Own(OwnPty::open(spec)?),
            Kind::Held => Either::Held(HeldPty::start(spec, &options)?),
        };
        Ok(Self { session: spec.session, pty, directory, ours })
    }

    /// A held terminal with this shell line, which outlives its daemon since something was noted.
    pub(crate) fn held(line: &str, change: impl FnOnce(&mut HoldOptions)) -> Self {
        let spec = spec(Launch::Line(line.to_owned()));
        let terminal = Self::open_with(Kind::Held, &spec, change).unwrap();
        terminal.remember(Note::Identity, b"somebody");
        terminal
    }

    /// A held terminal with this shell line of which nothing was noted.
    pub(crate) fn held_unnoted(line: &str) -> Self {
        Self::open_with(Kind::Held, &spec(Launch::Line(line.to_owned())), |_| {}).unwrap()
    }

    pub(crate) fn as_held(&self) -> &HeldPty {
        match &self.pty {
            Either::Held(pty) => pty,
            Either::Own(_) | Either::Gone => panic!("somebody is there, who holds it"),
        }
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        socket_of(self.directory(), self.session)
    }

    /// Comes to the terminal as another daemon would that has taken the place of the one before.
    pub(crate) fn attach(&self) -> (HeldPty, Recovered) {
        self.ours.store(false, Ordering::SeqCst);
        HeldPty::attach(&Shims::at(self.directory()), self.session).unwrap()
    }

    /// Leaves the terminal as a daemon that was killed does, and comes to it as another.
    pub(crate) fn restart(&mut self) -> Recovered {
        self.leave();
        let (pty, recovered) = self.attach();
        self.pty = Either::Held(pty);
        recovered
    }

    /// Leaves the terminal as a daemon that was killed does.
    pub(crate) fn leave(&mut self) {
        self.pty = Either::Gone;
    }
}

/// Shims to which a daemon may come as long as they are its own.
fn claimed(directory: &Path, ours: &Arc<AtomicBool>) -> Shims {
    let ours = Arc::clone(ours);
    Shims::claimed(directory, move || ours.load(Ordering::SeqCst))
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Whoever was superseded meanwhile could end nothing.
        if let Ok((pty, _)) = HeldPty::attach(&Shims::at(self.directory()), self.session) {
            pty.forget();
        }
    }
}

/// A terminal of either kind.
#[derive(Debug)]
pub(crate) enum Either {
    Own(OwnPty),
    Held(HeldPty),
    Gone,
}

impl Pty for Terminal {
    async fn read(&self, offset: u64, into: &mut Vec<u8>) -> io::Result<ReadOutput> {
        match &self.pty {
            Either::Own(pty) => pty.read(offset, into).await,
            Either::Held(pty) => pty.read(offset, into).await,
            Either::Gone => panic!("nobody is there"),
        }
    }

    fn oldest(&self) -> u64 {
        match &self.pty {
            Either::Own(pty) => pty.oldest(),
            Either::Held(pty) => pty.oldest(),
            Either::Gone => panic!("nobody is there"),
        }
    }

    fn owes(&self, offset: u64) -> bool {
        match &self.pty {
            Either::Own(pty) => pty.owes(offset),
            Either::Held(pty) => pty.owes(offset),
            Either::Gone => panic!("nobody is there"),
        }
    }

    fn outlives_daemon(&self) -> bool {
        match &self.pty {
            Either::Own(pty) => pty.outlives_daemon(),
            Either::Held(pty) => pty.outlives_daemon(),
            Either::Gone => panic!("nobody is there"),
        }
    }

    fn commit(&self, checkpoint: &TerminalCheckpoint) -> io::Result<()> {
        match &self.pty {
            Either::Own(pty) => pty.commit(checkpoint),
            Either::Held(pty) => pty.commit(checkpoint),
            Either::Gone => panic!("nobody is there"),
        }
    }

    fn remember(&self, note: Note, bytes: &[u8]) {
        match &self.pty {
            Either::Own(pty) => pty.remember(note, bytes),
            Either::Held(pty) => pty.remember(note, bytes),
            Either::Gone => panic!("nobody is there"),
        }
    }

    fn try_write(&self, bytes: &[u8], stamp: Stamp) -> io::Result<usize> {
        match &self.pty {
            Either::Own(pty) => pty.try_write(bytes, stamp),
            Either::Held(pty) => pty.try_write(bytes, stamp),
            Either::Gone => panic!("nobody is there"),
        }
    }

    async fn writable(&self) -> io::Result<()> {
        match &self.pty {
            Either::Own(pty) => pty.writable().await,
            Either::Held(pty) => pty.writable().await,
            Either::Gone => panic!("nobody is there"),
        }
    }

    fn resize(&self, size: Size) -> io::Result<()> {
        match &self.pty {
            Either::Own(pty) => pty.resize(size),
            Either::Held(pty) => pty.resize(size),
            Either::Gone => panic!("nobody is there"),
        }
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        match &self.pty {
            Either::Own(pty) => pty.signal(signal),
            Either::Held(pty) => pty.signal(signal),
            Either::Gone => panic!("nobody is there"),
        }
    }

    fn evidence(&self) -> io::Result<TerminalEvidence> {
        match &self.pty {
            Either::Own(pty) => pty.evidence(),
            Either::Held(pty) => pty.evidence(),
            Either::Gone => panic!("nobody is there"),
        }
    }

    fn unread(&self) -> io::Result<bool> {
        match &self.pty {
            Either::Own(pty) => pty.unread(),
            Either::Held(pty) => pty.unread(),
            Either::Gone => panic!("nobody is there"),
        }
    }

    fn is_input_on_its_way(&self) -> bool {
        match &self.pty {
            Either::Own(pty) => pty.is_input_on_its_way(),
            Either::Held(pty) => pty.is_input_on_its_way(),
            Either::Gone => panic!("nobody is there"),
        }
    }

    fn ask_output_end(&self) -> io::Result<OutputEnd> {
        match &self.pty {
            Either::Own(pty) => pty.ask_output_end(),
            Either::Held(pty) => pty.ask_output_end(),
            Either::Gone => panic!("nobody is there"),
        }
    }

    async fn output_end(&self, question: u64) -> io::Result<Option<u64>> {
        match &self.pty {
            Either::Own(pty) => pty.output_end(question).await,
            Either::Held(pty) => pty.output_end(question).await,
            Either::Gone => panic!("nobody is there"),
        }
    }

    async fn exited(&self) -> Exit {
        match &self.pty {
            Either::Own(pty) => pty.exited().await,
            Either::Held(pty) => pty.exited().await,
            Either::Gone => panic!("nobody is there"),
        }
    }

    async fn kill(&self) -> Result<(), KillError> {
        match &self.pty {
            Either::Own(pty) => pty.kill().await,
            Either::Held(pty) => pty.kill().await,
            Either::Gone => panic!("nobody is there"),
        }
    }

    async fn vanished(&self) {
        match &self.pty {
            Either::Own(pty) => pty.vanished().await,
            Either::Held(pty) => pty.vanished().await,
            Either::Gone => panic!("nobody is there"),
        }
    }

    fn forget(&self) {
        match &self.pty {
            Either::Own(pty) => pty.forget(),
            Either::Held(pty) => pty.forget(),
            Either::Gone => panic!("nobody is there"),
        }
    }
}

pub(crate) fn spec(launch: Launch) -> SpawnSpec {
    let session = SessionId::from_random(uuid::Uuid::new_v4());
    SpawnSpec::resolve(launch, session, PathBuf::from("/"), environment(), SIZE).unwrap()
}

pub(crate) fn environment() -> Environment {
    let path = ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into());
    let base = Environment::from([path, ("SHELL".into(), "/bin/bash".into())]);
    clean_environment(&base, &ClientEnvironment::default(), &BTreeMap::new()).unwrap()
}

/// A checkpoint of which only the offset matters.
pub(crate) fn checkpoint(offset: u64) -> TerminalCheckpoint {
    TerminalCheckpoint {
        offset,
        snapshot: Vec::new(),
        rows: Vec::new(),
        first_row: RowNumber(0),
        whole: false,
        end_row: RowNumber(0),
        quiet: false,
    }
}

/// Reads on until the output holds `text`, or to its end when there is none to wait for.
pub(crate) async fn read_until(pty: &impl Pty, output: &mut Vec<u8>, text: Option<&str>) {
    let reading = async {
        while !text.is_some_and(|text| String::from_utf8_lossy(output).contains(text)) {
            let offset = output.len() as u64;
            match pty.read(offset, output).await.unwrap() {
                ReadOutput::Bytes(_) => {}
                ReadOutput::End => {
                    assert_eq!(text, None, "output ended: {}", String::from_utf8_lossy(output));
                    return;
                }
            }
            if pty.owes(output.len() as u64) {
                pty.commit(&checkpoint(output.len() as u64)).unwrap();
            }
        }
    };
    soon("the output", reading).await;
}

/// Whether all output that was written by now ends at this offset.
pub(crate) async fn all_read(pty: &impl Pty, offset: u64) -> io::Result<bool> {
    let end = match pty.ask_output_end()? {
        OutputEnd::Known(end) => Some(end),
        OutputEnd::Asked(question) => soon("an answer", pty.output_end(question)).await?,
    };
    Ok(end == Some(offset))
}

/// Writes all of this, however often the terminal has to be waited for.
pub(crate) async fn write_all(pty: &impl Pty, mut bytes: &[u8], stamp: Stamp) {
    while !bytes.is_empty() {
        let taken = pty.try_write(bytes, stamp).unwrap();
        bytes = &bytes[taken..];
        if taken == 0 {
            soon("room", pty.writable()).await.unwrap();
        }
    }
}

/// Waits until a terminal whose shim stands still is known to be silent.
pub(crate) async fn fall_silent(pty: &impl Pty) {
    let _ = pty.ask_output_end();
    soon("it to be silent", pty.fell_silent()).await;
    assert!(pty.is_silent());
}

pub(crate) async fn read_to_end(pty: &impl Pty) -> String {
    let mut output = Vec::new();
    read_until(pty, &mut output, None).await;
    String::from_utf8(output).unwrap()
}

pub(crate) async fn wait_for(pty: &impl Pty, text: &str) {
    read_until(pty, &mut Vec::new(), Some(text)).await;
}

pub(crate) async fn exit_of(pty: &impl Pty) -> Exit {
    soon("the program to end", pty.exited()).await
}

/// The processes whose environment names a session.
pub(crate) fn marked(session: SessionId) -> Vec<Process> {
    let entry = format!("TERMGATE_SESSION={session}");
    let says = |one: &Process| {
        let said = std::fs::read(format!("/proc/{}/environ", one.pid)).unwrap_or_default();
        said.split(|byte| *byte == 0).any(|one| one == entry.as_bytes())
    };
    let table = processes::table().unwrap();
    table.iter().filter(|one| !one.ended && says(one)).copied().collect()
}

/// Waits for the end of a process.
pub(crate) async fn end(process: &Process) {
    // Who cannot be opened has ended already.
    if let Ok(handle) = process.open() {
        let handle = watch(handle, Interest::READABLE).unwrap();
        soon("the process to end", handle.readable()).await.unwrap().retain_ready();
    }
}

/// Whether this very process is there, alive or not.
pub(crate) fn is_there(process: &Process) -> bool {
    Process::find(process.pid).is_some_and(|found| found.started == process.started)
}

/// A process by its number.
pub(crate) fn find(pid: ProcessId) -> Process {
    Process::find(pid).expect("the process is there")
}
