//! `ls`: lists the sessions, or shows the daemon's counters.

use clap::Args;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::failure::CliFailure;
use crate::cli::output::CommandReport;
use crate::cli::status::{self, exposition, people};
use crate::cli::table::render;
use crate::core::human_duration::rough;
use crate::session::pty::signal::name_of_signal;
use crate::wire::activity::{ActivityWire, ActivityWord};
use crate::wire::session::{ExitCause, SessionList, SessionState, SessionWire};
use crate::wire::word;

const HEAD: [&str; 9] =
    ["ID", "NAME", "STATE", "FOR", "SIZE", "IDLE", "LEASE", "WAITERS", "COMMAND"];

/// List the sessions, or show the state of the daemon
#[derive(Debug, Args)]
pub struct LsCommand {
    /// Show the daemon instead: version, memory, connections, and counters since it started
    #[arg(long)]
    daemon: bool,
    /// Print the daemon's counters in the Prometheus text format
    #[arg(long, requires = "daemon", conflicts_with = "json")]
    prometheus: bool,
}

impl LsCommand {
    pub async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        if self.daemon {
            let told = if self.prometheus { exposition } else { people };
            return status::report(context, told).await;
        }
        let answer = context.daemon().await?.call("list_sessions", json!({})).await?;
        let rows: Vec<_> = answer.read::<SessionList>()?.sessions.iter().map(row).collect();
        if rows.is_empty() {
            let mut report = answer.report("");
            report.notes.push("no sessions".to_owned());
            return Ok(report);
        }
        Ok(answer.report(render(HEAD, &rows)))
    }
}

/// The holder of a session's lease, for a cell.
pub fn holder(session: &SessionWire) -> String {
    session.lease.by.clone().unwrap_or_else(|| "-".to_owned())
}

fn row(session: &SessionWire) -> [String; 9] {
    [
        session.id.clone(),
        match &session.tenant {
            Some(tenant) => format!("{} ({tenant})", session.name),
            None => session.name.clone(),
        },
        state(session) + odd(session),
        state_time(session),
        format!("{}x{}", session.cols, session.rows),
        rough(session.idle_ms),
        holder(session),
        session.lease.waiters.to_string(),
        session.command.clone(),
    ]
}

/// A suffix for the state of a session with lost output.
fn odd(session: &SessionWire) -> &'static str {
    if session.lost_output.is_empty() { "" } else { ", output lost" }
}

/// What a running session is doing.
fn doing(activity: &ActivityWire) -> &'static str {
    match activity.state {
        _ if activity.is_silent() => "silent",
        ActivityWord::Prompt => "prompt",
        ActivityWord::Running => "running",
        ActivityWord::NeedsInput => "asks",
        ActivityWord::SecretPrompt => "asks secret",
        ActivityWord::FullScreen => "full screen",
        ActivityWord::Exited => "exited",
        ActivityWord::Unknown => "unknown",
    }
}

/// What the session is doing, or the exit code or signal of its program.
pub fn state(session: &SessionWire) -> String {
    let exit = session.exit.unwrap_or_default();
    match (exit.code, exit.signal, exit.cause) {
        (Some(code), _, _) => format!("exited {code}"),
        (None, Some(number), _) => {
            let name = name_of_signal(number).map_or_else(|| number.to_string(), str::to_owned);
            format!("killed {name}")
        }
        (None, None, Some(ExitCause::ShimLost)) => "shim lost".to_owned(),
        (None, None, None) if session.state == SessionState::Exited => {
            word(&session.state).to_string()
        }
        (None, None, None) => doing(&session.activity).to_owned(),
    }
}

/// How long it has been in this state, where that is known.
pub fn state_time(session: &SessionWire) -> String {
    session.state_ms.map_or("-".to_owned(), rough)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::lease::LeaseWire;
    use crate::wire::session::{ExitWire, GapWire};

    fn ended(exit: ExitWire) -> SessionWire {
        let state = SessionState::Exited;
        SessionWire { state, exit: Some(exit), ..SessionWire::example() }
    }

    #[test]
    fn a_session_is_one_line() {
        let by = Some("claude#p3".to_owned());
        let lease = LeaseWire { held: true, by, waiters: 2, ..LeaseWire::default() };
        let expected = [
            "0123456789ab",
            "build",
            "running",
            "1m30s",
            "120x40",
            "1m1s",
            "claude#p3",
            "2",
            "make -j2",
        ];
        let session = SessionWire { lease, ..SessionWire::example() };
        assert_eq!(row(&session), expected);
        assert_eq!(row(&SessionWire { state_ms: None, ..session })[3], "-");
    }

    #[test]
    fn a_session_that_lost_output_says_so() {
        let lost_output = vec![GapWire { row: 7, bytes: None, since: None }];
        let gapped = SessionWire { lost_output, ..SessionWire::example() };
        assert_eq!(row(&gapped)[2], "running, output lost");
    }

    #[test]
    fn a_session_whose_shim_does_not_answer_says_so() {
        let activity = ActivityWire::silent();
        let silent = SessionWire { activity, ..SessionWire::example() };
        assert_eq!(row(&silent)[2], "silent");
    }

    #[test]
    fn a_running_session_shows_what_it_is_doing() {
        for (doing, shown) in [
            (ActivityWord::Prompt, "prompt"),
            (ActivityWord::NeedsInput, "asks"),
            (ActivityWord::SecretPrompt, "asks secret"),
            (ActivityWord::FullScreen, "full screen"),
        ] {
            let activity = ActivityWire { state: doing, ..SessionWire::example().activity };
            assert_eq!(row(&SessionWire { activity, ..SessionWire::example() })[2], shown);
        }
    }

    #[test]
    fn a_session_that_ended_shows_how() {
        let code = ended(ExitWire { code: Some(3), ..ExitWire::default() });
        assert_eq!((row(&code)[2].as_str(), row(&code)[6].as_str()), ("exited 3", "-"));
        assert_eq!(
            state(&ended(ExitWire { signal: Some(9), ..ExitWire::default() })),
            "killed SIGKILL"
        );
        let odd = ExitWire { signal: Some(199), ..ExitWire::default() };
        assert_eq!(state(&ended(odd)), "killed 199");
        let lost = ExitWire { cause: Some(ExitCause::ShimLost), ..ExitWire::default() };
        assert_eq!(state(&ended(lost)), "shim lost");
        assert_eq!(state(&ended(ExitWire::default())), "exited");
    }
}
