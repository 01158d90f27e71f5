//! `termgate/reload` and `termgate/approve_for_good`: an operator has the daemon read its configuration again, or write a
//! rule down.
//!
//! The task that keeps the configuration answers.

use std::io;
use std::path::PathBuf;

use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use tokio::sync::{mpsc, oneshot};

use crate::config::policy::draft::NotDrafted;
use crate::config::problem::ConfigError;
use crate::core::code::Code;
use crate::core::policy::approvals::Approval;
use crate::wire::error::{ErrorWire, RefusalCause};
use crate::wire::policy::RuleWritten;
use crate::wire::status::Reloaded;

/// The request to read the configuration again, for operators only.
pub const RELOAD_METHOD: &str = "termgate/reload";

/// The request to let a call pass for good, for operators only.
pub const FOR_GOOD_METHOD: &str = "termgate/approve_for_good";

/// Why the configuration is as it was.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("the configuration is unchanged: {0}")]
    Wrong(#[from] ConfigError),
    #[error("the daemon ends")]
    Ends,
    #[error("no call waits for an approval with this id")]
    NoCall,
    #[error("not all that this call runs is known, so no rule can be written down for it")]
    Unknown,
    #[error("no rule can be written down for it: {0}")]
    NotDrafted(#[from] NotDrafted),
    #[error("rules of several files ask about it")]
    Scattered,
    #[error(
        "the policy files are not what the daemon has read; run `termgate config reload` first"
    )]
    Outdated,
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} cannot be written: {source}", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
}

/// What an operator asks about the configuration.
#[derive(Debug)]
pub enum SettingsAsked {
    Reload(oneshot::Sender<Result<Reloaded, SettingsError>>),
    /// Lets a call that waits pass for good. With `write`, the rule is written and read; else it is only shown.
    ForGood {
        call: Box<Approval>,
        write: bool,
        answer: oneshot::Sender<Result<RuleWritten, SettingsError>>,
    },
}

/// Asks the task that keeps the configuration.
pub async fn ask<T>(
    settings: &mpsc::Sender<SettingsAsked>,
    asked: impl FnOnce(oneshot::Sender<Result<T, SettingsError>>) -> SettingsAsked,
) -> Result<T, SettingsError> {
    let (sender, answer) = oneshot::channel();
    settings.send(asked(sender)).await.map_err(|_| SettingsError::Ends)?;
    answer.await.unwrap_or(Err(SettingsError::Ends))
}

impl From<SettingsError> for ErrorData {
    fn from(error: SettingsError) -> Self {
        if let SettingsError::NoCall = error {
            let unknown =
                ErrorWire::because(Code::InvalidArgument, error).cause(RefusalCause::NotFound);
            return unknown.refusal_of_request(ErrorCode::INVALID_PARAMS);
        }
        if let SettingsError::Ends = error {
            let ends = ErrorWire::because(Code::UpstreamUnavailable, error)
                .cause(RefusalCause::DaemonLeaves);
            return ends.refusal_of_request(ErrorCode::INVALID_PARAMS);
        }
        let code = match error {
            SettingsError::Wrong(_) => Code::InvalidConfiguration,
            SettingsError::Ends => Code::UpstreamUnavailable,
            SettingsError::NoCall
            | SettingsError::Unknown
            | SettingsError::NotDrafted(_)
            | SettingsError::Scattered
            | SettingsError::Outdated => Code::InvalidArgument,
            SettingsError::Unreadable { .. } | SettingsError::Unwritable { .. } => {
                Code::StorageError
            }
        };
        ErrorWire::because(code, error).refusal_of_request(ErrorCode::INVALID_PARAMS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_ends_meanwhile_says_that_it_leaves() {
        let data = ErrorData::from(SettingsError::Ends).data.unwrap();
        assert_eq!(data["error_code"], "upstream_unavailable");
        assert_eq!(data["details"]["cause"], "daemon_leaves");
    }
}
