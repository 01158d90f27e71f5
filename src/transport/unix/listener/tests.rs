//! Listeners at real paths, under real limits.

use super::*;

use std::fs::File;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::sys::resource::{Resource, setrlimit};
use nix::sys::socket::connect as connect_socket;
use nix::sys::stat::umask;
use tempfile::TempDir;
use tokio::io::AsyncReadExt;

use crate::session::pty::ProcessId;
use crate::transport::unix::peer::Place;
use crate::transport::unix::reception::Insiders;
use crate::transport::unix::tests::alone;

fn locked() -> (TempDir, DaemonLock) {
    let directory = tempfile::tempdir().unwrap();
    let lock = DaemonLock::take(&directory.path().join("daemon.lock")).unwrap();
    (directory, lock)
}

fn mode(path: &Path) -> Option<u32> {
    path.symlink_metadata().ok().map(|found| found.permissions().mode() & 0o777)
}

/// What a dead daemon leaves behind.
fn leave_stale(path: &Path) {
    drop(net::UnixListener::bind(path).unwrap());
    assert!(net::UnixStream::connect(path).is_err());
}

#[tokio::test]
async fn a_client_that_has_hung_up_can_be_told_from_others() {
    let (directory, lock) = locked();
    let path = directory.path().join("gateway.sock");
    let listener = Listener::bind(&path, SocketAudience::Owner, &lock).unwrap();
    let mut spoke = net::UnixStream::connect(&path).unwrap();
    spoke.write_all(b"x").unwrap();
    drop(spoke);
    drop(net::UnixStream::connect(&path).unwrap());
    let silent = net::UnixStream::connect(&path).unwrap();
    silent.shutdown(Shutdown::Write).unwrap();
    let mut ended = Vec::new();
    for _ in 0..3 {
        ended.push(listener.accept().await.has_hung_up());
    }
    assert_eq!(ended, [true, true, false], "who only ended its input still listens");
}

#[tokio::test]
async fn a_client_gets_in() {
    let (directory, lock) = locked();
    let path = directory.path().join("gateway.sock");
    let listener = Listener::bind(&path, SocketAudience::Owner, &lock).unwrap();
    let mut client = net::UnixStream::connect(&path).unwrap();
    let AcceptedClient { stream, lent } = listener.accept().await;
    assert!(lent.is_none());
    drop(stream);
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
}

/// Ends what watches beside a test, also when the test fails.
struct Watching<'a>(&'a AtomicBool);

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_socket_is_for_its_owner_only_from_its_first_moment() {
    let name = "transport::unix::listener::tests::\
                a_socket_is_for_its_owner_only_from_its_first_moment";
    let Some(argument) = alone::argument(name) else {
        let directory = tempfile::tempdir().unwrap();
        return alone::run(name, directory.path());
    };
    umask(Mode::empty());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _runtime = runtime.enter();
    let directory = Path::new(&argument);
    let lock = DaemonLock::take(&directory.join("daemon.lock")).unwrap();
    let path = directory.join("gateway.sock");
    let finished = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut seen: Vec<u32> = Vec::new();
            while !finished.load(Ordering::Relaxed) {
                seen.extend(mode(&temporary_name(&path)));
                seen.extend(mode(&path));
                seen.dedup();
            }
            seen
        });
        let watching = Watching(&finished);
        for _ in 0..200 {
            let listener = Listener::bind(&path, SocketAudience::Owner, &lock).unwrap();
            assert_eq!(mode(&path), Some(0o600));
            drop(listener);
        }
        let _last = Listener::bind(&path, SocketAudience::Owner, &lock).unwrap();
        drop(watching);
        let seen = watcher.join().unwrap();
        assert!(seen.iter().all(|mode| *mode == 0o600), "{seen:?}");
    });
}

#[tokio::test]
async fn a_socket_is_for_its_audience_also_when_it_is_made_again() {
    let (directory, lock) = locked();
    let path = directory.path().join("gateway.sock");
    let group = group_that_we_can_give();
    for (audience, mode, group) in [
        (SocketAudience::Group(group), 0o660, Some(group)),
        (SocketAudience::Everyone, 0o666, None),
        (SocketAudience::Owner, 0o600, None),
    ] {
        let mut listener = Listener::bind(&path, audience, &lock).unwrap();
        assert_eq!(opened(&path, group), (mode, true), "{audience:?}");
        let file = listener.take_file().unwrap();
        fs::remove_file(&path).unwrap();
        let again = file.bind_again().unwrap();
        assert_eq!(opened(&path, group), (mode, true), "{audience:?}, made again");
        let _client = net::UnixStream::connect(&path).unwrap();
        again.accept().await;
    }
}

