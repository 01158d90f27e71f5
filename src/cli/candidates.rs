//! Completions that a shell offers while the user types: current sessions, tools and codes.
//!
//! A shell calls this on every press of the completion key, so a missing or slow daemon offers nothing.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap_complete::CompletionCandidate;
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;

use crate::cli::context::operator_socket;
use crate::cli::daemon::DaemonClient;
use crate::cli::failure::CliFailure;
use crate::core::code::Code;
use crate::core::one_line::one_line;
use crate::transport::client::ClientError;
use crate::wire::command::CommandList;
use crate::wire::policy::ApprovalList;
use crate::wire::session::{SessionList, SessionWire};

/// The longest time that a shell waits for a daemon.
const WAIT_MAX: Duration = Duration::from_millis(500);

/// The sessions whose name or id starts with this text.
pub fn offer_sessions(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    let list: Option<SessionList> =
        ask(|daemon| async move { daemon.call("list_sessions", json!({})).await?.read() });
    let sessions = list.map(|list| list.sessions).unwrap_or_default();
    sessions.iter().filter_map(|session| of_session(session, typed)).collect()
}

/// The approvals that are waited for, oldest first.
pub fn offer_approvals(typed: &OsStr) -> Vec<CompletionCandidate> {
    let list: Option<ApprovalList> =
        ask(|daemon| async move { daemon.call("list_approvals", json!({})).await?.read() });
    let waiting = list.map(|list| list.approvals).unwrap_or_default();
    let named = waiting
        .into_iter()
        .map(|call| CompletionCandidate::new(call.approval_id).help(Some(call.what.into())));
    beginning(typed, named).collect()
}

/// The numbers of commands in the session on the command line, newest first.
pub fn offer_commands(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(session) = session_before_number(env::args_os()) else { return Vec::new() };
    let ran: Option<CommandList> = ask(|daemon| async move {
        daemon.call("read_commands", json!({"session": session})).await?.read()
    });
    let commands = ran.map(|ran| ran.commands).unwrap_or_default();
    let numbered = commands.iter().rev().map(|command| {
        let text = one_line(&command.command).into_owned();
        CompletionCandidate::new(command.command_id.to_string()).help(Some(text.into()))
    });
    beginning(typed, numbered).collect()
}

/// The daemon's tools whose name starts with this text.
pub fn offer_tools(typed: &OsStr) -> Vec<CompletionCandidate> {
    let list: Option<Tools> = ask(|daemon| async move {
        let list = daemon.client().request("tools/list", json!({})).await?;
        Ok(Tools::deserialize(list).map_err(|_| ClientError::Malformed)?)
    });
    let tools = list.map(|list| list.tools).unwrap_or_default();
    let named = tools
        .into_iter()
        .map(|tool| CompletionCandidate::new(tool.name).help(tool.title.map(Into::into)));
    beginning(typed, named).collect()
}

/// The parts of the protocol's tool list that are used.
#[derive(Deserialize)]
struct Tools {
    tools: Vec<NamedTool>,
}

#[derive(Deserialize)]
struct NamedTool {
    name: String,
    title: Option<String>,
}

/// The error codes that start with this text.
pub fn offer_codes(typed: &OsStr) -> Vec<CompletionCandidate> {
    let named = Code::ALL
        .into_iter()
        .map(|code| CompletionCandidate::new(code.as_str()).help(Some(code.meaning().into())));
    beginning(typed, named).collect()
}

/// Offers the session's name, or its id when only that fits the typed text.
fn of_session(session: &SessionWire, typed: &str) -> Option<CompletionCandidate> {
    let texts = [&session.name, &session.id];
    let fitting = texts.into_iter().find(|text| text.starts_with(typed))?;
    let help = one_line(&session.command).into_owned();
    Some(CompletionCandidate::new(fitting).help(Some(help.into())))
}

fn beginning(
    typed: &OsStr,
    candidates: impl Iterator<Item = CompletionCandidate>,
) -> impl Iterator<Item = CompletionCandidate> {
    let typed = typed.as_encoded_bytes();
    candidates.filter(move |it| it.get_value().as_encoded_bytes().starts_with(typed))
}

/// Asks a running daemon. Returns none when it does not answer in time.
fn ask<T, F>(question: impl FnOnce(DaemonClient) -> F) -> Option<T>
where
    F: Future<Output = Result<T, CliFailure>>,
{
    let given = socket_among(env::args_os());
    let asking = async {
        let daemon = DaemonClient::connect(&operator_socket(given)?).await?;
        question(daemon).await
    };
    // A shell cannot show why there are no completions.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(async { timeout(WAIT_MAX, asking).await }).ok()?.ok()
}

/// The session among the typed words, when a command's number is completed.
fn session_before_number(words: impl Iterator<Item = OsString>) -> Option<String> {
    let mut words = words.skip_while(|word| word != "commands").skip(1);
    let named = words.find(|word| !word.as_encoded_bytes().starts_with(b"-"))?;
    named.into_string().ok()
}

/// The value of `--socket` among the typed words.
fn socket_among(words: impl Iterator<Item = OsString>) -> Option<PathBuf> {
    const FLAG: &str = "--socket";
    let mut words = words;
    while let Some(word) = words.next() {
        if word == FLAG {
            return words.next().map(PathBuf::from);
        }
        let given = word.to_str().and_then(|word| word.strip_prefix(FLAG)?.strip_prefix('='));
        if let Some(path) = given {
            return Some(PathBuf::from(path));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(candidate: &CompletionCandidate) -> &str {
        candidate.get_value().to_str().unwrap()
    }

    #[test]
    fn a_session_is_offered_by_name_and_else_by_the_id_that_was_begun() {
        let session = SessionWire::example();
        let offered = |typed| of_session(&session, typed).map(|it| value(&it).to_owned());
        assert_eq!(offered(""), Some("build".to_owned()));
        assert_eq!(offered("bu"), Some("build".to_owned()));
        assert_eq!(offered("0123"), Some("0123456789ab".to_owned()));
        assert_eq!(offered("x"), None);
    }

    #[test]
    fn codes_are_offered_by_how_they_begin() {
        let offered = offer_codes(OsStr::new("lease_"));
        let offered: Vec<&str> = offered.iter().map(value).collect();
        assert!(offered.contains(&"lease_held"), "{offered:?}");
        assert!(offered.iter().all(|code| code.starts_with("lease_")), "{offered:?}");
        assert_eq!(offer_codes(OsStr::new("")).len(), Code::ALL.len());
    }

    #[test]
    fn the_session_whose_commands_are_numbered_is_the_one_that_was_typed() {
        let session = |line: &str| session_before_number(line.split(' ').map(OsString::from));
        assert_eq!(session("termgate commands --json build 1"), Some("build".to_owned()));
        assert_eq!(session("termgate commands"), None);
    }

    #[test]
    fn the_socket_is_the_one_that_was_typed() {
        let socket = |line: &str| socket_among(line.split(' ').map(OsString::from));
        assert_eq!(socket("termgate --socket /o.sock kill"), Some("/o.sock".into()));
        assert_eq!(socket("termgate kill --socket=/o.sock"), Some("/o.sock".into()));
        assert_eq!(socket("termgate kill build"), None);
        assert_eq!(socket("termgate kill --socket"), None);
    }
}
