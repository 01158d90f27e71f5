//! Whole conversations of version 2, in both directions, as `tests/shim/transcripts/README.md` says.
//!
//! No test writes one. Shims of today are told what a daemon of that version said, and daemons of
//! today what a shim said.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::pty::{Winsize, openpty};
use termgate::core::frame::{Exit, Size};
use termgate::core::ids::{Epoch, RowNumber, SessionId};
use termgate::core::input::idempotency::earlier_writes::{FormerWrite, WriteStamp};
use termgate::session::pty::held::HeldPty;
use termgate::session::pty::held::recovered::{HistorySegment, ScreenSnapshot};
use termgate::session::pty::held::shims::{Shims, socket_of};
use termgate::session::pty::held::starter::ShimStarter;
use termgate::session::pty::{Note, Pty, ReadOutput, Stamp, TerminalCheckpoint};
use termgate::shim::readiness::{self, READABLE};
use termgate::shim::socket::{self, Descriptors};
use termgate::shim::terminal;
use termgate::shim::wire::FRAME_MAX;

use crate::harness::processes::PROGRAM;
use crate::harness::waiting::SAFETY;
use crate::shim::fake::{Fake, input, memory, own_process, ring, word};
use crate::shim::harness::exit_of;

/// Bytes as they were said, and which of them are the same whoever says them.
#[derive(Clone, Debug, Default)]
struct Said {
    bytes: Vec<u8>,
    fixed: Vec<bool>,
}

impl Said {
    /// Appends the bytes of a line.
    fn read(&mut self, line: &str) {
        let (mut rest, mut fixed) = (line.trim_start(), true);
        while let Some(first) = rest.chars().next() {
            let (bytes, after) = match first {
                '#' => return,
                '[' | ']' => {
                    fixed = first == ']';
                    (Vec::new(), &rest[1..])
                }
                '`' => {
                    let (text, after) = rest[1..].split_once('`').expect("a text has an end");
                    (text.as_bytes().to_vec(), after)
                }
                _ => (vec![u8::from_str_radix(&rest[..2], 16).unwrap()], &rest[2..]),
            };
            self.fixed.extend(bytes.iter().map(|_| fixed));
            self.bytes.extend(bytes);
            rest = after.trim_start();
        }
    }

    fn assert_is(&self, heard: &[u8], what: &str) {
        assert_eq!(heard.len(), self.bytes.len(), "{what}: {heard:02x?}");
        for (at, (heard, said)) in heard.iter().zip(&self.bytes).enumerate() {
            assert!(
                !self.fixed[at] || heard == said,
                "{what}: byte {at} is {heard:#x}, not {said:#x}"
            );
        }
    }
}

/// One thing that happened.
#[derive(Clone, Debug)]
enum Step {
    /// A daemon says a frame.
    ToShim { by: char, frame: Said, files: Vec<Said> },
    /// A daemon hears a frame.
    FromShim { to: char, frame: Said, files: Vec<Said> },
    /// A daemon puts a record into its memory.
    Input { by: char, record: Said },
    /// The shim hangs up on a daemon.
    Closed { to: char },
    /// The program has written this from an offset on.
    Output { at: u64, text: Said },
}

/// Reads a transcript.
fn transcript(name: &str) -> Vec<Step> {
    let path = format!("tests/shim/transcripts/{name}.txt");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    let mut steps: Vec<Step> = Vec::new();
    for line in fs::read_to_string(path).unwrap().lines() {
        let said = |text| {
            let mut said = Said::default();
            said.read(text);
            said
        };
        if line.is_empty() || line.starts_with('#') {
        } else if let Some(text) = line.strip_prefix('+') {
            files_of(steps.last_mut()).push(said(text));
        } else if line.starts_with(' ') {
            last_of(steps.last_mut()).read(line);
        } else if let Some(text) = line.strip_prefix("output ") {
            let (at, text) = text.split_once(' ').unwrap();
            steps.push(Step::Output { at: at.parse().unwrap(), text: said(text) });
        } else {
            let daemon = line.chars().next().unwrap();
            let (direction, text) = line[1..].split_at(1);
            let (frame, files) =
                (said(if text.contains("closed") { "" } else { text }), Vec::new());
            steps.push(match direction {
                ">" => Step::ToShim { by: daemon, frame, files },
                "=" => Step::Input { by: daemon, record: frame },
                _ if text.contains("closed") => Step::Closed { to: daemon },
                _ => Step::FromShim { to: daemon, frame, files },
            });
        }
    }
    steps
}

