//! `lease`: manages the right to write, for scripts that need it for several calls.

use std::ops::RangeInclusive;
use std::time::Duration;

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;
use serde::Serialize;
use serde_json::json;

use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::daemon::{DaemonClient, ToolAnswer};
use crate::cli::duration::{millis, millis_within, parse_duration};
use crate::cli::failure::{CliFailure, TypedNames};
use crate::cli::output::CommandReport;
use crate::cli::own_lease::OwnLease;
use crate::cli::table::render;
use crate::core::code::Code;
use crate::core::human_duration::{measured, rough};
use crate::session::clock::Clock;
use crate::wire::error::ErrorWire;
use crate::wire::lease::{GrantWire, LeaseWire};
use crate::wire::mount::{MountList, MountWire};
use crate::wire::session::{SessionList, SessionWire};
use crate::wire::status::FoundLease;
use crate::wire::word;

/// What the daemon takes for the time of a lease and of a wait for one, in milliseconds.
const TTL_MS: RangeInclusive<u64> = 1_000..=600_000;
const WAIT_MS: RangeInclusive<u64> = 0..=600_000;

/// Acquire, renew, release, list or preempt leases
#[derive(Debug, Args)]
pub struct LeaseCommand {
    #[command(subcommand)]
    action: LeaseAction,
}

#[derive(Debug, Subcommand)]
enum LeaseAction {
    Acquire(Acquire),
    Renew(Renew),
    Release(Release),
    Ls(ListLeases),
    Preempt(Preempt),
}

/// What has the lease.
#[derive(Debug, Args)]
struct LeasedName {
    /// Id, unique prefix of one, or name
    #[arg(required_unless_present = "surface", add = ArgValueCompleter::new(offer_sessions))]
    session: Option<String>,
    /// The lease of this mounted server
    #[arg(long, value_name = "MOUNT", conflicts_with = "session")]
    surface: Option<String>,
}

/// Acquire the lease of a session or mounted server and print its id
///
/// It lasts until it expires or is released; writing renews it. Other commands read the id from
/// TERMGATE_LEASE or --lease-file, never from their arguments.
#[derive(Debug, Args)]
struct Acquire {
    #[command(flatten)]
    of: LeasedName,
    /// How long it lasts without renewal [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    ttl: Option<Duration>,
    /// Wait in line for at most this long while another principal holds it
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    wait: Option<Duration>,
    /// What it is for; others see it
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    lease: OwnLease,
}

/// Renew a lease and print its id
///
/// Without an id, it is the lease that the command line holds there, acquired in whatever shell.
#[derive(Debug, Args)]
struct Renew {
    #[command(flatten)]
    of: LeasedName,
    #[command(flatten)]
    lease: OwnLease,
    /// How long it lasts from now
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    ttl: Option<Duration>,
}

/// Release a lease and say which
///
/// Without an id, it is the lease that the command line holds there, acquired in whatever shell.
#[derive(Debug, Args)]
struct Release {
    #[command(flatten)]
    of: LeasedName,
    #[command(flatten)]
    lease: OwnLease,
    /// Hand it to this principal, by the name in lists
    #[arg(long, value_name = "WHO")]
    hand_to: Option<String>,
}

/// List the leases that are held
#[derive(Debug, Args)]
struct ListLeases {
    /// Id, unique prefix of one, or name [default: all sessions]
    #[arg(add = ArgValueCompleter::new(offer_sessions))]
    session: Option<String>,
}

/// End the lease of a session, regardless of its holder
#[derive(Debug, Args)]
struct Preempt {
    #[command(flatten)]
    of: LeasedName,
}

/// What a person types for the parameters of its calls.
pub const TYPED: TypedNames = &[
    ("ttl_ms", "--ttl"),
    ("wait_ms", "--wait"),
    ("reason", "--reason"),
    ("lease_id", "--lease-file or TERMGATE_LEASE"),
    ("hand_to", "--hand-to"),
];

impl LeaseCommand {
    pub async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        let daemon = context.daemon().await?;
        match self.action {
            LeaseAction::Acquire(acquire) => acquire.run(&daemon, context.output.clock()).await,
            LeaseAction::Renew(renew) => renew.run(&daemon).await,
            LeaseAction::Release(release) => release.run(&daemon).await,
            LeaseAction::Ls(ls) => ls.run(&daemon).await,
            LeaseAction::Preempt(preempt) => preempt.run(&daemon).await,
        }
    }
}

/// The milliseconds of a flag, if it is given.
fn within(
    flag: &str,
    given: Option<Duration>,
    bounds: RangeInclusive<u64>,
) -> Result<Option<u64>, CliFailure> {
    given.map(|given| millis_within(flag, given, bounds)).transpose().map_err(CliFailure::Usage)
}

impl Acquire {
    async fn run(self, daemon: &DaemonClient, clock: &Clock) -> Result<CommandReport, CliFailure> {
        let arguments = json!({
            "session": self.of.session,
            "surface": self.of.surface,
            "ttl_ms": within("--ttl", self.ttl, TTL_MS)?,
            "wait_ms": within("--wait", self.wait, WAIT_MS)?,
            "reason": self.reason,
            "lease_id": self.lease.id()?,
        });
        let begun = clock.now();
        let granted = daemon.call("acquire_lease", arguments).await;
        let waited = self.wait.filter(|wait| !wait.is_zero()).map(|_| clock.now().since(begun));
        lease_report(granted.map_err(|failure| after_waiting(failure, waited))?)
    }
}

impl Renew {
    async fn run(self, daemon: &DaemonClient) -> Result<CommandReport, CliFailure> {
        let ttl = within("--ttl", self.ttl, TTL_MS)?;
        let lease = own(&self.lease, daemon, self.of).await?;
        let arguments = json!({"lease_id": lease, "ttl_ms": ttl});
        let renewed = daemon.call("renew_lease", arguments).await?;
        lease_report(renewed)
    }
}

