//! The lock between threads and between processes.

use super::*;

use std::fs;
use std::sync::Barrier;
use std::thread;

use tempfile::TempDir;

use crate::shim::mark;
use crate::transport::unix::tests::alone;

fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("daemon.lock");
    (directory, path)
}

#[test]
fn who_is_refused_learns_which_process_has_the_lock() {
    let (_directory, path) = place();
    let _held = DaemonLock::take(&path).unwrap();
    let error = DaemonLock::take(&path).unwrap_err();
    let us = std::process::id().cast_signed();
    assert!(matches!(error, LockError::Held { pid: Some(pid) } if pid == us), "{error}");
    assert_eq!(error.to_string(), format!("another daemon is running as process {us}"));
}

#[test]
fn a_file_that_says_nothing_is_still_locked() {
    let (_directory, path) = place();
    let _held = DaemonLock::take(&path).unwrap();
    fs::write(&path, "").unwrap();
    let error = DaemonLock::take(&path).unwrap_err();
    let us = std::process::id().cast_signed();
    assert!(matches!(error, LockError::Held { pid: Some(pid) } if pid == us), "{error}");
    assert_eq!(LockError::Held { pid: None }.to_string(), "another daemon is running");
}

#[test]
fn a_full_disk_does_not_keep_a_daemon_from_its_lock() {
    let full = Path::new("/dev/full");
    let _held = DaemonLock::take(full).unwrap();
    let error = DaemonLock::take(full).unwrap_err();
    assert!(matches!(error, LockError::Held { .. }), "{error}");
}

#[test]
fn of_two_takers_exactly_one_wins_every_time() {
    let (_directory, path) = place();
    for _ in 0..100 {
        let start = Barrier::new(2);
        let take = || {
            start.wait();
            DaemonLock::take(&path)
        };
        let both = thread::scope(|scope| {
            let other = scope.spawn(take);
            [take(), other.join().unwrap()]
        });
        assert_eq!(both.iter().filter(|taken| taken.is_ok()).count(), 1, "{both:?}");
    }
}

#[test]
fn the_last_clone_gives_the_lock_back() {
    let (_directory, path) = place();
    let first = DaemonLock::take(&path).unwrap();
    let clone = first.clone();
    drop(first);
    assert!(DaemonLock::take(&path).is_err());
    drop(clone);
    assert!(DaemonLock::take(&path).is_ok());
}

#[test]
fn a_lock_left_by_a_process_that_was_killed_is_free() {
    let (_directory, path) = place();
    let name = "transport::unix::lock::tests::a_lock_left_by_a_process_that_was_killed_is_free";
    if let Some(path) = alone::argument(name) {
        let _held = DaemonLock::take(Path::new(&path)).unwrap();
        alone::wait_to_be_killed();
    }
    let mut other = alone::start(name, &path);
    other.wait_until_ready();
    let error = DaemonLock::take(&path).unwrap_err();
    let pid = other.pid();
    assert!(matches!(error, LockError::Held { pid: Some(held) } if held == pid), "{error}");
    other.kill();
    assert!(DaemonLock::take(&path).is_ok());
}

#[test]
fn the_lock_file_is_for_its_owner_only_and_holds_the_number() {
    let (_directory, path) = place();
    fs::write(&path, "123456789\n").unwrap();
    fs::remove_file(&path).unwrap();
    let _held = DaemonLock::take(&path).unwrap();
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
}

