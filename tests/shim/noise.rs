//! Shims and daemons to whom anything at all is said: neither fails, waits for ever or grows.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{env, thread};

use termgate::core::frame::Size;
use termgate::core::ids::SessionId;
use termgate::core::moment::Moment;
use termgate::core::screen::{Facts, ScreenLimits};
use termgate::session::pty::held::HeldPty;
use termgate::session::pty::held::contact::AttachError;
use termgate::session::pty::held::shims::Shims;
use termgate::session::pty::held::starter::ShimStarter;
use termgate::session::pty::{Note, OutputEnd, Pty, Stamp};
use termgate::session::restore::OpeningState;
use termgate::shim::program::Program;
use termgate::shim::readiness::{self, READABLE};
use termgate::shim::socket::{self, Descriptors};
use termgate::shim::wire::to_shim::ToShim;
use termgate::shim::wire::{FRAME_MAX, NOTES, SEGMENTS_MAX, SNAPSHOTS_MAX};

use crate::harness::processes::PROGRAM;
use crate::harness::waiting::until;
use crate::shim::fake::{Fake, memories, memory, own_process};
use crate::shim::golden::golden;
use crate::shim::harness::{Terminal, all_read, checkpoint, find, is_there, wait_for};

/// Chance that can be had again: set `NOISE_SEED` to the number that a test printed.
struct Dice(u64);

impl Dice {
    fn told() -> Self {
        let given = env::var("NOISE_SEED").ok().map(|seed| seed.parse().unwrap());
        let seed = given.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0);
        eprintln!("NOISE_SEED={seed}");
        Self(seed)
    }

    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.number() % bound as u64) as usize
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most + 1)).map(|_| self.number() as u8).collect()
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// A valid frame, most often with something wrong about it; seldom no frame at all.
    fn frame(&mut self, valid: &[Vec<u8>]) -> Vec<u8> {
        if self.below(10) == 0 {
            return self.bytes(400);
        }
        let mut frame = valid[self.below(valid.len())].clone();
        for _ in 0..self.below(4) {
            let at = self.below(frame.len());
            match self.below(4) {
                0 => frame.truncate(at.max(1)),
                1 => frame.extend(self.bytes(40)),
                // Whole numbers at the edges of what they can be.
                2 => {
                    let edge = self.one(&[0x00, 0xff, 0x7f, 0x80]);
                    let length = self.one(&[2, 4, 8]);
                    frame[at..].iter_mut().take(length).for_each(|byte| *byte = edge);
                }
                _ => frame[at] = self.number() as u8,
            }
        }
        frame
    }

    /// A few descriptors of any kind.
    fn files(&mut self) -> Vec<OwnedFd> {
        let count = [0, 0, 1, 2, 3, 70][self.below(6)];
        (0..count).map(|_| self.file()).collect()
    }

    fn file(&mut self) -> OwnedFd {
        match self.below(6) {
            0 => std::io::pipe().unwrap().0.into(),
            1 => File::open("/dev/zero").unwrap().into(),
            2 => File::open("/").unwrap().into(),
            3 => socket::pair().unwrap().0,
            4 => {
                // One that says it is far larger than it is.
                let file = memory(b"");
                file.set_len(1 << self.below(50)).unwrap();
                file.into()
            }
            _ => {
                let bytes = self.bytes(200);
                memory(&bytes).into()
            }
        }
    }
}

/// Lets others have their turn, where nobody tells of what is waited for.
fn pause(time: Duration) {
    readiness::wait([(None, READABLE)], Some(time)).unwrap();
}

fn say(socket: &OwnedFd, frame: &[u8], files: &[OwnedFd]) -> bool {
    let files: Vec<_> = files.iter().take(68).map(AsFd::as_fd).collect();
    socket::send(socket.as_fd(), frame, &files).is_ok()
}

