//! How a server is greeted, and how its tools are listed, page by page.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::mount::asking::{AskRefusal, ServerAsk};
use crate::mount::declared::DeclaredCapabilities;
use crate::mount::definitions::{LeftOutTool, TOOLS_MAX, ToolSet};
use crate::mount::eras::{NEWER_REVISION, OLDER_REVISION, ServerEra, client_info};
use crate::mount::handle::{Greeting, MountShared};
use crate::mount::json::ExactJson;
use crate::mount::json::reading::{RepeatedNames, read_whole};
use crate::mount::link::ServerLink;
use crate::mount::link::lines::FromServer;
use crate::mount::protocol::{
    ServerMessage, ServerParams, ServerRefusal, ServerRequest, answer as answer_line, answer_to,
    notification, parse, request,
};

/// The most pages of a list of tools.
const PAGES_MAX: usize = 32;

/// The most lists of a server that says each time that its tools have changed meanwhile, before it is called.
const LISTS_MAX: usize = 3;

/// The most bytes of all tools of a server, as JSON: each client lists them.
const TOOLS_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Where a server of the older era declares that tools may be called as tasks.
const TASK_CALLS: &str = "/tasks/requests/tools/call";

/// The longest instructions that are kept, in bytes.
const INSTRUCTIONS_MAX: usize = 4_096;

/// A list of tools that is being asked for.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) id: u64,
    era: ServerEra,
    cursor: Option<String>,
    pages: usize,
    bytes: usize,
    found: Vec<ExactJson>,
    left_out: Vec<LeftOutTool>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    tools: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

impl Listing {
    pub(super) fn new(id: u64, era: ServerEra) -> Self {
        Self { id, era, cursor: None, pages: 0, bytes: 0, found: Vec::new(), left_out: Vec::new() }
    }

    pub(super) fn request(&self) -> Vec<u8> {
        let mut params = ServerParams::default();
        if let Some(cursor) = &self.cursor {
            params.set("cursor", cursor);
        }
        self.era.request(self.id, "tools/list", &mut params)
    }

    /// Adds a page. Returns all tools, or the request for the next page.
    pub(super) fn on_page(
        mut self,
        result: Result<Box<RawValue>, ServerRefusal>,
        number: impl FnOnce() -> u64,
    ) -> Result<Result<ToolSet, Self>, String> {
        let result = result.map_err(|refusal| format!("it lists no tools: {}", refusal.message))?;
        let page: Page = read_whole(result.get())
            .map_err(|error| format!("its list of tools is malformed: {error}"))?;
        self.bytes += page.tools.iter().map(|tool| tool.get().len()).sum::<usize>();
        if self.bytes > TOOLS_BYTES_MAX {
            return Err(format!("its tools take more than {} MiB", TOOLS_BYTES_MAX >> 20));
        }
        for tool in page.tools {
            match ExactJson::read(&tool, RepeatedNames::LeftOut) {
                Ok(tool) => self.found.push(tool),
                Err(fault) => self.left_out.push(LeftOutTool::of(&tool, &fault)),
            }
        }
        if self.found.len() + self.left_out.len() > TOOLS_MAX {
            return Err(format!("it lists more than {TOOLS_MAX} tools"));
        }
        self.pages += 1;
        match page.next_cursor {
            Some(_) if self.pages == PAGES_MAX => Err("its list of tools is too long".to_owned()),
            Some(cursor) => Ok(Err(Self { id: number(), cursor: Some(cursor), ..self })),
            None => ToolSet::of_list(self.found, self.left_out)
                .map(Ok)
                .map_err(|error| error.to_string()),
        }
    }
}

/// How a server was greeted.
#[derive(Debug)]
pub(super) struct Greeted {
    pub(super) greeting: Greeting,
    pub(super) tools: ToolSet,
    /// Whether it has said that they changed while it listed them.
    pub(super) have_changed: bool,
}

/// Greets a server that was just started, and lists its tools if it has some.
///
/// # Errors
/// What is wrong with the server.
pub(super) async fn greet(
    link: &mut ServerLink,
    shared: &MountShared,
    capabilities: Value,
) -> Result<Greeted, String> {
    let greeting = hello(link, shared, capabilities).await?;
    if !greeting.declared.has("tools") {
        return Ok(Greeted { greeting, tools: ToolSet::default(), have_changed: false });
    }
    let (mut tools, mut have_changed) = list(link, shared, greeting.era).await?;
    for _ in 1..LISTS_MAX {
        if !have_changed {
            break;
        }
        // One that does not list them well again has listed them, and is asked later.
        let Ok(again) = list(link, shared, greeting.era).await else { break };
        (tools, have_changed) = again;
    }
    Ok(Greeted { greeting, tools, have_changed })
}

/// Lists the tools. Returns also whether the server has said meanwhile that they changed.
async fn list(
    link: &mut ServerLink,
    shared: &MountShared,
    era: ServerEra,
) -> Result<(ToolSet, bool), String> {
    let mut listing = Listing::new(shared.number(), era);
    let mut have_changed = false;
    loop {
        send(link, listing.request())?;
        let page = answer(link, shared, listing.id).await?;
        have_changed |= page.have_tools_changed;
        match listing.on_page(page.result, || shared.number())? {
            Ok(tools) => return Ok((tools, have_changed)),
            Err(next) => listing = next,
        }
    }
}

