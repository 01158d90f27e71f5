//! `man`: prints the manual, generated from the argument parser.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, CommandFactory};
use clap_mangen::{Man as Page, generate_to};
use serde_json::json;

use crate::cli::CommandLine;
use crate::cli::failure::CliFailure;
use crate::cli::output::CommandReport;

/// Print the manual page, or write a page for every command to a directory
///
/// To read it now: termgate man | man -l -
#[derive(Debug, Args)]
pub struct ManCommand {
    /// Write a page for every command, such as termgate-new.1, to this directory; created if missing
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl ManCommand {
    pub fn run(self) -> Result<CommandReport, CliFailure> {
        match &self.out {
            Some(directory) => write_all(directory),
            None => print_one(),
        }
    }
}

fn print_one() -> Result<CommandReport, CliFailure> {
    let mut page = Vec::new();
    Page::new(CommandLine::command()).render(&mut page).context("cannot make the page")?;
    let page = String::from_utf8_lossy(&page).trim_end().to_owned();
    Ok(CommandReport::new(json!({"page": page}), page))
}

fn write_all(directory: &Path) -> Result<CommandReport, CliFailure> {
    let shown = directory.display();
    let made = fs::create_dir_all(directory);
    let written = made.and_then(|()| generate_to(CommandLine::command(), directory));
    written.map_err(|error| {
        let advice = "name a directory that you may write to";
        CliFailure::Usage(format!("--out: cannot write into {shown}: {error}; {advice}"))
    })?;
    let notes = vec![format!("the manual is in {shown}")];
    Ok(CommandReport { notes, ..CommandReport::new(json!({"out": directory}), "") })
}
