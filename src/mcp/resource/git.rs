//! What a directory's git repository says: the branch, the commit, and whether anything changed.
//!
//! The directory is whatever a program said, and its repository may be a stranger's: git is asked so
//! that nothing named in the repository's own configuration runs, and that nothing is written.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// How long git may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// How much of its answer is read.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// How many filters of a repository are switched off; one with more is not asked.
const FILTERS_MAX: usize = 64;

/// How many are asked at a time.
static ASKED: Semaphore = Semaphore::const_new(4);

/// The state of the repository that a directory is in: null outside of one, or without git. What it
/// cannot tell in time is null as well.
pub(super) async fn state_of(directory: &str) -> Value {
    let Ok(_asked) = ASKED.acquire().await else { return Value::Null };
    let directory = Path::new(directory);
    let Some(head) = ask(directory, &[], &["rev-parse", "--git-dir"]).await else {
        return Value::Null;
    };
    if !head.succeeded {
        return Value::Null;
    }
    let branch = ask(directory, &[], &["symbolic-ref", "--short", "-q", "HEAD"]).await;
    let commit = ask(directory, &[], &["rev-parse", "--short", "-q", "--verify", "HEAD"]).await;
    let said = |answer: Option<Answer>| {
        let text = answer.filter(|answer| answer.succeeded)?.text;
        let line = String::from_utf8_lossy(&text).trim().to_owned();
        (!line.is_empty()).then_some(line)
    };
    json!({"branch": said(branch), "commit": said(commit), "dirty": is_dirty(directory).await})
}

/// Whether anything is changed, staged or new; none when git cannot tell in time.
async fn is_dirty(directory: &Path) -> Option<bool> {
    let settings = harmless(directory).await?;
    let words = ["status", "--porcelain", "--ignore-submodules=all", "-unormal"];
    let status = ask(directory, &settings, &words).await?;
    // One line is enough, even if there were more than was read.
    let said = !status.text.is_empty();
    (status.succeeded || said).then_some(said)
}

/// The settings that keep each filter of the repository's own configuration from running. A filter
/// is named there and would be a program of a stranger's choice.
async fn harmless(directory: &Path) -> Option<Vec<Setting>> {
    let words = ["config", "--list", "--name-only", "--show-scope", "-z"];
    let listed = ask(directory, &[], &words).await.filter(|answer| answer.succeeded)?;
    // One that is not listed whole, or not as it is written, could not be switched off.
    let whole = listed.text.len() as u64 <= ANSWER_BYTES_MAX;
    let names = String::from_utf8(listed.text).ok().filter(|_| whole)?;
    let mut filters = BTreeSet::new();
    // Scopes and names take turns.
    let mut words = names.split('\0');
    while let (Some(scope), Some(name)) = (words.next(), words.next()) {
        let own = matches!(scope, "local" | "worktree");
        let filter = name.strip_prefix("filter.").and_then(|rest| rest.rsplit_once('.'));
        filters.extend(filter.filter(|_| own).map(|(filter, _)| filter));
    }
    let settings = filters.iter().flat_map(|filter| {
        [("clean", ""), ("process", ""), ("required", "false")]
            .map(|(key, value)| (format!("filter.{filter}.{key}"), value))
    });
    (filters.len() <= FILTERS_MAX).then(|| settings.collect())
}

/// A setting of git's, over that of any file.
type Setting = (String, &'static str);

struct Answer {
    text: Vec<u8>,
    succeeded: bool,
}

/// What git answers, if it does in time.
async fn ask(directory: &Path, settings: &[Setting], words: &[&str]) -> Option<Answer> {
    let mut command = Command::new("git");
    command.arg("--no-optional-locks").arg("-C").arg(directory);
    command.args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]);
    command.args(words).kill_on_drop(true);
    // What would point it to another repository, or make it run something.
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"GIT_") {
            command.env_remove(name);
        }
    }
    // Objects that are missing here are not fetched: that, too, would run what the repository names.
    command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "none");
    command.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
    // As variables, since a name may hold what would end it among the words.
    command.env("GIT_CONFIG_COUNT", settings.len().to_string());
    for (number, (key, value)) in settings.iter().enumerate() {
        command.env(format!("GIT_CONFIG_KEY_{number}"), key);
        command.env(format!("GIT_CONFIG_VALUE_{number}"), value);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    timeout(ANSWER_MAX, answer(command)).await.ok().flatten()
}

async fn answer(mut command: Command) -> Option<Answer> {
    let mut child = command.spawn().ok()?;
    let mut said = Vec::new();
    let stdout = child.stdout.take()?;
    stdout.take(ANSWER_BYTES_MAX + 1).read_to_end(&mut said).await.ok()?;
    // It waits for nobody who does not read on.
    let status = child.wait().await.ok()?;
    Some(Answer { text: said, succeeded: status.success() })
}

#[cfg(test)]
mod tests;
