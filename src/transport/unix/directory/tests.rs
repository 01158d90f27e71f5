//! Directories as the file system shows them, and owners that only root could make.

use super::*;

use std::os::unix::fs::symlink;

use tempfile::TempDir;

use crate::config::sockets::SocketsConfig;

/// A directory with mode 0700, below which a daemon's directory is to be.
fn home() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

fn prepare_at(root: &Path) -> Result<(), DirectoryError> {
    prepare(&RuntimePaths::at(root.to_owned()).unwrap(), SocketAccess::default())
}

#[test]
fn what_is_missing_is_made_for_the_owner_only() {
    let home = home();
    let root = home.path().join("state/termgate/run");
    prepare_at(&root).unwrap();
    for made in ["state", "state/termgate", "state/termgate/run", "state/termgate/run/s"] {
        assert_eq!(mode(&home.path().join(made)), 0o700, "{made}");
    }
}

#[test]
fn what_is_there_and_as_it_should_be_is_taken() {
    let home = home();
    let root = home.path().join("run");
    prepare_at(&root).unwrap();
    prepare_at(&root).unwrap();
}

#[test]
fn a_directory_of_ours_that_is_a_link_is_refused() {
    let home = home();
    let real = home.path().join("real");
    DirBuilder::new().mode(0o700).create(&real).unwrap();
    let root = home.path().join("run");
    symlink(&real, &root).unwrap();
    let error = prepare_at(&root).unwrap_err();
    assert!(matches!(&error, DirectoryError::Symlink { path } if *path == root), "{error}");
}

#[test]
fn a_link_in_the_place_of_the_sessions_is_refused() {
    let home = home();
    let root = home.path().join("run");
    DirBuilder::new().mode(0o700).create(&root).unwrap();
    symlink(home.path(), root.join("s")).unwrap();
    let error = prepare_at(&root).unwrap_err();
    assert!(matches!(error, DirectoryError::Symlink { .. }), "{error}");
}

#[test]
fn a_directory_of_ours_that_others_can_see_into_is_refused_with_the_command_that_mends_it() {
    let home = home();
    let root = home.path().join("run");
    prepare_at(&root).unwrap();
    for wrong in [0o701, 0o712, 0o730, 0o740, 0o750, 0o755, 0o777, 0o1777, 0o1711, 0o500] {
        set_mode(&root, wrong);
        let error = prepare_at(&root).unwrap_err();
        let mode = wrong;
        assert!(matches!(&error, DirectoryError::Mode { mode: told, .. } if *told == mode));
        let (path, hint) = (root.display(), format!("chmod 700 {}", root.display()));
        assert_eq!(
            error.to_string(),
            format!("{path} has mode {mode:04o} and must have 0700; run: {hint}")
        );
    }
    set_mode(&root, 0o700);
    prepare_at(&root).unwrap();
}

/// The access that these values of the keys mean.
fn access(clients: &str, observers: &str) -> SocketAccess {
    let (clients, observers) = (clients.into(), observers.into());
    SocketAccess::of(&SocketsConfig { clients, observers }).unwrap()
}

#[test]
fn directories_of_sockets_are_opened_as_configured_and_closed_again() {
    let home = home();
    let paths = RuntimePaths::at(home.path().join("run")).unwrap();
    for (access, expected) in [
        (access("", "*"), 0o711),
        (access("", ""), 0o700),
        (access("root", ""), 0o710),
        (access("*", "root"), 0o711),
        (access("", "root"), 0o710),
    ] {
        prepare(&paths, access).unwrap();
        inspect(&paths).unwrap();
        assert_eq!(mode(paths.root()), expected);
        assert_eq!(mode(&paths.sessions()), expected);
        assert_eq!(mode(&paths.shims()), 0o700);
    }
}

