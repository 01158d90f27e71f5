//! Problems in a configuration, and where each value came from.
//! Every problem is reported: a misspelt key would otherwise be a limit that silently does not apply.

use std::fmt;
use std::path::PathBuf;

use crate::config::key::{Tighten, Value, ValueKind};
use crate::config::sockets::GroupError;
use crate::core::counted::counted;

/// Where a value or a problem is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueOrigin {
    /// The built-in default.
    Default,
    /// A file, with the position if one is known.
    File { path: PathBuf, at: Option<FilePosition> },
    /// An environment variable.
    Variable(String),
    /// A command line flag.
    Flag(&'static str),
}

/// A position in a text. Both numbers start at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilePosition {
    pub line: usize,
    /// In characters.
    pub column: usize,
}

impl FilePosition {
    /// The position of a byte of a text.
    pub fn of(text: &str, at: usize) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let line = 1 + before.matches('\n').count();
        let column = 1 + before.chars().rev().take_while(|character| *character != '\n').count();
        Self { line, column }
    }
}

/// A problem in a configuration, or a value that was ignored with a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub origin: ValueOrigin,
    /// The full name of the key, if there is one.
    pub key: Option<String>,
    pub fault: Fault,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("cannot be read: {0}")]
    Unreadable(String),
    #[error("has more than {0} bytes")]
    TooLarge(u64),
    #[error("{0}")]
    Syntax(String),
    #[error("unknown key{}", nearest(*.0))]
    Unknown(Option<&'static str>),
    #[error("unknown variable{}", nearest(.0.as_deref()))]
    NoVariable(Option<String>),
    #[error("{found} is not {expected}")]
    Unfit { found: String, expected: ValueKind },
    #[error(transparent)]
    Group(#[from] GroupError),
    /// What is wrong with a rule of policy.
    #[error("{0}")]
    Rule(String),
    #[error("{0} is not a table of keys")]
    NoTable(String),
    #[error("only the operator may set this, not the file of a project")]
    NotForProjects,
    /// A project file tries to loosen a key. The key keeps its value.
    #[error("not taken; the file of a project may only {}", only(*.0, .1))]
    TooLoose(Tighten, Value),
}

/// All problems, one per line, below a line that counts them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the configuration has {}\n{}", counted(.0.len(), "problem"), lines(.0))]
pub struct ConfigError(pub Vec<Problem>);

fn nearest(name: Option<&str>) -> String {
    name.map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

fn only(how: Tighten, before: &Value) -> String {
    match how {
        Tighten::Lower => format!("lower the {before} that holds without it"),
        Tighten::Higher => format!("raise the {before} that holds without it"),
        Tighten::SwitchOff => "switch this off".to_owned(),
        Tighten::SwitchOn => "switch this on".to_owned(),
    }
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

impl Problem {
    /// Where in its file it is.
    pub fn position(&self) -> Option<FilePosition> {
        match self.origin {
            ValueOrigin::File { at, .. } => at,
            ValueOrigin::Default | ValueOrigin::Variable(_) | ValueOrigin::Flag(_) => None,
        }
    }
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

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, at: None } => path.display().fmt(f),
            Self::File { path, at: Some(FilePosition { line, column }) } => {
                write!(f, "{}:{line}:{column}", path.display())
            }
            Self::Variable(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}