impl Release {
    async fn run(self, daemon: &DaemonClient) -> Result<CommandReport, CliFailure> {
        let lease = own(&self.lease, daemon, self.of).await?;
        let arguments = json!({"lease_id": lease, "hand_to": self.hand_to});
        let mut report = daemon.call("release_lease", arguments).await?.report_as_note();
        report.notes.push(format!("its id was {lease}"));
        report.data["lease_id"] = json!(lease);
        Ok(report)
    }
}

impl ListLeases {
    async fn run(self, daemon: &DaemonClient) -> Result<CommandReport, CliFailure> {
        let list = daemon.call("list_sessions", json!({"session": self.session})).await?;
        let mut leases: Vec<HeldLease> =
            list.read::<SessionList>()?.sessions.into_iter().map(HeldLease::of).collect();
        if self.session.is_none() {
            let mounts = daemon.call("manage_mounts", json!({"action": "list"})).await?;
            let mounts = mounts.read::<MountList>()?.mounts;
            leases.extend(mounts.into_iter().filter_map(HeldLease::of_mount));
        }
        leases.retain(|it| it.lease.held);
        let rows: Vec<_> = leases.iter().map(row).collect();
        let data = json!({"leases": leases});
        let (text, notes) = if rows.is_empty() {
            (String::new(), vec!["no lease is held".to_owned()])
        } else {
            (render(HEAD, &rows), Vec::new())
        };
        Ok(CommandReport { data, notes, ..list.report(text) })
    }
}

impl Preempt {
    async fn run(self, daemon: &DaemonClient) -> Result<CommandReport, CliFailure> {
        let ended = daemon
            .call("preempt_lease", json!({"session": self.of.session, "surface": self.of.surface}))
            .await?;
        Ok(ended.report_as_note())
    }
}

const HEAD: [&str; 7] = ["SESSION", "NAME", "HOLDER", "KIND", "EXPIRES", "WAITERS", "REASON"];

fn row(held: &HeldLease) -> [String; 7] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let lease = &held.lease;
    [
        or_dash(held.session.clone()),
        held.name.clone(),
        or_dash(lease.by.clone()),
        or_dash(lease.kind.as_ref().map(|kind| word(kind).to_string())),
        or_dash(lease.expires_in_ms.map(rough)),
        lease.waiters.to_string(),
        or_dash(lease.reason.clone()),
    ]
}

/// A lease with its session or mount, for programs.
#[derive(Serialize)]
struct HeldLease {
    #[serde(flatten)]
    lease: LeaseWire,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    surface: Option<String>,
    name: String,
}

impl HeldLease {
    fn of(SessionWire { lease, id, name, .. }: SessionWire) -> Self {
        Self { lease, session: Some(id), surface: None, name }
    }

    fn of_mount(MountWire { lease, name, .. }: MountWire) -> Option<Self> {
        Some(Self { lease: lease?, session: None, surface: Some(name.clone()), name })
    }
}

/// The report of a command that acquired or renewed a lease: the id as data, the time as a note.
fn lease_report(answer: ToolAnswer) -> Result<CommandReport, CliFailure> {
    let grant: GrantWire = answer.read()?;
    let notes = vec![format!("the lease lasts {}", rough(grant.expires_in_ms))];
    Ok(CommandReport { notes, ..answer.report(grant.lease_id) })
}

/// The failure, which says how long the caller waited for the lease.
fn after_waiting(mut failure: CliFailure, waited: Option<Duration>) -> CliFailure {
    let codes = [Code::LeaseHeld, Code::LeaseSuspended];
    let in_vain = codes.iter().any(|code| Some(code.as_str()) == failure.code());
    if let (CliFailure::Tool { error, .. }, Some(waited), true) = (&mut failure, waited, in_vain) {
        let waited = measured(millis(waited));
        error.message = format!("waited {waited}: {}", error.message);
    }
    failure
}

/// The given lease id, unless it is that of another session, or that of the command line's own lease of this.
async fn own(
    given: &OwnLease,
    daemon: &DaemonClient,
    LeasedName { session, surface }: LeasedName,
) -> Result<String, CliFailure> {
    let session = match session {
        Some(session) => Some(daemon.session(&session).await?.id),
        None => None,
    };
    let arguments = json!({"session": session, "surface": surface, "lease_id": given.id()?});
    let found = daemon.call("find_lease", arguments).await?;
    let missing = || {
        let of = surface.as_deref().unwrap_or("this session");
        let message = format!("the command line does not hold the lease of {of}");
        let error = Box::new(ErrorWire::new(Code::LeaseRequired, message));
        CliFailure::Tool { error, session: session.map(String::into_boxed_str) }
    };
    found.read::<FoundLease>()?.lease_id.ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::lease::PrincipalKind;

    #[test]
    fn a_lease_is_listed_with_its_session_and_holder() {
        let lease = LeaseWire {
            held: true,
            by: Some("claude#p3".to_owned()),
            kind: Some(PrincipalKind::Agent),
            expires_in_ms: Some(29_400),
            waiters: 1,
            reason: Some("deploy".to_owned()),
            ..LeaseWire::default()
        };
        let session = SessionWire { lease, ..SessionWire::example() };
        let expected = ["0123456789ab", "build", "claude#p3", "agent", "29s", "1", "deploy"];
        let held = HeldLease::of(session);
        assert_eq!(row(&held), expected);
        let held = json!(held);
        assert_eq!((&held["session"], &held["by"]), (&json!("0123456789ab"), &json!("claude#p3")));
    }
}