#[test]
fn a_longer_number_of_an_earlier_daemon_leaves_nothing_behind() {
    let (_directory, path) = place();
    fs::write(&path, "999999999999\n").unwrap();
    let _held = DaemonLock::take(&path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
}

#[test]
fn a_link_in_the_place_of_the_file_is_not_followed() {
    let (directory, path) = place();
    let victim = directory.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, &path).unwrap();
    let error = DaemonLock::take(&path).unwrap_err();
    assert!(matches!(error, LockError::Io { .. }), "{error}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

#[test]
fn the_lock_covers_its_directory_and_what_is_below() {
    let (directory, path) = place();
    let lock = DaemonLock::take(&path).unwrap();
    let at = |name: &str| directory.path().join(name);
    assert!(lock.covers(&at("gateway.sock")));
    assert!(lock.covers(&at("s/0123456789ab.sock")));
    assert!(!lock.covers(&at("../gateway.sock")));
    assert!(!lock.covers(Path::new("/gateway.sock")));
}

#[test]
fn a_file_that_was_replaced_after_it_was_opened_does_not_count() {
    let (_directory, path) = place();
    let opened = open(&path).unwrap();
    assert!(is_at(&opened, &path));
    fs::remove_file(&path).unwrap();
    assert!(!is_at(&opened, &path));
    let another = open(&path).unwrap();
    assert!(!is_at(&opened, &path));
    assert!(is_at(&another, &path));
}

#[test]
fn the_program_that_takes_the_place_of_this_one_has_the_lock_already() {
    const TEST: &str = concat!(
        "transport::unix::lock::tests::",
        "the_program_that_takes_the_place_of_this_one_has_the_lock_already"
    );
    // Alone, so that no child of another test has the descriptor too.
    let Some(path) = alone::argument(TEST) else {
        let (_directory, path) = place();
        return alone::run(TEST, &path);
    };
    let path = PathBuf::from(path);
    DaemonLock::take(&path).unwrap().pass_on().unwrap();
    // On a full disk the file does not say whose it is.
    fs::write(&path, "").unwrap();
    let again = DaemonLock::take(&path).unwrap();
    let refused = DaemonLock::take(&path).unwrap_err();
    assert!(matches!(refused, LockError::Held { .. }), "it is found once: {refused}");
    drop(again);
    DaemonLock::take(&path).unwrap();
}

#[test]
fn a_lock_whose_file_was_removed_counts_no_more() {
    let (_directory, path) = place();
    let lock = DaemonLock::take(&path).unwrap();
    assert!(lock.counts());
    std::fs::remove_file(&path).unwrap();
    assert!(!lock.counts());
    let next = DaemonLock::take(&path).unwrap();
    assert!(next.counts() && !lock.counts());
}

/// Has another process lock the file at a path, in a session or not, and say that another one did.
fn locked_by_another(test: &str, inside: bool, path: &Path) -> alone::Other {
    if let Some(path) = alone::argument(test) {
        if inside {
            mark::set(7).unwrap();
        }
        let file = File::create(path).unwrap();
        file.lock().unwrap();
        (&file).write_all(b"1\n").unwrap();
        alone::wait_to_be_killed();
    }
    let mut other = alone::start(test, path);
    other.wait_until_ready();
    other
}

#[test]
fn what_a_program_in_a_session_has_locked_keeps_no_daemon_out() {
    const TEST: &str =
        "transport::unix::lock::tests::what_a_program_in_a_session_has_locked_keeps_no_daemon_out";
    let (_directory, path) = place();
    let _other = locked_by_another(TEST, true, &path);
    assert_eq!(DaemonLock::owner(&path), None);
    let lock = DaemonLock::take(&path).unwrap();
    assert!(lock.counts());
}

#[test]
fn whatever_the_file_says_its_owner_is_told() {
    const TEST: &str = "transport::unix::lock::tests::whatever_the_file_says_its_owner_is_told";
    let (_directory, path) = place();
    let other = locked_by_another(TEST, false, &path);
    let error = DaemonLock::take(&path).unwrap_err();
    assert!(matches!(error, LockError::Held { pid: Some(pid) } if pid == other.pid()), "{error}");
    assert_eq!(DaemonLock::owner(&path), Some(other.pid()));
}

#[test]
fn a_daemon_keeps_its_lock_though_the_file_was_removed_or_replaced_or_locked_inside() {
    const TEST: &str = concat!(
        "transport::unix::lock::tests::",
        "a_daemon_keeps_its_lock_though_the_file_was_removed_or_replaced_or_locked_inside"
    );
    let (_directory, path) = place();
    if alone::argument(TEST).is_some() {
        locked_by_another(TEST, true, &path);
    }
    let lock = DaemonLock::take(&path).unwrap();
    let kept = || {
        assert!(!lock.counts());
        assert_eq!(lock.keep(), LockState::Ours);
        assert!(lock.counts() && DaemonLock::take(&path).is_err());
    };
    fs::remove_file(&path).unwrap();
    kept();
    fs::remove_file(&path).unwrap();
    fs::write(&path, "1\n").unwrap();
    kept();
    fs::remove_file(&path).unwrap();
    let _other = locked_by_another(TEST, true, &path);
    kept();
}

#[test]
fn a_daemon_whose_lock_another_one_has_taken_has_lost_its_place() {
    const TEST: &str = concat!(
        "transport::unix::lock::tests::",
        "a_daemon_whose_lock_another_one_has_taken_has_lost_its_place"
    );
    let (_directory, path) = place();
    if alone::argument(TEST).is_some() {
        locked_by_another(TEST, false, &path);
    }
    let lock = DaemonLock::take(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let other = locked_by_another(TEST, false, &path);
    assert_eq!(lock.keep(), LockState::Lost);
    other.kill();
    assert_eq!(lock.keep(), LockState::Ours);
}
