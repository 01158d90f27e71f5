//! Handed sockets, taken by processes of their own, and paths at which somebody else listens.

use super::*;

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::transport::unix::tests::alone;

fn locked() -> (TempDir, DaemonLock) {
    let directory = tempfile::tempdir().unwrap();
    let lock = DaemonLock::take(&directory.path().join("daemon.lock")).unwrap();
    (directory, lock)
}

/// A socket as a service manager binds it.
fn bound(path: &Path, mode: u32) -> UnixListener {
    let socket = UnixListener::bind(path).unwrap();
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    socket
}

fn handed(path: &Path, socket: &UnixListener) -> Handed {
    Handed { sockets: vec![(path.to_owned(), socket.try_clone().unwrap())], ..Handed::default() }
}

#[tokio::test]
async fn a_handed_socket_is_used_and_stays_when_its_listener_is_dropped() {
    let (directory, lock) = locked();
    let path = directory.path().join("gateway.sock");
    let socket = bound(&path, 0o600);
    let client = UnixStream::connect(&path).unwrap();
    let listener = handed(&path, &socket).listen(&path, SocketAudience::Owner, &lock).unwrap();
    assert!(listener.is_in_place());
    listener.accept().await;
    drop((client, listener));
    let _next = UnixStream::connect(&path).unwrap();
    socket.set_nonblocking(false).unwrap();
    socket.accept().unwrap();
}

#[tokio::test]
async fn a_handed_socket_that_others_may_use_is_refused() {
    let (directory, lock) = locked();
    let path = directory.path().join("gateway.sock");
    let socket = bound(&path, 0o666);
    let error = handed(&path, &socket).listen(&path, SocketAudience::Owner, &lock).unwrap_err();
    assert!(matches!(error, BindError::Mode { mode: 0o666, .. }), "{error}");
    assert!(UnixStream::connect(&path).is_ok());
}

#[tokio::test]
async fn a_handed_socket_is_opened_to_its_audience_and_refused_when_it_is_open_to_others() {
    for (mode, taken) in [(0o600, true), (0o666, true), (0o660, false), (0o622, false)] {
        let (directory, lock) = locked();
        let path = directory.path().join("gateway.sock");
        let socket = bound(&path, mode);
        let listened = handed(&path, &socket).listen(&path, SocketAudience::Everyone, &lock);
        assert_eq!(listened.is_ok(), taken, "{mode:o}: {listened:?}");
        let now = path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(now, if taken { 0o666 } else { mode });
    }
}

#[tokio::test]
async fn a_socket_that_somebody_else_listens_at_is_neither_replaced_nor_disturbed() {
    let (directory, lock) = locked();
    let path = directory.path().join("gateway.sock");
    let socket = bound(&path, 0o600);
    let error = Handed::default().listen(&path, SocketAudience::Owner, &lock).unwrap_err();
    assert!(matches!(error, BindError::InUse { .. }), "{error}");
    socket.set_nonblocking(true).unwrap();
    assert_eq!(socket.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    drop(socket);
    assert!(Handed::default().listen(&path, SocketAudience::Owner, &lock).unwrap().is_in_place());
}

#[test]
fn a_socket_without_a_door_is_told_with_the_doors_there_are() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("other.sock");
    let handed = handed(&path, &bound(&path, 0o600));
    let doors = [Path::new("/run/gateway.sock"), Path::new("/run/operator.sock")];
    let error = handed.check(&doors).unwrap_err().to_string();
    assert!(error.contains("other.sock"), "{error}");
    assert!(error.contains("/run/gateway.sock or /run/operator.sock"), "{error}");
    handed.check(&[doors[0], &path]).unwrap();
}

#[test]
fn what_is_meant_for_another_process_is_left_alone() {
    let variable = |name: &str| match name {
        "LISTEN_PID" => Some("1".into()),
        "LISTEN_FDS" => Some("16".into()),
        _ => None,
    };
    assert!(Handed::take(variable).unwrap().sockets.is_empty());
    assert!(Handed::take(|_| None).unwrap().sockets.is_empty());
    let only_count = |name: &str| (name == "LISTEN_FDS").then(|| "1".into());
    assert!(Handed::take(only_count).unwrap().sockets.is_empty());
}

#[test]
fn a_count_that_is_none_is_refused() {
    for count in ["", "x", "-1", "17", "99999999999"] {
        let variable = |name: &str| match name {
            "LISTEN_PID" => Some(std::process::id().to_string().into()),
            _ => Some(OsString::from(count)),
        };
        let error = Handed::take(variable).unwrap_err();
        assert!(matches!(error, HandedError::Count { .. }), "{count}: {error}");
    }
}

/// Runs a test in another process that is handed two descriptors.
fn hand_over(test: &str, first: impl Into<OwnedFd>, second: impl Into<OwnedFd>) -> Output {
    let words = alone::command(test, Path::new("/"));
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(
        "exec 3<&0 4<&1 </dev/null >&2; LISTEN_PID=$$ LISTEN_FDS=2; export LISTEN_PID LISTEN_FDS; \
         exec \"$0\" \"$@\"",
    );
    shell.arg(words.get_program()).args(words.get_args());
    shell.envs(words.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.env_remove("TERMGATE_SESSION");
    shell.stdin(first.into()).stdout(Stdio::from(second.into())).stderr(Stdio::piped());
    shell.output().unwrap()
}

fn take() -> Result<Handed, HandedError> {
    Handed::take(|name| std::env::var_os(name))
}

#[test]
fn handed_sockets_are_found_by_the_paths_they_listen_at() {
    let name = "transport::unix::handed::tests::\
                handed_sockets_are_found_by_the_paths_they_listen_at";
    if alone::argument(name).is_some() {
        let handed = take().unwrap();
        for (path, socket) in &handed.sockets {
            UnixStream::connect(path).unwrap();
            socket.accept().unwrap();
            eprintln!("handed {}", path.display());
        }
        let inherited = Command::new("ls").args(["-l", "/proc/self/fd"]).output().unwrap();
        assert!(!String::from_utf8_lossy(&inherited.stdout).contains("socket:"));
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let paths = ["b.sock", "a.sock"].map(|name| directory.path().join(name));
    let [b, a] = paths.each_ref().map(|path| UnixListener::bind(path).unwrap());
    let output = hand_over(name, b, a);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    for path in paths {
        assert!(told.contains(&format!("handed {}", path.display())), "{told}");
    }
}

#[test]
fn a_descriptor_that_does_not_listen_at_a_path_is_refused() {
    let name = "transport::unix::handed::tests::\
                a_descriptor_that_does_not_listen_at_a_path_is_refused";
    if alone::argument(name).is_some() {
        let error = take().unwrap_err();
        assert!(matches!(error, HandedError::NotListening { number: FIRST }), "{error}");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let good = || {
        let path = directory.path().join("a.sock");
        let _ = fs::remove_file(&path);
        UnixListener::bind(path).unwrap()
    };
    let web = TcpListener::bind("127.0.0.1:0").unwrap();
    let (connected, _other) = UnixStream::pair().unwrap();
    let file = fs::File::open("/dev/null").unwrap();
    for bad in [OwnedFd::from(web), OwnedFd::from(connected), OwnedFd::from(file)] {
        let output = hand_over(name, bad, good());
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && told.contains("1 passed"), "{told}");
    }
}
