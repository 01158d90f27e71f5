//! `config`: shows the configuration, its sources and its problems, without a daemon.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::{self, Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use crate::cli;
use crate::cli::failure::{CliFailure, told_problems};
use crate::cli::output::CommandReport;
use crate::cli::table::render;
use crate::config::key::{ConfigKey, KEYS, Value as Setting};
use crate::config::problem::Problem;
use crate::config::sources::{Effective, Sources};
use crate::mcp::settings::RELOAD_METHOD;
use crate::surface::TOOL_NAMES;
use crate::transport::client::ClientError;
use crate::wire::status::Reloaded;

/// Show or check the configuration, list its files, or have the daemon read it again
///
/// Later sources win: the files in the order of `config path`, then the environment
/// (TERMGATE_LEASE__TTL_MS is lease.ttl_ms), then flags. A running daemon reads the files again on
/// `config reload` and SIGHUP.
#[derive(Debug, Args)]
pub struct ConfigCommand {
    #[command(subcommand)]
    action: ConfigAction,
}

#[derive(Debug, Subcommand)]
enum ConfigAction {
    Show(Show),
    Check(ConfigCheck),
    Path(Files),
    Reload(ConfigReload),
}

/// Have the running daemon read its configuration again, and show what changed
///
/// With problems, the daemon keeps the configuration that it has, and the command shows them.
#[derive(Debug, Args)]
struct ConfigReload {}

/// Print every key with the value that a daemon started here would use, in file format
#[derive(Debug, Args)]
struct Show {
    /// Show the source of each value: the default, a file and line, or a variable
    #[arg(long)]
    origin: bool,
    #[command(flatten)]
    given: ConfigChoice,
}

/// Check the configuration and show every problem with file, line and column
///
/// A file named `.termgate.toml` is checked as a project file, which can only make limits stricter.
/// termgate ignores looser values and warns.
#[derive(Debug, Args)]
struct ConfigCheck {
    /// Check only this file [default: all sources, including the environment]
    #[arg(conflicts_with = "config")]
    file: Option<PathBuf>,
    #[command(flatten)]
    given: ConfigChoice,
}

/// List the configuration files, lowest precedence first
#[derive(Debug, Args)]
struct Files {
    #[command(flatten)]
    given: ConfigChoice,
}

