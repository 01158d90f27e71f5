//! `install`: configures MCP clients to start termgate, and installs skills for their agents.
//!
//! The clients are rows of a table. When a client cannot be changed, the user gets a snippet to paste.

pub mod client;
pub mod edit;
pub mod entry_format;
pub mod file;
pub mod format;
pub mod own_command;
pub mod place;
pub mod plan;
pub mod skills;

use std::env;
use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::{Context as _, anyhow};
use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args};
use serde_json::{Value, json};

use crate::cli::context::Context;
use crate::cli::exit::CommandExit;
use crate::cli::failure::CliFailure;
use crate::cli::install::client::{CLIENTS, McpClient, present};
use crate::cli::install::entry_format::{AgentRights, NAME, ServerEntry, parse_name};
use crate::cli::install::place::{InstallScope, Surroundings};
use crate::cli::install::plan::{
    ChangeRequest, ClientChange, Deed, Manner, Wish, file_of, hook_up,
};
use crate::cli::install::skills::{Shelf, printed_skills, told_skills};
use crate::cli::output::CommandReport;

/// The word for every client that seems installed.
const ALL: &str = "all";

/// Connect MCP clients, so that their agents find termgate
///
/// If the client's own command is on PATH, termgate uses it. Otherwise, or if that command fails,
/// termgate edits the client's file and keeps everything else in it. It first writes a backup beside
/// the file. With --skills it installs skills for their agents instead: each prompt becomes a file
/// `termgate-NAME/SKILL.md` in the client's skill directory. termgate never changes a skill that you
/// edited.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).args(["client", "skills"]))]
pub struct InstallCommand {
    /// The client; `all` means every installed client
    #[arg(long, value_name = "CLIENT", value_parser = PossibleValuesParser::new(names()))]
    client: Option<String>,
    /// Install skills that teach the client's agents to use termgate; without a client, for `all`
    #[arg(
        long,
        value_name = "CLIENT",
        num_args = 0..=1,
        default_missing_value = ALL,
        value_parser = PossibleValuesParser::new(names()),
        conflicts_with_all = ["read_only", "allow_write", "name"]
    )]
    skills: Option<String>,
    /// Install the skills in this directory
    #[arg(long, value_name = "PATH", requires = "skills", conflicts_with_all = ["client", "scope"])]
    dir: Option<PathBuf>,
    /// Remove the entry, or the skills
    #[arg(long)]
    uninstall: bool,
    /// Print the snippet to paste, and change nothing
    #[arg(long, conflicts_with_all = ["uninstall", "dry_run"])]
    print: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// For you, or for everyone who works in this directory
    #[arg(long, value_enum, default_value = "user")]
    scope: InstallScope,
    /// The client's agents can only watch, even if the daemon allows writing
    #[arg(long, conflicts_with = "allow_write")]
    read_only: bool,
    /// A daemon that the client starts allows writing
    #[arg(long)]
    allow_write: bool,
    /// The name of the client's entry
    #[arg(long, default_value = NAME, value_parser = parse_name)]
    name: String,
}

fn names() -> impl Iterator<Item = &'static str> {
    CLIENTS.iter().map(|client| client.name).chain([ALL])
}

/// The result for one client.
#[derive(Debug)]
struct ClientOutcome {
    client: &'static McpClient,
    result: Result<ClientChange, CliFailure>,
}

impl InstallCommand {
    pub async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        let around = Surroundings::of_process()?;
        let Some(wanted) = &self.client else { return self.place_skills(&around) };
        let order = self.order(context.output.clock().wall_time())?;
        let clients = self.clients(wanted, &around)?;
        if self.print {
            return printed(&clients, &order, &around);
        }
        let mut answers = Vec::new();
        for client in clients {
            let result = hook_up(client, &order, &around).await;
            if wanted != ALL {
                return Ok(told(&[ClientOutcome { client, result: Ok(result?) }], &order, &around));
            }
            answers.push(ClientOutcome { client, result });
        }
        Ok(told(&answers, &order, &around))
    }

    fn order(&self, now: SystemTime) -> Result<ChangeRequest, CliFailure> {
        let rights = match (self.read_only, self.allow_write) {
            (true, _) => AgentRights::ReadOnly,
            (false, true) => AgentRights::Write,
            (false, false) => AgentRights::AsConfigured,
        };
        Ok(ChangeRequest {
            wish: self.wish(),
            manner: self.manner(),
            scope: self.scope,
            server: ServerEntry::bridge(self.name.clone(), own_path()?, rights),
            now,
        })
    }

    fn wish(&self) -> Wish {
        if self.uninstall { Wish::Uninstall } else { Wish::Install }
    }

    fn manner(&self) -> Manner {
        if self.dry_run { Manner::Tell } else { Manner::Do }
    }

    fn place_skills(&self, around: &Surroundings) -> Result<CommandReport, CliFailure> {
        let shelves = self.shelves(around)?;
        if self.print {
            return Ok(printed_skills(&shelves, around));
        }
        let manner = self.manner();
        let placed = shelves.iter().flat_map(|shelf| shelf.place(self.wish(), manner));
        Ok(told_skills(&placed.collect::<Vec<_>>(), manner, around))
    }

    /// The skill directories to change.
    fn shelves(&self, around: &Surroundings) -> Result<Vec<Shelf>, CliFailure> {
        let client = self.skills.as_deref().and_then(McpClient::named);
        Ok(match (&self.dir, client) {
            (Some(_), Some(_)) => {
                let problem = "--dir is there instead of a client: --skills --dir PATH";
                return Err(CliFailure::Usage(problem.to_owned()));
            }
            (Some(directory), None) => {
                vec![Shelf { client: None, directory: around.project.join(directory) }]
            }
            (None, Some(client)) => vec![Shelf::of(client, self.scope, around)?],
            (None, None) => Shelf::all(self.scope, around)?,
        })
    }

    /// The clients to change: the named one, or all installed ones with this scope.
    fn clients(
        &self,
        wanted: &str,
        around: &Surroundings,
    ) -> Result<Vec<&'static McpClient>, CliFailure> {
        if let Some(client) = McpClient::named(wanted) {
            // This error comes first, since no other answer makes sense.
            file_of(client, self.scope, around)?;
            return Ok(vec![client]);
        }
        let has_scope = |client: &&McpClient| client.place(self.scope).is_some();
        let clients: Vec<_> = present(around).filter(has_scope).collect();
        if clients.is_empty() {
            let names: Vec<_> = CLIENTS.iter().map(|client| client.name).collect();
            let hint = format!("name one with --client: {}", names.join(", "));
            return Err(CliFailure::NoClient { hint });
        }
        Ok(clients)
    }
}

