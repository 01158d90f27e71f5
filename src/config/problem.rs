//! What is wrong with a configuration, and where each value came from.
//!
//! It finds nothing itself. Nothing wrong is passed over in silence: a key that is misspelt would
//! otherwise be a limit that is not there.

use std::fmt;
use std::path::PathBuf;

use crate::config::key::{Kind, Tighten, Value};

/// Where a value, or a mistake, is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nowhere: it is built in.
    Default,
    /// A file, and where in it, where there is such a place.
    File { path: PathBuf, at: Option<Position> },
    /// The variable of this name.
    Variable(String),
    /// The flag of a command.
    Flag(&'static str),
}

/// A place in a text; both numbers begin at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: usize,
    /// In characters.
    pub column: usize,
}

/// One mistake, or one thing that was passed over and is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub origin: Origin,
    /// The full name of the key, as far as one was written.
    pub key: Option<String>,
    pub fault: Fault,
}

/// What sort of mistake it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("cannot be read: {0}")]
    Unreadable(String),
    #[error("has more than {0} bytes")]
    TooLarge(u64),
    #[error("{0}")]
    Syntax(String),
    #[error("no such key{}", nearest(*.0))]
    Unknown(Option<&'static str>),
    #[error("there is no such variable{}", nearest(.0.as_deref()))]
    NoVariable(Option<String>),
    #[error("{found} is not {expected}")]
    Unfit { found: String, expected: Kind },
    #[error("{0} is not a table of keys")]
    NoTable(String),
    #[error("only the operator may set this, not the file of a project")]
    NotForProjects,
    /// A project's file goes beyond what it may do with a key, whose value without it holds.
    #[error("not taken; the file of a project may only {}", only(*.0, *.1))]
    TooLoose(Tighten, Value),
}

/// Everything that is wrong, one mistake a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.0))]
pub struct ConfigError(pub Vec<Problem>);

fn nearest(name: Option<&str>) -> String {
    name.map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

fn only(how: Tighten, before: Value) -> String {
    match how {
        Tighten::Lower => format!("lower the {before} that holds without it"),
        Tighten::Higher => format!("raise the {before} that holds without it"),
        Tighten::SwitchOff => "switch this off".to_owned(),
    }
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        self.fault.fmt(f)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, at: None } => path.display().fmt(f),
            Self::File { path, at: Some(Position { line, column }) } => {
                write!(f, "{}:{line}:{column}", path.display())
            }
            Self::Variable(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}
