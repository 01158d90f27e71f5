//! Files as the next daemon finds them, whole or not.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;
use tempfile::TempDir;
use uuid::Uuid;

use super::*;
use crate::core::ids::{SessionId, TenantId};

const NOW: Moment = at(100);

const fn at(seconds: u64) -> Moment {
    Moment::from_boot(Duration::from_secs(seconds))
}

fn session() -> SessionId {
    SessionId::from_random(Uuid::from_u128(7 << 80))
}

/// One switch of each kind.
fn every_kind() -> Vec<(Scope, WriteWindow)> {
    vec![
        (Scope::Everything, WriteWindow::Until(at(160))),
        (Scope::Tenant(TenantId::of_uid(1000)), WriteWindow::Open),
        (Scope::Session(session()), WriteWindow::Open),
    ]
}

fn open() -> Vec<(Scope, WriteWindow)> {
    vec![(Scope::Everything, WriteWindow::Open)]
}

fn board(on: Vec<(Scope, WriteWindow)>) -> Switchboard {
    Switchboard::new(on.into_iter().collect())
}

fn place() -> (TempDir, Arc<KeptSwitches>) {
    let directory = tempfile::tempdir().unwrap();
    let lock = DaemonLock::take(&directory.path().join("daemon.lock")).unwrap();
    let kept = KeptSwitches::at(directory.path().join("switches.json"), &lock);
    (directory, kept)
}

/// What a daemon that is configured like this starts with.
fn started(
    kept: &KeptSwitches,
    configured: Vec<(Scope, WriteWindow)>,
) -> (SwitchOrigin, Switchboard) {
    let board = board(configured);
    (kept.resume(&board, false, NOW), board)
}

#[test]
fn where_nothing_was_switched_the_configuration_counts() {
    let (_directory, kept) = place();
    let (origin, board) = started(&kept, open());
    assert_eq!((origin, board.open(NOW)), (SwitchOrigin::Configured, open()));
}

#[test]
fn what_was_switched_counts_instead_of_the_configuration() {
    let (_directory, kept) = place();
    for (configured, switched) in [(open(), vec![]), (vec![], open()), (open(), every_kind())] {
        kept.keep(&switched);
        let (origin, board) = started(&kept, configured);
        assert_eq!((origin, board.open(NOW)), (SwitchOrigin::Kept, switched));
        assert!(!board.is_as_configured(NOW));
    }
}

#[test]
fn a_switch_whose_time_passed_meanwhile_is_off() {
    let (_directory, kept) = place();
    for end in [at(99), NOW] {
        kept.keep(&[(Scope::Everything, WriteWindow::Until(end))]);
        let (origin, board) = started(&kept, open());
        assert_eq!((origin, board.open(at(0))), (SwitchOrigin::Kept, vec![]));
    }
}

#[test]
fn a_daemon_that_is_to_be_read_only_is_so_and_the_one_after_it_as_well() {
    let (_directory, kept) = place();
    kept.keep(&open());
    let read_only = board(vec![]);
    assert_eq!(kept.resume(&read_only, true, NOW), SwitchOrigin::Configured);
    assert_eq!(read_only.open(NOW), vec![]);
    let (origin, board) = started(&kept, open());
    assert_eq!((origin, board.open(NOW)), (SwitchOrigin::Kept, vec![]));
}

#[test]
fn a_daemon_that_is_to_be_read_only_keeps_nothing_by_itself() {
    let (_directory, kept) = place();
    assert_eq!(kept.resume(&board(vec![]), true, NOW), SwitchOrigin::Configured);
    assert!(!kept.path.exists());
}

