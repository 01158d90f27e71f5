//! Installs the shell integration scripts for the sessions of this daemon.
//!
//! Write access to a script would allow running commands in every session, so only our user can write to them.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::session::pty::shell::SCRIPTS;
use crate::surface::terminal::run::COMMAND_EXTENSION;
use crate::transport::unix::private;

/// Scripts that are removed on drop.
#[derive(Debug)]
pub(in crate::transport) struct PassingScripts(PathBuf);

impl PassingScripts {
    /// Installs the scripts in a new temporary directory.
    ///
    /// # Errors
    /// Returns the system's error and removes the directory.
    pub(in crate::transport) fn place() -> io::Result<Self> {
        let name = format!("termgate-{}", Uuid::new_v4().simple());
        let directory = std::env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&directory)?;
        let passing = Self(directory);
        place_scripts(&passing.0)?;
        Ok(passing)
    }

    pub(in crate::transport) fn directory(&self) -> &Path {
        &self.0
    }
}

impl Drop for PassingScripts {
    fn drop(&mut self) {
        // A leftover directory does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Installs or replaces the scripts in a directory that only our user can change. Only one process at a time may call
/// this.
///
/// # Errors
/// Returns the system's error. Each script is then the old or the new one.
pub(in crate::transport) fn place_scripts(directory: &Path) -> io::Result<()> {
    for (path, text) in SCRIPTS {
        let path = directory.join(path);
        let parent = path.parent().unwrap_or(directory);
        DirBuilder::new().mode(0o700).recursive(true).create(parent)?;
        private::replace(&path, text)?;
    }
    remove_commands(directory)
}

/// Removes command files that an earlier daemon left; their shells have read them.
fn remove_commands(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == COMMAND_EXTENSION) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Returns the value, or logs that shells start without integration.
pub(in crate::transport) fn or_told<T>(placed: io::Result<T>) -> Option<T> {
    placed
        .inspect_err(|error| {
            tracing::warn!(%error, "cannot write the shell scripts; shells will not mark commands");
        })
        .ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn the_scripts_are_for_us_alone_and_take_the_place_of_older_ones() {
        let directory = tempfile::tempdir().unwrap();
        let scripts = directory.path().join("shell");
        for _ in 0..2 {
            place_scripts(&scripts).unwrap();
            assert_eq!(mode(&scripts), 0o700);
            for (path, text) in SCRIPTS {
                let path = scripts.join(path);
                assert_eq!(fs::read_to_string(&path).unwrap(), text);
                assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
                fs::write(path, "of an older daemon").unwrap();
            }
            let left = scripts.join("a.command");
            assert!(!left.exists());
            fs::write(left, "true").unwrap();
        }
    }

    #[test]
    fn scripts_of_one_process_are_gone_with_it() {
        let passing = PassingScripts::place().unwrap();
        let directory = passing.directory().to_owned();
        assert_eq!(mode(&directory), 0o700);
        assert!(directory.join(SCRIPTS[0].0).is_file());
        drop(passing);
        assert!(!directory.exists());
    }
}
