//! The layers of a configuration: defaults, files, environment and flags. Later layers win.
//! It remembers where each value came from.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::Config;
use crate::config::accounts::Accounts;
use crate::config::environment;
use crate::config::file::{self, FILE_MAX, Given};
use crate::config::key::{ConfigKey, KEYS, Value};
use crate::config::mounts::{self, MOUNTS};
use crate::config::policy;
use crate::config::problem::{ConfigError, Fault, Problem, ValueOrigin};
use crate::config::sockets::SocketAudience;
use crate::config::tenants;
use crate::core::mount::MountTable;
use crate::core::policy::rules::PolicyRules;
use crate::core::policy::rules::tools::ToolNames;
use crate::core::policy::tenants::Tenants;

/// The system-wide file of the operator.
const SYSTEM: &str = "/etc/termgate/termgate.toml";
/// The names of a policy file and a tenants file, beside each file of the operator.
const POLICY: &str = "policy.toml";
const TENANTS: &str = "tenants.toml";
/// The name of a project file.
const PROJECT: &str = ".termgate.toml";

#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The files of the operator; later ones win.
    operator: Vec<ConfigSource>,
    /// The directory to search for a project file, and the home directory.
    project: Option<(PathBuf, Option<PathBuf>)>,
    variables: Vec<(OsString, OsString)>,
    flags: Vec<Flag>,
    tools: ToolNames,
}

/// A configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigSource {
    pub layer: Layer,
    pub path: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    System,
    User,
    /// Named on the command line. Replaces the system and user files.
    Given,
    Project,
}

/// A key that a command line flag sets.
#[derive(Clone, Debug)]
pub struct Flag {
    pub name: &'static str,
    pub key: &'static str,
    pub value: Value,
}

/// A configuration, and the origin of its values.
#[derive(Clone, Debug)]
pub struct Effective {
    pub config: Config,
    /// The values of a project file that were ignored.
    pub notes: Vec<Problem>,
    origins: BTreeMap<&'static str, ValueOrigin>,
}

impl Layer {
    /// The identifier in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Given => "given",
            Self::Project => "project",
        }
    }
}

