//! The standard input of a command in a session of its own, through a named pipe.
//!
//! A terminal would echo it, cut its lines, and take some of its bytes for keys.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, IsTerminal};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use uuid::Uuid;

use crate::cli::daemon::DaemonClient;
use crate::cli::run::line::line_with_input;

/// A named pipe that carries standard input. Dropping it removes the pipe's file.
#[derive(Debug)]
pub(super) struct PipedInput {
    path: PathBuf,
    problem: Arc<OnceLock<io::Error>>,
}

impl PipedInput {
    /// Makes a pipe beside the daemon's sockets, which only this user can enter. `None` when standard input is a
    /// terminal.
    ///
    /// It is read from when the command opens the pipe, by a thread that ends with this process.
    pub(super) fn of_stdin(daemon: &DaemonClient) -> io::Result<Option<Self>> {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            return Ok(None);
        }
        let stdin = File::from(stdin.as_fd().try_clone_to_owned()?);
        let directory = daemon.path().parent().unwrap_or(Path::new("/"));
        Self::of(stdin, directory).map(Some)
    }

    fn of(stdin: File, directory: &Path) -> io::Result<Self> {
        let path = directory.join(format!("stdin.{}", Uuid::new_v4().simple()));
        mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR)?;
        let input = Self { path, problem: Arc::default() };
        let (path, problem) = (input.path.clone(), Arc::clone(&input.problem));
        thread::Builder::new().name("stdin".to_owned()).spawn(move || {
            match feed(stdin, &path) {
                // The command has read all that it wanted.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                Err(error) => drop(problem.set(error)),
                Ok(()) => {}
            }
        })?;
        Ok(input)
    }

    /// The line that runs these words with it.
    pub(super) fn line(&self, words: &[String]) -> String {
        line_with_input(words, &self.path.to_string_lossy())
    }

    /// Why the command got less than all of it, if that is not the command's choice.
    pub(super) fn problem(&self) -> Option<String> {
        self.problem.get().map(|error| format!("standard input cannot be read: {error}"))
    }
}

impl Drop for PipedInput {
    fn drop(&mut self) {
        // It is gone once both ends were open.
        let _ = fs::remove_file(&self.path);
    }
}

fn feed(mut stdin: File, path: &Path) -> io::Result<()> {
    // Waits for the reader.
    let mut pipe = OpenOptions::new().write(true).open(path)?;
    fs::remove_file(path)?;
    io::copy(&mut stdin, &mut pipe)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    fn pipe() -> (tempfile::TempDir, PipedInput, io::PipeWriter) {
        let directory = tempfile::tempdir().unwrap();
        let (reader, writer) = io::pipe().unwrap();
        let stdin = File::from(std::os::fd::OwnedFd::from(reader));
        let input = PipedInput::of(stdin, directory.path()).unwrap();
        (directory, input, writer)
    }

    fn is_empty(directory: &tempfile::TempDir) -> bool {
        fs::read_dir(directory.path()).unwrap().next().is_none()
    }

    #[test]
    fn every_byte_arrives_and_nothing_is_left_behind() {
        let (directory, input, mut writer) = pipe();
        let mut reader = File::open(&input.path).unwrap();
        // A terminal would take each of these for a key.
        writer.write_all(b"\x04\x03\r\n\x1a\xff").unwrap();
        drop(writer);
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        assert_eq!(read, b"\x04\x03\r\n\x1a\xff");
        assert_eq!(input.problem(), None);
        assert!(is_empty(&directory));
    }

    #[test]
    fn a_pipe_that_no_command_opens_is_removed() {
        let (directory, input, _writer) = pipe();
        drop(input);
        assert!(is_empty(&directory));
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let unreadable = File::open(directory.path()).unwrap();
        let input = PipedInput::of(unreadable, directory.path()).unwrap();
        let mut read = Vec::new();
        File::open(&input.path).unwrap().read_to_end(&mut read).unwrap();
        while input.problem().is_none() {
            thread::yield_now();
        }
        assert!(input.problem().unwrap().starts_with("standard input cannot be read"));
    }
}
