//! `list_sessions`: every session the caller may see, or one of them.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::core::counted::counted;
use crate::core::policy::Door;
use crate::session::registry::silent::Known;
use crate::surface::answer::budget::{
    IN_LIST, TextBounds, escaped_bytes, fitting, json_bytes, room_left,
};
use crate::surface::answer::session::ALONE;
use crate::surface::call::{Call, find_known, seen_known};
use crate::surface::error::SurfaceError;
use crate::surface::tool::{Answer, Tool, ToolAccess};
use crate::wire::session::{SessionList, SessionState, SessionWire};

/// How many bytes a list has between two sessions, for programs and for models.
const BETWEEN_BYTES: usize = 3;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct ListSessions {
    /// Only this one: id, prefix or name
    session: Option<String>,
    /// With this tag
    tag: Option<String>,
    state: Option<SessionState>,
    /// Named after this one
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
        let (chosen, most) = match &self.session {
            Some(given) => {
                let found = find_known(&call.daemon.sessions, &call.standing, Some(given))?;
                (vec![found], ALONE)
            }
            None => (seen_known(&call.daemon.sessions, &call.standing), IN_LIST),
        };
        let writable =
            |session: &Known| call.daemon.switchboard.may_write(&call.standing, session.id(), now);
        let mut sessions: Vec<SessionWire> = chosen
            .iter()
            .filter(|session| self.wants(session))
            .map(|session| SessionWire::of_known(session, writable(session), now))
            .collect();
        sessions.sort_by(|a, b| a.name.cmp(&b.name).then_with(|| a.id.cmp(&b.id)));
        let write_allowed =
            call.daemon.switchboard.could_write(&call.daemon.sessions, &call.standing, now);
        let listed = SessionList { sessions, write_allowed, left_out: None };
        // The command line shows people all there are, and all of each.
        let listed =
            if call.standing.door == Door::Operator { listed } else { listed.within(most) };
        Ok(Answer { text: listed.summary(), result: listed })
    }
}

impl ListSessions {
    fn wants(&self, session: &Known) -> bool {
        let (exited, tags) = match session {
            Known::Here(it) => (it.frame().exit.value.is_some(), &it.about().tags),
            Known::Silent(record) => (false, &record.tags),
        };
        let state = match &self.state {
            Some(SessionState::Running) => !exited,
            Some(SessionState::Exited) => exited,
            None => true,
        };
        let tag = self.tag.as_ref().is_none_or(|tag| tags.contains(tag));
        let after = self.after.as_ref().is_none_or(|after| *session.name() > **after);
        state && tag && after
    }
}

impl SessionList {
    /// As many of the sessions as one result has room for, with so much of their long texts.
    fn within(self, most: TextBounds) -> Self {
        let mut sessions: Vec<_> =
            self.sessions.into_iter().map(|session| session.within(most)).collect();
        let bytes =
            |it: &SessionWire| json_bytes(it) + escaped_bytes(&it.summary()) + BETWEEN_BYTES;
        let fits = fitting(sessions.iter().map(bytes), room_left(&"", "")).count;
        let left_out = Some(sessions.len() - fits).filter(|count| *count > 0);
        sessions.truncate(fits);
        Self { sessions, left_out, ..self }
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
        text
    }
}
