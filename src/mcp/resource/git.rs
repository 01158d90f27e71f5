//! The branch and commit of the git repository that contains a directory, read from its files.
//!
//! The directory and its files are untrusted, and nothing is executed. git itself would run programs that the
//! repository's files name, such as filters and monitors.
//!
//! The file formats: <https://git-scm.com/docs/gitrepository-layout>.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::OFlag;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::surface::turns::Share;

/// The time limit, including the wait for other reads of the tenant.
const READING_MAX: Duration = Duration::from_secs(2);

/// The repository's state: null outside a repository, `unknown` with a reason when its files cannot be read.
pub(super) async fn state_of(directory: &str, share: &Share) -> Value {
    let directory = directory.to_owned();
    let reading = share.read_files(move || look(directory.as_ref()));
    match timeout(READING_MAX, reading).await {
        Ok(Some(Ok(None))) => Value::Null,
        Ok(Some(Ok(Some(Repository { branch, commit })))) => {
            json!({"branch": branch, "commit": commit})
        }
        Ok(Some(Err(reason))) => json!({"unknown": reason.to_string()}),
        Ok(None) | Err(_) => json!({"unknown": Unreadable::TooSlow.to_string()}),
    }
}

/// The maximum number of directories to search upwards.
const ANCESTORS_MAX: usize = 128;

/// The longest one-line file, in bytes.
const LINE_FILE_BYTES_MAX: u64 = 4096;

/// The maximum that is read of packed references, in bytes.
const PACKED_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// The maximum length of a chain of references, as in git.
const LINKS_MAX: usize = 5;

/// The checked-out state of a repository.
#[derive(Debug, PartialEq, Eq)]
struct Repository {
    /// `None` when a commit is checked out directly.
    branch: Option<String>,
    /// The full name in hexadecimal. `None` before the first commit.
    commit: Option<String>,
}

#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error("the files of the repository cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("the repository keeps its references in a form that termgate does not read")]
    Form,
    #[error("a file of the repository is larger than termgate reads")]
    TooLarge,
    #[error("the files of the repository could not be read in time")]
    TooSlow,
}

/// Reads the state of the repository that contains a directory. `None` outside a repository.
fn look(directory: &Path) -> Result<Option<Repository>, Unreadable> {
    for place in directory.ancestors().take(ANCESTORS_MAX) {
        if let Some(own) = own_directory(place)? {
            return state(&own).map(Some);
        }
    }
    Ok(None)
}

/// The git directory of the working tree at `place`, or `place` itself for a bare repository.
fn own_directory(place: &Path) -> Result<Option<PathBuf>, Unreadable> {
    let inside = place.join(".git");
    if is_own_directory(&inside) {
        return Ok(Some(inside));
    }
    // In a linked working tree or a submodule, `.git` is a file with the path.
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
    // With a reference table, `HEAD` is only a placeholder.
    if common.join("reftable").exists() {
        return Err(Unreadable::Form);
    }
    let head = head(own)?;
    let branch = match &head {
        Reference::Name(name) => Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()),
        Reference::Commit(_) => None,
    };
    Ok(Repository { branch, commit: resolve(head, own, &common)? })
}

/// The content of `HEAD` or of another reference.
enum Reference {
    Name(String),
    Commit(String),
}

fn head(own: &Path) -> Result<Reference, Unreadable> {
    let file = own.join("HEAD");
    // The oldest form is a symbolic link to the reference.
    if let Ok(target) = fs::read_link(&file) {
        let name = target.to_str().filter(|name| is_reference(name)).ok_or(Unreadable::Form)?;
        return Ok(Reference::Name(name.to_owned()));
    }
    parse(&read_line(&file)?.ok_or(Unreadable::Form)?)
}

/// Follows references to the commit, if there is one.
fn resolve(head: Reference, own: &Path, common: &Path) -> Result<Option<String>, Unreadable> {
    let mut head = head;
    for _ in 0..LINKS_MAX {
        let name = match head {
            Reference::Commit(commit) => return Ok(Some(commit)),
            Reference::Name(name) => name,
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

fn parse(line: &str) -> Result<Reference, Unreadable> {
    if let Some(name) = line.strip_prefix("ref:") {
        let name = name.trim();
        return is_reference(name)
            .then(|| Reference::Name(name.to_owned()))
            .ok_or(Unreadable::Form);
    }
    is_commit(line).then(|| Reference::Commit(line.to_owned())).ok_or(Unreadable::Form)
}

/// Whether a name is below `refs/` and valid in git, as far as it matters for a path and a text
/// (<https://git-scm.com/docs/git-check-ref-format>).
fn is_reference(name: &str) -> bool {
    name.starts_with("refs/")
        && name.split('/').all(|part| !part.is_empty() && !part.starts_with('.'))
        && !name.contains("..")
        && !name.contains(|letter: char| letter.is_control() || " ~^:?*[\\".contains(letter))
}

/// Whether a text is an object name, SHA-1 or SHA-256.
fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Searches the packed references for a name.
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

/// The trimmed first line of a small file. `None` when the file does not exist.
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

/// Opens a regular file without blocking. `None` when it does not exist or is a directory. Rejects others, such as a
/// FIFO.
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

#[cfg(test)]
mod tests;