impl Sources {
    /// The sources of a daemon that starts in this directory with this environment.
    ///
    /// `given` replaces the system and user files. Rules of policy may name `tools`.
    pub fn new(
        given: Option<PathBuf>,
        directory: &Path,
        environment: &BTreeMap<OsString, OsString>,
        tools: ToolNames,
    ) -> Self {
        let absolute = |name: &str| {
            let path = environment.get(&OsString::from(name)).map(PathBuf::from);
            path.filter(|path| path.is_absolute())
        };
        let home = absolute("HOME");
        let configured =
            absolute("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
        let source = |layer, path| ConfigSource { layer, path };
        let operator = match given {
            Some(path) => vec![source(Layer::Given, path)],
            None => {
                let user = configured.map(|directory| directory.join("termgate/termgate.toml"));
                let user = user.map(|path| source(Layer::User, path));
                [source(Layer::System, PathBuf::from(SYSTEM))].into_iter().chain(user).collect()
            }
        };
        // The environment may contain secrets, so only our own variables are kept.
        let ours = environment.iter().filter(|(name, _)| environment::is_ours(name));
        let variables = ours.map(|(name, value)| (name.clone(), value.clone())).collect();
        let project = Some((directory.to_owned(), home));
        Self { operator, project, variables, flags: Vec::new(), tools }
    }

    /// Adds values from command line flags.
    pub fn with_flags(self, flags: impl IntoIterator<Item = Flag>) -> Self {
        Self { flags: flags.into_iter().collect(), ..self }
    }

    /// The configuration files, present or not; later ones win. Includes a project file only if one exists.
    pub fn files(&self) -> Vec<ConfigSource> {
        let found = self.project.as_ref().and_then(|(directory, home)| {
            Some(ConfigSource {
                layer: Layer::Project,
                path: find_project(directory, home.as_deref())?,
            })
        });
        self.operator.iter().cloned().chain(found).collect()
    }

    /// The directories of the operator's files, with their policy files.
    pub fn operator_directories(&self) -> Vec<PathBuf> {
        let parents = self.operator.iter().filter_map(|source| source.path.parent());
        parents.filter(|parent| parent.is_absolute()).map(Path::to_owned).collect()
    }

    /// Reads and merges all layers.
    pub fn load(&self) -> Result<Effective, ConfigError> {
        let (mut effective, mut problems) = (Effective::built_in(), Vec::new());
        for source in self.files().iter().filter(|source| source.counts()) {
            problems.extend(effective.lay_file(source));
        }
        let (given, wrong) = environment::read(self.variables.clone());
        problems.extend(wrong);
        given.into_iter().for_each(|given| effective.lay(given));
        for flag in &self.flags {
            if let Some(key) = ConfigKey::find(flag.key) {
                effective.lay(Given {
                    key,
                    value: flag.value.clone(),
                    origin: ValueOrigin::Flag(flag.name),
                });
            }
        }
        problems.extend(effective.unknown_groups());
        problems.extend(self.lay_policy(&mut effective));
        problems.extend(self.lay_tenants(&mut effective));
        problems.extend(self.lay_mounts(&mut effective));
        if problems.is_empty() { Ok(effective) } else { Err(ConfigError(problems)) }
    }

    /// The policy files, present or not. All of them hold together.
    pub fn policy_files(&self) -> Vec<ConfigSource> {
        self.beside(POLICY)
    }

    /// The tenants files, present or not. All of them hold together.
    pub fn tenants_files(&self) -> Vec<ConfigSource> {
        self.beside(TENANTS)
    }

    /// The mounts files, present or not. All of them hold together.
    pub fn mounts_files(&self) -> Vec<ConfigSource> {
        self.beside(MOUNTS)
    }

    fn beside(&self, name: &str) -> Vec<ConfigSource> {
        let beside = |source: &ConfigSource| ConfigSource {
            layer: source.layer,
            path: source.path.with_file_name(name),
        };
        self.operator.iter().map(beside).collect()
    }

    fn lay_policy(&self, effective: &mut Effective) -> Vec<Problem> {
        let mut rules = PolicyRules::default();
        let problems = read_all(&self.policy_files(), |text, path| {
            policy::read(text, path, self.tools, &mut rules)
        });
        effective.config.policy = Arc::new(rules);
        problems
    }

    fn lay_tenants(&self, effective: &mut Effective) -> Vec<Problem> {
        let (mut all, accounts) = (Tenants::default(), Accounts::of_system());
        let problems = read_all(&self.tenants_files(), |text, path| {
            tenants::read(text, path, accounts, &mut all)
        });
        effective.config.adopt(Arc::new(all));
        problems
    }

    fn lay_mounts(&self, effective: &mut Effective) -> Vec<Problem> {
        let mut all = MountTable::new();
        let problems =
            read_all(&self.mounts_files(), |text, path| mounts::read(text, path, &mut all));
        effective.config.mounts = Arc::new(all);
        problems
    }

    /// Checks one file and returns the values that would be ignored. A file with the name of a project file
    /// is checked against the operator's files, and one with the name of a policy, tenants or mounts file as that.
    pub fn check(&self, path: &Path) -> Result<Vec<Problem>, ConfigError> {
        let name = path.file_name().and_then(OsStr::to_str);
        if name == Some(POLICY) {
            return rules_in(path, self.tools).map(|_| Vec::new());
        }
        if name == Some(TENANTS) || name == Some(MOUNTS) {
            let problems = match (file::text(path), name) {
                (Err(error), _) => vec![unreadable(path, &error)],
                (Ok(text), Some(TENANTS)) => {
                    tenants::read(&text, path, Accounts::of_system(), &mut Tenants::default())
                }
                (Ok(text), Some(_) | None) => mounts::read(&text, path, &mut MountTable::new()),
            };
            return if problems.is_empty() { Ok(Vec::new()) } else { Err(ConfigError(problems)) };
        }
        let mut effective = Effective::built_in();
        let of_project = path.file_name().is_some_and(|name| name == PROJECT);
        let layer = if of_project { Layer::Project } else { Layer::Given };
        if of_project {
            for source in self.operator.iter().filter(|source| source.counts()) {
                // Problems in the operator's files do not concern this file.
                drop(effective.lay_file(source));
            }
        }
        let mut problems = effective.lay_file(&ConfigSource { layer, path: path.to_owned() });
        if !of_project {
            problems.extend(effective.unknown_groups());
        }
        if problems.is_empty() { Ok(effective.notes) } else { Err(ConfigError(problems)) }
    }
}

impl Effective {
    /// The built-in defaults.
    pub fn built_in() -> Self {
        Self { config: Config::built_in(), notes: Vec::new(), origins: BTreeMap::new() }
    }

