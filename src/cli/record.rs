//! `record`: records what sessions print, and makes text, images and animations of recordings.

mod bitmap;
pub mod export;
mod film;
mod font;
mod gif;
pub mod pace;
mod palette;
pub mod played;
mod progress;
pub mod source;
mod svg;

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;
use serde_json::json;

use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::failure::CliFailure;
use crate::cli::output::CommandReport;
use crate::cli::record::export::ExportRecording;
use crate::cli::status::bytes;
use crate::cli::table::render;
use crate::wire::recording::RecordingList;

const TOOL: &str = "record_session";

/// Record what a session prints, for `replay`
///
/// A recording is an asciicast file with all output, size changes, and markers for leases, commands and people. It
/// contains no input: a password that the program does not show is not recorded. It continues across restarts of the
/// daemon, and ends when you stop it, the session ends, or the file reaches `recording.bytes`.
#[derive(Debug, Args)]
pub struct RecordCommand {
    #[command(subcommand)]
    action: RecordAction,
}

#[derive(Debug, Subcommand)]
enum RecordAction {
    Start(StartRecording),
    Stop(StopRecording),
    Ls(ListRecordings),
    Export(ExportRecording),
}

/// Record a session from now on
#[derive(Debug, Args)]
struct StartRecording {
    /// Id, unique prefix of one, or name
    #[arg(add = ArgValueCompleter::new(offer_sessions))]
    session: String,
}

/// Stop recording a session
#[derive(Debug, Args)]
struct StopRecording {
    /// Id, unique prefix of one, or name
    #[arg(add = ArgValueCompleter::new(offer_sessions))]
    session: String,
}

/// List the recordings, oldest first
#[derive(Debug, Args)]
struct ListRecordings {
    /// Only of this session: id, unique prefix of one, or name
    #[arg(add = ArgValueCompleter::new(offer_sessions))]
    session: Option<String>,
}

impl RecordCommand {
    pub async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        match self.action {
            RecordAction::Start(StartRecording { session }) => {
                let arguments = json!({"session": session, "action": "start"});
                Ok(context.daemon().await?.act(TOOL, arguments).await?.report_as_told())
            }
            RecordAction::Stop(StopRecording { session }) => {
                let arguments = json!({"session": session, "action": "stop"});
                Ok(context.daemon().await?.act(TOOL, arguments).await?.report_as_told())
            }
            RecordAction::Ls(ListRecordings { session }) => list(context, session).await,
            RecordAction::Export(export) => export.run(context).await,
        }
    }
}

async fn list(context: &Context, session: Option<String>) -> Result<CommandReport, CliFailure> {
    let arguments = json!({"session": session, "action": "status"});
    let mut report = context.daemon().await?.act(TOOL, arguments).await?.report_as_told();
    let list: RecordingList = serde_json::from_value(report.data.clone())
        .map_err(|error| CliFailure::Other(error.into()))?;
    let rows: Vec<_> = list
        .recordings
        .into_iter()
        .map(|it| {
            let state = if it.running { "recording" } else { "ended" };
            let name = it.name.unwrap_or_default();
            [it.session, name, state.to_owned(), it.begun_at, bytes(it.bytes), it.path]
        })
        .collect();
    if !rows.is_empty() {
        report.text = render(["SESSION", "NAME", "STATE", "BEGUN", "SIZE", "FILE"], &rows);
    }
    Ok(report)
}