/// A group that is not that of new files: root may give any, others only their own.
fn group_that_we_can_give() -> u32 {
    if nix::unistd::getuid().is_root() { 70_001 } else { nix::unistd::getgid().as_raw() }
}

/// The mode of a file, and whether its group is the one it must have.
fn opened(path: &Path, group: Option<u32>) -> (u32, bool) {
    let found = path.symlink_metadata().unwrap();
    (found.mode() & 0o777, group.is_none_or(|group| group == found.gid()))
}

#[tokio::test]
async fn a_stale_socket_is_replaced_and_nothing_else_is_left() {
    let (directory, lock) = locked();
    let path = directory.path().join("gateway.sock");
    leave_stale(&path);
    leave_stale(&temporary_name(&path));
    let listener = Listener::bind(&path, SocketAudience::Owner, &lock).unwrap();
    let _client = net::UnixStream::connect(&path).unwrap();
    listener.accept().await;
    let names = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, ["daemon.lock", "gateway.sock"]);
}

#[tokio::test]
async fn a_path_is_never_without_a_socket_while_it_is_replaced() {
    let (directory, lock) = locked();
    let path = directory.path().join("gateway.sock");
    let mut current = Listener::bind(&path, SocketAudience::Owner, &lock).unwrap();
    let finished = AtomicBool::new(false);
    let missing = thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut missing = 0;
            while !finished.load(Ordering::Relaxed) {
                missing += u32::from(!path.exists());
            }
            missing
        });
        let watching = Watching(&finished);
        for _ in 0..200 {
            let next = Listener::bind(&path, SocketAudience::Owner, &lock).unwrap();
            current = next;
        }
        drop(watching);
        watcher.join().unwrap()
    });
    assert_eq!(missing, 0);
    assert!(current.is_in_place());
}