/// Finds out which era a server speaks. One of both speaks the older, in which it may ask in each of its ways; one that
/// refuses that greeting may speak the newer.
async fn hello(
    link: &mut ServerLink,
    shared: &MountShared,
    capabilities: Value,
) -> Result<Greeting, String> {
    let id = ask_older(link, shared, capabilities)?;
    let refused = match greeted(answer(link, shared, id).await?.result) {
        Ok(said) => {
            send(link, notification("notifications/initialized", &json!({})))?;
            return Ok(greeting(&said, ServerEra::Older));
        }
        Err(problem) => problem,
    };
    let id = shared.number();
    send(link, ServerEra::Newer.request(id, "server/discover", &mut ServerParams::default()))?;
    match greeted(answer(link, shared, id).await?.result) {
        Ok(said) if knows_newer(&said) => Ok(greeting(&said, ServerEra::Newer)),
        Ok(_) | Err(_) => Err(refused),
    }
}

/// What a server answered to a greeting.
fn greeted(result: Result<Box<RawValue>, ServerRefusal>) -> Result<Value, String> {
    let said = result.map_err(|refusal| format!("it refused to start: {}", refusal.message))?;
    read_whole(said.get()).map_err(|error| format!("its greeting is malformed: {error}"))
}

/// Greets a server of the older era. Returns the number of the request.
fn ask_older(link: &ServerLink, shared: &MountShared, capabilities: Value) -> Result<u64, String> {
    let id = shared.number();
    let params = json!({
        "protocolVersion": OLDER_REVISION,
        "capabilities": capabilities,
        "clientInfo": client_info(),
    });
    send(link, request(id, "initialize", &params))?;
    Ok(id)
}

/// Whether a server says that it speaks the newer era.
fn knows_newer(said: &Value) -> bool {
    let versions = said["supportedVersions"].as_array();
    versions.is_some_and(|versions| versions.iter().any(|version| version == NEWER_REVISION))
}

/// What a greeting says, within bounds.
fn greeting(result: &Value, era: ServerEra) -> Greeting {
    let instructions = result["instructions"].as_str();
    let kept = |it: &str| it[..it.floor_char_boundary(INSTRUCTIONS_MAX)].to_owned();
    let runs = result["capabilities"].pointer(TASK_CALLS).is_some_and(|it| !it.is_null());
    Greeting {
        era,
        runs_tasks: runs && era == ServerEra::Older,
        declared: DeclaredCapabilities::of(&result["capabilities"]),
        instructions: instructions.map(kept),
    }
}

fn send(link: &ServerLink, line: Vec<u8>) -> Result<(), String> {
    link.send(line).map_err(|_| "it does not read".to_owned())
}

/// The answer to a server that asks before it was called.
fn refusal(id: &ExactJson, method: &str) -> Vec<u8> {
    match ServerAsk::of(method) {
        None => answer_to(id, method),
        Some(_) => {
            let early = "no call is open, so there is nobody to ask";
            answer_line(id, &Err(AskRefusal::refused(early)))
        }
    }
}

/// The answer to a request before the first call.
struct EarlyAnswer {
    result: Result<Box<RawValue>, ServerRefusal>,
    /// Whether the server has said so before it answered.
    have_tools_changed: bool,
}

/// Waits for the answer to this request while nothing else is asked. Log messages are kept, and so is the news that tools
/// have changed. Other lists count as changed with each start, if the server tells their changes. All else is of calls and
/// subscriptions, and none is open yet.
async fn answer(
    link: &mut ServerLink,
    shared: &MountShared,
    wanted: u64,
) -> Result<EarlyAnswer, String> {
    let mut have_tools_changed = false;
    loop {
        let line = match link.next().await {
            FromServer::Line(line) | FromServer::Within { line, .. } => line,
            FromServer::Closed(problem) => return Err(format!("it did not start: {problem}")),
            FromServer::Lost { request, problem } if request == wanted => {
                return Err(format!("it did not start: {problem}"));
            }
            FromServer::Lost { .. } => continue,
        };
        match parse(&line) {
            Some(ServerMessage::Answer { id, result }) if id == wanted => {
                return Ok(EarlyAnswer { result, have_tools_changed });
            }
            Some(ServerMessage::Asks(ServerRequest { id, method, .. })) => {
                send(link, refusal(&id, &method))?;
            }
            Some(ServerMessage::Tells { method, params }) => match &*method {
                "notifications/message" => shared.log.add_message(params.as_ref()),
                "notifications/tools/list_changed" => have_tools_changed = true,
                _ => {}
            },
            Some(ServerMessage::Answer { .. }) => {}
            None => shared.log.add(&[b"[termgate] no message: ", &line[..]].concat()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_keeps_what_the_protocol_knows_within_bounds() {
        let said = "\u{e9}".repeat(INSTRUCTIONS_MAX);
        let capabilities = json!({"tools": {}, "experimental": {}});
        let kept = greeting(
            &json!({"capabilities": capabilities, "instructions": said}),
            ServerEra::Older,
        );
        assert_eq!(kept.declared.names(), ["tools"]);
        assert_eq!(kept.instructions.map(|it| it.len()), Some(INSTRUCTIONS_MAX));
        for malformed in [json!({}), json!({"capabilities": [], "instructions": 1}), json!(null)] {
            assert_eq!(greeting(&malformed, ServerEra::Older), Greeting::default(), "{malformed}");
        }
    }
}
