//! The branch and the commit of the git repository that a directory is in, read from its files.
//!
//! The directory and all files are a stranger's choice. Nothing is run: git itself would run what the
//! repository's own files name (filters, monitors, an own `git` on the path).

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::mcp::resource::git::files::{Repository, Unreadable};

mod files;

/// How long reading may take, with the wait for others' reading.
const READING_MAX: Duration = Duration::from_secs(2);

/// How many repositories are read at a time. A file system that hangs holds its turn.
static READ: Semaphore = Semaphore::const_new(4);

/// The state of the repository that a directory is in: null outside of one, `unknown` with the
/// reason when its files do not say.
pub(super) async fn state_of(directory: &str) -> Value {
    let directory = directory.to_owned();
    let reading = async {
        let turn = READ.acquire().await.ok()?;
        let looked = spawn_blocking(move || {
            let _turn = turn;
            files::look(directory.as_ref())
        });
        looked.await.ok()
    };
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