fn connect(path: &Path) -> OwnedFd {
    let until = readiness::now() + Duration::from_secs(10);
    loop {
        match socket::connect_to(path) {
            Ok(connection) => return connection,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock, "the shim is there");
                assert!(readiness::now() < until, "the shim takes nobody any more");
                pause(Duration::from_millis(1));
            }
        }
    }
}

/// Waits for a frame of this kind.
fn hears(socket: &OwnedFd, kind: u8) -> bool {
    let (mut frame, mut descriptors) = (Box::new([0; FRAME_MAX]), Descriptors::default());
    let until = readiness::now() + Duration::from_secs(2);
    loop {
        match socket::receive(socket.as_fd(), &mut frame, &mut descriptors) {
            Ok(0) => return false,
            Ok(_) if frame[0] == kind => return true,
            Ok(_) | Err(nix::errno::Errno::EAGAIN) => {}
            Err(_) => return false,
        }
        let left = until.saturating_sub(readiness::now());
        if left.is_zero() {
            return false;
        }
        readiness::wait([(Some(socket.as_fd()), READABLE)], Some(left)).unwrap();
    }
}

/// Whether the shim answers somebody who says nothing wrong.
fn answers(path: &Path) -> bool {
    let connection = connect(path);
    say(&connection, &golden("attach"), &[]) && hears(&connection, 65)
}

fn valid_for_shims() -> Vec<Vec<u8>> {
    let names = ["attach", "commit", "note_to_shim", "start", "attached", "exited"];
    names.map(golden).into()
}

/// Writes anything into the memory for input, if there was an answer, and wakes the shim.
fn scribble(connection: &OwnedFd, dice: &mut Dice) {
    let (mut frame, mut descriptors) = (Box::new([0; FRAME_MAX]), Descriptors::default());
    readiness::wait([(Some(connection.as_fd()), READABLE)], Some(Duration::from_millis(20)))
        .unwrap();
    if socket::receive(connection.as_fd(), &mut frame, &mut descriptors).is_err() {
        return;
    }
    let files: Vec<_> = (0..4).map_while(|_| descriptors.take().map(File::from)).collect();
    let [_, _, memory, bell] = files.as_slice() else { return };
    for _ in 0..dice.below(6) {
        let bytes = match dice.below(3) {
            0 => dice.edge().to_le_bytes().to_vec(),
            1 => [dice.below(99) as u32, 0].map(u32::to_le_bytes).concat(),
            _ => dice.bytes(60),
        };
        let at = match dice.below(3) {
            0 => 64,
            1 => 64 + 8 * dice.below(8),
            _ => 4_096 + dice.below(200),
        };
        memory.write_all_at(&bytes, at as u64).unwrap();
        nix::unistd::write(bell, &1_u64.to_ne_bytes()).unwrap();
    }
}

/// A number of kilobytes that the kernel tells of a process.
fn kilobytes(pid: i32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
}

