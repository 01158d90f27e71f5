//! `man`: prints the manual, generated from the argument parser.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, CommandFactory};
use clap_mangen::{Man as Page, generate_to};
use serde_json::json;

use crate::cli::CommandLine;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::output::Report;

/// Print the manual page, or write a page for every command to a directory
///
/// To read it now: termgate man | man -l -
#[derive(Debug, Args)]
pub struct Man {
    /// Write a page for every command, such as termgate-new.1, to this directory; created if missing
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Man {
    /// Runs the command; it needs no daemon.
    ///
    /// # Errors
    /// The pages cannot be written.
    pub fn run(self) -> Result<Report, Failure> {
        match &self.out {
            Some(directory) => write_all(directory),
            None => print_one(),
        }
    }
}

fn print_one() -> Result<Report, Failure> {
    let mut page = Vec::new();
    Page::new(CommandLine::command()).render(&mut page).context("cannot make the page")?;
    let page = String::from_utf8_lossy(&page).trim_end().to_owned();
    Ok(report(json!({"page": page}), page, Vec::new()))
}

fn write_all(directory: &Path) -> Result<Report, Failure> {
    let shown = directory.display();
    fs::create_dir_all(directory).with_context(|| format!("cannot make {shown}"))?;
    generate_to(CommandLine::command(), directory)
        .with_context(|| format!("cannot write into {shown}"))?;
    let note = format!("the manual is in {shown}");
    Ok(report(json!({"out": directory}), String::new(), vec![note]))
}

fn report(data: serde_json::Value, text: String, notes: Vec<String>) -> Report {
    Report { data, text, notes, exit: Exit::Done, mcp_version: None }
}