fn files_of(step: Option<&mut Step>) -> &mut Vec<Said> {
    match step {
        Some(Step::ToShim { files, .. } | Step::FromShim { files, .. }) => files,
        other => panic!("{other:?} carries no file"),
    }
}

/// What a line goes on with that has no beginning of its own.
fn last_of(step: Option<&mut Step>) -> &mut Said {
    match step {
        Some(Step::ToShim { frame, files, .. } | Step::FromShim { frame, files, .. }) => {
            files.last_mut().unwrap_or(frame)
        }
        Some(Step::Output { text, .. } | Step::Input { record: text, .. }) => text,
        other => panic!("{other:?} has no more bytes"),
    }
}

/// Receives a frame; nothing once the other side has hung up.
fn receive(socket: &OwnedFd) -> (Vec<u8>, Descriptors) {
    let (mut frame, mut descriptors) = ([0; FRAME_MAX], Descriptors::default());
    let [ready] = readiness::wait([(Some(socket.as_fd()), READABLE)], Some(SAFETY)).unwrap();
    assert!(ready != 0, "nothing was said");
    // Being hung up on with something unread is told once as an error.
    let length = socket::receive(socket.as_fd(), &mut frame, &mut descriptors).unwrap_or(0);
    (frame[..length].to_vec(), descriptors)
}

fn carried(files: &[Said]) -> Vec<File> {
    files.iter().map(|file| memory(&file.bytes)).collect()
}

fn send(socket: &OwnedFd, frame: &[u8], files: &[File]) {
    let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
    socket::send(socket.as_fd(), frame, &files).unwrap();
}

fn assert_carried(files: &[Said], descriptors: &mut Descriptors, what: &str) {
    for file in files {
        let came = File::from(descriptors.take().unwrap_or_else(|| panic!("{what}: no file came")));
        let mut bytes = vec![0; came.metadata().unwrap().len() as usize];
        came.read_exact_at(&mut bytes, 0).unwrap();
        file.assert_is(&bytes, what);
    }
    assert!(descriptors.take().is_none(), "{what}: one file too many");
}

const ATTACHED: u8 = 0x41;

/// Where two words of a memory for input are.
const GATE_AT: u64 = 64;
const TAKEN_AT: u64 = 72;

/// A shim of today, and the daemons of that version that speak with it.
struct Former {
    starter: ShimStarter,
    socket: PathBuf,
    daemons: BTreeMap<char, OwnedFd>,
    ring: Option<File>,
    /// The memory for input and its bell.
    input: Option<(File, File)>,
    _directory: tempfile::TempDir,
}

impl Former {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("0123456789ab.sock");
        let starter = ShimStarter::of(PROGRAM);
        let daemons = BTreeMap::new();
        Self { starter, socket, daemons, ring: None, input: None, _directory: directory }
    }

    /// The connection of a daemon; the first one starts the shim.
    fn daemon(&mut self, name: char) -> &OwnedFd {
        if !self.daemons.contains_key(&name) {
            let connection = match self.daemons.is_empty() {
                true => self.starter.fork(&self.socket).unwrap().connection,
                false => socket::connect_to(&self.socket).unwrap(),
            };
            self.daemons.insert(name, connection);
        }
        &self.daemons[&name]
    }

    fn play(&mut self, number: usize, step: &Step) {
        let what = format!("step {number}");
        match step {
            Step::ToShim { by, frame, files } => {
                send(self.daemon(*by), &frame.bytes, &carried(files));
            }
            Step::FromShim { to, frame, files } => {
                let (heard, mut descriptors) = receive(self.daemon(*to));
                frame.assert_is(&heard, &what);
                if heard[0] == ATTACHED {
                    let mut take = || File::from(descriptors.take().expect("all four come"));
                    (self.ring, _) = (Some(take()), take());
                    self.input = Some((take(), take()));
                }
                assert_carried(files, &mut descriptors, &what);
            }
            Step::Input { record, .. } => {
                let (memory, bell) = self.input.as_ref().expect("it came with the answer");
                let head = word(memory, GATE_AT);
                memory.write_all_at(&record.bytes, 4_096 + head).unwrap();
                let head = head + record.bytes.len() as u64;
                memory.write_all_at(&head.to_le_bytes(), GATE_AT).unwrap();
                nix::unistd::write(bell, &1_u64.to_ne_bytes()).unwrap();
            }
            Step::Closed { to } => {
                let (heard, _) = receive(self.daemon(*to));
                assert!(heard.is_empty(), "{what}: {heard:02x?}");
            }
            Step::Output { at, text } => self.assert_shows(*at, &text.bytes, &what),
        }
    }

    /// Waits until the program has written so much, and looks where the ring has it.
    fn assert_shows(&self, at: u64, text: &[u8], what: &str) {
        let ring = self.ring.as_ref().expect("the ring came with the answer");
        let head = || word(ring, 64);
        let until = readiness::now() + SAFETY;
        while head() < at + text.len() as u64 {
            assert!(readiness::now() < until, "{what}: head is {}", head());
            thread::yield_now();
        }
        let mut bytes = vec![0; text.len()];
        ring.read_exact_at(&mut bytes, 4_096 + at).unwrap();
        assert_eq!((bytes.as_slice(), head()), (text, at + text.len() as u64), "{what}");
    }
}

