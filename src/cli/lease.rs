//! `lease`: the right to write, for scripts that need it longer than one call.

use std::time::Duration;

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;
use serde_json::{Value, json};

use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::daemon::{Answer, Daemon};
use crate::cli::duration::{millis, parse_duration, rough};
use crate::cli::failure::Failure;
use crate::cli::ls::{holder, sessions};
use crate::cli::output::Report;
use crate::cli::own_lease::OwnLease;
use crate::cli::table::render;
use crate::core::code::Code;

/// Take, keep, give back, list or end leases
#[derive(Debug, Args)]
pub struct Lease {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Acquire(Acquire),
    Renew(Renew),
    Release(Release),
    Ls(Ls),
    Preempt(Preempt),
}

/// Take the lease of a session and print its id
///
/// It lasts until its time is over or it is released; writing under it renews it. Other commands take
/// the id from TERMGATE_LEASE or --lease-file, and from no word of theirs.
#[derive(Debug, Args)]
struct Acquire {
    /// Id, unique prefix of one, or name
    #[arg(add = ArgValueCompleter::new(offer_sessions))]
    session: String,
    /// How long it lasts unless it is renewed [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    ttl: Option<Duration>,
    /// Wait in line so long while somebody else has it
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    wait: Option<Duration>,
    /// What it is for, for others to read
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    lease: OwnLease,
}

/// Make a lease last longer
///
/// Without an id it is that of the command line in this session.
#[derive(Debug, Args)]
struct Renew {
    /// Id, unique prefix of one, or name
    #[arg(add = ArgValueCompleter::new(offer_sessions))]
    session: String,
    #[command(flatten)]
    lease: OwnLease,
    /// How long it lasts from now on
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    ttl: Option<Duration>,
}

/// Give a lease back
///
/// Without an id it is that of the command line in this session.
#[derive(Debug, Args)]
struct Release {
    /// Id, unique prefix of one, or name
    #[arg(add = ArgValueCompleter::new(offer_sessions))]
    session: String,
    #[command(flatten)]
    lease: OwnLease,
    /// Give it to this principal, as lists show it
    #[arg(long, value_name = "WHO")]
    hand_to: Option<String>,
}

/// List the leases that are held
#[derive(Debug, Args)]
struct Ls {
    /// Id, unique prefix of one, or name [default: all sessions]
    #[arg(add = ArgValueCompleter::new(offer_sessions))]
    session: Option<String>,
}

/// End the lease of a session, whoever has it
#[derive(Debug, Args)]
struct Preempt {
    /// Id, unique prefix of one, or name
    #[arg(add = ArgValueCompleter::new(offer_sessions))]
    session: String,
}

impl Lease {
    /// Runs the command.
    ///
    /// # Errors
    /// What the daemon answered instead.
    pub async fn run(self, context: &Context) -> Result<Report, Failure> {
        let daemon = context.daemon().await?;
        match self.action {
            Action::Acquire(acquire) => acquire.run(&daemon).await,
            Action::Renew(renew) => renew.run(&daemon).await,
            Action::Release(release) => release.run(&daemon).await,
            Action::Ls(ls) => ls.run(&daemon).await,
            Action::Preempt(preempt) => preempt.run(&daemon).await,
        }
    }
}

impl Acquire {
    async fn run(self, daemon: &Daemon) -> Result<Report, Failure> {
        let arguments = json!({
            "session": self.session,
            "ttl_ms": self.ttl.map(millis),
            "wait_ms": self.wait.map(millis),
            "reason": self.reason,
            "lease_id": self.lease.id()?,
        });
        let granted = daemon.call("acquire_lease", arguments).await?;
        Ok(lease_report(granted))
    }
}

impl Renew {
    async fn run(self, daemon: &Daemon) -> Result<Report, Failure> {
        let session = session_id(daemon, &self.session).await?;
        let lease = own(&self.lease, daemon, &session).await?;
        let arguments = json!({"lease_id": lease, "ttl_ms": self.ttl.map(millis)});
        let renewed = daemon.call("renew_lease", arguments).await?;
        let elsewhere = elsewhere(&renewed, &session);
        let mut report = lease_report(renewed);
        report.notes.extend(elsewhere);
        Ok(report)
    }
}

impl Release {
    async fn run(self, daemon: &Daemon) -> Result<Report, Failure> {
        let session = session_id(daemon, &self.session).await?;
        let lease = own(&self.lease, daemon, &session).await?;
        let arguments = json!({"lease_id": lease, "hand_to": self.hand_to});
        let released = daemon.call("release_lease", arguments).await?;
        let notes = std::iter::once(released.text.clone()).chain(elsewhere(&released, &session));
        let notes = notes.collect();
        Ok(Report { notes, ..released.report("") })
    }
}

