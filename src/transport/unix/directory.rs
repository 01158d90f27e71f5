//! The directories of our sockets, made and checked before anything is put into them.
//!
//! It knows nothing of what will stand there. Whoever can write to a directory, or to one above it,
//! can put another socket in the place of ours, so every one of them counts.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::Uid;

use crate::config::paths::{RUNTIME_DIR, RuntimePaths};

/// Says which directory cannot be trusted, and how to mend that.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    #[error(
        "{path} belongs to uid {owner}, and we are uid {us}; set {RUNTIME_DIR} to a directory of \
         your own"
    )]
    Owner { path: PathBuf, owner: u32, us: u32 },
    #[error("{path} has mode {mode:04o} and must have 0700; run: chmod 700 {path}")]
    Mode { path: PathBuf, mode: u32 },
    #[error(
        "{path} can be written to by others, its mode is {mode:04o}; run: chmod go-w {path}, or \
         set {RUNTIME_DIR} to another place"
    )]
    Writable { path: PathBuf, mode: u32 },
    #[error("{path} is a symbolic link; remove it, or set {RUNTIME_DIR} to where it leads")]
    Symlink { path: PathBuf },
    #[error("{path} is not a directory; remove it, or set {RUNTIME_DIR} to another place")]
    NotADirectory { path: PathBuf },
    #[error("cannot use the directory {path}: {source}; mend it, or set {RUNTIME_DIR}")]
    Io { path: PathBuf, source: io::Error },
}

/// Makes the directories of a daemon where they are missing, and checks all of them.
///
/// Ours must be ours, with mode 0700, and no link. Those above may be root's as well, and only
/// their owner may write to them, unless they are sticky. The directory of a gateway that was put
/// elsewhere is checked like one above, and not made.
///
/// # Errors
/// The first directory that cannot be made or trusted.
pub fn prepare(paths: &RuntimePaths) -> Result<(), DirectoryError> {
    check_all(paths, make)
}

/// Checks the directories of a daemon as [`prepare`] does, and makes none.
///
/// # Errors
/// The first directory that cannot be trusted, or is missing.
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
    for ours in [root, &paths.sessions(), &paths.shims()] {
        first(ours)?;
        Found::at(ours)?.judge_ours(ours, us)?;
    }
    let gateway = paths.gateway().parent().filter(|parent| *parent != root);
    for parent in gateway.map(from_the_top).unwrap_or_default() {
        check_above(parent, us)?;
    }
    Ok(())
}

/// A path and all above it, the topmost first.
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
        // Another daemon may start at the same time; the check that follows is what counts.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map_err(|source| DirectoryError::Io { path: path.to_owned(), source }),
    }
}

fn check_above(path: &Path, us: u32) -> Result<(), DirectoryError> {
    let found = Found::at(path)?;
    found.judge_above(path, us)?;
    if found.kind == Kind::Link {
        // The link can be trusted; so must be all that lies above the place it leads to.
        let target = fs::canonicalize(path)
            .map_err(|source| DirectoryError::Io { path: path.to_owned(), source })?;
        for real in from_the_top(&target) {
            Found::at(real)?.judge_above(real, us)?;
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Directory,
    Link,
    Other,
}

/// What stands at a path, with no link followed.
#[derive(Clone, Copy, Debug)]
struct Found {
    kind: Kind,
    owner: u32,
    /// Permissions and the sticky bit.
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
            kind if kind.is_dir() => Kind::Directory,
            kind if kind.is_symlink() => Kind::Link,
            _ => Kind::Other,
        };
        // A group that new directories inherit (02000) gives nobody any right.
        Self { kind, owner: metadata.uid(), mode: metadata.permissions().mode() & 0o1777 }
    }

    fn judge_ours(self, path: &Path, us: u32) -> Result<(), DirectoryError> {
        let Self { kind, owner, mode } = self;
        let path = path.to_owned();
        match kind {
            Kind::Link => return Err(DirectoryError::Symlink { path }),
            Kind::Other => return Err(DirectoryError::NotADirectory { path }),
            Kind::Directory => {}
        }
        if owner != us {
            return Err(DirectoryError::Owner { path, owner, us });
        }
        if mode != 0o700 {
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
            // A link's own mode means nothing.
            Kind::Link => return Ok(()),
            Kind::Other => return Err(DirectoryError::NotADirectory { path }),
            Kind::Directory => {}
        }
        // In a sticky directory others can add names but not replace ours.
        if mode & 0o022 != 0 && mode & 0o1000 == 0 {
            return Err(DirectoryError::Writable { path, mode });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
