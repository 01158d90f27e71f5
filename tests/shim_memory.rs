//! A shim allocates nothing once it runs.
//!
//! This program is its own shim, with an allocator that counts: started with the word for it, it
//! holds a session and afterwards writes down how often memory was asked for meanwhile.

// A test that unwraps in vain has failed, in its helpers as well.
#![allow(clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use termgate::core::frame::Size;
use termgate::core::ids::{RowNumber, SessionId};
use termgate::session::pty::command::{Launch, SpawnSpec};
use termgate::session::pty::environment::Environment;
use termgate::session::pty::held::HeldPty;
use termgate::session::pty::held::shims::{HoldOptions, HoldingLimits, Shims, socket_of};
use termgate::session::pty::held::starter::ShimStarter;
use termgate::session::pty::{Note, Pty, ReadOutput, Stamp, TerminalCheckpoint};
use termgate::shim::wire::to_shim::Unread;
use termgate::shim::{WORD, starter};

static ASKED: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: every call is handed on to the system's allocator as it came.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    match words.get(1) {
        Some(word) if word == WORD => hold(&words),
        // Test runners ask which tests there are, and which of them are to be left out.
        Some(word) if word == "--list" => {
            let name: &[u8] = b"a_shim_allocates_nothing_once_it_runs: test\n";
            let left_out = words.iter().any(|word| word == "--ignored");
            std::io::stdout().write_all(if left_out { b"" } else { name }).unwrap();
            ExitCode::SUCCESS
        }
        Some(_) | None => {
            a_shim_allocates_nothing_once_it_runs();
            ExitCode::SUCCESS
        }
    }
}

fn hold(words: &[OsString]) -> ExitCode {
    starter::serve(words, |mut shim, mut room| {
        let before = ASKED.load(Ordering::Relaxed);
        assert!(before > 0, "what a start asks for is counted");
        shim.run(&mut room);
        let asked = ASKED.load(Ordering::Relaxed) - before;
        // The words of this process say by now where it listens.
        let line = std::fs::read_to_string("/proc/self/cmdline").unwrap();
        let socket = line.split('\0').nth(2).unwrap();
        std::fs::write(report(Path::new(socket)), asked.to_string()).unwrap();
        shim.end();
    })
}

fn report(socket: &Path) -> PathBuf {
    socket.with_extension("asked")
}

fn a_shim_allocates_nothing_once_it_runs() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(60), exercise())
            .await
            .expect("it comes to an end");
    });
}

/// Uses everything that a shim does.
async fn exercise() {
    let directory = tempfile::tempdir().unwrap();
    let session = SessionId::from_random(uuid::Uuid::new_v4());
    let environment = Environment::from([("PATH".into(), "/usr/bin:/bin".into())]);
    let line = "stty raw -echo; (setsid true &); head -c 3000000 /dev/zero; read -r -n 1 key";
    let launch = Launch::Program { name: "bash".into(), args: vec!["-c".into(), line.into()] };
    let size = Size { rows: 24, cols: 80 };
    let spec = SpawnSpec::resolve(launch, session, PathBuf::from("/"), environment, size).unwrap();
    let options = HoldOptions {
        shims: Shims::at(directory.path()),
        starter: ShimStarter::of(std::env::current_exe().unwrap()),
        limits: HoldingLimits { orphan_ttl: None, ring_bytes: 1 << 20, unread: Unread::Block },
    };
    let mut pty = HeldPty::start(&spec, &options).unwrap();
    let (mut read, mut buffer) = (0, Vec::new());
    let mut attached = BTreeMap::new();
    while read < 3_000_000 {
        buffer.clear();
        let ReadOutput::Bytes(count) = pty.read(read, &mut buffer).await.unwrap() else { break };
        read += count as u64;
        if pty.owes(read) {
            pty.commit(&TerminalCheckpoint {
                offset: read,
                snapshot: vec![1; 10_000],
                rows: vec![2; 600_000],
                first_row: RowNumber(read / 2),
                whole: false,
                end_row: RowNumber(read),
                quiet: true,
            })
            .unwrap();
            pty.remember(Note::Lease, &[3; 1_000]);
            pty = HeldPty::attach(&Shims::at(directory.path()), session).unwrap().0;
            attached.insert(read, pty.shim());
        }
    }
    assert!(attached.len() > 3, "{attached:?}");
    pty.resize(Size { rows: 30, cols: 90 }).unwrap();
    // Until it is full, or the program has read its key and ended.
    while matches!(pty.try_write(&[b'x'; 4_096], Stamp::default()), Ok(1..)) {}
    pty.exited().await;
    pty.forget();
    let report = report(&socket_of(directory.path(), session));
    while !std::fs::read_to_string(&report).is_ok_and(|text| !text.is_empty()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(std::fs::read_to_string(&report).unwrap(), "0", "so often memory was asked for");
}