#[test]
fn what_was_kept_before_the_machine_was_booted_is_ignored_and_removed() {
    let (_directory, kept) = place();
    let former = [r#"{"v":1,"boot":"former","on":[]}"#, r#"{"v":9,"boot":"former","mood":1}"#];
    for text in former {
        private::replace(&kept.path, text).unwrap();
        let (origin, board) = started(&kept, open());
        assert_eq!((origin, board.open(NOW)), (SwitchOrigin::Configured, open()));
        assert!(!kept.path.exists());
    }
}

#[test]
fn what_cannot_be_understood_closes_everything_and_stays_until_somebody_switches() {
    let (_directory, kept) = place();
    let boot = boot_id().unwrap();
    let everything = r#"{"scope":"everything","window":"open"}"#;
    let whole = format!(r#"{{"v":1,"boot":"{boot}","on":[{everything}]}}"#);
    let damaged = [
        String::new(),
        whole[..whole.len() - 1].to_owned(),
        whole.replace("\"v\":1", "\"v\":3"),
        whole.replace("\"v\":1,", ""),
        whole.replace("everything", "everybody"),
        whole.replace("\"everything\"", r#"{"tenant":"ro ot"}"#),
        whole.replace("\"everything\"", r#"{"session":"7"}"#),
        whole.replace("\"open\"", "\"ajar\""),
        whole.replace("\"open\"", r#"{"until_ms":-1}"#),
        whole.replace("\"scope\"", r#""but":"nobody","scope""#),
        whole.replace("\"on\"", r#""except":[],"on""#),
        format!(r#"{{"v":1,"boot":"{boot}"}}"#),
        whole.clone() + &" ".repeat(FILE_MAX as usize),
    ];
    for text in damaged {
        private::replace(&kept.path, &text).unwrap();
        let (origin, board) = started(&kept, open());
        assert_eq!((origin, board.open(NOW)), (SwitchOrigin::Unknown, vec![]), "{text:.200}");
        assert!(kept.path.exists());
    }
    private::replace(&kept.path, &whole).unwrap();
    assert_eq!(started(&kept, vec![]).0, SwitchOrigin::Kept);
}

#[test]
fn the_first_version_is_read_by_every_later_one() {
    let text = r#"{"v":1,"boot":"b","on":[{"scope":"everything","window":{"until_ms":160000}},
        {"scope":{"tenant":"uid:1000"},"window":"open"},
        {"scope":{"session":"000000000007"},"window":"open"},
        {"scope":{"tenant":"uid:7"},"window":"closed"}]}"#;
    let mut expected = every_kind();
    expected.push((Scope::Tenant(TenantId::of_uid(7)), WriteWindow::Closed));
    assert_eq!(parse(text, "b").unwrap(), Some(expected));
}

#[test]
fn what_is_protected_is_so_in_the_next_daemon_and_a_time_that_passed_ends_in_what_held_before() {
    let (_directory, kept) = place();
    let one = Scope::Session(session());
    let mut switches: Switches = open().into_iter().collect();
    switches.set(one.clone(), WriteWindow::Closed);
    switches.set(one.clone(), WriteWindow::Until(at(160)));
    kept.keep(&switches.settings(NOW));
    let (_, board) = started(&kept, vec![]);
    assert_eq!(
        board.open(NOW),
        [&open()[..], &[(one.clone(), WriteWindow::Until(at(160)))]].concat()
    );
    let later = self::board(vec![]);
    kept.resume(&later, false, at(160));
    assert_eq!((later.open(at(160)), later.protected()), (open(), vec![one]));
}

#[test]
fn what_others_could_have_changed_or_is_no_file_closes_everything() {
    let (_directory, kept) = place();
    kept.keep(&open());
    fs::set_permissions(&kept.path, Permissions::from_mode(0o620)).unwrap();
    assert_eq!(started(&kept, open()).0, SwitchOrigin::Unknown);
    fs::remove_file(&kept.path).unwrap();
    fs::create_dir(&kept.path).unwrap();
    let (origin, board) = started(&kept, open());
    assert_eq!((origin, board.open(NOW)), (SwitchOrigin::Unknown, vec![]));
}

#[test]
fn switches_that_cannot_be_written_are_off_for_the_next_daemon() {
    for before in [None, Some(open())] {
        let (directory, kept) = place();
        if let Some(before) = before {
            kept.keep(&before);
        }
        // A directory that is in the way stands for a disk that is full.
        fs::create_dir(directory.path().join("switches.new")).unwrap();
        kept.keep(&every_kind());
        let (origin, board) = started(&kept, open());
        assert_eq!((origin, board.open(NOW)), (SwitchOrigin::Unknown, vec![]));
        fs::remove_dir(directory.path().join("switches.new")).unwrap();
        kept.keep(&every_kind());
        assert_eq!(started(&kept, open()).1.open(NOW), every_kind());
    }
}

#[test]
fn after_the_file_is_discarded_no_late_change_brings_it_back() {
    let (directory, kept) = place();
    kept.keep(&open());
    kept.discard();
    kept.keep(&open());
    let left = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["daemon.lock"]);
}

#[test]
fn a_daemon_whose_place_another_took_leaves_what_that_one_keeps() {
    let (directory, kept) = place();
    fs::remove_file(directory.path().join("daemon.lock")).unwrap();
    let lock = DaemonLock::take(&directory.path().join("daemon.lock")).unwrap();
    let latter = KeptSwitches::at(kept.path.clone(), &lock);
    assert_eq!(latter.keep(&every_kind()), Keeping::Kept);
    assert_eq!(kept.keep(&open()), Keeping::Failed);
    kept.discard();
    assert_eq!(started(&latter, open()).1.open(NOW), every_kind());
}

proptest! {
    #[test]
    fn no_text_is_a_panic(text in r#"[\x20-\x7e]{0,64}"#) {
        let _ = parse(&text, "b");
    }

    #[test]
    fn every_end_is_read_back_to_the_millisecond(ms in 0..u64::MAX) {
        let end = WriteWindow::Until(Moment::from_boot(Duration::from_millis(ms)));
        let on = vec![(Scope::Everything, end)];
        prop_assert_eq!(parse(&super::text(&on, "b"), "b").unwrap(), Some(on));
    }
}
