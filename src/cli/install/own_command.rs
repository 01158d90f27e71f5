//! Runs the clients' own commands that add and remove a server.
//!
//! Arguments are passed without a shell, so only the displayed form needs quotes.

use std::io;
use std::path::Path;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

use crate::cli::install::entry_format::ServerEntry;
use crate::cli::install::place::InstallScope;
use crate::core::one_line::one_line;
use crate::wire::word;

/// The time limit of a command: some start a whole editor.
const RUN_MAX: Duration = Duration::from_secs(60);
/// How many bytes of its standard error are kept.
const COMPLAINT_MAX: usize = 16 * 1024;
/// How long to read standard error after the command ended; a child process may keep the pipe open.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// The command line of a client. Words in braces are placeholders.
#[derive(Clone, Copy, Debug)]
pub struct OwnCommand {
    pub program: &'static str,
    /// The scopes that it can change.
    pub scopes: &'static [InstallScope],
    pub add: &'static [&'static str],
    pub remove: Option<&'static [&'static str]>,
    pub writes: Writes,
}

/// Where a client's command stores its changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// In the file of the scope.
    File,
    /// In that file, or in a place that only the client knows.
    Elsewhere,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum OwnCommandError {
    #[error("it cannot be started: {0}")]
    Start(#[source] io::Error),
    #[error("it did not end within {} s", RUN_MAX.as_secs())]
    TooSlow,
    #[error("{0}")]
    Refused(String),
}

/// The arguments after the program's name.
pub fn words(template: &[&str], server: &ServerEntry, scope: InstallScope) -> Vec<String> {
    let mut words = Vec::new();
    for part in template {
        match *part {
            "{scope}" => words.push(word(&scope).to_string()),
            "{name}" => words.push(server.name.clone()),
            "{program}" => words.push(server.launch.program.clone()),
            "{arguments}" => words.extend(server.launch.arguments.iter().cloned()),
            "{json}" => words.push(
                json!({
                    "name": server.name,
                    "command": server.launch.program,
                    "args": server.launch.arguments,
                })
                .to_string(),
            ),
            literal => words.push(literal.to_owned()),
        }
    }
    words
}

/// The command in shell syntax, for display.
pub fn shown(program: &str, words: &[String]) -> String {
    let words = words.iter().map(|word| quoted(word));
    [program.to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |it: char| it.is_ascii_alphanumeric() || "-_./:=@%+,".contains(it);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Runs a client's command and waits until it ends.
pub async fn run(program: &Path, words: &[String]) -> Result<(), OwnCommandError> {
    let mut command = Command::new(program);
    command.args(words).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(OwnCommandError::Start)?;
    let mut complaint = Vec::new();
    let ended = timeout(RUN_MAX, end(&mut child, &mut complaint)).await;
    let status = ended.map_err(|_| OwnCommandError::TooSlow)?;
    let status = status.map_err(OwnCommandError::Start)?;
    if status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&complaint);
    let line = complaint.lines().map(str::trim).find(|line| !line.is_empty());
    let said = line.map_or_else(|| status.to_string(), |line| one_line(line).into_owned());
    Err(OwnCommandError::Refused(said))
}

/// Waits for the command to end, and reads its standard error meanwhile.
async fn end(child: &mut Child, complaint: &mut Vec<u8>) -> io::Result<ExitStatus> {
    let Some(stderr) = child.stderr.take() else { return child.wait().await };
    let mut listening = pin!(listen(stderr, complaint));
    tokio::select! {
        () = &mut listening => child.wait().await,
        status = child.wait() => {
            // Only its end matters; output that arrives too late is useless.
            let _ = timeout(LAST_WORDS, listening).await;
            status
        }
    }
}

/// Reads to the end, so that the command never blocks on the pipe, and keeps the start.
async fn listen(mut stderr: ChildStderr, kept: &mut Vec<u8>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        let room = COMPLAINT_MAX - kept.len();
        kept.extend_from_slice(&buffer[..count.min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::install::entry_format::AgentRights;

    #[test]
    fn a_word_with_blanks_and_quotes_reaches_the_command_whole_and_is_shown_quoted() {
        let program = "/opt/my tools/o'clock".to_owned();
        let server = ServerEntry::bridge("t".to_owned(), program, AgentRights::ReadOnly);
        let template = ["mcp", "add", "-s", "{scope}", "{name}", "--", "{program}", "{arguments}"];
        let words = words(&template, &server, InstallScope::User);
        assert_eq!(
            words,
            ["mcp", "add", "-s", "user", "t", "--", "/opt/my tools/o'clock", "mcp", "--read-only"]
        );
        assert_eq!(
            shown("claude", &words),
            r"claude mcp add -s user t -- '/opt/my tools/o'\''clock' mcp --read-only"
        );
    }

    #[test]
    fn a_server_as_json_is_one_word() {
        let server = ServerEntry::bridge("t".to_owned(), "/a\"b".to_owned(), AgentRights::Write);
        let words = words(&["--add-mcp", "{json}"], &server, InstallScope::User);
        assert_eq!(words.len(), 2);
        let told: serde_json::Value = serde_json::from_str(&words[1]).unwrap();
        let expected = json!({"name": "t", "command": "/a\"b", "args": ["mcp", "--allow-write"]});
        assert_eq!(told, expected);
    }
}
