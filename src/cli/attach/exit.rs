//! How an attachment ended: by the person, by another client, or because the session ended.

use serde_json::Value;

use crate::cli::attach::view::Ended;
use crate::transport::client::ClientError;

/// How an attachment ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leaving {
    Detached,
    /// Another client detached all attached people.
    SentAway,
    Exited(Ended),
}

impl Leaving {
    /// Derives it from the attachment's result and the program's exit.
    ///
    /// # Errors
    /// [`ClientError::Closed`] when the daemon exits or no longer has the session.
    pub fn of_end(result: &Value, exit: Option<&Ended>) -> Result<Self, ClientError> {
        match (result["ended"].as_str(), exit) {
            (Some("exited"), Some(exit)) => Ok(Self::Exited(exit.clone())),
            (Some("detached"), _) => Ok(Self::SentAway),
            (_, _) => Err(ClientError::Closed),
        }
    }
}