impl Drop for Former {
    fn drop(&mut self) {
        // Nothing is left of a conversation that went wrong.
        if let Ok(connection) = socket::connect_to(&self.socket) {
            for frame in [b"\x02\0\0\0tghd\x02\0".as_slice(), b"\x08\0\0\0"] {
                let _ = socket::send(connection.as_fd(), frame, &[]);
            }
        }
    }
}

#[test]
fn a_shim_of_today_answers_daemons_of_version_2_as_it_did() {
    for name in ["a_session", "an_early_end", "no_program"] {
        let mut former = Former::new();
        for (number, step) in transcript(name).iter().enumerate() {
            eprintln!("{name}, step {number}");
            former.play(number, step);
        }
        assert!(!former.socket.exists(), "{name}: nothing is left of it");
    }
}

/// Where the fields of *attached* are that a daemon compares with the kernel's, and those of the ring.
const PROCESSES_AT: usize = 20;
const TERMINAL_AT: usize = 44;
const HEAD_AT: usize = 56;
const TAIL_AT: usize = 72;

/// Plays a shim of that version to one daemon, which must say what was said to it then; its terminal
/// is the one with this number.
fn hold(fake: &Fake, name: &str, daemon: char, terminal: u32) -> JoinHandle<()> {
    let steps = transcript(name);
    let listener = fake.listener();
    let holding = move || {
        let connection = Fake::accept(&listener);
        let (mut output, mut put, memory) = (Vec::new(), 0, input());
        for (number, step) in steps.iter().enumerate() {
            let what = format!("{daemon}, step {number}");
            match step {
                Step::Output { text, .. } => output.extend(&text.bytes),
                Step::ToShim { by, frame, files } if *by == daemon => {
                    let (heard, mut descriptors) = receive(&connection);
                    frame.assert_is(&heard, &what);
                    assert_carried(files, &mut descriptors, &what);
                }
                Step::FromShim { to, frame, files } if *to == daemon => {
                    let (mut bytes, mut files) = (frame.bytes.clone(), carried(files));
                    if bytes[0] == ATTACHED {
                        // A shim is a process that there is; this one is the test itself.
                        bytes[PROCESSES_AT..][..12].copy_from_slice(&own_process());
                        bytes[TERMINAL_AT..][..4].copy_from_slice(&terminal.to_le_bytes());
                        let field =
                            |at: usize| u64::from_le_bytes(bytes[at..][..8].try_into().unwrap());
                        let (head, tail) = (field(HEAD_AT), field(TAIL_AT));
                        let ring = ring(&output, (head, tail), 64 << 10);
                        let memory = memory.each_ref().map(|file| file.try_clone().unwrap());
                        files.splice(0..0, ring.into_iter().chain(memory));
                    }
                    send(&connection, &bytes, &files);
                }
                Step::Input { by, record } if *by == daemon => {
                    let end = put + record.bytes.len() as u64;
                    let until = readiness::now() + SAFETY;
                    while word(&memory[0], GATE_AT) < end {
                        assert!(readiness::now() < until, "{what}: nothing was put in");
                        thread::yield_now();
                    }
                    let mut came = vec![0; record.bytes.len()];
                    memory[0].read_exact_at(&mut came, 4_096 + put).unwrap();
                    record.assert_is(&came, &what);
                    memory[0].write_all_at(&end.to_le_bytes(), TAKEN_AT).unwrap();
                    put = end;
                }
                Step::Closed { .. }
                | Step::ToShim { .. }
                | Step::FromShim { .. }
                | Step::Input { .. } => {}
            }
        }
    };
    thread::spawn(holding)
}