#[derive(Debug, Args)]
struct ConfigChoice {
    /// Read this file instead of the system's and the user's, as `serve --config` does
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ConfigCommand {
    pub async fn run(self, context: &cli::context::Context) -> Result<CommandReport, CliFailure> {
        match self.action {
            ConfigAction::Show(show) => show.run(),
            ConfigAction::Check(check) => check.run(),
            ConfigAction::Path(files) => files.run(),
            ConfigAction::Reload(ConfigReload {}) => reload(context).await,
        }
    }
}

/// Has the running daemon read its configuration again.
///
/// # Errors
/// None runs, or it refuses the configuration and keeps the one that it has.
pub async fn reload(context: &cli::context::Context) -> Result<CommandReport, CliFailure> {
    let daemon = context.running_daemon().await.map_err(CliFailure::without_start)?;
    let answer = daemon.client().request(RELOAD_METHOD, json!({})).await?;
    let reloaded = Reloaded::deserialize(answer).map_err(|_| ClientError::Malformed)?;
    let mut text = match reloaded.changed.as_slice() {
        [] => "nothing changed".to_owned(),
        changed => format!("changed: {}", changed.join(", ")),
    };
    if !reloaded.at_restart.is_empty() {
        text += &format!("\nchanges when the daemon restarts: {}", reloaded.at_restart.join(", "));
    }
    let report = CommandReport::new(json!(reloaded), text);
    Ok(CommandReport { notes: reloaded.notes, ..report })
}

impl ConfigChoice {
    fn sources(&self) -> Result<Sources, CliFailure> {
        let directory = env::current_dir().context("the current directory is gone")?;
        sources(self.config.as_deref(), &directory, &env::vars_os().collect())
    }
}

/// The sources of a daemon with this directory and environment. A given file replaces the system's
/// and the user's files.
pub fn sources(
    given: Option<&Path>,
    directory: &Path,
    environment: &BTreeMap<OsString, OsString>,
) -> Result<Sources, CliFailure> {
    let given = given.map(path::absolute).transpose().context("--config")?;
    Ok(Sources::new(given, directory, environment, TOOL_NAMES))
}

impl Show {
    fn run(self) -> Result<CommandReport, CliFailure> {
        let effective = self.given.sources()?.load()?;
        let value = |key: &ConfigKey| match key.value(&effective.config) {
            Setting::Switch(on) => json!(on),
            Setting::Number(number) => json!(number),
            Setting::Key(key) => json!(key.to_string()),
            Setting::Text(text) => json!(text),
            Setting::EventKinds(kinds) => json!(kinds.iter().collect::<Vec<_>>()),
        };
        let mut data = json!({
            "settings": members(value),
            "notes": told_problems(&effective.notes),
        });
        if self.origin {
            data["origins"] = members(|key| json!(effective.origin(key).to_string()));
        }
        let text = text(&effective, self.origin);
        Ok(CommandReport { notes: lines(&effective.notes), ..CommandReport::new(data, text) })
    }
}

impl ConfigCheck {
    fn run(self) -> Result<CommandReport, CliFailure> {
        let sources = self.given.sources()?;
        let notes = match &self.file {
            Some(file) => sources.check(file)?,
            None => sources.load()?.notes,
        };
        let data = json!({"valid": true, "notes": told_problems(&notes)});
        Ok(CommandReport {
            notes: lines(&notes),
            ..CommandReport::new(data, "the configuration is valid")
        })
    }
}

impl Files {
    fn run(self) -> Result<CommandReport, CliFailure> {
        let sources = self.given.sources()?;
        let beside = [sources.policy_files(), sources.tenants_files(), sources.mounts_files()];
        let files: Vec<_> = [sources.files(), beside.concat()].concat();
        let told = files.iter().map(|source| {
            let (layer, path) = (source.layer.as_str(), source.path.display().to_string());
            json!({"layer": layer, "path": path, "exists": source.path.exists()})
        });
        let rows: Vec<_> = files
            .iter()
            .map(|source| {
                let found = if source.path.exists() { "yes" } else { "no" };
                let path = source.path.display().to_string();
                [source.layer.as_str().to_owned(), found.to_owned(), path]
            })
            .collect();
        let data = json!({"files": told.collect::<Vec<_>>()});
        Ok(CommandReport::new(data, render(["LAYER", "EXISTS", "PATH"], &rows)))
    }
}

fn lines(notes: &[Problem]) -> Vec<String> {
    notes.iter().map(Problem::to_string).collect()
}

fn members(of: impl Fn(&ConfigKey) -> Value) -> Value {
    KEYS.iter().map(|key| (key.name.to_owned(), of(key))).collect::<Map<_, _>>().into()
}

/// The whole configuration in file format, with the sources as comments if requested.
fn text(effective: &Effective, with_origins: bool) -> String {
    const COMMENT_COLUMN: usize = 36;
    let (mut lines, mut section) = (Vec::new(), "");
    for key in KEYS {
        if key.section() != section {
            section = key.section();
            lines.extend([String::new(), format!("[{section}]")]);
        }
        let name = key.name.rsplit('.').next().unwrap_or(key.name);
        let line = format!("{name} = {}", key.value(&effective.config));
        lines.push(if with_origins {
            format!("{line:COMMENT_COLUMN$} # {}", effective.origin(key))
        } else {
            line
        });
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_a_file_that_sets_the_same() {
        let mut effective = Effective::built_in();
        effective.config.allow_write = true;
        effective.config.lease.waiters = 7;
        for with_origins in [false, true] {
            let text = text(&effective, with_origins);
            let directory = tempfile::tempdir().unwrap();
            let file = directory.path().join("my.toml");
            std::fs::write(&file, &text).unwrap();
            let read = sources(Some(&file), directory.path(), &BTreeMap::new()).unwrap();
            assert_eq!(read.load().unwrap().config, effective.config, "{text}");
        }
    }
}