#[tokio::test]
async fn a_listener_removes_its_path_when_it_is_dropped() {
    let (directory, lock) = locked();
    let path = directory.path().join("gateway.sock");
    let listener = Listener::bind(&path, SocketAudience::Owner, &lock).unwrap();
    assert!(listener.is_in_place());
    drop(listener);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_listener_that_was_replaced_leaves_its_successor_alone() {
    let (directory, lock) = locked();
    let path = directory.path().join("gateway.sock");
    let first = Listener::bind(&path, SocketAudience::Owner, &lock).unwrap();
    let second = Listener::bind(&path, SocketAudience::Owner, &lock).unwrap();
    assert!(!first.is_in_place());
    drop(first);
    assert!(second.is_in_place());
    assert!(net::UnixStream::connect(&path).is_ok());
}

#[tokio::test]
async fn a_listener_notices_that_its_path_is_gone() {
    let (directory, lock) = locked();
    let path = directory.path().join("gateway.sock");
    let listener = Listener::bind(&path, SocketAudience::Owner, &lock).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(!listener.is_in_place());
    fs::write(&path, "another's").unwrap();
    drop(listener);
    assert_eq!(fs::read_to_string(&path).unwrap(), "another's");
}

#[tokio::test]
async fn the_lock_stays_as_long_as_a_listener_may_have_to_remove_its_path() {
    let (directory, lock) = locked();
    let listener =
        Listener::bind(&directory.path().join("gateway.sock"), SocketAudience::Owner, &lock)
            .unwrap();
    drop(lock);
    let again = || DaemonLock::take(&directory.path().join("daemon.lock"));
    assert!(again().is_err());
    drop(listener);
    assert!(again().is_ok());
}

#[tokio::test]
async fn what_is_not_a_socket_is_never_replaced() {
    let (directory, lock) = locked();
    let file = directory.path().join("notes.txt");
    fs::write(&file, "precious").unwrap();
    let error = Listener::bind(&file, SocketAudience::Owner, &lock).unwrap_err();
    assert!(matches!(&error, BindError::NotASocket { path } if *path == file), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");

    let link = directory.path().join("link.sock");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    let error = Listener::bind(&link, SocketAudience::Owner, &lock).unwrap_err();
    assert!(matches!(error, BindError::NotASocket { .. }), "{error}");
}

#[tokio::test]
async fn a_file_in_the_place_of_the_temporary_name_is_left_alone() {
    let (directory, lock) = locked();
    let path = directory.path().join("gateway.sock");
    fs::write(temporary_name(&path), "precious").unwrap();
    let error = Listener::bind(&path, SocketAudience::Owner, &lock).unwrap_err();
    assert!(matches!(error, BindError::NotASocket { .. }), "{error}");
    assert_eq!(fs::read_to_string(temporary_name(&path)).unwrap(), "precious");
}

#[tokio::test]
async fn outside_the_lock_only_a_path_where_nobody_answers_is_replaced() {
    let (_directory, lock) = locked();
    let elsewhere = tempfile::tempdir().unwrap();
    let path = elsewhere.path().join("shared.sock");
    let theirs = net::UnixListener::bind(&path).unwrap();
    let error = Listener::bind(&path, SocketAudience::Owner, &lock).unwrap_err();
    assert!(matches!(error, BindError::InUse { .. }), "{error}");
    drop(theirs);
    let ours = Listener::bind(&path, SocketAudience::Owner, &lock).unwrap();
    assert!(ours.is_in_place());
}

#[tokio::test]
async fn the_longest_path_the_kernel_takes_can_be_bound() {
    let (directory, lock) = locked();
    let name = |total: usize| {
        let taken = directory.path().as_os_str().len() + "/.sock".len();
        directory.path().join(format!("{}.sock", "n".repeat(total - taken)))
    };
    let listener = Listener::bind(&name(107), SocketAudience::Owner, &lock).unwrap();
    assert!(net::UnixStream::connect(listener.path()).is_ok());
    let error = Listener::bind(&name(108), SocketAudience::Owner, &lock).unwrap_err();
    let BindError::Io { source, .. } = &error else { panic!("{error}") };
    assert_eq!(source.raw_os_error(), Some(libc::ENAMETOOLONG));
}

#[tokio::test]
async fn a_directory_that_is_not_there_is_told_with_the_path() {
    let (directory, lock) = locked();
    let path = directory.path().join("s/0123456789ab.sock");
    let error = Listener::bind(&path, SocketAudience::Owner, &lock).unwrap_err();
    let told = format!("cannot listen at {}: ", path.display());
    assert!(error.to_string().starts_with(&told), "{error}");
}

#[test]
fn all_sockets_of_an_earlier_daemon_are_removed_and_nothing_else() {
    let (directory, lock) = locked();
    let sessions = directory.path().join("s");
    fs::create_dir(&sessions).unwrap();
    leave_stale(&sessions.join("0123456789ab.sock"));
    leave_stale(&sessions.join(".0123456789ab.ro.new"));
    fs::write(sessions.join("notes.txt"), "precious").unwrap();
    assert_eq!(remove_stale(&sessions, &lock).unwrap(), 2);
    let left: Vec<_> =
        fs::read_dir(&sessions).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, [sessions.join("notes.txt")]);
}

#[test]
fn nothing_is_removed_where_the_lock_says_nothing() {
    let (_directory, lock) = locked();
    let elsewhere = tempfile::tempdir().unwrap();
    let stale = elsewhere.path().join("0123456789ab.sock");
    leave_stale(&stale);
    let error = remove_stale(elsewhere.path(), &lock).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert!(stale.symlink_metadata().is_ok());
}

#[tokio::test]
async fn a_daemon_whose_lock_counts_no_more_replaces_and_removes_nothing() {
    let (directory, former) = locked();
    let (sessions, path) = (directory.path().join("s"), directory.path().join("gateway.sock"));
    fs::create_dir(&sessions).unwrap();
    fs::remove_file(directory.path().join("daemon.lock")).unwrap();
    let lock = DaemonLock::take(&directory.path().join("daemon.lock")).unwrap();
    let gateway = Listener::bind(&path, SocketAudience::Owner, &lock).unwrap();
    let session =
        Listener::bind(&sessions.join("0123456789ab.sock"), SocketAudience::Owner, &lock).unwrap();

    assert_eq!(remove_stale(&sessions, &former).unwrap(), 0);
    for taken in [&path, session.path()] {
        let error = Listener::bind(taken, SocketAudience::Owner, &former).unwrap_err();
        assert!(matches!(&error, BindError::Replaced { path } if path == taken), "{error}");
    }
    assert!(gateway.is_in_place() && session.is_in_place());
    assert_eq!(fs::read_dir(&sessions).unwrap().count(), 1);
}

/// Takes every descriptor that is left; dropping them gives all back.
fn take_all_descriptors() -> Vec<File> {
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

/// Runs a test in a process of its own that may have few descriptors.
fn with_few_descriptors(name: &str) -> Option<PathBuf> {
    let Some(argument) = alone::argument(name) else {
        let directory = tempfile::tempdir().unwrap();
        alone::run(name, &directory.path().join("gateway.sock"));
        return None;
    };
    setrlimit(Resource::RLIMIT_NOFILE, 64, 64).unwrap();
    Some(PathBuf::from(argument))
}

fn bind_alone(path: &Path) -> Listener {
    let lock = DaemonLock::take(&path.with_file_name("daemon.lock")).unwrap();
    Listener::bind(path, SocketAudience::Owner, &lock).unwrap()
}

#[tokio::test]
async fn without_descriptors_clients_are_turned_away_until_there_are_some() {
    let name = "transport::unix::listener::tests::\
                without_descriptors_clients_are_turned_away_until_there_are_some";
    let Some(path) = with_few_descriptors(name) else { return };
    let listener = bind_alone(&path);
    let connect = || {
        let stream = net::UnixStream::connect(&path).unwrap();
        stream.set_nonblocking(true).unwrap();
        UnixStream::from_std(stream).unwrap()
    };
    let mut clients = [connect(), connect(), connect()];
    let taken = take_all_descriptors();
    for client in &mut clients {
        let mut byte = [0];
        tokio::select! {
            _ = listener.accept() => panic!("there was no descriptor for it"),
            read = within_reason(client.read(&mut byte)) => assert_eq!(read.unwrap(), 0),
        }
        assert!(File::open("/dev/null").is_err(), "what was lent is held back again");
    }
    drop(taken);
    let _client = connect();
    let accepted = within_reason(listener.accept()).await;
    assert!(accepted.lent.is_none());
}

#[tokio::test]
async fn without_descriptors_the_operator_still_gets_in_and_is_known() {
    let name = "transport::unix::listener::tests::\
                without_descriptors_the_operator_still_gets_in_and_is_known";
    let Some(path) = with_few_descriptors(name) else { return };
    let listener = bind_alone(&path).always_open();
    let connect = || net::UnixStream::connect(&path).unwrap();
    let clients = [connect(), connect(), connect()];
    let late = socket(AddressFamily::Unix, SockType::Stream, SockFlag::empty(), None).unwrap();
    let mut insiders = Insiders::of(ProcessId(std::process::id().cast_signed()));
    let _first = within_reason(listener.accept()).await;
    let _taken = take_all_descriptors();
    for _ in &clients[1..] {
        let AcceptedClient { stream, lent } = within_reason(listener.accept()).await;
        assert_eq!(insiders.look(&stream).unwrap().place, Place::Outside);
        assert!(File::open("/dev/null").is_ok(), "something is left to serve it with");
        drop(lent);
        assert!(File::open("/dev/null").is_err(), "the rest is held back again");
    }

    // While it waits, nobody else gets what is kept for the next one.
    let mut next = std::pin::pin!(listener.accept());
    tokio::select! {
        biased;
        _ = &mut next => panic!("nobody came"),
        () = std::future::ready(()) => {}
    }
    let _taken = take_all_descriptors();
    connect_socket(late.as_raw_fd(), &UnixAddr::new(&path).unwrap()).unwrap();
    let AcceptedClient { stream, lent } = within_reason(next).await;
    assert_eq!(insiders.look(&stream).unwrap().place, Place::Outside);

    // Where nothing is lent, nobody is taken for a program inside a session.
    drop(lent);
    let error = insiders.look(&stream).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EMFILE), "{error}");
}

/// Waits for what comes at once unless something is broken.
async fn within_reason<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future).await.expect("it never came")
}
