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
        let daemon = context.daemon().await?;
        let session = match self.session {
            // One that was removed has an id only.
            Some(given) => Some(daemon.session(&given).await.map_or(given, |session| session.id)),
            None => None,
        };
        let mut events = EventFollower::new(daemon, session, self.kind);
        let printing = async {
            let first = events.first(self.since, self.limit).await?;
            print(context, &first)?;
            if !self.follow {
                if first.more {
                    let next = first.next_since;
                    context.output.note(&format!("[there are more: continue with --since {next}]"));
                }
                return Ok(CommandExit::Done);
            }
            loop {
                print(context, &events.next().await?)?;
            }
        };
        tokio::select! {
            () = reader_gone() => Ok(CommandExit::Done),
            ended = printing => ended,
        }
    }
}

fn print(context: &Context, list: &EventList) -> Result<(), CliFailure> {
    if list.removed {
        context.output.note("[earlier events were removed to make room]");
    }
    list.events.iter().try_for_each(|event| context.output.item(&json!(event), &event.line()))
}

/// Follows the events of one daemon after the other.
#[derive(Debug)]
pub struct EventFollower {
    daemon: DaemonClient,
    is_subscribed: bool,
    session: Option<String>,
    kind: Option<String>,
    /// What comes after this number is new.
    since: Option<u64>,
}

impl EventFollower {
    /// Follows only events of this session and kind, if they are given.
    pub fn new(daemon: DaemonClient, session: Option<String>, kind: Option<String>) -> Self {
        Self { daemon, is_subscribed: false, session, kind, since: None }
    }

    /// The first events: after a number, or the newest.
    ///
    /// # Errors
    /// Returns the failure of the request.
    pub async fn first(
        &mut self,
        since: Option<u64>,
        limit: usize,
    ) -> Result<EventList, CliFailure> {
        self.since = since;
        self.list(limit).await
    }

    /// Waits for the events after those that were returned last.
    ///
    /// # Errors
    /// [`CliFailure::Unreachable`] if the daemon exits and none returns in time.
    pub async fn next(&mut self) -> Result<EventList, CliFailure> {
        loop {
            match self.next_of_daemon().await {
                Err(CliFailure::Request(ClientError::Closed)) => {
                    self.daemon.resume(RETURN_MAX).await?;
                    self.is_subscribed = false;
                }
                next => return next,
            }
        }
    }

    async fn next_of_daemon(&mut self) -> Result<EventList, CliFailure> {
        if !self.is_subscribed {
            self.daemon.subscribe(EVENTS).await?;
            self.is_subscribed = true;
        }
        loop {
            let list = self.list(AT_A_TIME).await?;
            if !list.events.is_empty() || list.removed {
                return Ok(list);
            }
            let closed = self.daemon.client().closed();
            tokio::select! {
                () = closed => return Err(ClientError::Closed.into()),
                changed = self.daemon.news().changed() => changed.map_err(|_| ClientError::Closed)?,
            }
        }
    }

    async fn list(&mut self, limit: usize) -> Result<EventList, CliFailure> {
        let Self { session, kind, since, .. } = self;
        let arguments = json!({"since": since, "session": session, "kind": kind, "limit": limit});
        let list = self.daemon.call("list_events", arguments).await?.read::<EventList>()?;
        self.since = Some(list.next_since);
        Ok(list)
    }

    pub fn daemon(&self) -> &DaemonClient {
        &self.daemon
    }
}
