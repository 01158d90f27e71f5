//! `list_sessions`: every session the caller may see, or one of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::core::policy::Door;
use crate::session::handle::Session;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::shape::session::SessionWire;
use crate::surface::tool::{Access, Answer, Tool};

/// How many sessions an agent is listed at once, so that the list stays below about 30 KB.
const SESSIONS_MAX: usize = 40;

/// The tool.
#[derive(Debug)]
pub struct ListSessions;

/// Which sessions are wanted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Running,
    Exited,
}

/// The parameters of `list_sessions`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Parameters {
    /// Only this one: id, unique prefix of an id, or name
    session: Option<String>,
    /// Only those with this tag
    tag: Option<String>,
    state: Option<State>,
}

/// The result of `list_sessions`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Listed {
    pub sessions: Vec<SessionWire>,
    pub write_allowed: bool,
    /// How many more there are; ask for them by tag, state or name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<usize>,
}

impl Tool for ListSessions {
    const NAME: &'static str = "list_sessions";
    const TITLE: &'static str = "List sessions";
    const DESCRIPTION: &'static str = "Terminal sessions with state, last line, watermark and who \
        holds the lease. Start here.";
    const ACCESS: Access = Access::Read;

    type Parameters = Parameters;
    type Result = Listed;

    async fn call(call: Call, parameters: Parameters) -> Result<Answer<Listed>, SurfaceError> {
        let now = call.daemon.now();
        let chosen = match &parameters.session {
            Some(given) => vec![call.session(Some(given))?],
            None => visible(&call),
        };
        let writable = |session: &Session| {
            call.daemon.switchboard.decide(&call.standing, Some(session.id()), now).is_ok()
        };
        let mut sessions: Vec<SessionWire> = chosen
            .iter()
            .filter(|session| parameters.wants(session))
            .map(|session| SessionWire::of(session, writable(session), now))
            .collect();
        sessions.sort_by(|a, b| a.name.cmp(&b.name).then_with(|| a.id.cmp(&b.id)));
        let write_allowed =
            call.daemon.switchboard.could_write(&call.daemon.sessions, &call.standing, now);
        let left_out = sessions.len().checked_sub(SESSIONS_MAX).filter(|count| *count > 0);
        // The command line shows people all there are.
        let left_out = left_out.filter(|_| call.standing.door != Door::Operator);
        if left_out.is_some() {
            sessions.truncate(SESSIONS_MAX);
        }
        let mut text = text_of(&sessions, write_allowed);
        if let Some(count) = left_out {
            text.push_str(&format!("\n{count} more are left out; narrow by tag, state or session"));
        }
        Ok(Answer { result: Listed { sessions, write_allowed, left_out }, text })
    }
}

impl Parameters {
    fn wants(&self, session: &Session) -> bool {
        let exited = session.frame().exit.value.is_some();
        let state = match &self.state {
            Some(State::Running) => !exited,
            Some(State::Exited) => exited,
            None => true,
        };
        let tag = self.tag.as_ref().is_none_or(|tag| session.about().tags.contains(tag));
        state && tag
    }
}

fn visible(call: &Call) -> Vec<Session> {
    let seen = |session: &Session| call.standing.sees(session.id(), session.tenant());
    call.daemon.sessions.all().into_iter().filter(seen).collect()
}

fn text_of(sessions: &[SessionWire], write_allowed: bool) -> String {
    let mut text = match sessions.len() {
        0 => "no sessions".to_owned(),
        1 => "1 session".to_owned(),
        count => format!("{count} sessions"),
    };
    text.push_str(if write_allowed { "; writing is allowed" } else { "; read-only" });
    for session in sessions {
        text.push('\n');
        text.push_str(&session.summary());
    }
    text
}