fn open_in(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

#[tokio::test]
async fn whatever_is_said_to_a_shim_its_session_goes_on_and_it_does_not_grow() {
    const ROUNDS: usize = 600;
    let mut dice = Dice::told();
    let terminal = Terminal::held("stty raw -echo; echo ready; exec sleep 1000", |_| {});
    wait_for(&terminal, "ready").await;
    let leader = find(terminal.as_held().leader());
    let shim = terminal.as_held().shim().0;
    let (path, valid) = (terminal.socket(), valid_for_shims());
    assert!(answers(&path));
    let (open, data) = (open_in(shim), kilobytes(shim, "VmData"));
    for round in 0..ROUNDS {
        let connection = connect(&path);
        if dice.below(4) > 0 {
            say(&connection, &golden("attach"), &[]);
        }
        if dice.below(2) == 0 {
            scribble(&connection, &mut dice);
        }
        for _ in 0..dice.below(8) {
            let frame = dice.frame(&valid);
            // Whoever says this has a right to be understood.
            if !matches!(ToShim::decode(&frame), Ok(Some(ToShim::End))) {
                say(&connection, &frame, &dice.files());
            }
        }
        if round % 20 == 0 {
            drop(connection);
            assert!(answers(&path), "round {round}");
        }
    }
    assert!(answers(&path));
    assert!(is_there(&leader), "the program goes on");
    assert_eq!(kilobytes(shim, "VmData"), data, "it takes no more memory");
    let most = open + SEGMENTS_MAX + SNAPSHOTS_MAX + 2;
    until("it has no more open than it may keep", || open_in(shim) <= most).await;
    let (pty, found) = terminal.attach();
    assert_eq!((found.attached.leader.pid, found.exit()), (leader.pid.0, None));
    pty.resize(Size { rows: 24, cols: 80 }).unwrap();
    all_read(&pty, 0).await.unwrap();
    pty.commit(&checkpoint(found.attached.committed)).unwrap();
}

#[test]
fn whatever_a_shim_is_started_with_it_says_so_or_ends() {
    let mut dice = Dice::told();
    let directory = tempfile::tempdir().unwrap();
    let program = Program {
        path: "/bin/sh".into(),
        name: "sh".into(),
        args: vec!["-c".into(), "exec sleep 1000".into()],
        cwd: "/".into(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        user: None,
        sandbox: Vec::new(),
    };
    let valid = [vec![golden("start"); 8], vec![golden("attach"), golden("end")]].concat();
    let starter = ShimStarter::of(PROGRAM);
    for round in 0..60 {
        let path = directory.path().join(format!("{round:012x}.sock"));
        let ours = starter.fork(&path).unwrap().connection;
        let text = dice.frame(&[program.encode()]);
        let file = if dice.below(8) == 0 { dice.file() } else { memory(&text).into() };
        let frame = dice.frame(&valid);
        say(&ours, &frame, &[file]);
        // It answers in one way or another, or hangs up; both let a socket be read.
        let [ready] =
            readiness::wait([(Some(ours.as_fd()), READABLE)], Some(Duration::from_secs(9)))
                .unwrap();
        assert!(ready != 0, "round {round}: {frame:02x?} is answered by silence");
        drop(ours);
        // Nobody was told of the session, so it ends with its daemon.
        let gone = readiness::now() + Duration::from_secs(9);
        while path.exists() {
            assert!(readiness::now() < gone, "round {round}: {frame:02x?} left something behind");
            pause(Duration::from_millis(2));
        }
    }
}

/// What a false shim says: an answer, most often with something wrong about it, and what follows.
fn answer(connection: &OwnedFd, dice: &mut Dice, valid: &BTreeMap<&str, Vec<u8>>) {
    let mut attached = valid["attached"].clone();
    if dice.below(3) > 0 {
        attached = dice.frame(&[attached]);
    }
    if attached.len() > 48 && dice.below(16) > 0 {
        attached[..10].copy_from_slice(&valid["attached"][..10]);
        attached[10..12].copy_from_slice(&[NOTES as u8, 0]);
        attached[20..32].copy_from_slice(&own_process());
    }
    if attached.len() > 96 && dice.below(4) > 0 {
        for at in [56, 64, 72, 80, 88] {
            attached[at..][..8].copy_from_slice(&dice.edge().to_le_bytes());
        }
        attached[48..50].copy_from_slice(&(dice.edge() as u16).to_le_bytes());
        attached[50..52].copy_from_slice(&(dice.edge() as u16).to_le_bytes());
    }
    let marks = (dice.edge(), dice.edge());
    let bytes = 1 << 20;
    let files = memories(b"output", marks, bytes);
    for _ in 0..dice.below(4) {
        let word = 64 + 8 * dice.below(8) as u64;
        files[2].write_all_at(&dice.edge().to_le_bytes(), word).unwrap();
    }
    let mut files: Vec<OwnedFd> = files.into_iter().map(OwnedFd::from).collect();
    let more = dice.one(&[3, 3, 3, 0, 2, 5]);
    files.extend((0..more).map(|_| dice.file()));
    if dice.below(6) == 0 {
        let at = dice.below(files.len());
        files[at] = dice.file();
    }
    say(connection, &attached, &files);
    let notes: Vec<_> =
        ["note_to_daemon", "exited", "failed", "attached"].map(|name| valid[name].clone()).into();
    let wrong = dice.below(3) == 0;
    for slot in 0..NOTES {
        let mut frame = if wrong { dice.frame(&notes) } else { valid["note_to_daemon"].clone() };
        if !wrong {
            frame[4] = slot as u8;
        }
        say(connection, &frame, &dice.files());
    }
    for _ in 0..dice.below(8) {
        say(connection, &dice.frame(&notes), &dice.files());
    }
}

impl Dice {
    /// A number as there may be, and seldom one that there cannot be.
    fn edge(&mut self) -> u64 {
        let any = self.number();
        self.one(&[0, 6, 4_096, 1 << 20, (1 << 20) + 6, 1 << 53, u64::MAX, u64::MAX - 6, any])
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_false_shim_says_a_daemon_neither_fails_nor_waits_nor_grows() {
    const ROUNDS: usize = 400;
    let mut dice = Dice::told();
    let own = i32::try_from(std::process::id()).unwrap();
    let names = ["attached", "note_to_daemon", "exited", "failed"];
    let valid: BTreeMap<_, _> = names.into_iter().map(|name| (name, golden(name))).collect();
    let valid = Arc::new(valid);
    let before = kilobytes(own, "VmPeak");
    let mut taken_over = 0;
    for round in 0..ROUNDS {
        let session = SessionId::from_random(uuid::Uuid::new_v4());
        let fake = Fake::at(session);
        let (listener, valid) = (fake.listener(), Arc::clone(&valid));
        let mut theirs = Dice(dice.number());
        let holding = thread::spawn(move || {
            let connection = Fake::accept(&listener);
            answer(&connection, &mut theirs, &valid);
            // Hung up on at once, so that nobody waits for what does not come.
        });
        let since = readiness::now();
        let found = HeldPty::attach(&Shims::at(fake.directory()), session);
        holding.join().unwrap();
        if let Ok((pty, recovered)) = found {
            taken_over += 1;
            let limits = ScreenLimits::default();
            let mut opening =
                OpeningState::restored(&session, &recovered, limits, Moment::default());
            opening.screen.feed(Moment::default(), b"\x1b[2Jtext\r\n");
            drop(opening.screen.first_frame(Moment::default(), &Facts::default()));
            drop(opening.screen.checkpoint(opening.kept_rows.unwrap_or_default()));
            let mut output = Vec::new();
            let reading = pty.read(opening.offset, &mut output);
            drop(tokio::time::timeout(Duration::from_millis(20), reading).await);
            drop(pty.try_write(b"text", Stamp::default()));
            drop(pty.resize(Size { rows: 5, cols: 20 }));
            drop(pty.commit(&checkpoint(opening.offset)));
            pty.remember(Note::Lease, b"lease");
            drop((
                pty.evidence(),
                pty.unread(),
                pty.is_input_on_its_way(),
                pty.owes(6),
                pty.oldest(),
            ));
            if let Ok(OutputEnd::Asked(question)) = pty.ask_output_end() {
                let asking = pty.output_end(question);
                drop(tokio::time::timeout(Duration::from_millis(5), asking).await);
            }
            drop(tokio::time::timeout(Duration::from_millis(5), pty.writable()).await);
        }
        let took = readiness::now().saturating_sub(since);
        assert!(took < Duration::from_secs(5), "round {round} took {took:?}");
    }
    assert!(taken_over > ROUNDS / 20, "most of what was said was wrong: {taken_over} were not");
    let grown = kilobytes(own, "VmPeak").saturating_sub(before);
    assert!(grown < 1 << 20, "{grown} kB more were asked for");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_false_shim_that_says_one_note_after_the_other_is_not_waited_for() {
    let session = SessionId::from_random(uuid::Uuid::new_v4());
    let fake = Fake::at(session);
    let listener = fake.listener();
    thread::spawn(move || {
        let connection = Fake::accept(&listener);
        let mut attached = golden("attached");
        attached[10..12].copy_from_slice(&[0xff, 0xff]);
        attached[20..32].copy_from_slice(&own_process());
        say(&connection, &attached, &fresh_memories());
        while say(&connection, &golden("note_to_daemon"), &[]) {
            pause(Duration::from_millis(300));
        }
    });
    let since = readiness::now();
    let found = HeldPty::attach(&Shims::at(fake.directory()), session).unwrap_err();
    assert!(matches!(found, AttachError::Silent { .. }), "{found}");
    assert!(readiness::now().saturating_sub(since) < Duration::from_secs(4));
}

fn fresh_memories() -> Vec<OwnedFd> {
    memories(b"", (0, 0), 1 << 20).into_iter().map(OwnedFd::from).collect()
}

/// What a shim says of a terminal to which nothing happened yet, and which this process holds.
fn fresh() -> Vec<u8> {
    let mut attached = golden("attached");
    attached[10..12].copy_from_slice(&[0, 0]);
    attached[20..32].copy_from_slice(&own_process());
    // Neither ended, nor with any result, segment or snapshot.
    attached[96..].fill(0);
    attached
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_says_that_it_is_another_process_is_no_shim() {
    let session = SessionId::from_random(uuid::Uuid::new_v4());
    let fake = Fake::at(session);
    let listener = fake.listener();
    let lying = thread::spawn(move || {
        let connection = Fake::accept(&listener);
        let mut attached = fresh();
        attached[20..24].copy_from_slice(&1_i32.to_le_bytes());
        say(&connection, &attached, &fresh_memories());
        // It stays until it was heard.
        connection
    });
    let refused = HeldPty::attach(&Shims::at(fake.directory()), session).unwrap_err();
    assert!(matches!(refused, AttachError::Malformed { .. }), "{refused}");
    drop(lying.join().unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_false_shim_that_talks_for_ever_holds_up_nobody() {
    let session = SessionId::from_random(uuid::Uuid::new_v4());
    let fake = Fake::at(session);
    let listener = fake.listener();
    let talking = thread::spawn(move || {
        let connection = Fake::accept(&listener);
        say(&connection, &fresh(), &fresh_memories());
        let note = golden("note_to_daemon");
        loop {
            match socket::send(connection.as_fd(), &note, &[]) {
                Ok(()) | Err(nix::errno::Errno::EAGAIN) => {}
                Err(_) => return,
            }
        }
    });
    let (pty, _) = HeldPty::attach(&Shims::at(fake.directory()), session).unwrap();
    let since = readiness::now();
    assert!(pty.signal(termgate::session::pty::signal::Signal::User1).is_err());
    // It never takes what is written.
    assert_eq!(pty.try_write(b"text", Stamp::default()).unwrap(), 4);
    pty.fell_silent().await;
    let silent = pty.try_write(b"text", Stamp::default()).unwrap_err();
    assert_eq!(silent.kind(), ErrorKind::TimedOut);
    assert!(readiness::now().saturating_sub(since) < Duration::from_secs(5));
    // It was hung up on, and so has an end.
    talking.join().unwrap();
    drop(pty);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shim_of_a_former_version_is_named_as_such() {
    let session = SessionId::from_random(uuid::Uuid::new_v4());
    let fake = Fake::at(session);
    let listener = fake.listener();
    let former = thread::spawn(move || {
        let connection = Fake::accept(&listener);
        let mut attached = fresh();
        attached[8..10].copy_from_slice(&1_u16.to_le_bytes());
        say(&connection, &attached, &fresh_memories());
        // It stays until it was heard.
        connection
    });
    let refused = HeldPty::attach(&Shims::at(fake.directory()), session).unwrap_err();
    assert!(matches!(refused, AttachError::Former { version: 1, .. }), "{refused}");
    assert!(refused.to_string().contains("former version of termgate"), "{refused}");
    drop(former.join().unwrap());
}
