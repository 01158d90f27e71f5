//! `list_sessions`: every session the caller may see, or one of them.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::core::counted::counted;
use crate::core::policy::roles::RightsSubject as _;
use crate::core::policy::{Door, Reach, Standing};
use crate::session::registry::silent::Known;
use crate::surface::answer::budget::{IN_LIST, escaped_bytes, json_bytes, room_left};
use crate::surface::answer::session::ALONE;
use crate::surface::call::{Call, find_known};
use crate::surface::error::SurfaceError;
use crate::surface::tool::{Answer, Tool, ToolAccess};
use crate::wire::session::{ListedSession, SessionList, SessionState, SessionWire};
use crate::wire::untrusted::Untrusted;

/// How many bytes a list has between two sessions, for programs and for models.
const BETWEEN_BYTES: usize = 3;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct ListSessions {
    /// Only this one: id, prefix or name
    session: Option<String>,
    /// With this tag
    tag: Option<String>,
    state: Option<SessionState>,
    /// Go on after this id or name
    after: Option<String>,
}

impl Tool for ListSessions {
    const NAME: &'static str = "list_sessions";
    const TITLE: &'static str = "List sessions";
    const DESCRIPTION: &'static str = "Terminal sessions with state, last line, watermark and who \
        holds the lease. Start here.";
    const ACCESS: ToolAccess = ToolAccess::Read;

    type Result = SessionList;

    async fn call(self, call: Call) -> Result<Answer<SessionList>, SurfaceError> {
        let now = call.daemon.now();
        let (known, most) = match &self.session {
            Some(given) => {
                let found = find_known(&call.daemon.sessions, &call.standing, Some(given))?;
                (Arc::from([found]), ALONE)
            }
            None => (call.daemon.sessions.known(), IN_LIST),
        };
        let chosen: Vec<&Known> = self
            .rest(&known, &call.standing)?
            .iter()
            .filter(|session| call.standing.sees(*session) && self.wants(session))
            .collect();
        let writable =
            |session: &Known| call.daemon.switchboard.may_write(&call.standing, session, now);
        let sessions = chosen
            .iter()
            .map(|session| SessionWire::of_known(session, &call.standing, writable(session), now));
        let write_allowed =
            call.daemon.switchboard.could_write(&call.daemon.sessions, &call.standing, now);
        // The command line shows people all there are, and all of each.
        let mut list = if call.standing.door == Door::Operator {
            SessionList {
                sessions: sessions.collect(),
                write_allowed,
                left_out: None,
                listed: Vec::new(),
                untrusted: Untrusted,
            }
        } else {
            SessionList::within(sessions.map(|session| session.within(most)), write_allowed)
        };
        if self.is_for_all() && call.standing.reach == Reach::Tenant {
            list.listed = listed_of_others(&known, &call.standing);
        }
        Ok(Answer { text: list.summary(), result: list })
    }
}

/// The sessions of other tenants that let their names be known, a hundred at most.
fn listed_of_others(known: &[Known], standing: &Standing) -> Vec<ListedSession> {
    const LISTED_MAX: usize = 100;
    let mut listed: Vec<ListedSession> = known
        .iter()
        .filter(|known| !standing.sees(*known) && known.is_listed())
        .map(|it| ListedSession { name: it.name().to_string(), tenant: it.tenant().to_string() })
        .collect();
    listed.sort_by(|a, b| (&a.name, &a.tenant).cmp(&(&b.name, &b.tenant)));
    listed.truncate(LISTED_MAX);
    listed
}

impl ListSessions {
    fn is_for_all(&self) -> bool {
        self.session.is_none() && self.tag.is_none() && self.state.is_none() && self.after.is_none()
    }

    fn wants(&self, session: &Known) -> bool {
        let has_exited = || session.here().is_some_and(|it| it.frame().exit.value.is_some());
        let state = match &self.state {
            Some(SessionState::Running) => !has_exited(),
            Some(SessionState::Exited) => has_exited(),
            None => true,
        };
        let tag = self.tag.as_ref().is_none_or(|tag| session.has_tag(tag));
        state && tag
    }

    /// The sessions behind the one that the last page ended with. One that is named may be gone by now.
    fn rest<'a>(
        &self,
        known: &'a [Known],
        standing: &Standing,
    ) -> Result<&'a [Known], SurfaceError> {
        let Some(after) = &self.after else { return Ok(known) };
        // No session has a name that is an id.
        let Ok(id) = after.parse() else {
            return Ok(&known[known.partition_point(|it| *it.name() <= **after)..]);
        };
        let at = known.iter().position(|it| it.id() == id && standing.sees(it));
        at.map(|at| &known[at + 1..]).ok_or_else(|| SurfaceError::no_session(id))
    }
}

impl SessionList {
    /// As many of the sessions as one result has room for: the first in any case, so one alone is not measured.
    fn within(all: impl ExactSizeIterator<Item = SessionWire>, write_allowed: bool) -> Self {
        let bytes =
            |it: &SessionWire| json_bytes(it) + escaped_bytes(&it.summary()) + BETWEEN_BYTES;
        let (count, mut sessions) = (all.len(), Vec::new());
        let mut room = room_left(&"", "");
        for session in all {
            let cost = if count > 1 { bytes(&session) } else { 0 };
            if cost > room && !sessions.is_empty() {
                break;
            }
            room = room.saturating_sub(cost);
            sessions.push(session);
        }
        let left_out = Some(count - sessions.len()).filter(|left| *left > 0);
        Self { sessions, write_allowed, left_out, listed: Vec::new(), untrusted: Untrusted }
    }

    fn summary(&self) -> String {
        let mut text = match self.sessions.len() {
            0 => "no sessions".to_owned(),
            count => counted(count, "session").to_string(),
        };
        text.push_str(if self.write_allowed { "; writing is allowed" } else { "; read-only" });
        for session in &self.sessions {
            text.push('\n');
            text.push_str(&session.summary());
        }
        if let (Some(count), Some(last)) = (self.left_out, self.sessions.last()) {
            text.push_str(&format!(
                "\n{} left out; continue with after={}",
                counted(count, "more session"),
                last.name
            ));
        }
        for ListedSession { name, tenant } in &self.listed {
            text.push_str(&format!("\n{name:?} of {tenant}: you may not see more of it"));
        }
        text
    }
}
