//! Peers over real sockets, and processes that try to leave their family.

use super::*;

use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::prctl;
use nix::unistd::{getgid, getpid, getuid};

use crate::transport::unix::alone;

/// A number that no process has.
const NOBODY: ProcessId = ProcessId(i32::MAX);

fn us() -> ProcessId {
    ProcessId(getpid().as_raw())
}

/// A process that waits for the end of its input; ended when it is dropped.
struct Waiting(Child);

impl Waiting {
    fn start(marks: &[(&str, &str)]) -> Self {
        let mut command = Command::new("cat");
        command.env_remove(SESSION_MARK).envs(marks.iter().copied());
        Self::started(command)
    }

    fn started(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // Its environment can be read for sure once it answers.
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        Self(child)
    }

    fn pid(&self) -> ProcessId {
        ProcessId(self.0.id().cast_signed())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_kernel_tells_user_group_and_process_of_the_peer() {
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let peer = Peer::of(&ours, us()).unwrap();
    assert_eq!((peer.uid, peer.gid), (getuid().as_raw(), getgid().as_raw()));
    assert_eq!(peer.pid, Some(us().0));
}

#[test]
fn what_has_no_peer_is_an_error() {
    let file = File::open("/dev/null").unwrap();
    assert!(Peer::of(&file, us()).is_err());
}

#[test]
fn the_daemon_itself_is_outside() {
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let peer = Peer::of(&ours, us()).unwrap();
    assert_eq!(peer.place, Place::Outside);
    assert!(!peer.lives_inside());
}

#[test]
fn a_child_of_the_daemon_is_inside_whatever_it_says() {
    let child = Waiting::start(&[]);
    assert_eq!(Place::of(child.pid(), us()), Place::Inside { claimed: None });
}

#[test]
fn a_child_of_a_holder_is_inside_whichever_daemon_started_it() {
    let family = |name: &str| {
        let mut command = Command::new("sh");
        command
            .env_remove(SESSION_MARK)
            .arg("-c")
            .arg(format!("printf {name} >/proc/$$/comm; cat; :"));
        Waiting::started(command)
    };
    let child = |parent: &Waiting| {
        let children = format!("/proc/{0}/task/{0}/children", parent.pid());
        ProcessId(std::fs::read_to_string(children).unwrap().trim().parse().unwrap())
    };
    let (other, holder) = (family("termgate"), family("termgate-hold"));
    assert_eq!(Place::of(child(&other), NOBODY), Place::Outside);
    assert_eq!(Place::of(child(&holder), NOBODY), Place::Inside { claimed: None });
}

#[test]
fn a_child_of_another_process_without_a_mark_is_outside() {
    let child =
        Waiting::start(&[("TERMGATE_SESSIONS", "0123456789ab"), ("X", "TERMGATE_SESSION=")]);
    assert_eq!(Place::of(child.pid(), NOBODY), Place::Outside);
}

#[test]
fn a_mark_alone_makes_a_process_live_inside_and_names_the_session() {
    let child = Waiting::start(&[(SESSION_MARK, "0123456789ab")]);
    let claimed = Some("0123456789ab".parse().unwrap());
    assert_eq!(Place::of(child.pid(), NOBODY), Place::Inside { claimed });
    assert_eq!(Place::of(child.pid(), us()), Place::Inside { claimed });
}

#[test]
fn a_mark_that_names_no_session_is_still_a_mark() {
    for value in ["", "../../etc/passwd"] {
        let child = Waiting::start(&[(SESSION_MARK, value)]);
        assert_eq!(Place::of(child.pid(), NOBODY), Place::Inside { claimed: None }, "{value:?}");
    }
}

#[test]
fn a_process_that_shows_no_environment_at_all_is_unknown() {
    let mut command = Command::new("/bin/cat");
    command.env_clear();
    let child = Waiting::started(command);
    assert_eq!(Place::of(child.pid(), NOBODY), Place::Unknown);
}

#[test]
fn a_process_that_is_not_there_is_unknown_and_counts_as_inside() {
    let place = Place::of(NOBODY, us());
    assert_eq!(place, Place::Unknown);
    assert!(Peer { uid: 0, gid: 0, pid: None, place }.lives_inside());
}

#[test]
fn a_peer_that_ended_after_connecting_is_unknown() {
    let name = "transport::unix::peer::tests::a_peer_that_ended_after_connecting_is_unknown";
    if let Some(path) = alone::argument(name) {
        UnixStream::connect(path).unwrap().write_all(b"x").unwrap();
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("test.sock");
    let listener = UnixListener::bind(&path).unwrap();
    alone::run(name, &path);
    let (stream, _) = listener.accept().unwrap();
    let peer = Peer::of(&stream, NOBODY).unwrap();
    assert_eq!(peer.uid, getuid().as_raw());
    assert_eq!(peer.place, Place::Unknown);
}

#[test]
fn a_number_that_another_process_has_by_now_is_unknown() {
    let name = "transport::unix::peer::tests::a_number_that_another_process_has_by_now_is_unknown";
    if let Some(path) = alone::argument(name) {
        let _stream = UnixStream::connect(path).unwrap();
        alone::wait_to_be_killed();
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("test.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let mut first = alone::start(name, &path);
    first.wait_until_ready();
    let (stream, _) = listener.accept().unwrap();
    let handle = || Some(getsockopt(&stream, sockopt::PeerPidfd).unwrap());
    let (before, at_the_end) = (handle(), handle());
    let number = ProcessId(first.pid());
    assert_eq!(Place::of_peer(number, before, NOBODY), Place::Outside);

    first.kill();
    // Nobody can order a number, so a living process stands for the next owner of it.
    let next = Waiting::start(&[]);
    assert_eq!(Place::of_peer(next.pid(), at_the_end, NOBODY), Place::Unknown);
}

#[test]
fn without_a_handle_the_start_of_the_process_tells_whether_it_is_the_same() {
    let child = Waiting::start(&[]);
    assert_eq!(Place::of_peer(child.pid(), None, NOBODY), Place::Outside);
    assert_eq!(Place::of_peer(NOBODY, None, us()), Place::Unknown);
}

/// Starts a program that leaves its parent, its session and its process group behind.
fn start_orphan(test: &str, argument: &Path) {
    let program = alone::command(test, argument);
    let script = r#"(setsid sh -c '"$@"; :' sh "$@" &)"#;
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh"]).arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    assert!(shell.stdin(Stdio::null()).status().unwrap().success());
}

#[test]
fn an_orphan_that_left_its_session_is_inside_because_the_daemon_takes_it_in() {
    let name = "transport::unix::peer::tests::\
                an_orphan_that_left_its_session_is_inside_because_the_daemon_takes_it_in";
    let Some(argument) = alone::argument(name) else {
        let directory = tempfile::tempdir().unwrap();
        return alone::run(name, &directory.path().join("test.sock"));
    };
    let path = Path::new(&argument);
    if path.exists() {
        // We are the orphan; the daemon hangs up when it has seen enough.
        let mut stream = UnixStream::connect(path).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        return;
    }
    let listener = UnixListener::bind(path).unwrap();
    let place_of_an_orphan = || {
        start_orphan(name, path);
        let (stream, _) = listener.accept().unwrap();
        Peer::of(&stream, us()).unwrap().place
    };
    assert_eq!(place_of_an_orphan(), Place::Outside, "nobody takes it in yet");
    prctl::set_child_subreaper(true).unwrap();
    assert_eq!(place_of_an_orphan(), Place::Inside { claimed: None });
}
