//! Creates and checks the directories of our sockets.
//!
//! Write access to a directory, or to any above it, allows replacing our sockets. So all of them are checked.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::Uid;

use crate::config::paths::{RUNTIME_DIR, RuntimePaths};
use crate::config::sockets::{GroupError, SocketAccess, SocketAudience};
use crate::transport::unix::access::open_directory;

#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    #[error(
        "{path} belongs to uid {owner}, and we are uid {us}; set {RUNTIME_DIR} to a directory of \
         your own"
    )]
    Owner { path: PathBuf, owner: u32, us: u32 },
    #[error("{path} has mode {mode:04o} and must have 0700; run: chmod 700 {path}")]
    Mode { path: PathBuf, mode: u32 },
    #[error(transparent)]
    Group(GroupError),
    #[error(
        "cannot open {path} to whom `sockets` in the configuration names: {source}; the daemon's user \
         must be a member of the group"
    )]
    Audience { path: PathBuf, source: io::Error },
    #[error(
        "{path} can be written to by others, its mode is {mode:04o}; run: chmod go-w {path}, or \
         set {RUNTIME_DIR} to another place"
    )]
    Writable { path: PathBuf, mode: u32 },
    #[error("{path} is a symbolic link; remove it, or set {RUNTIME_DIR} to where it leads")]
    Symlink { path: PathBuf },
    #[error("{path} is not a directory; remove it, or set {RUNTIME_DIR} to another place")]
    NotADirectory { path: PathBuf },
    #[error("cannot use the directory {path}: {source}; correct it, or set {RUNTIME_DIR}")]
    Io { path: PathBuf, source: io::Error },
}

/// The modes of directories of sockets, as daemons make them: for their own user, a group, every user. Others than the
/// owner can list or change none of them.
const MADE: [u32; 3] = [0o700, 0o710, 0o711];
/// The mode of directories that are never open to others.
const NEVER_OPEN: [u32; 1] = [0o700];

/// Creates the missing directories of a daemon, for its own user, and checks all of them.
///
/// * Our own directories must belong to us, have a mode that a daemon makes, and be no symbolic links.
/// * Directories above may also belong to root. Only the owner may write to them, unless they are sticky.
/// * The directory of a gateway placed elsewhere is checked like one above and is not created.
///
/// # Errors
/// Returns the first directory that cannot be created or trusted.
pub fn create(paths: &RuntimePaths) -> Result<(), DirectoryError> {
    check_all(paths, make)
}

/// Creates and checks the directories like [`create`], and opens those of sockets to whom `access` names and to nobody
/// else. Only under the daemon's lock: a daemon that runs may have opened them to others.
///
/// # Errors
/// Returns the first directory that cannot be created, trusted or opened.
pub fn prepare(paths: &RuntimePaths, access: SocketAccess) -> Result<(), DirectoryError> {
    create(paths)?;
    for path in [paths.root().to_owned(), paths.sessions()] {
        open_directory(&path, access.directories())
            .map_err(|source| DirectoryError::Audience { path, source })?;
    }
    Ok(())
}

/// The first directory above a daemon's own that does not let this audience pass, so that it reaches no socket.
pub fn closed_above(paths: &RuntimePaths, audience: SocketAudience) -> Option<PathBuf> {
    let lets_pass = |directory: &Path| {
        let Ok(found) = fs::metadata(directory) else { return true };
        let (mode, group) = (found.permissions().mode(), found.gid());
        match audience {
            SocketAudience::Owner => true,
            SocketAudience::Group(theirs) if theirs == group => mode & 0o010 != 0,
            SocketAudience::Group(_) | SocketAudience::Everyone => mode & 0o001 != 0,
        }
    };
    let mut above = from_the_top(paths.root().parent()?).into_iter();
    above.find(|directory| !lets_pass(directory)).map(Path::to_owned)
}

/// Checks the directories of a daemon like [`create`], without creating any.
///
/// # Errors
/// Returns the first directory that is missing or cannot be trusted.
pub fn inspect(paths: &RuntimePaths) -> Result<(), DirectoryError> {
    check_all(paths, |_| Ok(()))
}

fn check_all(
    paths: &RuntimePaths,
    first: impl Fn(&Path) -> Result<(), DirectoryError>,
) -> Result<(), DirectoryError> {
    let us = Uid::effective().as_raw();
    let root = paths.root();
    for parent in from_the_top(root.parent().unwrap_or(root)) {
        first(parent)?;
        check_above(parent, us)?;
    }
    let (sessions, shims) = (paths.sessions(), paths.shims());
    let of_sockets = [root, &sessions].map(|path| (path, &MADE[..]));
    for (ours, modes) in of_sockets.into_iter().chain([(&*shims, &NEVER_OPEN[..])]) {
        first(ours)?;
        Found::at(ours)?.judge_ours(ours, us, modes)?;
    }
    let gateway = paths.gateway().parent().filter(|parent| *parent != root);
    for parent in gateway.map(from_the_top).unwrap_or_default() {
        check_above(parent, us)?;
    }
    Ok(())
}

