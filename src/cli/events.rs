//! `events`: prints what happened, and what happens.

use std::ffi::OsStr;

use clap::Args;
use clap_complete::{ArgValueCompleter, CompletionCandidate};
use serde_json::json;

use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::daemon::{DaemonClient, RETURN_MAX};
use crate::cli::exit::CommandExit;
use crate::cli::failure::{CliFailure, TypedNames};
use crate::cli::number::number;
use crate::cli::output::reader_gone;
use crate::core::event::EVENT_KINDS;
use crate::transport::client::ClientError;
use crate::wire::event::EventList;

const EVENTS: &str = "termgate://events";

/// The most events of one request while following.
const AT_A_TIME: usize = 500;

/// Print what happened: sessions, leases, commands, bells, notifications, refusals
///
/// Events have numbers that grow, also over restarts of the daemon: give the last one you know with --since
/// to miss none. With --json it prints one event per line.
#[derive(Debug, Args)]
pub struct EventsCommand {
    /// Keep printing events as they happen, also under the next daemon
    #[arg(long, short)]
    follow: bool,
    /// Only events after this number, oldest first; without it, the newest
    #[arg(long, value_name = "SEQ", value_parser = number::<u64>)]
    since: Option<u64>,
    /// Only of this session: id, unique prefix of one, or name
    #[arg(long, add = ArgValueCompleter::new(offer_sessions))]
    session: Option<String>,
    /// Only this kind or family, such as bell, lease, command_ended or needs_input
    #[arg(long, add = ArgValueCompleter::new(offer_kinds))]
    kind: Option<String>,
    /// Print at most this many at first
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = number::<usize>)]
    limit: usize,
}

/// What a person types for the parameters of its calls.
pub const TYPED: TypedNames =
    &[("since", "--since"), ("session", "--session"), ("kind", "--kind"), ("limit", "--limit")];

fn offer_kinds(current: &OsStr) -> Vec<CompletionCandidate> {
    let begun = current.to_str().unwrap_or_default();
    let fitting = EVENT_KINDS.iter().filter(|kind| kind.starts_with(begun));
    fitting.map(CompletionCandidate::new).collect()
}

impl EventsCommand {
    pub async fn run(self, context: &Context) -> Result<CommandExit, CliFailure> {
        let mut daemon = context.daemon().await?;
        let printed = EventPrinter { follow: self.follow, context, kind: self.kind };
        let session = match self.session {
            // One that was removed has an id only.
            Some(given) => Some(daemon.session(&given).await.map_or(given, |session| session.id)),
            None => None,
        };
        if !self.follow {
            printed.print(&daemon, session.as_deref(), self.since, self.limit).await?;
            return Ok(CommandExit::Done);
        }
        let following = async {
            daemon.subscribe(EVENTS).await?;
            let (since, limit) = (self.since, self.limit);
            let since = printed.print(&daemon, session.as_deref(), since, limit).await?;
            printed.follow(&mut daemon, session.as_deref(), since).await
        };
        tokio::select! {
            () = reader_gone() => Ok(CommandExit::Done),
            failure = following => failure,
        }
    }
}

/// Prints the events that are asked for.
struct EventPrinter<'a> {
    follow: bool,
    context: &'a Context,
    kind: Option<String>,
}

impl EventPrinter<'_> {
    /// Prints events, and returns the number to continue after.
    async fn print(
        &self,
        daemon: &DaemonClient,
        session: Option<&str>,
        since: Option<u64>,
        limit: usize,
    ) -> Result<u64, CliFailure> {
        let Self { follow, context, kind } = self;
        let arguments = json!({"since": since, "session": session, "kind": kind, "limit": limit});
        let answer = daemon.call("list_events", arguments).await?;
        let list = answer.read::<EventList>()?;
        if list.removed {
            context.output.note("[earlier events were removed to make room]");
        }
        for event in &list.events {
            context.output.item(&json!(event), &event.line())?;
        }
        if list.more && !follow {
            let next = list.next_since;
            context.output.note(&format!("[there are more: continue with --since {next}]"));
        }
        Ok(list.next_since)
    }

    /// Prints events as they happen, under one daemon after the other.
    async fn follow(
        &self,
        daemon: &mut DaemonClient,
        session: Option<&str>,
        mut since: u64,
    ) -> Result<CommandExit, CliFailure> {
        loop {
            match self.follow_one(daemon, session, &mut since).await {
                Err(CliFailure::Request(ClientError::Closed)) => daemon.resume(RETURN_MAX).await?,
                ended => return ended,
            }
        }
    }

    async fn follow_one(
        &self,
        daemon: &mut DaemonClient,
        session: Option<&str>,
        since: &mut u64,
    ) -> Result<CommandExit, CliFailure> {
        daemon.subscribe(EVENTS).await?;
        loop {
            let before = *since;
            *since = self.print(daemon, session, Some(*since), AT_A_TIME).await?;
            if *since > before {
                continue;
            }
            let closed = daemon.client().closed();
            tokio::select! {
                () = closed => return Err(ClientError::Closed.into()),
                changed = daemon.news().changed() => {
                    changed.map_err(|_| ClientError::Closed)?;
                }
            }
        }
    }
}
