//! Converts a session's program for the shim, and explains why a start failed.

use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

use nix::libc;

use crate::core::frame::Size;
use crate::session::pty::command::{CommandError, SpawnSpec};
use crate::session::pty::environment::SESSION_MARK;
use crate::shim::program::Program;
use crate::shim::wire::Window;

/// The soft limit of open files for programs; unset means that of this process.
static DESCRIPTORS: OnceLock<u64> = OnceLock::new();

/// Sets the soft limit of open files for programs, once per process.
pub fn give_children_descriptors(soft: u64) {
    // Another daemon in this process has already set the same limit.
    let _ = DESCRIPTORS.set(soft);
}

/// The soft limit of open files for programs, if it was set.
pub(crate) fn descriptors_of_children() -> Option<u64> {
    DESCRIPTORS.get().copied()
}

/// Why a session's program was not started. Nothing is left behind.
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
    /// The shim directory is unusable.
    #[error("cannot use the directory {}, where terminals are held: {source}", path.display())]
    Place { path: PathBuf, source: io::Error },
    #[error("cannot start {program}: {source}")]
    Program { program: String, source: io::Error },
}

/// The resource that ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    Descriptors,
    Processes,
    Terminals,
    Memory,
}

impl SpawnError {
    /// The resource that ran out, if that is the reason.
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

/// The program of a session. Its environment carries the session's id.
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