/// Whether nobody but this owner, root and we can have put the socket at this path: the directory is the owner's, and
/// only they can write to it and to those above it.
pub fn belongs_to(socket: &Path, owner: u32) -> bool {
    let Ok(socket) = std::path::absolute(socket) else { return false };
    let Some(directory) = socket.parent() else { return false };
    let Ok(real) = fs::canonicalize(directory) else { return false };
    let owners = [owner, 0, Uid::effective().as_raw()];
    let is_safe = |path| Found::at(path).is_ok_and(|found| found.is_safe_above(&owners));
    let is_the_owners = |found: Found| {
        found.kind == EntryKind::Directory && found.owner == owner && found.mode & 0o022 == 0
    };
    Found::at(&real).is_ok_and(is_the_owners)
        && from_the_top(&real).into_iter().chain(from_the_top(directory)).all(is_safe)
        // A link could lead to a directory of somebody else.
        && Found::at(&socket).is_ok_and(|found| found.kind == EntryKind::Other)
}

/// A path and its ancestors, topmost first.
fn from_the_top(path: &Path) -> Vec<&Path> {
    let mut all: Vec<&Path> = path.ancestors().collect();
    all.reverse();
    all
}

fn make(path: &Path) -> Result<(), DirectoryError> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Ok(_) | Err(_) => return Ok(()),
    }
    match DirBuilder::new().mode(0o700).create(path) {
        // Another daemon may create it at the same time; the later check decides.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map_err(|source| DirectoryError::Io { path: path.to_owned(), source }),
    }
}

fn check_above(path: &Path, us: u32) -> Result<(), DirectoryError> {
    let found = Found::at(path)?;
    found.judge_above(path, us)?;
    if found.kind == EntryKind::Link {
        // The link itself is trusted, so everything above its target must be trusted as well.
        let target = fs::canonicalize(path)
            .map_err(|source| DirectoryError::Io { path: path.to_owned(), source })?;
        for real in from_the_top(&target) {
            Found::at(real)?.judge_above(real, us)?;
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryKind {
    Directory,
    Link,
    Other,
}

/// What is at a path, without following a link.
#[derive(Clone, Copy, Debug)]
struct Found {
    kind: EntryKind,
    owner: u32,
    mode: u32,
}

impl Found {
    fn at(path: &Path) -> Result<Self, DirectoryError> {
        let metadata = path.symlink_metadata();
        let failed = |source| DirectoryError::Io { path: path.to_owned(), source };
        metadata.map(|metadata| Self::of(&metadata)).map_err(failed)
    }

    fn of(metadata: &Metadata) -> Self {
        let kind = match metadata.file_type() {
            kind if kind.is_dir() => EntryKind::Directory,
            kind if kind.is_symlink() => EntryKind::Link,
            _ => EntryKind::Other,
        };
        // The set-group-ID bit (02000) gives no access.
        Self { kind, owner: metadata.uid(), mode: metadata.permissions().mode() & 0o1777 }
    }

    fn judge_ours(self, path: &Path, us: u32, modes: &[u32]) -> Result<(), DirectoryError> {
        let Self { kind, owner, mode } = self;
        let path = path.to_owned();
        match kind {
            EntryKind::Link => return Err(DirectoryError::Symlink { path }),
            EntryKind::Other => return Err(DirectoryError::NotADirectory { path }),
            EntryKind::Directory => {}
        }
        if owner != us {
            return Err(DirectoryError::Owner { path, owner, us });
        }
        if !modes.contains(&mode) {
            return Err(DirectoryError::Mode { path, mode });
        }
        Ok(())
    }

    fn judge_above(self, path: &Path, us: u32) -> Result<(), DirectoryError> {
        let Self { kind, owner, mode } = self;
        let path = path.to_owned();
        if owner != us && owner != 0 {
            return Err(DirectoryError::Owner { path, owner, us });
        }
        match kind {
            // The mode of a link has no effect.
            EntryKind::Link => return Ok(()),
            EntryKind::Other => return Err(DirectoryError::NotADirectory { path }),
            EntryKind::Directory => {}
        }
        if self.is_writable() {
            return Err(DirectoryError::Writable { path, mode });
        }
        Ok(())
    }

    /// Whether others than the owner can replace what is in the directory.
    fn is_writable(self) -> bool {
        // In a sticky directory, other users can add names but cannot replace ours.
        self.mode & 0o022 != 0 && self.mode & 0o1000 == 0
    }

    /// Whether only these owners can change what a path below leads to.
    fn is_safe_above(self, owners: &[u32]) -> bool {
        let is_safe = match self.kind {
            EntryKind::Link => true,
            EntryKind::Other => false,
            EntryKind::Directory => !self.is_writable(),
        };
        is_safe && owners.contains(&self.owner)
    }
}

#[cfg(test)]
mod tests;
