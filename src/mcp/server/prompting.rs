//! Prompts in protocol form: listed, filled in, and their arguments completed. Same for all clients.
//!
//! Their content is in [`crate::mcp::prompt`].

use rmcp::model::{
    CacheScope, CompleteRequestParams, CompletionInfo, GetPromptRequestParams, GetPromptResult,
    JsonObject, ListPromptsResult, Prompt as ListedPrompt, PromptArgument, PromptMessage,
    Reference, Role,
};
use serde_json::Value;

use crate::core::nearest::nearest_of;
use crate::core::policy::Standing;
use crate::mcp::prompt::{Argument, Given, Prompt, prompts};
use crate::mcp::resource::listed::OUTPUT;
use crate::mcp::server::Server;
use crate::surface::call::{find_session, seen_known};
use crate::surface::error::SurfaceError;

/// The maximum size of one argument, in bytes.
const ARGUMENT_BYTES_MAX: usize = 16 * 1024;

/// The argument that names a session, in prompts and resource templates.
const SESSION: &str = "session";
/// The argument with a command's number, in the template of its output.
const COMMAND: &str = "id";

/// The prompts, which are about sessions, for a caller for whom there are any.
pub(super) fn listed_prompts(has_sessions: bool) -> ListPromptsResult {
    let prompts = prompts().iter().filter(|_| has_sessions);
    ListPromptsResult::with_all_items(prompts.map(listed).collect())
        .with_ttl_ms(0)
        .with_cache_scope(CacheScope::Private)
}

fn listed(prompt: &Prompt) -> ListedPrompt {
    let argument = |argument: &Argument| {
        PromptArgument::new(argument.name)
            .with_description(argument.description)
            .with_required(false)
    };
    let arguments: Vec<_> = prompt.arguments.iter().map(argument).collect();
    let arguments = (!arguments.is_empty()).then_some(arguments);
    ListedPrompt::new(prompt.name, Some(prompt.description), arguments)
}

fn unknown(name: &str) -> SurfaceError {
    let nearest = nearest_of(name, prompts().iter().map(|prompt| prompt.name), 1);
    let meant = nearest.first().map(|name| format!("; did you mean `{name}`?"));
    let problem = format!("no prompt is named `{name:.40}`{}", meant.unwrap_or_default());
    SurfaceError::argument("name", problem)
}

/// The requested prompt with its arguments filled in.
pub(super) fn filled(
    request: &GetPromptRequestParams,
    standing: &Standing,
) -> Result<GetPromptResult, SurfaceError> {
    let named = Prompt::named(&request.name).filter(|_| standing.sessions);
    let prompt = named.ok_or_else(|| unknown(&request.name))?;
    let given = given(prompt, request.arguments.as_ref())?;
    let message = PromptMessage::new_text(Role::User, prompt.text(&given));
    Ok(GetPromptResult::new(vec![message]).with_description(prompt.description))
}

fn given(prompt: &Prompt, arguments: Option<&JsonObject>) -> Result<Given, SurfaceError> {
    let mut given = Given::new();
    for (name, value) in arguments.into_iter().flatten() {
        let wrong =
            |problem: String| SurfaceError::argument(format!("arguments.{name:.40}"), problem);
        if prompt.argument(name).is_none() {
            return Err(wrong(format!("the prompt `{}` does not take it", prompt.name)));
        }
        match value {
            Value::String(text) if text.len() > ARGUMENT_BYTES_MAX => {
                return Err(wrong(format!("has more than {ARGUMENT_BYTES_MAX} bytes")));
            }
            // Hosts send an empty text for an argument that a person left out.
            Value::String(text) if text.is_empty() => {}
            Value::String(text) => drop(given.insert(name.clone(), text.clone())),
            Value::Null => {}
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                return Err(wrong("must be a string".to_owned()));
            }
        }
    }
    Ok(given)
}

impl Server {
    /// Completes an argument with session names, session ids, or command numbers of the given session.
    pub(super) fn completed(
        &self,
        request: &CompleteRequestParams,
        standing: &Standing,
    ) -> Result<CompletionInfo, String> {
        let (name, typed) = (request.argument.name.as_str(), request.argument.value.as_str());
        let mut values = match &request.r#ref {
            Reference::Resource(template) => match name {
                SESSION => self.sessions_like(typed, standing),
                COMMAND if template.uri == OUTPUT.uri => {
                    let given = request.context.as_ref().and_then(|it| it.get_argument(SESSION));
                    self.commands_like(typed, given.map(String::as_str), standing)
                }
                _ => Vec::new(),
            },
            Reference::Prompt(prompt) => {
                let prompt = Prompt::named(&prompt.name);
                let takes = prompt.is_some_and(|prompt| prompt.argument(SESSION).is_some());
                if takes && name == SESSION {
                    self.sessions_like(typed, standing)
                } else {
                    Vec::new()
                }
            }
            _ => Vec::new(),
        };
        let total = values.len();
        values.truncate(CompletionInfo::MAX_VALUES);
        let more = total > values.len();
        CompletionInfo::with_pagination(values, u32::try_from(total).ok(), more)
    }

    fn sessions_like(&self, typed: &str, standing: &Standing) -> Vec<String> {
        let mut values = Vec::new();
        for session in seen_known(&self.shared.gateway.daemon().sessions, standing) {
            let (name, id) = (session.name().to_string(), session.id().to_string());
            if name.starts_with(typed) {
                values.push(name);
            } else if id.starts_with(typed) {
                values.push(id);
            }
        }
        values
    }

    /// The newest first.
    fn commands_like(
        &self,
        typed: &str,
        session: Option<&str>,
        standing: &Standing,
    ) -> Vec<String> {
        let sessions = &self.shared.gateway.daemon().sessions;
        let Ok(session) = find_session(sessions, standing, session) else { return Vec::new() };
        let frame = session.frame();
        let numbers = frame.commands.value.iter().rev().map(|record| record.id.0.to_string());
        numbers.filter(|number| number.starts_with(typed)).collect()
    }
}
