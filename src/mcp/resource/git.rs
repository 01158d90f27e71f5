//! The branch and the commit of the git repository that a directory is in, read from its files.
//!
//! The directory and all files are a stranger's choice. Nothing is run: git itself would run what the
//! repository's own files name (filters, monitors, an own `git` on the path).

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::mcp::resource::git::files::{Repository, Unreadable};
use crate::surface::turns::Share;

mod files;

/// How long reading may take, with the wait for other reads of the tenant.
const READING_MAX: Duration = Duration::from_secs(2);

/// The state of the repository that a directory is in: null outside of one, `unknown` with the
/// reason when its files do not say.
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
