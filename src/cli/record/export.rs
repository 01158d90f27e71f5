//! `record export`: a recording as text or as an image.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::json;

use crate::cli::candidates::offer_sessions;
use crate::cli::context::Context;
use crate::cli::failure::CliFailure;
use crate::cli::output::CommandReport;
use crate::cli::record::played::PlayedScreen;
use crate::cli::record::source::{failed, find, open};
use crate::cli::record::svg::svg_of;

/// Make text or an image of a recording
#[derive(Debug, Args)]
pub(super) struct ExportRecording {
    /// A session, for its newest recording, or an asciicast file
    #[arg(value_name = "SESSION|FILE", add = ArgValueCompleter::new(offer_sessions))]
    recording: String,
    /// The history and the last screen as plain text; the default
    #[arg(long, conflicts_with = "svg")]
    txt: bool,
    /// The last screen as an SVG image
    #[arg(long)]
    svg: bool,
    /// Write to this file instead of standard output; it must not exist
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl ExportRecording {
    pub(super) async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        let path = find(context, self.recording).await?;
        let mut events = open(&path)?;
        let mut screen = PlayedScreen::new(events.facts().size);
        events
            .try_for_each(|event| event.map(|event| screen.play(event)))
            .map_err(|error| failed(&path, &error))?;
        let (form, text) = match self.svg {
            true => ("svg", svg_of(&screen.frame())),
            false => ("txt", screen.text()),
        };
        let Some(output) = self.output else {
            return Ok(CommandReport::new(json!({"format": form, "text": text}), text));
        };
        let file = OpenOptions::new().write(true).create_new(true).open(&output);
        let written = file.and_then(|mut file| writeln!(file, "{text}"));
        written.with_context(|| format!("cannot write {}", output.display()))?;
        let told = format!("wrote {}", output.display());
        Ok(CommandReport::new(json!({"format": form, "path": output}), told))
    }
}
