//! The facts of one call, by which rules judge it.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::core::command_line::{LineWord, ParsedCommandLine, ProgramCall};
use crate::core::policy::roles::{Role, Roles};
use crate::core::shell::activity::ActivityState;

/// The doors, by the words that records have for them.
const DOORS: [&str; 5] = ["gateway", "observer_gateway", "session", "observer", "operator"];
const ROLES: [&str; 4] = ["view", "write", "approve", "operate"];

/// In how many directories a file of a line may be.
const DIRECTORIES_MAX: usize = 16;

/// What a terminal can be known to do.
const TERMINALS: [&str; 6] =
    ["prompt", "running", "needs_input", "secret_prompt", "full_screen", "exited"];

/// A fact by which a rule can judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fact {
    /// What the client calls itself. Any client can call itself so.
    Client,
    /// The name of the token that was shown.
    Token,
    Tenant,
    /// The roles of the caller in its tenant, or in that of the session, as a whole.
    Role,
    Door,
    Tool,
    /// The mount of the tool, as `MOUNT` and as `MOUNT/TOOL` with the server's own name of the tool.
    Mount,
    /// The name of the session.
    Session,
    /// The tags of the session, any of which may match.
    Tags,
    /// Where the program in front works.
    Directory,
    /// What the terminal is doing.
    Terminal,
    /// The name of the program in front.
    Foreground,
}

impl Fact {
    pub const ALL: [Self; 12] = [
        Self::Client,
        Self::Token,
        Self::Tenant,
        Self::Role,
        Self::Door,
        Self::Tool,
        Self::Mount,
        Self::Session,
        Self::Tags,
        Self::Directory,
        Self::Terminal,
        Self::Foreground,
    ];

    /// Its name in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Token => "token",
            Self::Tenant => "tenant",
            Self::Role => "role",
            Self::Door => "door",
            Self::Tool => "tool",
            Self::Mount => "mount",
            Self::Session => "session",
            Self::Tags => "tags",
            Self::Directory => "directory",
            Self::Terminal => "terminal",
            Self::Foreground => "foreground",
        }
    }

    /// Whether a caller or its program chooses the value, so that nothing can be allowed by it.
    pub fn is_chosen(self) -> bool {
        match self {
            Self::Client | Self::Session | Self::Tags | Self::Foreground => true,
            Self::Token
            | Self::Tenant
            | Self::Role
            | Self::Door
            | Self::Tool
            | Self::Mount
            | Self::Directory
            | Self::Terminal => false,
        }
    }

    /// All values that it can have, if they are few.
    pub fn words(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Door => Some(&DOORS),
            Self::Role => Some(&ROLES),
            Self::Terminal => Some(&TERMINALS),
            Self::Client
            | Self::Token
            | Self::Tenant
            | Self::Tool
            | Self::Mount
            | Self::Session
            | Self::Tags
            | Self::Directory
            | Self::Foreground => None,
        }
    }
}

/// What is known about the session of a call.
#[derive(Clone, Debug, Default)]
pub struct SessionFacts {
    pub name: String,
    pub tags: Vec<String>,
    pub directory: Option<String>,
    pub terminal: ActivityState,
    pub foreground: Option<String>,
}

/// What is known about a call.
#[derive(Clone, Debug, Default)]
pub struct CallFacts<'a> {
    pub client: &'a str,
    pub token: Option<&'a str>,
    pub tenant: &'a str,
    pub roles: Roles,
    pub door: &'static str,
    pub tool: &'a str,
    /// The mount of the tool, and the server's own name of the tool behind it: `fs` and `fs/read_file`.
    pub mount: Option<(&'a str, String)>,
    /// None for a call that is about no session.
    pub session: Option<SessionFacts>,
    /// Texts as they are, anything else as JSON.
    pub arguments: BTreeMap<String, String>,
    /// The command line that it runs or types, if it does and that is known.
    pub line: Option<&'a ParsedCommandLine>,
    /// The same as it is written.
    pub text: Option<&'a str>,
    /// Whether it types what is not known whole to be a command line.
    pub raw_input: bool,
}

