//! The branch and commit of the git repository that contains a directory, read from its files.
//!
//! The directory and its files are untrusted, and nothing is executed. git itself would run programs that the
//! repository's files name, such as filters and monitors.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::mcp::resource::git::files::{Repository, Unreadable};
use crate::surface::turns::Share;

mod files;

/// The time limit, including the wait for other reads of the tenant.
const READING_MAX: Duration = Duration::from_secs(2);

/// The repository's state: null outside a repository, `unknown` with a reason when its files cannot be read.
pub(super) async fn state_of(directory: &str, share: &Share) -> Value {
    let directory = directory.to_owned();
    let reading = share.read_files(move || files::look(directory.as_ref()));
    match timeout(READING_MAX, reading).await {
        Ok(Some(Ok(None))) => Value::Null,
        Ok(Some(Ok(Some(Repository { branch, commit })))) => {
            json!({"branch": branch, "commit": commit})
        }
        Ok(Some(Err(reason))) => json!({"unknown": reason.to_string()}),
        Ok(None) | Err(_) => json!({"unknown": Unreadable::TooSlow.to_string()}),
    }
}

#[cfg(test)]
mod tests;
