//! From what a session runs to a program that can be started, and why it was not.
//!
//! It knows neither screens nor tasks. How a child is made ready is the same whoever holds its
//! terminal, and lives with the shim.

use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

use nix::libc;

use crate::core::frame::Size;
use crate::session::pty::command::{CommandError, SpawnSpec};
use crate::session::pty::environment::SESSION_MARK;
use crate::shim::program::Program;
use crate::shim::wire::Window;

/// How many descriptors a program may open at first; what this process may when nobody said.
static DESCRIPTORS: OnceLock<u64> = OnceLock::new();

/// Sets how many descriptors the programs of sessions may open at first, once for this process.
pub fn give_children_descriptors(soft: u64) {
    // Another daemon of this process said it before, and started with the same limit.
    let _ = DESCRIPTORS.set(soft);
}

/// How many descriptors the programs of sessions may open at first, if anybody said.
pub(crate) fn descriptors_of_children() -> Option<u64> {
    DESCRIPTORS.get().copied()
}

/// Says why a session's program was not started; nothing of it is left behind.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error("cannot open a terminal: {0}")]
    Terminal(#[source] io::Error),
    #[error("cannot start the process that holds the terminal: {0}")]
    Shim(#[source] io::Error),
    #[error("another daemon has taken the place of this one")]
    Superseded,
    /// What cannot be used is the directory in which shims listen.
    #[error("cannot use the directory {}, where terminals are held: {source}", path.display())]
    Place { path: PathBuf, source: io::Error },
    #[error("cannot start {program}: {source}")]
    Program { program: String, source: io::Error },
}

/// Says what the system had not enough of for another session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    Descriptors,
    Processes,
    Terminals,
    Memory,
}

impl SpawnError {
    /// What there was not enough of, if that is why.
    pub fn shortage(&self) -> Option<Shortage> {
        let source = match self {
            Self::Command(_) | Self::Superseded => return None,
            Self::Terminal(source)
            | Self::Shim(source)
            | Self::Place { source, .. }
            | Self::Program { source, .. } => source,
        };
        match (source.raw_os_error()?, self) {
            (libc::EMFILE | libc::ENFILE, _) => Some(Shortage::Descriptors),
            (libc::EAGAIN, _) => Some(Shortage::Processes),
            (libc::ENOSPC, Self::Terminal(_)) => Some(Shortage::Terminals),
            (libc::ENOMEM, _) => Some(Shortage::Memory),
            (_, _) => None,
        }
    }

    /// The program of this session was not started.
    pub(crate) fn program(spec: &SpawnSpec, source: io::Error) -> Self {
        Self::Program { program: spec.program.display().to_string(), source }
    }
}

impl From<Size> for Window {
    fn from(size: Size) -> Self {
        Self { rows: size.rows, cols: size.cols }
    }
}

impl From<Window> for Size {
    fn from(window: Window) -> Self {
        Self { rows: window.rows, cols: window.cols }
    }
}

/// What is to be started; every process that comes of it carries the mark of its session.
pub(crate) fn program_of(spec: &SpawnSpec) -> Program {
    let mut environment = spec.environment.clone();
    environment.insert(SESSION_MARK.into(), spec.session.to_string().into());
    Program {
        path: spec.program.clone().into(),
        name: spec.name.clone(),
        args: spec.args.clone(),
        cwd: spec.cwd.clone().into(),
        environment: environment.into_iter().collect(),
    }
}