impl CallFacts<'_> {
    /// The values of a fact; `None` if they are not known.
    pub fn values(&self, fact: Fact) -> Option<Vec<&str>> {
        let Some(session) = &self.session else { return Some(self.own_value(fact)) };
        match fact {
            Fact::Session => Some(vec![&session.name]),
            Fact::Tags => Some(session.tags.iter().map(String::as_str).collect()),
            Fact::Directory => session.directory.as_deref().map(|value| vec![value]),
            Fact::Terminal if session.terminal == ActivityState::Unknown => None,
            Fact::Terminal => Some(vec![session.terminal.as_str()]),
            Fact::Foreground => session.foreground.as_deref().map(|value| vec![value]),
            Fact::Client
            | Fact::Token
            | Fact::Tenant
            | Fact::Role
            | Fact::Door
            | Fact::Tool
            | Fact::Mount => Some(self.own_value(fact)),
        }
    }

    /// The value of a fact that needs no session.
    fn own_value(&self, fact: Fact) -> Vec<&str> {
        match fact {
            Fact::Client => vec![self.client],
            Fact::Token => self.token.into_iter().collect(),
            Fact::Tenant => vec![self.tenant],
            Fact::Role => {
                let has = |role: &Role| self.roles.has(*role);
                Role::ALL.into_iter().filter(has).map(Role::as_str).collect()
            }
            Fact::Door => vec![self.door],
            Fact::Tool => vec![self.tool],
            Fact::Mount => {
                let values = self.mount.iter();
                values.flat_map(|(mount, whole)| [*mount, whole.as_str()]).collect()
            }
            Fact::Session | Fact::Tags | Fact::Directory | Fact::Terminal | Fact::Foreground => {
                Vec::new()
            }
        }
    }

    /// The absolute paths that a file of a line may have, without looking at the disk; `None` if that is not known. Where
    /// the line changes its directory, a file may be in each of them. Links are not followed.
    pub fn paths(&self, line: &ParsedCommandLine, file: &str) -> Option<Vec<String>> {
        // What `~` and `~ada` stand for is not known, but that it is a directory of its own.
        let is_home = |path: &Path| path.to_string_lossy().starts_with('~');
        let is_whole = |path: &Path| path.is_absolute() || is_home(path);
        let file = Path::new(file);
        if is_home(file) && file.components().any(|it| it == Component::ParentDir) {
            return None;
        }
        if is_whole(file) {
            return Some(vec![plain(file)]);
        }
        let mut directories = vec![PathBuf::from(self.session.as_ref()?.directory.as_deref()?)];
        for call in &line.calls {
            match call.name.as_deref() {
                Some("cd") => {}
                None | Some("pushd" | "popd") => return None,
                Some("env" | "sudo" | "find") if changes_directory(call) => return None,
                Some(_) => continue,
            }
            let next = match call.operands.as_slice() {
                [] if call.arguments.is_empty() => Path::new("~"),
                [LineWord::Known(next)] if next != "-" => Path::new(next),
                _ => return None,
            };
            match is_whole(next) {
                true => directories.push(next.to_owned()),
                false => {
                    let below: Vec<_> = directories.iter().map(|it| it.join(next)).collect();
                    directories.extend(below);
                }
            }
            if directories.len() > DIRECTORIES_MAX {
                return None;
            }
        }
        Some(directories.iter().map(|it| plain(&it.join(file))).collect())
    }
}

/// Whether a program has what it runs work in another directory.
fn changes_directory(call: &ProgramCall) -> bool {
    let is_of_find = |it: &LineWord| matches!(it.text(), Some("-execdir" | "-okdir"));
    ["C", "D", "chdir"].iter().any(|flag| call.flags.contains(*flag))
        || call.arguments.iter().any(is_of_find)
}

/// The same path without `.`, `..` and slashes that mean nothing.
pub(super) fn plain_path(text: &str) -> String {
    plain(Path::new(text))
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> String {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = plain.pop(),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::ids::SessionId;
    use crate::core::policy::Door;

    #[test]
    fn the_words_of_a_fact_are_all_that_it_can_be() {
        let session = SessionId::from_random(uuid::Uuid::nil());
        let doors = [
            Door::Gateway,
            Door::ObserverGateway,
            Door::Session(session),
            Door::Observer(session),
            Door::Operator,
        ];
        assert_eq!(doors.map(Door::as_str), DOORS);
        assert_eq!(Role::ALL.map(Role::as_str), ROLES);
        let states = [
            ActivityState::Prompt,
            ActivityState::Running,
            ActivityState::NeedsInput,
            ActivityState::SecretPrompt,
            ActivityState::FullScreen,
            ActivityState::Exited,
        ];
        assert_eq!(states.map(ActivityState::as_str), TERMINALS);
    }

    #[test]
    fn a_path_is_made_absolute_only_where_its_directory_is_known() {
        let session = SessionFacts { directory: Some("/srv/www".into()), ..Default::default() };
        let call = CallFacts { session: Some(session), ..CallFacts::default() };
        let paths = |line: &str, file: &str| {
            call.paths(&ParsedCommandLine::parse(line), file).map(|paths| paths.join(" "))
        };
        assert_eq!(paths("echo", "../etc/./x"), Some("/srv/etc/x".into()));
        assert_eq!(paths("echo", "/a/../../b"), Some("/b".into()));
        assert_eq!(paths("cd /; echo", "x"), Some("/srv/www/x /x".into()));
        assert_eq!(paths("cd /; cd a", "x"), Some("/srv/www/x /x /srv/www/a/x /a/x".into()));
        assert_eq!(paths("cd", "x"), Some("/srv/www/x ~/x".into()));
        for line in ["$X; echo", "cd $X", "cd -", "cd a b", "pushd a", &"cd a;".repeat(5)] {
            assert_eq!(paths(line, "x"), None, "{line}");
        }
        assert_eq!(paths("echo", "~/../x"), None);
        let nowhere = CallFacts::default();
        assert_eq!(nowhere.paths(&ParsedCommandLine::parse("echo"), "x"), None);
        assert_eq!(nowhere.paths(&ParsedCommandLine::parse("cd"), "/x"), Some(vec!["/x".into()]));
    }
}
