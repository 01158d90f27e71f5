//! What a tool is: a name, a description, the right it needs, its parameters, its result and what
//! it does.
//!
//! A tool is a type that implements [`Tool`]; [`ToolEntry`] is the same with its types erased, so that
//! a list can hold all of them.

mod addresses;
mod mounted_entry;
pub mod relay;
pub mod untrusted;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::model::{JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::core::policy::PermittedAct;
use crate::core::policy::rules::tools::KnownTool;
use crate::mount::registry::MountedTool;
use crate::mount::watches::ResourceWatch;
use crate::surface::argument;
use crate::surface::call::Call;
use crate::surface::call_arguments::CallArguments;
use crate::surface::error::SurfaceError;
use crate::surface::schema;
use crate::surface::tool::relay::{MountRequest, relay, watch};

/// The right a tool needs, and how the session it is about is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolAccess {
    /// It changes nothing; anybody who sees the session may call it.
    Read,
    /// It does this to the session named by the parameter `session`.
    WriteSession(PermittedAct),
    /// It changes the session whose lease is named by the parameter `lease_id`.
    WriteLease,
    /// It creates a session.
    Create,
    /// It asks a mounted server that is trusted to change nothing.
    ReadMount,
    /// It asks a mounted server, which may change anything.
    WriteMount,
    /// It is for those who approve calls.
    Approve,
    /// It is for those who operate the session named by the parameter `session`, or all.
    OperateSession,
    /// It is for the daemon's operators, on their own socket only.
    Operate,
}

impl ToolAccess {
    /// Whether the tool is listed only where writing is allowed.
    pub fn writes(self) -> bool {
        match self {
            Self::WriteSession(_) | Self::WriteLease | Self::Create | Self::WriteMount => true,
            Self::Read | Self::ReadMount | Self::Approve | Self::OperateSession | Self::Operate => {
                false
            }
        }
    }

    /// Whether rules judge the calls of the tool: those that may change a session, and all of mounted tools.
    pub fn is_judged(self) -> bool {
        self.writes() || self == Self::ReadMount
    }
}

/// What a tool has a terminal run or typed, by which rules judge its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolRuns {
    Nothing,
    /// The command line in the argument of this name.
    Line(&'static str),
    /// The arguments `command` and `args`.
    Program,
    /// The text in the argument of this name, for whatever reads it.
    Text(&'static str),
    /// Other input.
    Input,
}

impl ToolRuns {
    /// What a tool with this access runs that says nothing else.
    const fn of(access: ToolAccess) -> Self {
        match access {
            ToolAccess::WriteSession(PermittedAct::Type) => Self::Input,
            ToolAccess::Create => Self::Program,
            ToolAccess::Read
            | ToolAccess::WriteSession(_)
            | ToolAccess::WriteLease
            | ToolAccess::ReadMount
            | ToolAccess::WriteMount
            | ToolAccess::Approve
            | ToolAccess::OperateSession
            | ToolAccess::Operate => Self::Nothing,
        }
    }
}

/// A result whose type is erased: all that is left to do is to write it.
pub trait StructuredContent: fmt::Debug + Send {
    /// Writes it as JSON.
    ///
    /// # Errors
    /// When it has no JSON form.
    fn write_json(&self, to: &mut Vec<u8>) -> serde_json::Result<()>;
}

impl<T: Serialize + fmt::Debug + Send> StructuredContent for T {
    fn write_json(&self, to: &mut Vec<u8>) -> serde_json::Result<()> {
        serde_json::to_writer(to, self)
    }
}

/// What a tool answers: the structured result, and the compact form a model reads.
#[derive(Debug)]
pub struct Answer<T = Box<dyn StructuredContent>> {
    pub result: T,
    pub text: String,
}

/// One tool, which is read from the arguments of a call.
pub trait Tool: DeserializeOwned + JsonSchema + Send {
    /// At most 24 characters of `[a-z_]`.
    const NAME: &'static str;
    const TITLE: &'static str;
    /// What a model needs to know to call it well, short: every client pays for it.
    const DESCRIPTION: &'static str;
    const ACCESS: ToolAccess;
    /// What it has a terminal run.
    const RUNS: ToolRuns = ToolRuns::of(Self::ACCESS);
    /// Whether it can end or destroy something.
    const DESTRUCTIVE: bool = false;
    /// Whether it can reach beyond this machine, as anything can that is typed.
    const OPEN_WORLD: bool = false;
    /// Whether calling it again with the same arguments changes nothing more.
    const IDEMPOTENT: bool = false;
    /// Whether it changes nothing though it needs a right, and so is not recorded.
    const ONLY_READS: bool = matches!(Self::ACCESS, ToolAccess::Read);
    /// The argument with which a tool that may change something only reads.
    const READS_IF: Option<(&'static str, &'static str)> = None;
    /// Whether it needs its parameter `session` where a door has several of them.
    const NEEDS_SESSION: bool = matches!(Self::ACCESS, ToolAccess::WriteSession(_));
    /// Whether the conditions that it can wait for are described by other tools alone, since it is rarely called.
    const CONDITIONS_KNOWN: bool = false;
    /// Parameters that bridges and the command line fill in, and of which models are told nothing.
    const UNLISTED: &'static [&'static str] = &[];

    type Result: Serialize + JsonSchema + fmt::Debug + Send + 'static;

    /// Does it.
    fn call(
        self,
        call: Call,
    ) -> impl Future<Output = Result<Answer<Self::Result>, SurfaceError>> + Send;
}

