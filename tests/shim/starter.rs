//! The process that forks shims, and what becomes of sessions when it ends.

use nix::libc;
use termgate::core::frame::Exit;
use termgate::session::pty::command::Launch;
use termgate::session::pty::held::starter::ShimStarter;
use termgate::session::pty::processes::Process;
use termgate::session::pty::spawn::SpawnError;
use termgate::session::pty::{ProcessId, Pty, Stamp};
use termgate::shim::WORD;

use crate::harness::processes::{PROGRAM, command_line};
use crate::harness::waiting::until;
use crate::shim::harness::{Kind, Terminal, exit_of, find, read_to_end, spec};

fn open(starter: &ShimStarter, line: &str) -> Result<Terminal, SpawnError> {
    let spec = spec(Launch::Line(line.to_owned()));
    Terminal::open_with(Kind::Held, &spec, |options| options.starter = starter.clone())
}

/// The process that forks the shims of this test, which is the only one on this thread.
fn forking() -> Process {
    let children = std::fs::read_to_string("/proc/thread-self/children").unwrap();
    let pids = children.split_ascii_whitespace().map(|pid| pid.parse().unwrap());
    let mut found = pids.filter(|pid| command_line(*pid).contains(WORD));
    let process = find(ProcessId(found.next().expect("it runs")));
    assert_eq!(found.next(), None, "there is one");
    process
}

#[tokio::test]
async fn one_process_forks_all_shims_and_its_end_ends_no_session() {
    let starter = ShimStarter::of(PROGRAM);
    let first = open(&starter, "read -r line; echo got $line; exit 3").unwrap();
    let forks = forking();
    let second = open(&starter, "exit 4").unwrap();
    assert_eq!(forking(), forks);
    assert_eq!(exit_of(&second).await, Exit::Code(4));
    for shim in [&first, &second].map(|terminal| find(terminal.as_held().shim())) {
        assert_ne!((shim.parent, shim.session), (forks.pid, forks.session));
    }

    forks.open().unwrap().signal(9).unwrap();
    until("it has ended", || command_line(forks.pid.0).is_empty()).await;
    let third = open(&starter, "echo third").unwrap();
    assert!(read_to_end(&third).await.contains("third"));
    assert_ne!(forking(), forks);
    first.try_write(b"it\r", Stamp::default()).unwrap();
    assert!(read_to_end(&first).await.contains("got it"));
    assert_eq!(exit_of(&first).await, Exit::Code(3));

    let forks = forking();
    drop(starter);
    assert!(Process::find(forks.pid).is_none_or(|found| found.started != forks.started));
}

#[tokio::test]
async fn whoever_stops_the_process_that_forks_shims_delays_one_session_only() {
    let starter = ShimStarter::of(PROGRAM);
    drop(open(&starter, "true").unwrap());
    let forks = forking();
    forks.open().unwrap().signal(19).unwrap();
    let refused = open(&starter, "true").unwrap_err();
    assert!(matches!(refused, SpawnError::Shim(_)), "{refused}");
    let terminal = open(&starter, "echo again").unwrap();
    assert!(read_to_end(&terminal).await.contains("again"));
    assert_ne!(forking(), forks);
}

#[tokio::test]
#[allow(unsafe_code)]
async fn a_process_that_can_fork_no_shims_any_more_is_replaced() {
    let starter = ShimStarter::of(PROGRAM);
    drop(open(&starter, "true").unwrap());
    let forks = forking();
    // It gets no descriptor any more, and so no connection of a shim.
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is read, and nothing is written.
    let limited = unsafe {
        libc::prlimit(forks.pid.0, libc::RLIMIT_NOFILE, &raw const none, std::ptr::null_mut())
    };
    assert_eq!(limited, 0);
    let terminal = open(&starter, "echo again").unwrap();
    assert!(read_to_end(&terminal).await.contains("again"));
    assert_ne!(forking(), forks);
}
