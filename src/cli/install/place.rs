//! Paths of the clients' files on each system.
//!
//! Only [`Surroundings::of_process`] reads the process's environment, so that tests can cover every
//! system.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::cli::install::error::InstallError;

/// Whose configuration gets the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Scope {
    /// For you, in every directory
    User,
    /// For everyone who works in this directory
    Project,
}

impl Scope {
    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    Linux,
    MacOs,
}

/// The environment variables that affect these paths.
const VARIABLES: [&str; 5] =
    ["XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "PATH"];

/// The user's system, directories and environment variables.
#[derive(Clone, Debug)]
pub struct Surroundings {
    pub system: System,
    pub home: PathBuf,
    /// The directory of the project's files.
    pub project: PathBuf,
    pub variables: BTreeMap<String, OsString>,
}

/// The first part of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    Home,
    /// `$XDG_CONFIG_HOME`, else `~/.config`, on every system.
    Config,
    /// The directory where graphical programs keep their settings on this system.
    Application,
    /// The directory in this variable, or else this one below the home directory.
    Variable(&'static str, &'static str),
    Project,
}

/// A client's file or directory, with its current name first and alternatives after it.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub base: Base,
    pub names: &'static [&'static str],
}

impl Surroundings {
    /// # Errors
    /// There is no home directory or no working directory.
    pub fn of_process() -> Result<Self, InstallError> {
        let home = env::home_dir().filter(|home| home.is_absolute()).ok_or(InstallError::NoHome)?;
        let variable = |name: &str| Some((name.to_owned(), env::var_os(name)?));
        Ok(Self {
            system: if cfg!(target_os = "macos") { System::MacOs } else { System::Linux },
            home,
            project: env::current_dir().map_err(InstallError::NoProject)?,
            variables: VARIABLES.into_iter().filter_map(variable).collect(),
        })
    }

    /// The path of a place: the first name that exists, or else the first name.
    pub fn path(&self, place: Place) -> PathBuf {
        let base = self.base(place.base);
        let mut paths = place.names.iter().map(|name| base.join(name));
        let first = paths.next().unwrap_or_else(|| base.clone());
        if first.exists() {
            return first;
        }
        paths.find(|path| path.exists()).unwrap_or(first)
    }

    /// The path of a program on `PATH`.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let directories = env::split_paths(self.variables.get("PATH")?);
        let mut paths = directories.filter(|it| it.is_absolute()).map(|it| it.join(name));
        paths.find(|path| is_executable(path))
    }

    /// The path for display, with `~` for the home directory.
    pub fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(&self.home) {
            Ok(rest) => format!("~/{}", rest.display()),
            Err(_) => path.display().to_string(),
        }
    }

    fn base(&self, base: Base) -> PathBuf {
        let config = || self.directory("XDG_CONFIG_HOME").unwrap_or(self.home.join(".config"));
        match (base, self.system) {
            (Base::Home, _) => self.home.clone(),
            (Base::Config, _) | (Base::Application, System::Linux) => config(),
            (Base::Application, System::MacOs) => self.home.join("Library/Application Support"),
            (Base::Variable(name, below_home), _) => {
                self.directory(name).unwrap_or_else(|| self.home.join(below_home))
            }
            (Base::Project, _) => self.project.clone(),
        }
    }

    fn directory(&self, variable: &str) -> Option<PathBuf> {
        self.variables.get(variable).map(PathBuf::from).filter(|path| path.is_absolute())
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