/// What a call answers.
#[derive(Debug)]
pub enum ToolAnswer {
    Own(Answer),
    /// The result of a mounted server, as JSON.
    Relayed(Box<RawValue>),
    /// The changes of a resource of a mounted server.
    Watching(ResourceWatch),
}

type Running = Pin<Box<dyn Future<Output = Result<Answer, SurfaceError>> + Send>>;

/// What a tool does.
#[derive(Clone)]
enum ToolBody {
    Own {
        /// The tool as clients of one session are told of it.
        description: Box<rmcp::model::Tool>,
        parameters: JsonObject,
        needs_session: bool,
        run: fn(Call, CallArguments) -> Running,
    },
    Mounted(MountedTool, MountRequest),
    /// A server asks the client that calls this tool. It is judged and recorded as a tool is, and never run.
    Question(MountedTool),
}

/// A tool with its types erased.
#[derive(Clone)]
pub struct ToolEntry {
    pub name: Arc<str>,
    pub access: ToolAccess,
    pub runs: ToolRuns,
    pub only_reads: bool,
    /// The argument with which it only reads.
    pub reads_if: Option<(&'static str, &'static str)>,
    /// A tool of a mount as clients are told of it.
    definition: Option<Box<RawValue>>,
    body: ToolBody,
}

impl fmt::Debug for ToolEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolEntry").field("name", &self.name).field("access", &self.access).finish()
    }
}

impl ToolEntry {
    /// The entry of one tool.
    pub fn of<T: Tool>() -> Self {
        let parameters = schema::of_parameters::<T>(T::CONDITIONS_KNOWN);
        Self {
            name: Arc::from(T::NAME),
            access: T::ACCESS,
            runs: T::RUNS,
            only_reads: T::ONLY_READS,
            reads_if: T::READS_IF,
            definition: None,
            body: ToolBody::Own {
                description: Box::new(describe::<T>(&parameters)),
                parameters,
                needs_session: T::NEEDS_SESSION,
                run: run::<T>,
            },
        }
    }

    /// Whether the tool has a parameter of this name. Of a mounted tool, only its server knows.
    pub fn knows(&self, parameter: &str) -> bool {
        let ToolBody::Own { parameters, .. } = &self.body else { return true };
        parameters.get("properties").is_some_and(|properties| properties.get(parameter).is_some())
    }

    /// The tool as rules name it.
    pub fn known(&self) -> KnownTool {
        let properties = match &self.body {
            ToolBody::Own { parameters, .. } => parameters.get("properties"),
            ToolBody::Mounted(..) | ToolBody::Question(_) => None,
        };
        let properties = properties.and_then(Value::as_object);
        let arguments = properties.map(|properties| properties.keys().cloned().collect());
        let (arguments, is_judged) = (arguments.unwrap_or_default(), self.access.is_judged());
        KnownTool { name: Arc::clone(&self.name), arguments, is_judged }
    }

