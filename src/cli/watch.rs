//! `watch`: prints changes of a session's screen.

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;
use serde::{Deserialize as _, Serialize};
use serde_json::{Value, json};

use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::daemon::{DaemonClient, RETURN_MAX};
use crate::cli::exit::CommandExit;
use crate::cli::failure::{CliFailure, TypedNames};
use crate::cli::number::number;
use crate::cli::output::reader_gone;
use crate::cli::table::of_delta;
use crate::transport::client::ClientError;
use crate::wire::delta::{DeltaWire, ObservedDelta, UpdateWire};
use crate::wire::session::ExitWire;

/// Print the rows of a session as they change, until its program ends
///
/// With --json it prints each delta as one object per line. If the daemon exits, it continues under the
/// next one, and may print the whole screen again first. Ends with 7 if no daemon returns.
#[derive(Debug, Args)]
pub struct WatchCommand {
    /// Id, unique prefix of one, or name
    #[arg(add = ArgValueCompleter::new(offer_sessions))]
    session: String,
    /// Print only changes after this watermark; without it, the whole screen first
    #[arg(long, value_name = "WATERMARK", value_parser = number::<u64>)]
    since: Option<u64>,
    /// The rows to follow: the screen, also recent history, or all history
    #[arg(long, value_enum, default_value_t = WatchLane::Foreground)]
    lane: WatchLane,
    /// Print at most this many deltas per second
    #[arg(long, value_name = "HZ", value_parser = number::<u32>)]
    rate: Option<u32>,
}

/// Which rows are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum WatchLane {
    Foreground,
    Recent,
    History,
}

/// What a person types for the parameters of its calls.
pub const TYPED: TypedNames =
    &[("session", "SESSION"), ("since", "--since"), ("lane", "--lane"), ("max_rate_hz", "--rate")];

impl WatchCommand {
    pub async fn run(self, context: &Context) -> Result<CommandExit, CliFailure> {
        let mut place = WatchPosition { session: self.session.clone(), since: self.since };
        tokio::select! {
            () = reader_gone() => Ok(CommandExit::Done),
            ended = self.watch(context, &mut place) => ended,
        }
    }

    /// Follows the session under one daemon after the other.
    async fn watch(
        &self,
        context: &Context,
        place: &mut WatchPosition,
    ) -> Result<CommandExit, CliFailure> {
        let mut daemon = context.daemon().await?;
        loop {
            match self.follow(&daemon, context, place).await {
                Err(CliFailure::Request(ClientError::Closed)) if place.since.is_some() => {
                    daemon.resume(RETURN_MAX).await.map_err(|_| place.left(&self.session))?;
                }
                ended => return ended,
            }
        }
    }

    /// Prints deltas and advances `place`, until the program ends.
    async fn follow(
        &self,
        daemon: &DaemonClient,
        context: &Context,
        place: &mut WatchPosition,
    ) -> Result<CommandExit, CliFailure> {
        if place.since.is_some() {
            daemon.outlast_silence(&place.session, &self.session, &context.output).await?;
        }
        let mut deltas = daemon.client().observe(&self.parameters(place))?;
        while let Some(delta) = deltas.next().await? {
            let observed = ObservedDelta::deserialize(&delta);
            let observed = observed.map_err(|_| ClientError::Malformed)?;
            context.output.item(&delta, &of_delta(&observed.delta))?;
            let ended = end(&observed.delta);
            place.advance(observed);
            if let Some(ended) = ended {
                context.output.note(&format!("[{} {ended}]", self.session));
                break;
            }
        }
        Ok(CommandExit::Done)
    }

    fn parameters(&self, place: &WatchPosition) -> Value {
        json!({
            "session": place.session,
            "since": place.since,
            "lane": self.lane,
            "max_rate_hz": self.rate,
        })
    }
}

/// The position up to which a session was printed.
#[derive(Debug)]
struct WatchPosition {
    /// The name from the command line, then the id, which is never reused.
    session: String,
    since: Option<u64>,
}

impl WatchPosition {
    fn advance(&mut self, seen: ObservedDelta) {
        self.session = seen.session;
        self.since = Some(seen.delta.watermark);
    }

    /// The failure when no daemon returned.
    fn left(&self, name: &str) -> CliFailure {
        let what = "the daemon exited, and no other started in time; the session keeps running";
        let from = self.since.map_or_else(String::new, |since| format!(" --since {since}"));
        let hint = format!(
            "once a daemon runs (`termgate serve` starts one), continue with `termgate watch {name}{from}`"
        );
        CliFailure::Left { what, hint, details: json!({"since": self.since}) }
    }
}

/// The program's exit, if the delta contains it. Nothing follows it.
fn end(delta: &DeltaWire) -> Option<ExitWire> {
    delta.updates.iter().find_map(|update| match update {
        UpdateWire::Exit { status } => Some(*status),
        UpdateWire::Row(_)
        | UpdateWire::Cursor(_)
        | UpdateWire::Size { .. }
        | UpdateWire::Title { .. }
        | UpdateWire::Mode { .. }
        | UpdateWire::InputModes(_)
        | UpdateWire::Lease { .. }
        | UpdateWire::Bell { .. }
        | UpdateWire::Clipboard { .. }
        | UpdateWire::Activity { .. }
        | UpdateWire::Other => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_program_ends_the_watch() {
        let ended = |updates| {
            let delta = json!({"from": 1, "watermark": 2, "base_row": 0, "updates": updates});
            end(&serde_json::from_value(delta).unwrap()).map(|ended| ended.to_string())
        };
        let how = |status| ended(json!([{"type": "exit", "status": status}])).unwrap();
        assert_eq!(how(json!({"code": 3})), "exited with code 3");
        assert_eq!(how(json!({"signal": 9})), "ended by SIGKILL");
        assert!(how(json!({"cause": "shim_lost"})).contains("held its terminal is gone"));
        assert_eq!(how(json!({})), "ended, exit code unknown");
        assert_eq!(ended(json!([{"type": "row", "row": 1, "text": "exit"}])), None);
        assert_eq!(ended(json!([])), None);
    }
}
