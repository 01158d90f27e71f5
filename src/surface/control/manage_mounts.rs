//! `manage_mounts`: lists mounts, restarts them and accepts their tools, for operators.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::core::invisible::written_out;
use crate::core::mount::naming::{ToolSource, exposed_name};
use crate::mount::definitions::{LeftOutTool, ToolDifference, ToolSet};
use crate::mount::error::ManageError;
use crate::mount::handle::MountView;
use crate::mount::json::ExactJson;
use crate::mount::pinned::MountTools;
use crate::mount::servers::Mount;
use crate::surface::answer::budget::ends;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::mounted::lease_of;
use crate::surface::tool::{Answer, Tool, ToolAccess};
use crate::wire::mount::{ContestedName, MountList, MountToolWire, MountWire};
use crate::wire::untrusted::Untrusted;

/// The longest end of what a server that failed wrote to standard error, in bytes of JSON.
const LAST_LINE_MAX: usize = 240;

/// The longest name of a tool that is left out, in bytes of JSON.
const NAME_MAX: usize = 64;

/// What is done with mounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MountAction {
    List,
    Restart,
    Accept,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct ManageMounts {
    action: MountAction,
    /// Its name; list shows all without, and of one also its tools and log
    mount: Option<String>,
    /// accept only the tools that list showed with this digest; else whatever the server lists now
    digest: Option<String>,
}

impl Tool for ManageMounts {
    const NAME: &'static str = "manage_mounts";
    const TITLE: &'static str = "Manage mounted servers";
    const DESCRIPTION: &'static str = "Lists the mounted MCP servers, restarts one, or accepts the \
        tools that one has changed.";
    const ACCESS: ToolAccess = ToolAccess::Operate;
    const READS_IF: Option<(&'static str, &'static str)> = Some(("action", "list"));

    type Result = MountList;

    async fn call(self, mut call: Call) -> Result<Answer<MountList>, SurfaceError> {
        call.take_permit()?.check_operates(None)?;
        let mounts = &call.daemon.mounts;
        let named = self.mount.as_deref();
        let named =
            named.map(|name| mounts.find(name).ok_or_else(|| ManageError::Unknown(shown(name))));
        let named = named.transpose()?;
        let text = match (self.action, &named) {
            (MountAction::List, _) => String::new(),
            (MountAction::Restart | MountAction::Accept, None) => {
                return Err(SurfaceError::argument("mount", "missing"));
            }
            (MountAction::Restart, Some(mount)) => {
                mount.restart();
                format!("the mount {} is being restarted", mount.name())
            }
            (MountAction::Accept, Some(mount)) => {
                mount.accept(self.digest.as_deref())?;
                format!("the tools of {} are accepted", mount.name())
            }
        };
        let found = match &named {
            Some(mount) => vec![described(&call, mount)],
            None => mounts.all().iter().map(|it| summary(&call, it)).collect(),
        };
        let contested = mounts.contested().into_iter().map(|(name, sources)| ContestedName {
            name: name.to_string(),
            tools: sources.iter().map(|it| shown(&format!("{}/{}", it.mount, it.tool))).collect(),
        });
        let result = MountList { mounts: found, contested: contested.collect() };
        let text = if text.is_empty() { lines(&result) } else { text };
        Ok(Answer { result, text })
    }
}

/// A text of a server, with all characters visible.
fn shown(text: &str) -> String {
    written_out(text, char::is_control).into_owned()
}

fn summary(call: &Call, mount: &Mount) -> MountWire {
    let (view, tools) = (mount.view(), mount.tools());
    MountWire {
        untrusted: Untrusted,
        name: mount.name().to_string(),
        server: shown(&mount.settings().server.to_string()),
        trust: mount.settings().trust.as_str().to_owned(),
        mode: mount.settings().mode.to_string(),
        servers: mount.running(),
        lease: lease_of(&call.daemon, mount, &call.standing),
        status: view.status.as_str().to_owned(),
        pid: view.pid,
        generation: view.generation,
        accepted: tools.accepted.as_ref().map(|it| it.offered().count()),
        changed: tools.changed().is_some(),
        digest: None,
        problem: problem(&view),
        retries: view.retries,
        left_out: view.left_out.tools.iter().map(left_out).collect(),
        outputs_left_out: view.left_out.outputs.iter().map(left_out).collect(),
        tools: Vec::new(),
        capabilities: Vec::new(),
        instructions: None,
        log: Vec::new(),
    }
}

