//! `keys`: presses keys in a session.

use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::json;

use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::failure::{CliFailure, TypedNames};
use crate::cli::number::number;
use crate::cli::output::CommandReport;
use crate::cli::own_lease::OwnLease;
use crate::cli::send::write_report;

/// Press keys in a session, such as: keys build Up Enter
///
/// Without a lease, it takes the session's lease for this one call if it is free.
#[derive(Debug, Args)]
pub struct KeysCommand {
    /// Id, unique prefix of one, or name
    #[arg(add = ArgValueCompleter::new(offer_sessions))]
    session: String,
    /// Names of keys, such as Enter, Up, F5, C-c or M-x, or single characters
    #[arg(required = true)]
    keys: Vec<String>,
    #[command(flatten)]
    lease: OwnLease,
    /// Type only if the screen has not changed since this watermark, from `read --json`
    #[arg(long, value_name = "WATERMARK", value_parser = number::<u64>)]
    expect: Option<u64>,
}

/// What a person types for the parameters of its calls.
pub const TYPED: TypedNames = &[
    ("session", "SESSION"),
    ("keys", "KEYS"),
    ("lease_id", "--lease-file or TERMGATE_LEASE"),
    ("expect_watermark", "--expect"),
];

impl KeysCommand {
    pub async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        let arguments = json!({
            "session": self.session,
            "keys": self.keys.join(" "),
            "lease_id": self.lease.id()?,
            "expect_watermark": self.expect,
        });
        write_report(context.daemon().await?.act("send_keys", arguments).await?)
    }
}
