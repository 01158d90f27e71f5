//! Commands that are too long to be typed: the shell reads them from a file, which goes when the
//! command has ended.
//!
//! A terminal that collects lines takes 4,095 bytes of one, and a line editor slows down long before
//! that. The file is in a directory that only the user can enter.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use uuid::Uuid;

use crate::core::keys::paste::CANONICAL_LINE_MAX;
use crate::core::shell::commands::EndsBy;
use crate::session::error::SessionError;
use crate::session::registry::Registry;
use crate::surface::error::SurfaceError;
use crate::surface::terminal::run::needs_file;

/// How the names of such files end.
pub const COMMAND_EXTENSION: &str = "command";

/// A file with one command.
#[derive(Debug)]
pub struct Script {
    path: PathBuf,
}

impl Script {
    /// Writes the command into a file, if the shell has to read it from one.
    ///
    /// # Errors
    /// [`SessionError::LineTooLong`] where there is no place for such files, and what the kernel
    /// said.
    pub fn needed(
        sessions: &Registry,
        text: &str,
        ends_by: EndsBy,
    ) -> Result<Option<Self>, SurfaceError> {
        if !needs_file(text, ends_by) {
            return Ok(None);
        }
        let Some(directory) = sessions.scratch() else {
            let (bytes, max) = (text.len(), CANONICAL_LINE_MAX);
            return Err(SessionError::LineTooLong { bytes, max }.into());
        };
        let path = directory.join(format!("{}.{COMMAND_EXTENSION}", Uuid::new_v4().simple()));
        let script = Self { path };
        let mut options = OpenOptions::new();
        let written = options.write(true).create_new(true).mode(0o600).open(&script.path);
        let written = written.and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.write_all(b"\n")
        });
        written.map_err(SessionError::Terminal)?;
        Ok(Some(script))
    }

    /// The line that has the shell read it. The blank before it keeps it out of the history of
    /// shells that are set to leave out such lines.
    pub fn line(&self) -> String {
        // The path is the daemon's own, and a quote in it is a quote for every shell.
        format!(" . '{}'", self.path.display().to_string().replace('\'', r"'\''"))
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        // Whatever is left goes when the daemon starts the next time.
        let _ = fs::remove_file(&self.path);
    }
}
