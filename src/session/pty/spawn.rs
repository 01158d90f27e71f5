//! Converts a session's program for the shim, explains why a start failed, and counts the file descriptors that are
//! left. The kernel has limits per process and in total, but no call that reports the rest.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

use nix::libc;

use crate::core::frame::Size;
use crate::session::pty::command::SpawnSpec;
use crate::session::pty::environment::SESSION_MARK;
use crate::shim::program::Program;
use crate::shim::wire::Window;

/// The descriptors that a session keeps open, plus a few for short use.
pub const OF_A_SESSION: usize = 12;

/// The soft limit of open files for programs; unset means that of this process.
static DESCRIPTORS: OnceLock<u64> = OnceLock::new();

/// Sets the soft limit of open files for programs, once per process.
pub fn give_children_descriptors(soft: u64) {
    // Another daemon in this process has already set the same limit.
    let _ = DESCRIPTORS.set(soft);
}

pub(crate) fn descriptors_of_children() -> Option<u64> {
    DESCRIPTORS.get().copied()
}

/// Why a session's program was not started. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("cannot open a terminal: {0}")]
    Terminal(#[source] io::Error),
    #[error("cannot start the process that holds the terminal: {0}")]
    Shim(#[source] io::Error),
    #[error("another daemon has taken the place of this one")]
    Superseded,
    #[error("cannot use the directory {}, where terminals are held: {source}", path.display())]
    Place { path: PathBuf, source: io::Error },
    #[error("cannot start {program}: {source}")]
    Program { program: String, source: io::Error },
    #[error("cannot start the sandbox: {0}")]
    Sandbox(#[source] io::Error),
}

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
            Self::Superseded => return None,
            Self::Terminal(source)
            | Self::Shim(source)
            | Self::Sandbox(source)
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
        user: spec.user.clone(),
        sandbox: spec.sandbox.clone(),
    }
}

/// The number of free descriptors, up to `most`.
pub fn spare_descriptors(most: usize) -> usize {
    let Some(first) = File::open("/dev/null").ok().filter(|_| most > 0) else { return 0 };
    let copies: Vec<File> = (1..most).map_while(|_| first.try_clone().ok()).collect();
    1 + copies.len()
}

/// Whether an error means that no file descriptor was left.
pub fn is_want_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}
