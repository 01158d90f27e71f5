//! `send`: types text into a session.

use std::time::Duration;

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;
use serde_json::{Value, json};

use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::duration::{millis, millis_within, parse_duration};
use crate::cli::failure::Failure;
use crate::cli::output::Report;
use crate::cli::own_lease::OwnLease;
use crate::cli::written;

/// Type text into a session
///
/// Without a lease, it takes the session's lease for this one call if it is free. If it waits, it prints
/// the rows that changed, and ends with 6 when it timed out.
#[derive(Debug, Args)]
pub struct Send {
    /// Id, unique prefix of one, or name
    #[arg(add = ArgValueCompleter::new(offer_sessions))]
    session: String,
    /// The text; write `--` before it if it begins with a dash
    text: String,
    /// Press Enter after it
    #[arg(long)]
    enter: bool,
    /// Send it as one paste, so that its line ends run nothing; auto: if the program supports that
    #[arg(long, value_enum, default_value_t = Paste::Auto)]
    paste: Paste,
    #[command(flatten)]
    lease: OwnLease,
    /// Type only if the screen has not changed since this watermark, from `read --json`
    #[arg(long, value_name = "WATERMARK")]
    expect: Option<u64>,
    /// Then wait until this text appears
    #[arg(long, value_name = "TEXT", conflicts_with = "until_idle")]
    until_pattern: Option<String>,
    /// Then wait until the screen has not changed for this long
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    until_idle: Option<Duration>,
    /// Wait at most this long [default: 5s, with --until-pattern or --until-idle]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    wait: Option<Duration>,
}

/// When text is a paste.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Paste {
    Auto,
    Always,
    Never,
}

impl Paste {
    fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}

impl Send {
    /// Runs the command.
    ///
    /// # Errors
    /// Nothing was typed, with the reason.
    pub async fn run(self, context: &Context) -> Result<Report, Failure> {
        if let Some(wait) = self.wait {
            millis_within("--wait", wait, 0..=600_000).map_err(Failure::Usage)?;
        }
        if let Some(idle) = self.until_idle {
            millis_within("--until-idle", idle, 1..=600_000).map_err(Failure::Usage)?;
        }
        let lease = self.lease.id()?;
        let daemon = context.daemon().await?;
        written::report(daemon.call("send_text", self.arguments(lease)).await?)
    }

    fn arguments(self, lease: Option<String>) -> Value {
        let until = match (self.until_pattern, self.until_idle) {
            (Some(pattern), _) => json!({"pattern": pattern}),
            (None, Some(idle)) => json!({"idle_ms": millis(idle)}),
            (None, None) => Value::Null,
        };
        json!({
            "session": self.session,
            "text": self.text,
            "enter": self.enter,
            "paste": self.paste.word(),
            "lease_id": lease,
            "expect_watermark": self.expect,
            "until": until,
            "wait_ms": self.wait.map(millis),
        })
    }
}