    /// One of the daemon's own tools, with all that its schemas say.
    pub fn description(&self) -> Option<&rmcp::model::Tool> {
        match &self.body {
            ToolBody::Own { description, .. } => Some(description),
            ToolBody::Mounted(..) | ToolBody::Question(_) => None,
        }
    }

    /// One of the daemon's own tools as clients are told of it at a door that has one session, or several.
    pub fn listed(&self, one_session: bool) -> Option<rmcp::model::Tool> {
        let ToolBody::Own { description, needs_session, .. } = &self.body else { return None };
        let mut tool = rmcp::model::Tool::clone(description);
        if let Some(schema) = &mut tool.output_schema {
            // Which members are always there is in the documentation: the list of tools has no room for it.
            Arc::make_mut(schema).remove("required");
        }
        if *needs_session && !one_session {
            let schema = Arc::make_mut(&mut tool.input_schema);
            let required = schema.entry("required").or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(names) = required {
                names.insert(0, "session".into());
            }
        }
        Some(tool)
    }

    /// Takes arguments for what they are meant to be: models send numbers and booleans as texts.
    pub fn unquote(&self, arguments: &mut CallArguments) {
        if let ToolBody::Own { parameters, .. } = &self.body {
            argument::unquote(parameters, arguments);
        }
    }

    /// Checks the arguments against the tool's parameters. Those of a mounted tool are for its server to check.
    ///
    /// # Errors
    /// [`SurfaceError::Argument`], with the parameter that is wrong.
    pub fn check(&self, arguments: &CallArguments) -> Result<(), SurfaceError> {
        match &self.body {
            ToolBody::Own { parameters, .. } => argument::check(parameters, arguments),
            ToolBody::Mounted(..) | ToolBody::Question(_) => Ok(()),
        }
    }

    /// Reads the arguments and calls the tool.
    ///
    /// # Errors
    /// What is wrong with the arguments, or why the tool failed.
    pub async fn run(
        &self,
        call: Call,
        arguments: CallArguments,
    ) -> Result<ToolAnswer, SurfaceError> {
        self.check(&arguments)?;
        match &self.body {
            ToolBody::Own { run, .. } => run(call, arguments).await.map(ToolAnswer::Own),
            ToolBody::Mounted(tool, MountRequest::Watch) => {
                watch(tool, call).await.map(ToolAnswer::Watching)
            }
            ToolBody::Mounted(tool, request) => {
                let asked = (*request, arguments.for_server()?);
                relay(self.access, tool, call, asked).await.map(ToolAnswer::Relayed)
            }
            ToolBody::Question(_) => {
                Err(SurfaceError::Internal("a question of a server was called".to_owned()))
            }
        }
    }
}

fn describe<T: Tool>(parameters: &JsonObject) -> rmcp::model::Tool {
    let mut listed = parameters.clone();
    if let Some(Value::Object(members)) = listed.get_mut("properties") {
        members.retain(|name, _| !T::UNLISTED.contains(&name.as_str()));
        if T::CONDITIONS_KNOWN
            && let Some(Value::Object(until)) = members.get_mut("until")
        {
            until.remove("properties");
        }
    }
    let mut tool = rmcp::model::Tool::new(T::NAME, T::DESCRIPTION, Arc::new(listed));
    tool.title = Some(T::TITLE.to_owned());
    tool.output_schema = Some(Arc::new(schema::of_result::<T::Result>()));
    let mut hints = ToolAnnotations::default();
    hints.open_world_hint = Some(T::OPEN_WORLD);
    if T::ACCESS == ToolAccess::Read {
        hints.read_only_hint = Some(true);
    } else {
        // Clients take for granted that it neither only reads nor is idempotent.
        hints.destructive_hint = Some(T::DESTRUCTIVE);
        hints.idempotent_hint = T::IDEMPOTENT.then_some(true);
    }
    tool.annotations = Some(hints);
    tool
}

fn run<T: Tool>(call: Call, arguments: CallArguments) -> Running {
    Box::pin(async move {
        let answer = argument::read::<T>(arguments.into_values()?)?.call(call).await?;
        Ok(Answer { result: Box::new(answer.result) as _, text: answer.text })
    })
}
