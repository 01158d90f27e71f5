//! Why a command failed: its exit code, its error code, and what to do about it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use crate::cli::exit::CommandExit;
use crate::cli::hint;
use crate::config::paths::RuntimePaths;
use crate::config::problem::{ConfigError, Problem};
use crate::core::code::Code;
use crate::core::token::NotAdded;
use crate::session::pty::environment::SESSION_MARK;
use crate::session::pty::sidecar_files::Remains;
use crate::transport::client::{ClientError, ConnectError};
use crate::transport::daemon::DaemonError;
use crate::transport::tokens::{SecretError, StoreError};
use crate::transport::unix::impostor::Impostor;
use crate::transport::unix::lock::LockError;
use crate::wire::error::{ErrorWire, RefusalCause};

/// JSON-RPC's codes for an unknown method or tool, and for invalid parameters.
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

/// Parameters of calls, each with what a person types for it, such as a flag.
pub type TypedNames = &'static [(&'static str, &'static str)];

#[derive(Debug, thiserror::Error)]
pub enum CliFailure {
    /// The command line is invalid.
    #[error("{0}")]
    Usage(String),
    /// The configuration is invalid.
    #[error("{error}")]
    Config { error: ConfigError, details: Value },
    /// There is no daemon at the socket.
    #[error("{source} at {}", path.display())]
    Unreachable {
        path: PathBuf,
        source: ConnectError,
        /// Whether to start one would help.
        start_helps: bool,
    },
    /// The daemon closed the connection of a program inside a session.
    #[error("the daemon at {} does not let in what runs inside a session", .0.display())]
    Inside(PathBuf),
    /// A daemon was started but does not answer.
    #[error("the daemon did not start{}; its log is {}", said.as_ref().map(|said| format!(": {said}")).unwrap_or_default(), log.display())]
    NotStarted { log: PathBuf, said: Option<String> },
    /// The tool returned an error.
    #[error("{}", error.message)]
    Tool {
        error: Box<ErrorWire>,
        /// The session of the call.
        session: Option<Box<str>>,
    },
    /// A tool of a mounted server ran and says that it failed.
    #[error("{text}")]
    ToolFailed { text: String, result: Value },
    /// What was named does not exist, such as a command of a session.
    #[error("{why}")]
    NotFound { why: String, hint: String },
    /// The daemon exited while a command ran.
    #[error("{what}")]
    Left { what: &'static str, hint: String, details: Value },
    /// The daemon refused the request itself, or closed the connection.
    #[error(transparent)]
    Request(#[from] ClientError),
    /// The daemon did not stop in time.
    #[error("the daemon is still running after {} s", .0.as_secs())]
    StillRunning(Duration),
    /// A daemon runs already.
    #[error("cannot run the daemon: {0}")]
    Running(LockError),
    /// The daemon did not return from an upgrade in time.
    #[error("the daemon is not back after {} s; its sessions keep running, and the next daemon resumes them", .0.as_secs())]
    NotBack(Duration),
    /// A client was not configured, and its file is unchanged.
    #[error("{} is left as it is: {why}", file.display())]
    ClientFile { file: PathBuf, why: String, hint: String },
    /// No client is installed.
    #[error("no supported MCP client found")]
    NoClient { hint: String },
    #[error("{title} has no directory of skills")]
    NoSkills { title: &'static str },
    /// A token could not be created, shown or revoked.
    #[error(transparent)]
    Tokens(#[from] StoreError),
    #[error("the token file {} is not used: {source}", path.display())]
    TokenFile { path: PathBuf, source: SecretError },
    /// Standard output failed.
    #[error("cannot print: {0}")]
    Output(#[source] io::Error),
    /// Any failure outside the daemon.
    #[error("{0:#}")]
    Other(#[from] anyhow::Error),
}

impl From<io::Error> for CliFailure {
    fn from(error: io::Error) -> Self {
        Self::Other(error.into())
    }
}

impl CliFailure {
    /// The failure when no daemon answers at a path, or takes this client.
    pub fn unreachable(path: PathBuf, source: ConnectError) -> Self {
        if let ConnectError::Rejected(error) = source {
            return Self::of_tool(*error);
        }
        let inside = std::env::var_os(SESSION_MARK).is_some();
        if inside && matches!(source, ConnectError::HungUp) {
            return Self::Inside(path);
        }
        Self::Unreachable { path, source, start_helps: true }
    }

    /// The failure of a command that wanted no daemon to be started.
    pub fn without_start(mut self) -> Self {
        if let Self::Unreachable { start_helps, .. } = &mut self {
            *start_helps = false;
        }
        self
    }

    /// Whether standard output was closed.
    pub fn is_unread(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The exit code, which follows from the error code.
    pub fn exit(&self) -> CommandExit {
        if self.is_unread() {
            // The reader has seen enough.
            CommandExit::Done
        } else {
            match self.refusal() {
                Some(RefusalCause::NotFound) => CommandExit::NotFound,
                Some(RefusalCause::DaemonLeaves) => CommandExit::Unreachable,
                Some(_) | None if matches!(self, Self::NotFound { .. }) => CommandExit::NotFound,
                None if self.is_of_leaving_daemon() => CommandExit::Unreachable,
                Some(_) | None => self.code().map_or(CommandExit::Failed, CommandExit::of_error),
            }
        }
    }

    /// What sets the daemon's error apart from others of its code.
    fn refusal(&self) -> Option<RefusalCause> {
        self.told()?.refusal()
    }

    /// Whether an older daemon, which gives no cause, leaves. Errors of mounts have hints of their own.
    fn is_of_leaving_daemon(&self) -> bool {
        let code = Code::UpstreamUnavailable;
        self.told().is_some_and(|error| error.code() == code && error.hint == code.advice())
    }

    /// The daemon's error.
    fn told(&self) -> Option<Cow<'_, ErrorWire>> {
        if let Self::Tool { error, .. } = self {
            return Some(Cow::Borrowed(error));
        }
        let Self::Request(ClientError::Refused { data: Some(data), .. }) = self else {
            return None;
        };
        ErrorWire::deserialize(data).ok().map(Cow::Owned)
    }

    /// The error code; none for what a tool of a mounted server says. A later daemon's code may be unknown here.
    pub fn code(&self) -> Option<&str> {
        let code = match self {
            Self::Tool { error, .. } => return Some(&error.error_code),
            Self::ToolFailed { .. } => return None,
            Self::Request(error) => return Some(code_of(error)),
            Self::Usage(_) | Self::NotFound { .. } | Self::NoSkills { .. } => Code::InvalidArgument,
            Self::Config { .. } => Code::InvalidConfiguration,
            Self::Unreachable { .. }
            | Self::NotStarted { .. }
            | Self::NotBack(_)
            | Self::Left { .. } => Code::DaemonUnreachable,
            Self::Inside(_) => Code::PolicyDenied,
            Self::StillRunning(_) => Code::Timeout,
            Self::Running(_) => Code::DaemonRunning,
            Self::ClientFile { .. } => Code::ClientConfig,
            Self::NoClient { .. } => Code::ClientNotFound,
            Self::Tokens(error) => code_of_tokens(error),
            Self::TokenFile { .. } => Code::TokenFile,
            Self::Output(_) | Self::Other(_) => Code::Internal,
        };
        Some(code.as_str())
    }

    /// What to do about it, if there is advice.
    pub fn hint(&self) -> Option<String> {
        let fixed = match self {
            Self::Unreachable {
                path,
                source: ConnectError::Absent | ConnectError::Refused,
                start_helps,
            } => match (sessions_wait_beside(path), start_helps) {
                (true, _) => Some("sessions wait for the next daemon; `termgate serve` starts one"),
                (false, true) => Some("`termgate new` starts one, and so does `termgate serve`"),
                (false, false) => None,
            },
            Self::Tool { error, session } => return hint::of_error(error, session.as_deref()),
            Self::Request(ClientError::Refused { data: Some(data), .. }) => {
                let error = ErrorWire::deserialize(data).ok()?;
                return hint::of_error(&error, None);
            }
            Self::NotFound { hint, .. }
            | Self::Left { hint, .. }
            | Self::ClientFile { hint, .. }
            | Self::NoClient { hint } => return Some(hint.clone()),
            Self::NoSkills { .. } => Some("name a directory with --dir"),
            Self::Inside(_) => Some(
                "this runs inside a session of termgate, where no program is an operator; run it in a \
                 terminal outside of it",
            ),
            Self::Tokens(error) => return Some(hint::advice(code_of_tokens(error))),
            Self::TokenFile { .. } => return Some(hint::advice(Code::TokenFile)),
            Self::Running(LockError::Held { pid: Some(pid) }) => {
                return Some(format!(
                    "use that one, or end it with `termgate stop`. If it does not answer, `kill -CONT \
                     {pid}` resumes a suspended one, and `kill -9 {pid}` ends it; the next daemon \
                     resumes its sessions"
                ));
            }
            Self::Running(_) => return Some(hint::advice(Code::DaemonRunning)),
            Self::Request(ClientError::Closed) => Some(
                "it ended, or was upgraded; sessions that still run keep their ids. If this command \
                 changes anything, check whether it did before you run it again",
            ),
            Self::Unreachable { source: ConnectError::Impostor(Impostor::User { .. }), .. } => {
                Some(
                    "nothing was sent to it. If you mean the daemon of that user, name its socket: \
                 `--socket PATH` or TERMGATE_SOCKET",
                )
            }
            Self::Unreachable {
                source: ConnectError::Impostor(Impostor::Directory { .. }),
                ..
            } => Some(
                "nothing was sent to it. The socket's directory must belong to that user, and only \
                 that user and root may write to it and to the directories above",
            ),
            Self::Unreachable { source: ConnectError::Impostor(_), .. } => Some(
                "nothing was sent to it. Find out what it is (`ps`) and end it, then start the daemon; \
                 `termgate doctor` says what else is wrong",
            ),
            Self::Unreachable { .. }
            | Self::ToolFailed { .. }
            | Self::Usage(_)
            | Self::Config { .. }
            | Self::NotStarted { .. }
            | Self::Request(_)
            | Self::StillRunning(_)
            | Self::NotBack(_)
            | Self::Output(_)
            | Self::Other(_) => None,
        };
        fixed.map(str::to_owned)
    }

    /// The invalid parameter, if the daemon names one.
    pub fn parameter(&self) -> Option<&str> {
        if let Self::Request(ClientError::Refused { data: Some(data), .. }) = self {
            return data.pointer("/details/parameter")?.as_str();
        }
        let Self::Tool { error, .. } = self else { return None };
        error.details.as_ref()?.parameter.as_deref()
    }

    /// The failure with a message that names what a person typed instead of the parameter.
    pub fn as_typed(mut self, names: TypedNames) -> Self {
        let parameter = self.parameter();
        let known = parameter.and_then(|it| names.iter().find(|(name, _)| *name == it));
        let Some((parameter, typed)) = known else { return self };
        let name_it = |message: &mut String| {
            let problem = message.strip_prefix(parameter).filter(|rest| rest.starts_with(": "));
            if let Some(problem) = problem {
                *message = format!("{typed}{problem}");
            }
        };
        if let Self::Tool { error, .. } = &mut self {
            name_it(&mut error.message);
        } else if let Self::Request(ClientError::Refused { message, .. }) = &mut self {
            name_it(message);
        }
        self
    }

    /// The failure with hints that name the session as a person typed it.
    pub fn in_session(mut self, typed: &str) -> Self {
        if let Self::Tool { session, .. } = &mut self {
            *session = Some(typed.into());
        }
        self
    }

    /// Further members of the error, for programs.
    pub fn details(&self) -> Value {
        if let Self::Config { details, .. } | Self::Left { details, .. } = self {
            return details.clone();
        }
        if let Self::ToolFailed { result, .. } = self {
            return result.clone();
        }
        let Self::Tool { error, .. } = self else { return Value::Null };
        let mut facts = Map::new();
        facts.extend(error.retry_after_ms.map(|it| ("retry_after_ms".into(), it.into())));
        facts.extend(error.details.as_ref().map(|it| ("details".into(), json!(it))));
        if facts.is_empty() { Value::Null } else { Value::Object(facts) }
    }

    /// The failure that a tool or the daemon answered with.
    pub fn of_tool(error: ErrorWire) -> Self {
        Self::Tool { error: Box::new(error), session: None }
    }
}

impl From<ConfigError> for CliFailure {
    fn from(error: ConfigError) -> Self {
        let details = json!({"problems": told_problems(&error.0)});
        Self::Config { error, details }
    }
}

impl From<DaemonError> for CliFailure {
    fn from(error: DaemonError) -> Self {
        match error {
            DaemonError::Lock(held @ LockError::Held { .. }) => Self::Running(held),
            DaemonError::Lock(LockError::Io { .. })
            | DaemonError::Directory(_)
            | DaemonError::Bind(_)
            | DaemonError::Handed(_)
            | DaemonError::Superseded
            | DaemonError::System(_) => {
                Self::Other(anyhow::Error::new(error).context("cannot run the daemon"))
            }
        }
    }
}

/// The problems of a configuration, for programs.
pub fn told_problems(problems: &[Problem]) -> Vec<Value> {
    let told = |problem: &Problem| {
        let (at, message) = (problem.origin.to_string(), problem.fault.to_string());
        json!({"at": at, "key": problem.key, "message": message})
    };
    problems.iter().map(told).collect()
}

fn code_of(error: &ClientError) -> &str {
    let code = match error {
        ClientError::Closed => Code::DaemonUnreachable,
        ClientError::TooLarge { .. } => Code::TooLarge,
        ClientError::Malformed => Code::Internal,
        ClientError::Refused { code, data, .. } => {
            let told = data.as_ref().and_then(|data| data["error_code"].as_str());
            if let Some(told) = told {
                return told;
            }
            match *code {
                METHOD_NOT_FOUND | INVALID_PARAMS => Code::InvalidArgument,
                _ => Code::Internal,
            }
        }
    };
    code.as_str()
}

fn code_of_tokens(error: &StoreError) -> Code {
    match error {
        StoreError::NotAdded(NotAdded::NameTaken(_)) => Code::TokenExists,
        StoreError::NotAdded(NotAdded::TooMany) => Code::QuotaExceeded,
        StoreError::NoSuchToken(_) => Code::TokenNotFound,
        StoreError::Secret { .. } => Code::TokenFile,
        StoreError::Unreadable { .. }
        | StoreError::Malformed { .. }
        | StoreError::Unwritable { .. } => Code::StorageError,
        StoreError::NoRandom(_) => Code::Internal,
    }
}

/// Whether the directory of this socket has sessions without a daemon.
fn sessions_wait_beside(socket: &Path) -> bool {
    let paths = socket.parent().and_then(|root| RuntimePaths::at(root.to_owned()).ok());
    let held = paths.and_then(|paths| fs::read_dir(paths.shims()).ok());
    let is_session = |entry: fs::DirEntry| {
        entry.file_name().to_str().is_some_and(|name| Remains::session_of(name).is_some())
    };
    held.is_some_and(|held| held.flatten().any(is_session))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::problem::{Fault, ValueOrigin};

    fn refused(code: i64, data: Option<Value>) -> CliFailure {
        CliFailure::Request(ClientError::Refused { code, message: "no".to_owned(), data })
    }

    #[test]
    fn no_daemon_ends_with_seven_and_the_way_to_start_one() {
        let path = PathBuf::from("/run/operator.sock");
        let failure = CliFailure::unreachable(path, ConnectError::Absent);
        assert_eq!(failure.exit().number(), 7);
        assert_eq!(failure.to_string(), "no daemon is running at /run/operator.sock");
        assert!(failure.hint().is_some_and(|hint| hint.contains("termgate new")));
        assert_eq!(failure.without_start().hint(), None);
        assert_eq!(CliFailure::Request(ClientError::Closed).exit().number(), 7);
    }

    #[test]
    fn a_wrong_configuration_ends_with_two_and_tells_each_mistake() {
        let problem = Problem {
            origin: ValueOrigin::Variable("TERMGATE_LEASE__TTL".to_owned()),
            key: Some("lease.ttl".to_owned()),
            fault: Fault::Unknown(None),
        };
        let failure = CliFailure::from(ConfigError(vec![problem.clone(), problem]));
        assert_eq!(
            (failure.exit(), failure.code()),
            (CommandExit::Usage, Some("invalid_configuration"))
        );
        assert_eq!(failure.to_string().lines().count(), 3);
        let told = &failure.details()["problems"][1];
        let expected =
            json!({"at": "TERMGATE_LEASE__TTL", "key": "lease.ttl", "message": "unknown key"});
        assert_eq!(*told, expected);
    }

    #[test]
    fn every_code_the_command_line_answers_by_itself_is_explained_by_why() {
        let file = || PathBuf::from("/f");
        let failures = [
            CliFailure::Usage("u".to_owned()),
            CliFailure::NotFound { why: "w".to_owned(), hint: "h".to_owned() },
            CliFailure::Left { what: "gone", hint: "look".to_owned(), details: Value::Null },
            CliFailure::from(ConfigError(Vec::new())),
            CliFailure::unreachable(file(), ConnectError::Absent),
            CliFailure::Inside(file()),
            CliFailure::NotStarted { log: file(), said: None },
            CliFailure::Request(ClientError::Closed),
            CliFailure::Request(ClientError::TooLarge { bytes: 1 }),
            CliFailure::Request(ClientError::Malformed),
            refused(METHOD_NOT_FOUND, None),
            CliFailure::StillRunning(Duration::ZERO),
            CliFailure::NotBack(Duration::ZERO),
            CliFailure::NoClient { hint: String::new() },
            CliFailure::ClientFile { file: file(), why: "w".to_owned(), hint: String::new() },
            CliFailure::Output(io::ErrorKind::StorageFull.into()),
        ];
        for failure in failures {
            assert!(failure.code().and_then(Code::parse).is_some(), "{failure:?}");
        }
    }

    fn of_tool(error: Value) -> CliFailure {
        CliFailure::of_tool(serde_json::from_value(error).unwrap())
    }

    #[test]
    fn an_error_of_a_tool_keeps_its_code_and_its_facts() {
        let failure = of_tool(json!({
            "error_code": "lease_held", "message": "taken", "hint": "wait",
            "retry_after_ms": 7, "details": {"by": "a"},
        }));
        assert_eq!(failure.code(), Some("lease_held"));
        assert_eq!(failure.to_string(), "taken");
        assert_eq!(failure.details(), json!({"retry_after_ms": 7, "details": {"by": "a"}}));
        assert_eq!(failure.exit(), CommandExit::LeaseConflict);
        let busy = of_tool(json!({"error_code": "busy", "message": "m", "hint": "h"}));
        assert_eq!((busy.details(), busy.hint().as_deref()), (Value::Null, Some("h")));
    }

    #[test]
    fn a_message_names_what_was_typed_for_the_parameter() {
        let names: TypedNames = &[("wait_ms", "--wait")];
        let refused = |parameter: &str, message: &str| {
            let details = json!({"parameter": parameter});
            let error = json!({
                "error_code": "invalid_argument", "message": message, "hint": "h", "details": details,
            });
            of_tool(error).as_typed(names).to_string()
        };
        assert_eq!(refused("wait_ms", "wait_ms: too long"), "--wait: too long");
        assert_eq!(refused("wait_ms", "wait_ms is too long"), "wait_ms is too long");
        assert_eq!(refused("other", "other: too long"), "other: too long");
    }

    #[test]
    fn a_refused_request_counts_by_the_code_it_carries_and_else_by_the_protocols() {
        let data = json!({"error_code": "session_not_found", "message": "m", "hint": "list them"});
        let failure = refused(INVALID_PARAMS, Some(data));
        assert_eq!(failure.exit(), CommandExit::NotFound);
        assert!(failure.hint().is_some_and(|hint| hint.contains("termgate ls")));
        assert_eq!(refused(METHOD_NOT_FOUND, None).exit(), CommandExit::Usage);
        assert_eq!(refused(-32603, None).exit(), CommandExit::Failed);
    }

    #[test]
    fn what_does_not_exist_ends_with_three_and_a_leaving_daemon_with_seven() {
        let exit = |code: &str, cause: Option<&str>| {
            let details = json!({"cause": cause});
            of_tool(json!({"error_code": code, "message": "m", "hint": "h", "details": details}))
                .exit()
        };
        assert_eq!(exit("invalid_argument", Some("not_found")), CommandExit::NotFound);
        assert_eq!(exit("invalid_argument", None), CommandExit::Usage);
        assert_eq!(exit("upstream_unavailable", Some("daemon_leaves")), CommandExit::Unreachable);
        assert_eq!(exit("upstream_unavailable", None), CommandExit::Failed);
        // Older daemons give no cause.
        let leaves = ErrorWire::new(Code::UpstreamUnavailable, "the daemon ends");
        let data = serde_json::to_value(&leaves).unwrap();
        assert_eq!(CliFailure::of_tool(leaves).exit(), CommandExit::Unreachable);
        assert_eq!(refused(INVALID_PARAMS, Some(data)).exit(), CommandExit::Unreachable);
    }

    #[test]
    fn what_a_tool_of_a_mounted_server_says_is_its_failure_without_a_code() {
        let failure = CliFailure::ToolFailed { text: "bad".to_owned(), result: json!({"n": 1}) };
        assert_eq!((failure.code(), failure.hint()), (None, None));
        assert_eq!((failure.to_string().as_str(), failure.exit()), ("bad", CommandExit::Failed));
        assert_eq!(failure.details(), json!({"n": 1}));
    }

    #[test]
    fn a_reader_who_has_seen_enough_is_no_failure() {
        let failure = CliFailure::Output(io::ErrorKind::BrokenPipe.into());
        assert_eq!(failure.exit(), CommandExit::Done);
        assert_eq!(
            CliFailure::Output(io::ErrorKind::StorageFull.into()).exit(),
            CommandExit::Failed
        );
    }
}
