//! What the files of a git repository say of its branch and its commit.
//!
//! The form of the files: <https://git-scm.com/docs/gitrepository-layout>.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

/// How many directories above the given one are looked at.
const ANCESTORS_MAX: usize = 128;

/// Longest file of one line, in bytes.
const LINE_FILE_BYTES_MAX: u64 = 4096;

/// How much of the file of packed references is read, in bytes.
const PACKED_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// How many references may name one another in a row, as in git.
const LINKS_MAX: usize = 5;

/// What a repository has checked out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Repository {
    /// None where a commit is checked out.
    pub(super) branch: Option<String>,
    /// The whole name in hexadecimal; none before the first commit.
    pub(super) commit: Option<String>,
}

/// Says why the files of a repository do not tell its state.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("the files of the repository cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("the repository keeps its references in a form that termgate does not read")]
    Form,
    #[error("a file of the repository is larger than termgate reads")]
    TooLarge,
    #[error("the files of the repository could not be read in time")]
    TooSlow,
}

/// Reads the state of the repository that a directory is in; none outside of one.
///
/// # Errors
///
/// [`Unreadable`] when there is a repository, but its files do not say.
pub(super) fn look(directory: &Path) -> Result<Option<Repository>, Unreadable> {
    for place in directory.ancestors().take(ANCESTORS_MAX) {
        if let Some(own) = own_directory(place)? {
            return state(&own).map(Some);
        }
    }
    Ok(None)
}

/// The directory that git keeps for the working tree at `place`, or `place` itself when it is bare.
fn own_directory(place: &Path) -> Result<Option<PathBuf>, Unreadable> {
    let inside = place.join(".git");
    if is_own_directory(&inside) {
        return Ok(Some(inside));
    }
    // In another working tree, and in a submodule, it is a file that says where.
    if fs::metadata(&inside).is_ok_and(|found| found.is_file()) {
        let line = read_line(&inside)?.ok_or(Unreadable::Form)?;
        let named = line.strip_prefix("gitdir:").ok_or(Unreadable::Form)?;
        return Ok(Some(place.join(named.trim())));
    }
    Ok(is_own_directory(place).then(|| place.to_owned()))
}

fn is_own_directory(place: &Path) -> bool {
    fs::symlink_metadata(place.join("HEAD")).is_ok()
        && (place.join("objects").is_dir() || place.join("commondir").is_file())
        && (place.join("refs").is_dir() || place.join("commondir").is_file())
}

fn state(own: &Path) -> Result<Repository, Unreadable> {
    let common = match read_line(&own.join("commondir"))? {
        Some(named) => own.join(named),
        None => own.to_owned(),
    };
    // References in a table leave a `HEAD` that names none.
    if common.join("reftable").exists() {
        return Err(Unreadable::Form);
    }
    let head = head(own)?;
    let branch = match &head {
        Head::Reference(name) => Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()),
        Head::Commit(_) => None,
    };
    Ok(Repository { branch, commit: resolve(head, own, &common)? })
}

/// What `HEAD` or another reference holds.
enum Head {
    Reference(String),
    Commit(String),
}

fn head(own: &Path) -> Result<Head, Unreadable> {
    let file = own.join("HEAD");
    // The oldest form is a link to the reference.
    if let Ok(target) = fs::read_link(&file) {
        let name = target.to_str().filter(|name| is_reference(name)).ok_or(Unreadable::Form)?;
        return Ok(Head::Reference(name.to_owned()));
    }
    parse(&read_line(&file)?.ok_or(Unreadable::Form)?)
}

/// Follows references to the commit, if there is one.
fn resolve(head: Head, own: &Path, common: &Path) -> Result<Option<String>, Unreadable> {
    let mut head = head;
    for _ in 0..LINKS_MAX {
        let name = match head {
            Head::Commit(commit) => return Ok(Some(commit)),
            Head::Reference(name) => name,
        };
        let mut line = read_line(&common.join(&name))?;
        if line.is_none() {
            line = read_line(&own.join(&name))?;
        }
        head = match line {
            Some(line) => parse(&line)?,
            None => return packed(&name, common),
        };
    }
    Err(Unreadable::Form)
}

fn parse(line: &str) -> Result<Head, Unreadable> {
    if let Some(name) = line.strip_prefix("ref:") {
        let name = name.trim();
        return is_reference(name)
            .then(|| Head::Reference(name.to_owned()))
            .ok_or(Unreadable::Form);
    }
    is_commit(line).then(|| Head::Commit(line.to_owned())).ok_or(Unreadable::Form)
}

/// Whether a name stays below `refs/` and is one that git takes
/// (<https://git-scm.com/docs/git-check-ref-format>), as far as that matters for a path and a text.
fn is_reference(name: &str) -> bool {
    name.starts_with("refs/")
        && name.split('/').all(|part| !part.is_empty() && !part.starts_with('.'))
        && !name.contains("..")
        && !name.contains(|letter: char| letter.is_control() || " ~^:?*[\\".contains(letter))
}

/// Whether a text is the name of an object, by SHA-1 or SHA-256.
fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Looks for a reference among those that are packed into one file.
fn packed(name: &str, common: &Path) -> Result<Option<String>, Unreadable> {
    let Some(file) = open(&common.join("packed-refs"))? else { return Ok(None) };
    let mut lines = BufReader::new(file.take(PACKED_BYTES_MAX));
    let mut line = Vec::new();
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        if let Some((commit, reference)) = text.trim_end().split_once(' ')
            && reference == name
            && is_commit(commit)
        {
            return Ok(Some(commit.to_owned()));
        }
    }
    if lines.get_ref().limit() == 0 { Err(Unreadable::TooLarge) } else { Ok(None) }
}

/// The first line of a small file without the space around it; none when there is no such file.
fn read_line(path: &Path) -> Result<Option<String>, Unreadable> {
    let Some(file) = open(path)? else { return Ok(None) };
    let mut text = String::new();
    let mut file = file.take(LINE_FILE_BYTES_MAX + 1);
    match file.read_to_string(&mut text) {
        Err(error) if error.kind() == ErrorKind::InvalidData => return Err(Unreadable::Form),
        read => read?,
    };
    if file.limit() == 0 {
        return Err(Unreadable::TooLarge);
    }
    Ok(Some(text.lines().next().unwrap_or_default().trim().to_owned()))
}

/// Opens a file for reading; none when there is none. What is not a file, such as a pipe that nobody
/// writes to, is not waited for.
fn open(path: &Path) -> Result<Option<File>, Unreadable> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = match OpenOptions::new().read(true).custom_flags(flags.bits()).open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let found = file.metadata()?;
    if found.is_dir() {
        return Ok(None);
    }
    if found.is_file() { Ok(Some(file)) } else { Err(Unreadable::Form) }
}
