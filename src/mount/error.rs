//! Why a mount did not answer a call.

use std::time::Duration;

use crate::core::mount::{MountName, SERVERS_MAX};
use crate::mount::json::{ExactJson, ExactObject};
use crate::mount::link::lines::MESSAGE_MAX;

/// The protocol's code of an error that wants links to be opened first.
pub const LINK_NEEDED: i64 = -32042;

/// The most data of an error that reaches clients, in bytes of JSON.
pub const DATA_MAX: usize = 64 * 1024;

/// The member of its data that has the links.
pub const LINKS: &str = "elicitations";

/// Why a call of a mounted tool failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MountError {
    /// The server was not asked: it does not start, or waits before it starts again.
    #[error("the mount `{mount}` does not run: {problem}")]
    Unavailable { mount: MountName, problem: String, retry_after: Option<Duration> },
    /// The server lists other tools than those that were accepted.
    #[error("the mount `{mount}` has changed its tools since they were accepted")]
    Changed { mount: MountName },
    /// Too many calls wait for the server.
    #[error("too many calls wait for the mount `{mount}`")]
    Busy { mount: MountName },
    /// The server does not read what is written to it.
    #[error("the mount `{mount}` does not read its input")]
    NotReading { mount: MountName },
    /// Each client has a server of its own, and there are too many clients.
    #[error("{SERVERS_MAX} clients use the mount `{mount}` already, each with a server of its own")]
    TooManyClients { mount: MountName },
    /// One client has too many calls of the server.
    #[error("{most} calls of this client wait for the mount `{mount}` already")]
    TooManyCalls { mount: MountName, most: usize },
    /// The server has answered, and there is no memory for it, because earlier answers are not read.
    #[error(
        "an answer of the mount `{mount}` was dropped: too many answers before it are not read"
    )]
    Unread { mount: MountName },
    /// The server ended before it answered.
    #[error("the mount `{mount}` ended before it answered")]
    Restarted { mount: MountName },
    /// The server was started again since the caller relied on its state. It was not asked.
    #[error("the mount `{mount}` was started again, and has lost its state")]
    StateLost { mount: MountName },
    /// The caller's lease ended before the server answered; the call was cancelled.
    #[error("the lease of the mount `{mount}` ended before it answered")]
    LeaseEnded { mount: MountName },
    /// The server did not answer in time; the call was cancelled.
    #[error("the mount `{mount}` did not answer within {} ms", after.as_millis())]
    TimedOut { mount: MountName, after: Duration },
    /// The task as which the server ran the call was not done in time; it was cancelled.
    #[error("the task of the mount `{mount}` was not done within {} ms", after.as_millis())]
    TaskTooLong { mount: MountName, after: Duration },
    /// The server's answer is longer than a message may be, and was dropped.
    #[error("the mount `{mount}` answered with more than {} MiB", MESSAGE_MAX >> 20)]
    TooLong { mount: MountName },
    /// The server's answer is not of the protocol.
    #[error("the mount `{mount}` answered what is not of the protocol: {problem}")]
    Malformed { mount: MountName, problem: String },
    /// The server does not tell when its resources change.
    #[error("the mount `{mount}` does not tell when its resources change")]
    Untold { mount: MountName },
    /// The server asks for input instead of an answer, and does not get it.
    #[error("the mount `{mount}` asks for input that it does not get: {problem}")]
    NoInput { mount: MountName, problem: String },
    /// Too many resources of the mount are subscribed to, by all or by this client.
    #[error("too many resources of the mount `{mount}` are subscribed to")]
    TooManyWatched { mount: MountName },
    /// The person has to open links before the server takes the call. The data is that of the server's error.
    #[error("the mount `{mount}` wants {} to be opened first: {message}", addresses(data).join(" and "))]
    LinkNeeded { mount: MountName, message: String, data: ExactObject },
    /// The server refused the call with an error of the protocol, which may have no code. Too long data is left out.
    #[error("the mount `{mount}` refused the call{}: {message}", code.map(|it| format!(" ({it})")).unwrap_or_default())]
    Refused { mount: MountName, code: Option<i64>, message: String, data: Option<ExactJson> },
}

impl MountError {
    /// Whether the call may have had an effect.
    pub fn had_effect(&self) -> bool {
        match self {
            Self::Unread { .. }
            | Self::Restarted { .. }
            | Self::LeaseEnded { .. }
            | Self::TimedOut { .. }
            | Self::TaskTooLong { .. }
            | Self::TooLong { .. }
            | Self::Malformed { .. }
            | Self::NoInput { .. } => true,
            Self::Unavailable { .. }
            | Self::Changed { .. }
            | Self::Busy { .. }
            | Self::NotReading { .. }
            | Self::TooManyClients { .. }
            | Self::TooManyCalls { .. }
            | Self::StateLost { .. }
            | Self::Untold { .. }
            | Self::TooManyWatched { .. }
            | Self::LinkNeeded { .. }
            | Self::Refused { .. } => false,
        }
    }
}

/// The links in the data of an error that wants them to be opened.
pub fn links(data: &ExactObject) -> impl Iterator<Item = &ExactObject> {
    let all = data.get(LINKS).map(ExactJson::items).unwrap_or_default();
    all.iter().filter_map(ExactJson::as_object)
}

fn addresses(data: &ExactObject) -> Vec<&str> {
    links(data).filter_map(|link| link.text("url")).collect()
}

/// Why an operator's wish about a mount was not fulfilled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManageError {
    #[error("there is no mount `{0}`")]
    Unknown(String),
    #[error("the mount `{0}` has no changed tools to accept")]
    NothingChanged(MountName),
    /// They are not those that the operator has seen.
    #[error("the mount `{0}` lists other tools by now; nothing is accepted")]
    OtherTools(MountName),
    #[error("the accepted tools of `{mount}` cannot be kept: {problem}")]
    NotKept { mount: MountName, problem: String },
}