fn ended(holding: JoinHandle<()>) {
    holding.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

fn session() -> SessionId {
    "0123456789ab".parse().unwrap()
}

fn written(first: u8, taken: usize) -> FormerWrite {
    let stamp = WriteStamp(std::array::from_fn(|index| first + index as u8));
    FormerWrite { stamp, taken, own: None, length: None, command: None }
}

#[tokio::test]
async fn a_daemon_of_today_goes_on_with_a_shim_of_version_2() {
    let window = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    let terminal = openpty(Some(&window), None).unwrap();
    let number = terminal::number(terminal.master.as_fd()).unwrap();
    let fake = Fake::at(session());
    assert_eq!(fake.path(), socket_of(fake.directory(), session()));
    let holding = hold(&fake, "a_session", 'B', number);
    let (pty, found) = HeldPty::attach(&Shims::at(fake.directory()), session()).unwrap();
    assert_eq!((found.attached.generation, found.size()), (2, Size { rows: 24, cols: 80 }));
    assert_eq!((found.attached.committed, found.attached.head, found.gap()), (5, 12, None));
    assert_eq!((found.attached.answered, found.attached.epoch, found.exit()), (0, 3, None));
    assert_eq!(found.writes(), [written(0xa0, 4)]);
    let screen = |offset, text: &[u8]| ScreenSnapshot { offset, bytes: text.to_vec() };
    assert_eq!(found.snapshots, [screen(5, b"screen one")]);
    assert_eq!(
        found.segments,
        [HistorySegment { end_row: RowNumber(2), rows: b"row one..".to_vec() }]
    );
    assert!(found.notes.get(Note::Identity).starts_with(br#"{"v":1,"id":"0123456789ab""#));
    assert!(found.notes.get(Note::Lease).starts_with(br#"{"v":1,"epoch":3,"holding""#));
    let calls = br#"{"v":1,"last":7,"calls":[["a0a1a2a3a4a5a6a7a8a9aaabacadaeaf",7]]}"#;
    assert_eq!(found.notes.get(Note::Commands), calls);
    let mut output = Vec::new();
    assert_eq!(pty.read(5, &mut output).await.unwrap(), ReadOutput::Bytes(7));
    assert_eq!(output, b"got abc");

    let gaps = br#"{"v":1,"gaps":[{"row":12,"bytes":4096},{"row":40,"bytes":null}]}"#;
    pty.remember(Note::Gaps, gaps);
    pty.resize(Size { rows: 50, cols: 132 }).unwrap();
    let window = terminal::size(terminal.master.as_fd()).unwrap();
    assert_eq!((window.rows, window.cols), (50, 132));
    let checkpoint = TerminalCheckpoint {
        offset: 12,
        snapshot: b"screen two".to_vec(),
        rows: Vec::new(),
        first_row: RowNumber(0),
        whole: false,
        end_row: RowNumber(2),
        quiet: true,
    };
    pty.commit(&checkpoint).unwrap();
    let stamp = written(0xb0, 0).stamp;
    let stamp = Stamp { epoch: Some(Epoch(4)), answered: 12, write: Some(stamp) };
    assert_eq!(pty.try_write(b"x\n", stamp).unwrap(), 2);
    assert_eq!(exit_of(&pty).await, Exit::Code(7));
    assert_eq!(pty.read(12, &mut output).await.unwrap(), ReadOutput::End);
    ended(holding);
}

#[tokio::test]
async fn a_daemon_of_today_finds_with_a_shim_of_version_2_how_its_program_ended() {
    let fake = Fake::at(session());
    let holding = hold(&fake, "a_session", 'C', u32::MAX);
    let (pty, found) = HeldPty::attach(&Shims::at(fake.directory()), session()).unwrap();
    assert_eq!((found.attached.generation, found.exit()), (3, Some(Exit::Code(7))));
    assert_eq!(
        (found.attached.committed, found.attached.answered, found.attached.epoch),
        (12, 12, 4)
    );
    assert_eq!(found.writes(), [written(0xa0, 4), written(0xb0, 2)]);
    let screens: Vec<_> = found.snapshots.iter().map(|one| one.bytes.as_slice()).collect();
    assert_eq!(screens, [b"screen one", b"screen two"]);
    assert!(found.notes.get(Note::Gaps).starts_with(br#"{"v":1,"gaps":[{"row":12"#));
    assert_eq!(pty.read(12, &mut Vec::new()).await.unwrap(), ReadOutput::End);
    pty.forget();
    ended(holding);
    assert!(tokio::time::timeout(Duration::from_secs(1), pty.exited()).await.is_ok());
}
