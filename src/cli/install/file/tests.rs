//! Reading and replacing real files.

use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

const NOW: SystemTime = UNIX_EPOCH;

fn file(text: &str, mode: u32) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap().join("settings.json");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    (directory, path)
}

/// Replaces what is in a file as an edit does.
fn write(file: &ClientFile, text: &str) -> Result<Option<PathBuf>, FileError> {
    let backup = file.back_up(NOW)?;
    file.replace(text).map(|()| backup)
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn a_file_is_replaced_with_its_mode_and_the_old_one_is_kept() {
    let (directory, path) = file("old", 0o640);
    let backup = write(&ClientFile::read(&path).unwrap(), "new").unwrap().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(fs::read_to_string(&backup).unwrap(), "old");
    assert_eq!((mode(&path), mode(&backup)), (0o640, 0o640));
    assert_eq!(names(directory.path()), ["settings.json", "settings.json.termgate-0.bak"]);
}

#[test]
fn two_changes_in_one_second_keep_two_backups_the_newest_first() {
    let (_directory, path) = file("one", 0o600);
    write(&ClientFile::read(&path).unwrap(), "two").unwrap();
    write(&ClientFile::read(&path).unwrap(), "three").unwrap();
    assert_eq!(ClientFile::read(&path).unwrap().earlier(), ["two", "one"]);
}

#[test]
fn a_link_stays_a_link_and_the_file_behind_it_changes() {
    let (directory, path) = file("old", 0o600);
    let link = directory.path().join("link.json");
    symlink(&path, &link).unwrap();
    write(&ClientFile::read(&link).unwrap(), "new").unwrap();
    assert!(link.is_symlink());
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
}

#[test]
fn a_link_that_leads_nowhere_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("link.json");
    symlink("missing", &link).unwrap();
    assert!(matches!(ClientFile::read(&link), Err(FileError::DanglingLink)));
}

#[test]
fn a_read_only_file_stays_as_it_is_and_nothing_is_left_beside_it() {
    let (directory, path) = file("old", 0o444);
    let written = write(&ClientFile::read(&path).unwrap(), "new");
    assert!(matches!(written, Err(FileError::ReadOnly)), "{written:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(names(directory.path()), ["settings.json"]);
}

#[test]
fn a_file_that_changed_since_it_was_read_is_not_overwritten() {
    let (directory, path) = file("old", 0o600);
    let read = ClientFile::read(&path).unwrap();
    fs::write(&path, "somebody else's").unwrap();
    assert!(matches!(write(&read, "new"), Err(FileError::Changed)));
    assert!(matches!(read.remove(), Err(FileError::Changed)));
    assert_eq!(fs::read_to_string(&path).unwrap(), "somebody else's");
    assert!(names(directory.path()).iter().all(|name| !name.contains("new")));
}

#[test]
fn a_new_file_gets_its_directories_and_no_backup() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a/b/settings.json");
    let read = ClientFile::read(&path).unwrap();
    assert_eq!(read.text(), None);
    assert_eq!(write(&read, "new").unwrap(), None);
    assert_eq!(names(&directory.path().join("a/b")), ["settings.json"]);
}

#[test]
fn what_is_no_text_or_no_file_is_refused() {
    let (directory, path) = file("", 0o600);
    fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(matches!(ClientFile::read(&path), Err(FileError::NotText)));
    assert!(matches!(ClientFile::read(directory.path()), Err(FileError::NotAFile)));
}
