//! `mounts`: shows the mounted MCP servers, and changes which there are.

pub mod edit;
pub mod import;
mod readiness;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::asking::confirmed;
use crate::cli::context::Context;
use crate::cli::failure::{CliFailure, TypedNames};
use crate::cli::mounts::edit::{AddMount, RemoveMount};
use crate::cli::mounts::import::ImportMounts;
use crate::cli::mounts::readiness::reloaded_and_ready;
use crate::cli::output::CommandReport;
use crate::cli::table::render;
use crate::wire::mount::{MountList, MountToolWire, MountWire};

const TOOL: &str = "manage_mounts";

/// Offer the tools of other MCP servers through the daemon
///
/// Mounts are in mounts.toml beside each configuration file; `termgate config path` lists them. `add`, `remove` and `import`
/// have a running daemon read its configuration again; `add` and `import` then wait for the servers. Clients know the tools as NAME__TOOL.
#[derive(Debug, Args)]
pub struct MountsCommand {
    #[command(subcommand)]
    action: Option<MountsAction>,
}

#[derive(Debug, Subcommand)]
enum MountsAction {
    List(ListMounts),
    Add(AddMount),
    Remove(RemoveMount),
    Restart(RestartMount),
    Tools(ShowTools),
    Log(ShowLog),
    Accept(AcceptTools),
    Import(ImportMounts),
}

/// List the mounts of the running daemon
#[derive(Debug, Args)]
struct ListMounts {}

/// End the server of a mount and start it again
#[derive(Debug, Args)]
struct RestartMount {
    name: String,
}

/// Show the accepted tools of a mount, and how those that its server lists now differ
#[derive(Debug, Args)]
struct ShowTools {
    name: String,
}

/// Print the last lines that the server of a mount wrote to standard error or logged
#[derive(Debug, Args)]
struct ShowLog {
    name: String,
}

/// Accept the tools that a server has changed
///
/// Until then, no tool of the mount can be called. Shows the difference, asks, and accepts exactly the tools that it has
/// shown.
#[derive(Debug, Args)]
struct AcceptTools {
    name: String,
    /// Accept them without asking
    #[arg(long)]
    yes: bool,
}

/// What a person types for the parameters of its calls.
pub const TYPED: TypedNames = &[("mount", "NAME")];

impl MountsCommand {
    pub async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        match self.action.unwrap_or(MountsAction::List(ListMounts {})) {
            MountsAction::Add(add) => {
                let wait = add.wait;
                Ok(reloaded_and_ready(add.run()?, wait, context).await)
            }
            MountsAction::Remove(remove) => Ok(remove.run()?.reloaded(context).await.report),
            MountsAction::Import(import) => {
                Ok(reloaded_and_ready(import.run()?, import.wait, context).await)
            }
            MountsAction::List(ListMounts {}) => list(context).await,
            MountsAction::Tools(ShowTools { name }) => {
                let list = asked(context, &name).await?;
                let text = table(list.mounts.iter().flat_map(|it| &it.tools));
                Ok(CommandReport::new(json!(list), text))
            }
            MountsAction::Log(ShowLog { name }) => {
                let list = asked(context, &name).await?;
                let lines: Vec<&str> =
                    list.mounts.iter().flat_map(|it| &it.log).map(String::as_str).collect();
                Ok(CommandReport::new(json!(list), lines.join("\n")))
            }
            MountsAction::Restart(RestartMount { name }) => {
                let arguments = json!({"action": "restart", "mount": name});
                Ok(context.daemon().await?.call(TOOL, arguments).await?.report_as_note())
            }
            MountsAction::Accept(accept) => accept.run(context).await,
        }
    }
}

async fn asked(context: &Context, name: &str) -> Result<MountList, CliFailure> {
    let arguments = json!({"action": "list", "mount": name});
    context.daemon().await?.call(TOOL, arguments).await?.read()
}

