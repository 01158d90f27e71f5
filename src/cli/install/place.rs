//! Paths of the clients' files, from the user's directories and environment.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;

use crate::cli::failure::CliFailure;

/// Whose configuration gets the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InstallScope {
    /// For you, in every directory
    User,
    /// For everyone who works in this directory
    Project,
}

/// The environment variables that affect these paths.
const VARIABLES: [&str; 5] =
    ["XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "PATH"];

/// The user's directories and environment variables.
#[derive(Clone, Debug)]
pub struct Surroundings {
    pub home: PathBuf,
    /// The directory of the project's files.
    pub project: PathBuf,
    pub variables: BTreeMap<String, OsString>,
}

/// The first part of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    Home,
    /// `$XDG_CONFIG_HOME`, else `~/.config`.
    Config,
    /// The directory in this variable, or else this one below the home directory.
    Variable(&'static str, &'static str),
    Project,
}

/// A client's file or directory, with its current name first and alternatives after it.
#[derive(Clone, Copy, Debug)]
pub struct ClientPath {
    pub base: Base,
    pub names: &'static [&'static str],
}

impl Surroundings {
    pub fn of_process() -> Result<Self, CliFailure> {
        let home = env::home_dir()
            .filter(|home| home.is_absolute())
            .context("there is no home directory; set HOME")?;
        let variable = |name: &str| Some((name.to_owned(), env::var_os(name)?));
        Ok(Self {
            home,
            project: env::current_dir().context("the working directory is gone")?,
            variables: VARIABLES.into_iter().filter_map(variable).collect(),
        })
    }

    /// The path of a place: the first name that exists, or else the first name.
    pub fn path(&self, place: ClientPath) -> PathBuf {
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
        match base {
            Base::Home => self.home.clone(),
            Base::Config => {
                self.directory("XDG_CONFIG_HOME").unwrap_or_else(|| self.home.join(".config"))
            }
            Base::Variable(name, below_home) => {
                self.directory(name).unwrap_or_else(|| self.home.join(below_home))
            }
            Base::Project => self.project.clone(),
        }
    }

    fn directory(&self, variable: &str) -> Option<PathBuf> {
        self.variables.get(variable).map(PathBuf::from).filter(|path| path.is_absolute())
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
