//! `allow-write`: the switches that let clients write.

use std::time::Duration;

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;
use serde_json::json;

use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::duration::{millis_within, parse_duration};
use crate::cli::failure::Failure;
use crate::cli::output::Report;

/// Switch writing on or off while the daemon runs, or show the switches
///
/// `off` without --session or --tenant clears every switch.
#[derive(Debug, Args)]
pub struct AllowWrite {
    #[arg(value_enum)]
    state: State,
    /// Only for this session: id, unique prefix of one, or name
    #[arg(long, conflicts_with = "tenant", add = ArgValueCompleter::new(offer_sessions))]
    session: Option<String>,
    /// Only for this tenant, such as uid:1000
    #[arg(long)]
    tenant: Option<String>,
    /// Switch it off again after this long
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    duration: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum State {
    On,
    Off,
    Status,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Status => "status",
        }
    }
}

impl AllowWrite {
    /// Runs the command.
    ///
    /// # Errors
    /// `--for` without `on`, or the daemon's error.
    pub async fn run(self, context: &Context) -> Result<Report, Failure> {
        if self.duration.is_some() && self.state != State::On {
            return Err(Failure::Usage("--for goes with `on` only".to_owned()));
        }
        let within = |given| millis_within("--for", given, 1..=30 * 24 * 3_600_000);
        let for_ms = self.duration.map(within).transpose().map_err(Failure::Usage)?;
        let arguments = json!({
            "state": self.state.word(),
            "session": self.session,
            "tenant": self.tenant,
            "for_ms": for_ms,
        });
        Ok(context.daemon().await?.call("set_write", arguments).await?.report_as_told())
    }
}
