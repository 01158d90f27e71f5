//! `ls`: the sessions, one a line.

use clap::Args;
use serde_json::{Value, json};

use crate::cli::attach::view::SHIM_LOST;
use crate::cli::context::Context;
use crate::cli::duration::rough;
use crate::cli::failure::Failure;
use crate::cli::output::Report;
use crate::cli::status::{self, exposition, people};
use crate::cli::table::render;
use crate::session::pty::signal::name_of_signal;

const HEAD: [&str; 8] = ["ID", "NAME", "STATE", "SIZE", "IDLE", "LEASE", "WAITERS", "COMMAND"];

/// List the sessions, or show what the daemon did so far
#[derive(Debug, Args)]
pub struct Ls {
    /// Show the daemon instead: what it is, what it holds, and its counters since it started
    #[arg(long)]
    daemon: bool,
    /// The daemon's counters as text that Prometheus reads
    #[arg(long, requires = "daemon", conflicts_with = "json")]
    prometheus: bool,
}

impl Ls {
    /// Runs the command.
    ///
    /// # Errors
    /// What the daemon answered instead.
    pub async fn run(self, context: &Context) -> Result<Report, Failure> {
        if self.daemon {
            let told = if self.prometheus { exposition } else { people };
            return status::report(context, told).await;
        }
        let answer = context.daemon().await?.call("list_sessions", json!({})).await?;
        let rows: Vec<_> = sessions(&answer.data).iter().map(row).collect();
        if rows.is_empty() {
            let mut report = answer.report("");
            report.notes.push("no sessions".to_owned());
            return Ok(report);
        }
        Ok(answer.report(render(HEAD, &rows)))
    }
}

/// The sessions of a list.
pub fn sessions(list: &Value) -> &[Value] {
    list["sessions"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Who holds a session's lease, for a cell.
pub fn holder(session: &Value) -> String {
    session["lease"]["by"].as_str().unwrap_or("-").to_owned()
}

fn row(session: &Value) -> [String; 8] {
    let text = |name: &str| session[name].as_str().unwrap_or_default().to_owned();
    [
        text("id"),
        text("name"),
        state(session) + odd(session),
        format!("{}x{}", session["cols"], session["rows"]),
        rough(session["idle_ms"].as_u64().unwrap_or_default()),
        holder(session),
        session["lease"]["waiters"].as_u64().unwrap_or_default().to_string(),
        text("command"),
    ]
}

/// Whether nobody answers for the terminal of a session.
pub fn is_silent(session: &Value) -> bool {
    session["activity"]["evidence"] == "silent"
}

/// What is added to the state of a session of which not all can be seen, now or ever.
fn odd(session: &Value) -> &'static str {
    match (is_silent(session), session["lost_output"].is_null()) {
        (true, _) => ", silent",
        (false, false) => ", output lost",
        (false, true) => "",
    }
}

/// The state, with how the program ended when it has.
pub fn state(session: &Value) -> String {
    let exit = &session["exit"];
    match (exit["code"].as_i64(), exit["signal"].as_i64()) {
        (Some(code), _) => format!("exited {code}"),
        (None, Some(number)) => signal_name(number),
        (None, None) if exit["cause"] == SHIM_LOST => "shim lost".to_owned(),
        (None, None) => session["state"].as_str().unwrap_or_default().to_owned(),
    }
}

/// The name of the signal that ended a program.
fn signal_name(number: i64) -> String {
    let known = i32::try_from(number).ok().and_then(name_of_signal);
    known.map_or_else(|| format!("signal {number}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> Value {
        json!({
            "id": "0123456789ab", "name": "build", "command": "make -j2", "cols": 120, "rows": 40,
            "state": "running", "idle_ms": 61_000,
            "lease": {"held": true, "by": "claude#p3", "waiters": 2},
        })
    }

    #[test]
    fn a_session_is_told_in_one_line() {
        let expected =
            ["0123456789ab", "build", "running", "120x40", "1m", "claude#p3", "2", "make -j2"];
        assert_eq!(row(&session()), expected);
    }

    #[test]
    fn a_session_of_which_output_is_lost_says_so() {
        let mut gapped = session();
        gapped["lost_output"] = json!([{"row": 7}]);
        assert_eq!(row(&gapped)[2], "running, output lost");
    }

    #[test]
    fn a_session_for_which_nobody_answers_says_so() {
        let mut silent = session();
        silent["activity"] = json!({"state": "running", "evidence": "silent"});
        assert_eq!(row(&silent)[2], "running, silent");
    }

    #[test]
    fn a_free_session_that_ended_shows_how() {
        let mut ended = session();
        ended["state"] = json!("exited");
        ended["lease"] = json!({"held": false, "waiters": 0});
        ended["exit"] = json!({"code": 3});
        assert_eq!((state(&ended).as_str(), holder(&ended).as_str()), ("exited 3", "-"));
        ended["exit"] = json!({"signal": 9});
        assert_eq!(state(&ended), "SIGKILL");
        ended["exit"] = json!({"signal": 40});
        assert_eq!(state(&ended), "signal 40");
        ended["exit"] = json!({"cause": "shim_lost"});
        assert_eq!(state(&ended), "shim lost");
        ended["exit"] = json!({});
        assert_eq!(state(&ended), "exited");
    }
}