#[test]
fn a_directory_above_that_lets_nobody_pass_is_found() {
    let home = home();
    let paths = RuntimePaths::at(home.path().join("run")).unwrap();
    let group = fs::metadata(home.path()).unwrap().gid();
    let (of_group, other) = (SocketAudience::Group(group), SocketAudience::Group(group + 1));
    for (mode, closed_to) in [
        (0o700, [false, true, true, true]),
        (0o710, [false, false, true, true]),
        (0o711, [false, false, false, false]),
        (0o701, [false, true, false, false]),
    ] {
        set_mode(home.path(), mode);
        let audiences = [SocketAudience::Owner, of_group, other, SocketAudience::Everyone];
        for (audience, closed) in audiences.into_iter().zip(closed_to) {
            let expected = closed.then(|| home.path().to_owned());
            assert_eq!(closed_above(&paths, audience), expected, "{mode:o}, {audience:?}");
        }
    }
}

#[test]
fn who_starts_a_daemon_leaves_its_directories_as_open_as_they_are() {
    let home = home();
    let paths = RuntimePaths::at(home.path().join("run")).unwrap();
    prepare(&paths, access("", "*")).unwrap();
    create(&paths).unwrap();
    assert_eq!(mode(paths.root()), 0o711);
}

#[test]
fn the_directory_of_shims_is_never_open() {
    let home = home();
    let paths = RuntimePaths::at(home.path().join("run")).unwrap();
    prepare(&paths, access("", "*")).unwrap();
    set_mode(&paths.shims(), 0o711);
    let error = prepare(&paths, access("", "*")).unwrap_err();
    assert!(matches!(error, DirectoryError::Mode { mode: 0o711, .. }), "{error}");
}

#[test]
fn a_directory_that_was_widened_is_refused_also_where_others_may_connect() {
    let home = home();
    let root = home.path().join("run");
    let paths = RuntimePaths::at(root.clone()).unwrap();
    prepare(&paths, access("", "*")).unwrap();
    for wrong in [0o715, 0o713, 0o731, 0o751, 0o755, 0o777, 0o1711] {
        for ours in [&root, &paths.sessions()] {
            set_mode(ours, wrong);
            let error = prepare(&paths, access("", "*")).unwrap_err();
            assert!(matches!(error, DirectoryError::Mode { mode, .. } if mode == wrong));
            set_mode(ours, 0o711);
        }
    }
}

#[test]
fn a_socket_belongs_to_the_owner_of_its_directory_where_nobody_else_can_have_put_it() {
    let home = home();
    let us = Uid::effective().as_raw();
    let directory = home.path().join("run");
    fs::create_dir(&directory).unwrap();
    let socket = directory.join("gateway.sock");
    assert!(!belongs_to(&socket, us), "there is none");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for (mode, safe) in [
        (0o700, true),
        (0o711, true),
        (0o755, true),
        (0o720, false),
        (0o702, false),
        (0o1777, false),
    ] {
        set_mode(&directory, mode);
        assert_eq!(belongs_to(&socket, us), safe, "{mode:o}");
    }
    set_mode(&directory, 0o711);
    assert!(!belongs_to(&socket, STRANGER));
    for (mode, safe) in [(0o755, true), (0o775, false), (0o1777, true)] {
        set_mode(home.path(), mode);
        assert_eq!(belongs_to(&socket, us), safe, "above: {mode:o}");
    }
    let link = directory.join("link.sock");
    symlink(&socket, &link).unwrap();
    assert!(!belongs_to(&link, us), "a link may lead elsewhere");
}

#[test]
fn a_group_that_new_directories_inherit_does_no_harm() {
    let home = home();
    set_mode(home.path(), 0o2700);
    prepare_at(&home.path().join("run")).unwrap();
}

#[test]
fn a_parent_that_others_can_write_to_is_refused_and_nothing_is_made_in_it() {
    for wrong in [0o770, 0o707, 0o720, 0o702] {
        let home = home();
        set_mode(home.path(), wrong);
        let root = home.path().join("run");
        let error = prepare_at(&root).unwrap_err();
        let DirectoryError::Writable { path, mode } = &error else { panic!("{error}") };
        assert_eq!((path.as_path(), *mode), (home.path(), wrong));
        assert!(!root.exists());
    }
}

#[test]
fn a_parent_that_others_can_write_to_is_allowed_when_it_is_sticky() {
    for sticky in [0o1777, 0o1770] {
        let home = home();
        set_mode(home.path(), sticky);
        prepare_at(&home.path().join("run")).unwrap();
    }
}

