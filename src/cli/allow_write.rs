//! `allow-write`: the switches that let clients write.

use std::time::Duration;

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;
use serde::Serialize;
use serde_json::json;

use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::duration::{millis_within, parse_duration};
use crate::cli::failure::{CliFailure, TypedNames};
use crate::cli::output::CommandReport;

/// Switch writing on or off while the daemon runs, or show the switches
///
/// The narrowest switch decides: that of the session, then of its tenant, then of everything. `off --session S`
/// protects a session, also while everything is on, until `on --session S`. `off` alone clears every switch that is
/// on, and `on` alone opens everything that is not protected. When a switch for a time runs out, what held before it
/// holds again: off, or on without a limit.
#[derive(Debug, Args)]
pub struct AllowWriteCommand {
    #[arg(value_enum)]
    state: SwitchState,
    /// Only for this session: id, unique prefix of one, or name
    #[arg(long, conflicts_with = "tenant", add = ArgValueCompleter::new(offer_sessions))]
    session: Option<String>,
    /// Only for this tenant, such as uid:1000
    #[arg(long)]
    tenant: Option<String>,
    /// Only for this long; then what held before holds again
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    duration: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum SwitchState {
    On,
    Off,
    Status,
}

/// What a person types for the parameters of its calls.
pub const TYPED: TypedNames =
    &[("session", "--session"), ("tenant", "--tenant"), ("for_ms", "--for")];

impl AllowWriteCommand {
    pub async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        if self.duration.is_some() && self.state != SwitchState::On {
            return Err(CliFailure::Usage("--for goes with `on` only".to_owned()));
        }
        let within = |given| millis_within("--for", given, 1..=30 * 24 * 3_600_000);
        let for_ms = self.duration.map(within).transpose().map_err(CliFailure::Usage)?;
        let arguments = json!({
            "state": self.state,
            "session": self.session,
            "tenant": self.tenant,
            "for_ms": for_ms,
        });
        Ok(context.daemon().await?.call("set_write", arguments).await?.report_as_told())
    }
}