/// The real path of this program, so that no client depends on `PATH`.
fn own_path() -> Result<String, CliFailure> {
    let path = env::current_exe().and_then(|path| path.canonicalize());
    let path = path.context("the program's own file is unknown")?;
    let path = path.into_os_string().into_string();
    Ok(path.map_err(|path| {
        anyhow!("clients cannot start {}, whose path is not UTF-8", path.display())
    })?)
}

/// The snippets to paste: for a single client alone, otherwise below each client's name.
fn printed(
    clients: &[&'static McpClient],
    order: &ChangeRequest,
    around: &Surroundings,
) -> Result<CommandReport, CliFailure> {
    let (mut texts, mut items) = (Vec::new(), Vec::new());
    for client in clients {
        let file = file_of(client, order.scope, around)?;
        let snippet = client.entry_format.snippet(&order.server).trim_end().to_owned();
        items.push(json!({"client": client.name, "file": file, "snippet": snippet}));
        let head = format!("{}, in {}:\n", client.title, around.shown(&file));
        texts.push(if clients.len() == 1 { snippet } else { head + &snippet + "\n" });
    }
    Ok(report("clients", items, texts.join("\n"), CommandExit::Done))
}

fn told(answers: &[ClientOutcome], order: &ChangeRequest, around: &Surroundings) -> CommandReport {
    let items = answers.iter().map(|answer| answer.item(order.manner)).collect();
    let lines: Vec<_> = answers.iter().map(|answer| answer.line(order.manner, around)).collect();
    let failed = answers.iter().any(|answer| answer.result.is_err());
    report(
        "clients",
        items,
        lines.join("\n"),
        if failed { CommandExit::Failed } else { CommandExit::Done },
    )
}

fn report(list: &str, items: Vec<Value>, text: String, exit: CommandExit) -> CommandReport {
    CommandReport { exit, ..CommandReport::new(json!({list: items}), text) }
}

impl ClientOutcome {
    /// The result for programs.
    fn item(&self, manner: Manner) -> Value {
        match &self.result {
            Ok(done) => json!({
                "client": self.client.name,
                "result": done.deed,
                "dry_run": manner == Manner::Tell,
                "file": done.file,
                "backup": done.backup,
                "command": done.command,
                "diff": done.diff,
                "note": done.note,
            }),
            Err(problem) => json!({
                "client": self.client.name,
                "result": "failed",
                "error": problem.to_string(),
                "error_code": problem.code(),
                "hint": problem.hint(),
            }),
        }
    }

    /// The result for people.
    fn line(&self, manner: Manner, around: &Surroundings) -> String {
        let name = self.client.name;
        let done = match &self.result {
            Ok(done) => done,
            Err(problem) => {
                let hint = problem.hint().unwrap_or_default().trim_end().to_owned();
                return format!(
                    "{name}: {problem} ({})\n{hint}",
                    problem.code().unwrap_or_default()
                );
            }
        };
        let file = around.shown(&done.file);
        let note = done.note.as_ref().map(|note| format!("{name}: {note}\n")).unwrap_or_default();
        let what = said(done.deed, manner);
        let way = done.command.as_ref().map_or(file, |command| format!("with `{command}`"));
        let how = match &done.backup {
            Some(backup) => format!("{way}, backup in {}", around.shown(backup)),
            None => way,
        };
        let diff = done.diff.as_ref().map(|diff| format!("\n{}", diff.trim_end()));
        format!("{note}{name}: {what} {how}{}", diff.unwrap_or_default())
    }
}

/// The deed as the start of a sentence that continues with where or how.
fn said(deed: Deed, manner: Manner) -> &'static str {
    match (deed, manner) {
        (Deed::Added, Manner::Do) => "added:",
        (Deed::Added, Manner::Tell) => "would be added:",
        (Deed::Updated, Manner::Do) => "updated:",
        (Deed::Updated, Manner::Tell) => "would be updated:",
        (Deed::Removed, Manner::Do) => "removed:",
        (Deed::Removed, Manner::Tell) => "would be removed:",
        (Deed::AlreadyThere, _) => "already there:",
        (Deed::NotThere, _) => "not there:",
        (Deed::Kept, _) => "kept, since you changed it:",
    }
}