impl AcceptTools {
    async fn run(&self, context: &Context) -> Result<CommandReport, CliFailure> {
        let list = asked(context, &self.name).await?;
        let differs = |it: &&MountToolWire| it.change.is_some();
        let tools: Vec<_> = list.mounts.iter().flat_map(|it| &it.tools).filter(differs).collect();
        // If none differ there is no digest. Then an empty one has the daemon accept nothing.
        let digest = list.mounts.iter().find_map(|it| it.digest.clone()).unwrap_or_default();
        let shown = table(tools.iter().copied());
        let data = |accepted| json!({"mount": self.name, "accepted": accepted, "tools": tools});
        let why =
            "it asks at a terminal before it accepts; give --yes, or see `termgate mounts tools`";
        let asks = !self.yes && !digest.is_empty();
        if asks && !confirmed(&context.output, &shown, "Accept these tools?", why)? {
            return Ok(CommandReport::new(data(false), "nothing was accepted"));
        }
        let arguments = json!({"action": "accept", "mount": self.name, "digest": digest});
        let answer = context.daemon().await?.call(TOOL, arguments).await?;
        let text = if asks { String::new() } else { shown };
        Ok(CommandReport { notes: vec![answer.text], ..CommandReport::new(data(true), text) })
    }
}

/// The columns of the list of mounts.
const HEAD: [&str; 8] = ["NAME", "STATUS", "TRUST", "MODE", "HOLDER", "TOOLS", "SERVER", "PROBLEM"];

async fn list(context: &Context) -> Result<CommandReport, CliFailure> {
    let listed = context.daemon().await?.call(TOOL, json!({"action": "list"})).await?;
    let list: MountList = listed.read()?;
    let row = |it: &MountWire| {
        let tools = it.accepted.map_or_else(|| "?".to_owned(), |count| count.to_string());
        let changed = it
            .changed
            .then(|| format!("its tools have changed; see: termgate mounts tools {}", it.name));
        let problem = it.problem.clone().or(changed).unwrap_or_default();
        let [name, status, trust, mode] =
            [&it.name, &it.status, &it.trust, &it.mode].map(String::clone);
        let holder = it.lease.as_ref().and_then(|lease| lease.by.clone());
        let holder = holder.unwrap_or_else(|| "-".to_owned());
        [name, status, trust, mode, holder, tools, it.server.clone(), problem]
    };
    let rows: Vec<_> = list.mounts.iter().map(row).collect();
    let mut notes: Vec<String> = Vec::new();
    if rows.is_empty() {
        notes.push(
            "there are no mounts; to add one, run: termgate mounts add NAME -- COMMAND".to_owned(),
        );
    }
    notes.extend(list.mounts.iter().flat_map(|it| {
        let tool = move |tool| format!("{} leaves out the tool {tool}", it.name);
        let output = move |tool| format!("{} leaves out the outputSchema of {tool}", it.name);
        it.left_out.iter().map(tool).chain(it.outputs_left_out.iter().map(output))
    }));
    notes.extend(list.contested.iter().map(|it| {
        format!("the name {} is wanted by {}, so none has it", it.name, it.tools.join(" and "))
    }));
    let text = if rows.is_empty() { String::new() } else { render(HEAD, &rows) };
    Ok(CommandReport { notes, ..CommandReport::new(json!(list), text) })
}

/// Tools, and how they differ from those that were accepted.
fn table<'a>(tools: impl Iterator<Item = &'a MountToolWire>) -> String {
    render(["NAME", "CHANGE", "DESCRIPTION"], &tools.map(row).collect::<Vec<_>>())
}

fn row(tool: &MountToolWire) -> [String; 3] {
    let first = |text: &Option<String>| text.clone().unwrap_or_default();
    let mut description = first(&tool.description);
    if let Some(after) = &tool.new_description {
        description = format!("{description} => {after}");
    }
    [tool.name.clone(), first(&tool.change), description]
}