    /// Where the value of a key came from.
    pub fn origin(&self, key: &ConfigKey) -> &ValueOrigin {
        self.origins.get(key.name).unwrap_or(&ValueOrigin::Default)
    }

    /// Merges a file into the configuration and returns its problems.
    fn lay_file(&mut self, source: &ConfigSource) -> Vec<Problem> {
        let text = match file::text(&source.path) {
            Ok(text) => text,
            Err(error) => return vec![unreadable(&source.path, &error)],
        };
        let (given, mut problems) = file::read(&text, &source.path);
        for given in given {
            if source.layer != Layer::Project {
                self.lay(given);
                continue;
            }
            let before = given.key.value(&self.config);
            match given.key.project {
                Some(how) if how.allows(&before, &given.value) => self.lay(given),
                Some(how) => self.notes.push(given.problem(Fault::TooLoose(how, before))),
                None => problems.push(given.problem(Fault::NotForProjects)),
            }
        }
        problems.sort_by_key(Problem::position);
        self.notes.sort_by_key(Problem::position);
        problems
    }

    /// The groups of `[sockets]` that this machine does not have.
    fn unknown_groups(&self) -> Vec<Problem> {
        let is_of_sockets = |key: &&ConfigKey| key.section() == "sockets";
        let unknown = KEYS.iter().filter(is_of_sockets).filter_map(|key| {
            let Value::Text(name) = key.value(&self.config) else { return None };
            let fault = Fault::Group(SocketAudience::of(&name).err()?);
            let origin = self.origin(key).clone();
            Some(Problem { origin, key: Some(key.name.to_owned()), fault })
        });
        unknown.collect()
    }

    fn lay(&mut self, given: Given) {
        given.key.set(&mut self.config, given.value);
        self.origins.insert(given.key.name, given.origin);
    }
}

impl ConfigSource {
    /// Whether to read the file: one that was named must exist; others may be missing.
    fn counts(&self) -> bool {
        self.layer == Layer::Given || !matches!(self.path.try_exists(), Ok(false))
    }
}

/// Reads those files that exist.
fn read_all(
    files: &[ConfigSource],
    mut read: impl FnMut(&str, &Path) -> Vec<Problem>,
) -> Vec<Problem> {
    let there = files.iter().filter(|it| !matches!(it.path.try_exists(), Ok(false)));
    let problems = there.map(|ConfigSource { path, .. }| match file::text(path) {
        Ok(text) => read(&text, path),
        Err(error) => vec![unreadable(path, &error)],
    });
    problems.flatten().collect()
}

/// The rules of one policy file alone.
///
/// # Errors
/// It cannot be read, or has problems.
pub fn rules_in(path: &Path, tools: ToolNames) -> Result<PolicyRules, ConfigError> {
    let mut rules = PolicyRules::default();
    let problems = match file::text(path) {
        Ok(text) => policy::read(&text, path, tools, &mut rules),
        Err(error) => vec![unreadable(path, &error)],
    };
    if problems.is_empty() { Ok(rules) } else { Err(ConfigError(problems)) }
}

fn unreadable(path: &Path, error: &io::Error) -> Problem {
    let fault = if error.kind() == io::ErrorKind::FileTooLarge {
        Fault::TooLarge(FILE_MAX)
    } else {
        Fault::Unreadable(error.to_string())
    };
    let origin = ValueOrigin::File { path: path.to_owned(), at: None };
    Problem { origin, key: None, fault }
}

/// Finds the project file for a directory: the nearest one, up to the repository root or the home directory.
///
/// Outside of both, only the directory itself is searched, because any user can write to directories such as
/// `/tmp`.
fn find_project(directory: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let is_top = |place: &Path| Some(place) == home || place.join(".git").exists();
    let levels = directory.ancestors().position(is_top).unwrap_or(0);
    let mut files = directory.ancestors().take(levels + 1).map(|place| place.join(PROJECT));
    // Opening a pipe of that name would block.
    files.find(|path| path.is_file())
}

#[cfg(test)]
mod tests;