impl Ls {
    async fn run(self, daemon: &Daemon) -> Result<Report, Failure> {
        let list = daemon.call("list_sessions", json!({"session": self.session})).await?;
        let held = |session: &&Value| session["lease"]["held"] == true;
        let leases: Vec<&Value> = sessions(&list.data).iter().filter(held).collect();
        let rows: Vec<_> = leases.iter().map(|session| row(session)).collect();
        let data = json!({"leases": leases.iter().map(|it| shape(it)).collect::<Vec<_>>()});
        let (text, notes) = if rows.is_empty() {
            (String::new(), vec!["no lease is held".to_owned()])
        } else {
            (render(HEAD, &rows), Vec::new())
        };
        Ok(Report { data, notes, ..list.report(text) })
    }
}

impl Preempt {
    async fn run(self, daemon: &Daemon) -> Result<Report, Failure> {
        let ended = daemon.call("preempt_lease", json!({"session": self.session})).await?;
        let notes = vec![ended.text.clone()];
        Ok(Report { notes, ..ended.report("") })
    }
}

const HEAD: [&str; 7] = ["SESSION", "NAME", "HOLDER", "KIND", "EXPIRES", "WAITERS", "REASON"];

fn row(session: &Value) -> [String; 7] {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let lease = &session["lease"];
    [
        text(&session["id"]),
        text(&session["name"]),
        holder(session),
        text(&lease["kind"]),
        lease["expires_in_ms"].as_u64().map_or_else(|| "-".to_owned(), rough),
        lease["waiters"].as_u64().unwrap_or_default().to_string(),
        text(&lease["reason"]),
    ]
}

/// A lease together with its session, for programs.
fn shape(session: &Value) -> Value {
    let mut lease = session["lease"].clone();
    lease["session"] = session["id"].clone();
    lease["name"] = session["name"].clone();
    lease
}

/// The end of a command that holds a lease now: its id as data, its time as chatter.
fn lease_report(grant: Answer) -> Report {
    let id = grant.text_at("/lease_id");
    let left = grant.data["expires_in_ms"].as_u64().unwrap_or_default();
    let notes = vec![format!("the lease lasts {}", rough(left))];
    Report { notes, ..grant.report(id) }
}

/// The id of a session, for calls that name only the lease.
async fn session_id(daemon: &Daemon, session: &str) -> Result<String, Failure> {
    let list = daemon.call("list_sessions", json!({"session": session})).await?;
    Ok(list.text_at("/sessions/0/id"))
}

/// The id of the lease that is meant: the one given, else that of the command line in the session.
async fn own(given: &OwnLease, daemon: &Daemon, session: &str) -> Result<String, Failure> {
    if let Some(given) = given.id()? {
        return Ok(given);
    }
    let found = daemon.call("find_lease", json!({"session": session})).await?;
    let missing = || {
        let code = Code::LeaseRequired;
        let message = "the command line holds no lease of this session";
        Failure::of_tool(json!({"error_code": code.as_str(), "message": message}))
    };
    found.data["lease_id"].as_str().map(str::to_owned).ok_or_else(missing)
}

/// What to tell somebody whose lease was that of another session than the one named.
fn elsewhere(answer: &Answer, session: &str) -> Option<String> {
    let actual = answer.text_at("/session");
    (actual != session).then(|| format!("note: that is the lease of session {actual}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_told_with_its_session_and_holder() {
        let session = json!({
            "id": "0123456789ab", "name": "build",
            "lease": {
                "held": true, "by": "claude#p3", "kind": "agent", "expires_in_ms": 29_400,
                "waiters": 1, "reason": "deploy",
            },
        });
        let expected = ["0123456789ab", "build", "claude#p3", "agent", "29s", "1", "deploy"];
        assert_eq!(row(&session), expected);
        assert_eq!(shape(&session)["session"], "0123456789ab");
        assert_eq!(shape(&session)["by"], "claude#p3");
    }

    #[test]
    fn a_lease_of_another_session_is_pointed_out() {
        let data = json!({"session": "0123456789ab"});
        let answer = Answer { data, ..Answer::default() };
        assert_eq!(elsewhere(&answer, "0123456789ab"), None);
        assert!(elsewhere(&answer, "ffffffffffff").is_some_and(|it| it.contains("0123456789ab")));
    }
}
