//! Why a client was not configured, and what the user can do instead.

use std::io;
use std::path::PathBuf;

use crate::cli::install::format::FormatError;
use crate::core::code::Code;

/// Why a file was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it is a broken symbolic link")]
    DanglingLink,
    #[error("it is not a file")]
    NotAFile,
    #[error("it is not a text file")]
    NotText,
    #[error("it has more than {0} bytes")]
    TooLarge(u64),
    #[error("it is read-only")]
    ReadOnly,
    #[error("it changed meanwhile")]
    Changed,
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// Why a client was not configured.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("{title} has no {wanted} scope; it has: {has}")]
    NoScope { title: &'static str, wanted: &'static str, has: &'static str },
    #[error("{title} has no directory of skills")]
    NoSkills { title: &'static str },
    #[error("{} is left as it is: {why}", file.display())]
    File { file: PathBuf, why: FileError, hint: String },
    #[error("no supported MCP client found")]
    Nobody { hint: String },
    #[error("there is no home directory; set HOME")]
    NoHome,
    #[error("the working directory is gone: {0}")]
    NoProject(#[source] io::Error),
    #[error("the program's own file is unknown: {0}")]
    NoProgram(#[source] io::Error),
    #[error("clients cannot start {}, whose path is not UTF-8", .0.display())]
    ProgramNotText(PathBuf),
}

impl InstallError {
    /// The stable error code.
    pub fn code(&self) -> Code {
        match self {
            Self::NoScope { .. } | Self::NoSkills { .. } => Code::InvalidArgument,
            Self::Nobody { .. } => Code::ClientNotFound,
            Self::File { .. } => Code::ClientConfig,
            Self::NoHome | Self::NoProject(_) | Self::NoProgram(_) | Self::ProgramNotText(_) => {
                Code::Internal
            }
        }
    }

    /// What to do about it, if there is advice.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::File { hint, .. } | Self::Nobody { hint } => Some(hint),
            Self::NoSkills { .. } => Some("name a directory with --dir"),
            Self::NoScope { .. }
            | Self::NoHome
            | Self::NoProject(_)
            | Self::NoProgram(_)
            | Self::ProgramNotText(_) => None,
        }
    }
}
