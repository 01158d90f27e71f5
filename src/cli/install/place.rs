//! Where clients keep things: paths made from values, on each system that clients run on.
//!
//! Only [`Surroundings::of_process`] looks at the process; everything else is given, so that the
//! paths of one system are tested on another.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::cli::install::error::InstallError;

/// A system that clients run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    Linux,
    MacOs,
}

/// The variables that move what clients keep.
const VARIABLES: [&str; 5] =
    ["XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "PATH"];

/// Where the user is.
#[derive(Clone, Debug)]
pub struct Surroundings {
    pub system: System,
    pub home: PathBuf,
    /// The directory that a project's files are in.
    pub project: PathBuf,
    pub variables: BTreeMap<String, OsString>,
}

/// What a path begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    Home,
    /// `$XDG_CONFIG_HOME`, else `~/.config`, on every system.
    Config,
    /// Where programs with windows keep their settings on this system.
    Application,
    /// The directory a variable names, else this one below the home directory.
    Variable(&'static str, &'static str),
    Project,
}

/// A file or directory of a client, under the name it has now and names it may have instead.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub base: Base,
    pub names: &'static [&'static str],
}

impl Surroundings {
    /// The surroundings of this process.
    ///
    /// # Errors
    /// That there is no home directory, or no working directory.
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

    /// The path of a place: of the names that exist the first, else the first of all.
    pub fn path(&self, place: Place) -> PathBuf {
        let base = self.base(place.base);
        let mut paths = place.names.iter().map(|name| base.join(name));
        let first = paths.next().unwrap_or_else(|| base.clone());
        if first.exists() {
            return first;
        }
        paths.find(|path| path.exists()).unwrap_or(first)
    }

    /// The path of a program that the user could start by its name.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let directories = env::split_paths(self.variables.get("PATH")?);
        let mut paths = directories.filter(|it| it.is_absolute()).map(|it| it.join(name));
        paths.find(|path| is_executable(path))
    }

    /// The path as people write it, from their home directory.
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
