//! `policy`: shows how the rules judge a command line, why they decided as they did, and rules to begin with.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use crate::cli::config::sources;
use crate::cli::context::Context;
use crate::cli::failure::{CliFailure, TypedNames};
use crate::cli::output::CommandReport;
use crate::cli::table::render;
use crate::config::sources::rules_in;
use crate::core::command_line::ParsedCommandLine;
use crate::core::ids::TenantId;
use crate::core::policy::Door;
use crate::core::policy::roles::Roles;
use crate::core::policy::rules::facts::{CallFacts, SessionFacts};
use crate::core::shell::activity::ActivityState;
use crate::session::pty::account::own_uid;
use crate::surface::TOOL_NAMES;
use crate::wire::policy::{DecisionWire, ParsedLineWire, ProgramWire, VerdictWire};

/// Show how rules judge command lines, why a call was refused, and rules to begin with
///
/// Rules are in policy.toml beside each configuration file; `termgate config path` lists them, and
/// `termgate config check` checks them. A running daemon reads them again on SIGHUP.
#[derive(Debug, Args)]
pub struct PolicyCommand {
    #[command(subcommand)]
    action: PolicyAction,
}

#[derive(Debug, Subcommand)]
enum PolicyAction {
    Check(CheckCommandLine),
    Explain(ExplainCommand),
    Starter(StarterCommand),
}

/// Show what a command line runs and how the rules judge it, without running it
///
/// Lists each program with its flags and operands, also inside wrappers such as sudo, and names the parts that are
/// known only when the line runs. Flags have one name: `-rf`, `-r -f` and `--recursive --force` of rm are the same.
/// The line is judged as an agent's `run` at a prompt in the current directory, in a session without tags.
#[derive(Debug, Args)]
struct CheckCommandLine {
    /// A line of a POSIX shell or bash, as one word
    #[arg(value_name = "LINE")]
    line: String,
    /// The policy file, instead of those that a daemon started here would read
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    policy: Option<PathBuf>,
    /// The configuration file beside which the policy is, as of `serve --config`
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Show how each rule judged a call
///
/// A refusal names its decision, and so does the journal. The daemon keeps its last 512 decisions.
#[derive(Debug, Args)]
struct ExplainCommand {
    /// Such as 1f3a2b4c
    decision: String,
}

/// Print rules to begin with, as a policy file
#[derive(Debug, Args)]
struct StarterCommand {
    #[arg(value_enum)]
    set: StarterSet,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum StarterSet {
    /// Ask before what is hard to undo, and allow the rest
    Careful,
    /// Allow to look, and ask before everything else
    ReadMostly,
    /// Allow to build and test, and refuse everything else
    Ci,
}

impl StarterSet {
    fn text(self) -> &'static str {
        match self {
            Self::Careful => include_str!("../../config/policy/careful.toml"),
            Self::ReadMostly => include_str!("../../config/policy/read-mostly.toml"),
            Self::Ci => include_str!("../../config/policy/ci.toml"),
        }
    }
}

/// What a person types for the parameters of its calls.
pub const TYPED: TypedNames = &[("decision_id", "DECISION")];

impl PolicyCommand {
    pub async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        match self.action {
            PolicyAction::Check(check) => check.run(),
            PolicyAction::Explain(explain) => explain.run(context).await,
            PolicyAction::Starter(StarterCommand { set }) => {
                Ok(CommandReport::new(json!({"policy": set.text()}), set.text().trim_end()))
            }
        }
    }
}

impl CheckCommandLine {
    fn run(self) -> Result<CommandReport, CliFailure> {
        let directory = env::current_dir().context("the current directory is gone")?;
        let rules = match &self.policy {
            Some(file) => rules_in(file, TOOL_NAMES)?,
            None => {
                let environment = env::vars_os().collect();
                let sources = sources(self.config.as_deref(), &directory, &environment)?;
                (*sources.load()?.config.policy).clone()
            }
        };
        let line = ParsedCommandLine::parse(&self.line);
        let tenant = TenantId::of_uid(own_uid());
        let facts =
            CallFacts { tenant: tenant.as_str(), roles: Roles::MEMBER, ..facts(&line, &directory) };
        let verdict = VerdictWire::from(&rules.judge(&facts));
        let wire = ParsedLineWire::of(&line, verdict);
        let rows: Vec<[String; 4]> = wire.programs.iter().map(row).collect();
        let mut lines = vec![wire.verdict.sentence()];
        if !rows.is_empty() {
            lines.push(render(["PROGRAM", "FLAGS", "OPERANDS", "RUN BY"], &rows));
        }
        let report = CommandReport::new(json!(wire), lines.join("\n"));
        Ok(CommandReport { notes: notes(&wire), ..report })
    }
}

/// An agent's `run` of this line at a prompt.
fn facts<'a>(line: &'a ParsedCommandLine, directory: &Path) -> CallFacts<'a> {
    let session = SessionFacts {
        directory: Some(directory.to_string_lossy().into_owned()),
        terminal: ActivityState::Prompt,
        ..SessionFacts::default()
    };
    CallFacts {
        door: Door::Gateway.as_str(),
        tool: "run",
        session: Some(session),
        line: Some(line),
        ..CallFacts::default()
    }
}

/// A word as it is shown; `?` if it is known only when the line runs.
fn shown(word: &Option<String>) -> &str {
    word.as_deref().unwrap_or("?")
}

fn row(call: &ProgramWire) -> [String; 4] {
    let program = call.path.as_deref().unwrap_or_else(|| shown(&call.program));
    let operands: Vec<&str> = call.operands.iter().map(shown).collect();
    [program.to_owned(), call.flags.join(" "), operands.join(" "), call.run_by.join(" ")]
}

fn notes(line: &ParsedLineWire) -> Vec<String> {
    let sets = line.sets.iter().map(|name| format!("sets {name}"));
    let writes = line.writes.iter().map(|file| format!("writes {}", shown(file)));
    let unknown = line.unknown.iter().map(|part| format!("unknown: {}", part.meaning));
    sets.chain(writes).chain(unknown).collect()
}

impl ExplainCommand {
    async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        let arguments = json!({"decision_id": self.decision});
        let answer = context.daemon().await?.call("explain_decision", arguments).await?;
        let decision: DecisionWire = answer.read()?;
        let session = decision.session.as_ref().map(|id| format!(" in {id}")).unwrap_or_default();
        let DecisionWire { tool, by, what, verdict, .. } = &decision;
        let what = what.as_ref().map(|what| format!("\n{what}")).unwrap_or_default();
        let told = format!("{tool} of {by}{session}: {}{what}", verdict.sentence());
        let rows: Vec<[String; 4]> = verdict
            .rules
            .iter()
            .map(|it| {
                let condition = it.condition.clone().unwrap_or_default();
                let matches = if it.overridden { "overridden" } else { &it.matches };
                [it.rule.clone(), it.effect.clone(), matches.to_owned(), condition]
            })
            .collect();
        let table = render(["RULE", "EFFECT", "MATCHES", "WHAT DOES NOT HOLD"], &rows);
        let text = if rows.is_empty() { told } else { format!("{told}\n{table}") };
        Ok(CommandReport::new(json!(decision), text))
    }
}

#[cfg(test)]
mod tests;
