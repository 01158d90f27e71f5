//! Peers over real sockets, and processes that try to leave their family.

use super::*;

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::libc;
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{Gid, getgid, getpid, getppid, getuid, setgroups};

use crate::session::pty::environment::SESSION_MARK;
use crate::shim::mark;
use crate::transport::unix::tests::alone;

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

fn place_of(process: &Waiting, daemon: ProcessId) -> Place {
    Place::of(process.pid(), daemon).unwrap()
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
fn the_kernel_tells_every_supplementary_group_of_the_peer() {
    let name = "transport::unix::peer::tests::\
                the_kernel_tells_every_supplementary_group_of_the_peer";
    if !getuid().is_root() {
        eprintln!("only root can change its groups");
        return;
    }
    if alone::argument(name).is_none() {
        return alone::run(name, Path::new("/"));
    }
    for count in [0, 1, 64, 65, 5_000] {
        let groups: Vec<u32> = (70_000..70_000 + count).collect();
        setgroups(&groups.iter().map(|gid| Gid::from_raw(*gid)).collect::<Vec<_>>()).unwrap();
        let (ours, _theirs) = UnixStream::pair().unwrap();
        setgroups(&[Gid::from_raw(1)]).unwrap();
        assert_eq!(Peer::of(&ours, us()).unwrap().groups, groups, "those at the connection");
    }
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
    assert_eq!(place_of(&child, us()), Place::Inside { shim: None });
}

#[test]
fn a_child_of_a_shim_is_inside_whichever_daemon_started_it() {
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
    let (other, shim) = (family("termgate"), family("termgate-shim"));
    // A daemon that neither of them came of.
    let daemon = Waiting::start(&[]);
    assert_eq!(Place::of(child(&other), daemon.pid()).unwrap(), Place::Outside);
    let inside = Place::Inside { shim: Some(shim.pid().0) };
    assert_eq!(Place::of(child(&shim), daemon.pid()).unwrap(), inside);
}

#[test]
fn an_environment_says_nothing() {
    let named = Waiting::start(&[(SESSION_MARK, "0123456789ab")]);
    assert_eq!(place_of(&named, NOBODY), Place::Outside);
    assert_eq!(place_of(&named, us()), Place::Inside { shim: None });
    let mut command = Command::new("/bin/cat");
    command.env_clear();
    assert_eq!(place_of(&Waiting::started(command), NOBODY), Place::Outside);
}

#[test]
fn who_carries_a_mark_is_inside_also_when_its_shim_is_gone() {
    let name = "transport::unix::peer::tests::\
                who_carries_a_mark_is_inside_also_when_its_shim_is_gone";
    if alone::argument(name).is_some() {
        mark::set(7).unwrap();
        alone::wait_to_be_killed();
    }
    let mut marked = alone::start(name, Path::new("/"));
    marked.wait_until_ready();
    let place = Place::of(ProcessId(marked.pid()), NOBODY).unwrap();
    assert_eq!(place, Place::Inside { shim: None });
}

#[test]
fn a_process_that_is_not_there_is_unknown_and_counts_as_inside() {
    let place = Place::of(NOBODY, us()).unwrap();
    assert_eq!(place, Place::Unknown);
    assert!(Peer { uid: 0, gid: 0, groups: Vec::new(), pid: None, place }.lives_inside());
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
    assert_eq!(Place::of_peer(number, before, NOBODY).unwrap(), Place::Outside);

    first.kill();
    // Nobody can order a number, so a living process stands for the next owner of it.
    let next = Waiting::start(&[]);
    assert_eq!(Place::of_peer(next.pid(), at_the_end, NOBODY).unwrap(), Place::Unknown);
}

#[test]
fn without_a_handle_the_start_of_the_process_tells_whether_it_is_the_same() {
    let child = Waiting::start(&[]);
    assert_eq!(Place::of_peer(child.pid(), None, NOBODY).unwrap(), Place::Outside);
    assert_eq!(Place::of_peer(NOBODY, None, us()).unwrap(), Place::Unknown);
}

#[test]
fn a_descriptor_that_comes_too_late_makes_nobody_unknown() {
    let name = "transport::unix::peer::tests::\
                a_descriptor_that_comes_too_late_makes_nobody_unknown";
    if alone::argument(name).is_none() {
        return alone::run(name, Path::new("/"));
    }
    setrlimit(Resource::RLIMIT_NOFILE, 64, 64).unwrap();
    let mut taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    let (stranger, last) = (ProcessId(getppid().as_raw()), taken.pop());
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        // The last one is there in one moment and gone in the next.
        scope.spawn(|| {
            drop(last);
            while !over.load(Ordering::Relaxed) {
                drop(File::open("/dev/null"));
            }
        });
        let places: Vec<_> = (0..50_000).map(|_| Place::of(stranger, NOBODY)).collect();
        over.store(true, Ordering::Relaxed);
        let is_short = |place: &io::Result<Place>| {
            place.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EMFILE))
        };
        for place in places.iter().filter(|place| !is_short(place)) {
            assert_eq!(place.as_ref().unwrap(), &Place::Outside);
        }
    });
}

#[test]
fn without_a_descriptor_for_its_handle_nobody_is_unknown() {
    let name = "transport::unix::peer::tests::\
                without_a_descriptor_for_its_handle_nobody_is_unknown";
    if alone::argument(name).is_none() {
        return alone::run(name, Path::new("/"));
    }
    let (ours, _theirs) = UnixStream::pair().unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, 64, 64).unwrap();
    let _taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    let error = Peer::of(&ours, NOBODY).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EMFILE), "{error}");
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
    assert_eq!(place_of_an_orphan(), Place::Inside { shim: None });
}