#[test]
fn a_parent_further_up_counts_as_well() {
    let home = home();
    let root = home.path().join("a/b/run");
    prepare_at(&root).unwrap();
    set_mode(&home.path().join("a"), 0o770);
    let error = prepare_at(&root).unwrap_err();
    let loose = home.path().join("a");
    assert!(matches!(&error, DirectoryError::Writable { path, .. } if *path == loose), "{error}");
}

#[test]
fn a_parent_behind_a_link_is_followed_to_all_that_lies_above_it() {
    let home = home();
    let safe = home.path().join("safe");
    let loose = home.path().join("loose");
    fs::create_dir_all(loose.join("inner")).unwrap();
    fs::create_dir(&safe).unwrap();
    symlink(loose.join("inner"), safe.join("link")).unwrap();
    let root = safe.join("link/run");
    prepare_at(&root).unwrap();

    set_mode(&loose, 0o777);
    let error = prepare_at(&root).unwrap_err();
    let loose = fs::canonicalize(loose).unwrap();
    assert!(matches!(&error, DirectoryError::Writable { path, .. } if *path == loose), "{error}");
}

#[test]
fn a_file_in_the_place_of_a_directory_is_refused() {
    let home = home();
    let file = home.path().join("run");
    fs::write(&file, "").unwrap();
    let error = prepare_at(&file).unwrap_err();
    assert!(matches!(error, DirectoryError::NotADirectory { .. }), "{error}");
    let error = prepare_at(&file.join("below")).unwrap_err();
    assert!(matches!(error, DirectoryError::NotADirectory { .. }), "{error}");
}

#[test]
fn the_directory_of_a_gateway_elsewhere_is_checked_and_not_made() {
    let home = home();
    let elsewhere = home.path().join("elsewhere");
    let paths = RuntimePaths::at(home.path().join("run")).unwrap();
    let paths = paths.with_gateway(elsewhere.join("t.sock")).unwrap();
    let error = prepare(&paths, SocketAccess::default()).unwrap_err();
    assert!(matches!(&error, DirectoryError::Io { path, .. } if *path == elsewhere), "{error}");

    fs::create_dir(&elsewhere).unwrap();
    set_mode(&elsewhere, 0o755);
    prepare(&paths, SocketAccess::default()).unwrap();
    set_mode(&elsewhere, 0o775);
    let error = prepare(&paths, SocketAccess::default()).unwrap_err();
    assert!(matches!(error, DirectoryError::Writable { .. }), "{error}");
}

const US: u32 = 1_000;
const STRANGER: u32 = 1_001;
const ROOT: u32 = 0;

fn directory(owner: u32) -> Found {
    Found { kind: EntryKind::Directory, owner, mode: 0o700 }
}

#[test]
fn a_directory_of_ours_belongs_to_us_and_not_even_to_root() {
    let path = Path::new("/run/termgate");
    assert!(directory(US).judge_ours(path, US, &MADE).is_ok());
    for owner in [ROOT, STRANGER] {
        let error = directory(owner).judge_ours(path, US, &MADE).unwrap_err();
        let told = matches!(error, DirectoryError::Owner { owner: told, .. } if told == owner);
        assert!(told, "{error}");
    }
}

#[test]
fn a_parent_belongs_to_us_or_to_root() {
    let path = Path::new("/run");
    for owner in [US, ROOT] {
        assert!(directory(owner).judge_above(path, US).is_ok());
    }
    let error = directory(STRANGER).judge_above(path, US).unwrap_err();
    assert!(matches!(error, DirectoryError::Owner { owner: STRANGER, us: US, .. }), "{error}");
}

#[test]
fn a_link_of_a_stranger_is_refused_though_its_mode_means_nothing() {
    let link = |owner| Found { kind: EntryKind::Link, owner, mode: 0o777 };
    let path = Path::new("/tmp/link");
    assert!(link(US).judge_above(path, US).is_ok());
    assert!(link(ROOT).judge_above(path, US).is_ok());
    assert!(link(STRANGER).judge_above(path, US).is_err());
}
