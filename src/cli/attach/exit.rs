//! How a person left a session: by itself, sent away, or because the session ended.
//!
//! It knows what the daemon says at the end of an attachment, and nothing of what is told the person.

use serde_json::Value;

use crate::cli::attach::view::Ended;
use crate::transport::client::ClientError;

/// How a person left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leaving {
    Detached,
    /// Somebody detached all who were attached.
    SentAway,
    Exited(Ended),
}

impl Leaving {
    /// What the end of an attachment means, by its result and what was seen of the program's end.
    ///
    /// # Errors
    /// [`ClientError::Closed`] when the daemon ends, or has forgotten the session.
    pub fn of_end(result: &Value, exit: Option<&Ended>) -> Result<Self, ClientError> {
        match (result["ended"].as_str(), exit) {
            (Some("exited"), Some(exit)) => Ok(Self::Exited(exit.clone())),
            (Some("detached"), _) => Ok(Self::SentAway),
            (_, _) => Err(ClientError::Closed),
        }
    }
}