/// What is wrong with a server, and what it said of that itself.
fn problem(view: &MountView) -> Option<String> {
    let problem = shown(&view.problems()?);
    Some(match (&view.problem, &view.last_line) {
        (Some(_), Some(line)) => {
            format!("{problem}; stderr ends with: {}", shown(&ends(line, LAST_LINE_MAX)))
        }
        (None, _) | (_, None) => problem,
    })
}

fn left_out(tool: &LeftOutTool) -> String {
    let name = if tool.name.is_empty() { "a tool" } else { &*tool.name };
    shown(&format!("{}: {}", ends(name, NAME_MAX), tool.problem))
}

fn described(call: &Call, mount: &Mount) -> MountWire {
    let log = mount.log().iter().map(|line| shown(line)).collect();
    let known = mount.tools();
    let digest = known.changed().map(|it| it.digest());
    let tools = tools(mount, &known);
    let declared = known.declared.unwrap_or_default();
    let capabilities = declared.names().iter().map(|&it| it.to_owned()).collect();
    let instructions = known.instructions.as_deref().map(shown);
    MountWire { digest, tools, capabilities, instructions, log, ..summary(call, mount) }
}

/// The tools that were accepted, and how those that the server lists now differ.
fn tools(mount: &Mount, known: &MountTools) -> Vec<MountToolWire> {
    let accepted = known.accepted.clone().unwrap_or_default();
    let newest = known.changed().unwrap_or(&accepted);
    let differences = accepted.differences(newest);
    let mut names: BTreeMap<&Arc<str>, Option<&ToolDifference>> =
        accepted.tools().keys().map(|name| (name, None)).collect();
    names.extend(differences.iter().map(|(name, difference)| (name, Some(difference))));
    let wire = |(tool, difference): (&Arc<str>, Option<&ToolDifference>)| {
        let source = ToolSource { mount: mount.name().clone(), tool: Arc::clone(tool) };
        let description = description(&accepted, tool);
        let after = self::description(newest, tool);
        MountToolWire {
            name: exposed_name(&source),
            tool: shown(tool),
            change: difference.map(|difference| match difference {
                ToolDifference::Added => "added".to_owned(),
                ToolDifference::Removed => "removed".to_owned(),
                ToolDifference::Changed(members) => members.join(", "),
            }),
            new_description: after.filter(|after| Some(after) != description.as_ref()),
            description,
        }
    };
    names.into_iter().map(wire).collect()
}

fn description(tools: &ToolSet, tool: &Arc<str>) -> Option<String> {
    tools.tools().get(tool)?.get("description").and_then(ExactJson::as_text).map(shown)
}

/// A line per mount.
fn lines(list: &MountList) -> String {
    let line = |it: &MountWire| {
        let problem = it.problem.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let changed = if it.changed { ", changed its tools" } else { "" };
        let tools = it.accepted.unwrap_or_default();
        let leased = it.lease.as_ref().map(|lease| match &lease.by {
            Some(by) => format!(", leased by {by}"),
            None => ", its lease is free".to_owned(),
        });
        let leased = leased.unwrap_or_default();
        let left_out = match it.left_out.len() {
            0 => String::new(),
            count => format!(", {count} left out ({})", it.left_out.join(", ")),
        };
        let (name, trust, status) = (&it.name, &it.trust, &it.status);
        format!("{name} ({trust}) {status}, {tools} tools{left_out}{leased}{changed}{problem}")
    };
    let contested = |it: &ContestedName| {
        format!("the name {} is wanted by {}, so none has it", it.name, it.tools.join(" and "))
    };
    let lines = list.mounts.iter().map(line).chain(list.contested.iter().map(contested));
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { "there are no mounts".to_owned() } else { lines.join("\n") }
}
