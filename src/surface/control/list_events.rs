//! `list_events`: what happened, by number, so that a reader misses nothing, also over restarts of the daemon.

use std::io;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::core::event::{EVENT_KINDS, is_of_kind};
use crate::core::ids::{SessionId, TenantId};
use crate::core::invisible::with_invisible_shown;
use crate::core::nearest::nearest_of;
use crate::core::policy::Standing;
use crate::session::registry::Registry;
use crate::store::journal::events::{EventPage, EventQuery, EventRecord, events};
use crate::surface::answer::budget::{escaped_bytes, fitting, json_bytes, room_left};
use crate::surface::call::{Call, Daemon, find_known, sees_id};
use crate::surface::error::SurfaceError;
use crate::surface::tool::{Answer, Tool, ToolAccess};
use crate::surface::turns::Share;
use crate::wire::date::rfc3339;
use crate::wire::event::{EventList, EventWire};
use crate::wire::untrusted::Untrusted;

/// The most events of one answer.
const LIMIT_MAX: usize = 500;

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct ListEvents {
    /// After this seq, oldest first; else the newest
    pub since: Option<u64>,
    /// Id, prefix or name
    pub session: Option<String>,
    /// Such as bell, lease or command_ended
    pub kind: Option<String>,
    /// Up to 500
    #[serde(default = "twenty")]
    pub limit: usize,
}

fn twenty() -> usize {
    20
}

impl Tool for ListEvents {
    const NAME: &'static str = "list_events";
    const TITLE: &'static str = "List events";
    const DESCRIPTION: &'static str =
        "What happened: sessions, leases, commands, bells, notifications, refusals.";
    const ACCESS: ToolAccess = ToolAccess::Read;

    type Result = EventList;

    async fn call(self, call: Call) -> Result<Answer<EventList>, SurfaceError> {
        let list = self.read(&call.daemon, &call.standing, &call.share()).await?;
        let lines: Vec<String> = list.events.iter().map(EventWire::line).collect();
        let text = if lines.is_empty() { "no events".to_owned() } else { lines.join("\n") };
        Ok(Answer { text, result: list })
    }
}

impl ListEvents {
    /// The events that the caller may see.
    ///
    /// # Errors
    /// * [`SurfaceError::Argument`]: an argument is out of bounds.
    /// * [`SurfaceError::SessionNotFound`]: the caller sees no such session.
    /// * [`SurfaceError::Unreadable`]: the journal cannot be read.
    pub async fn read(
        &self,
        daemon: &Daemon,
        standing: &Standing,
        share: &Share,
    ) -> Result<EventList, SurfaceError> {
        if !(1..=LIMIT_MAX).contains(&self.limit) {
            return Err(SurfaceError::argument("limit", format!("must be 1 to {LIMIT_MAX}")));
        }
        let session = self.session_id(daemon, standing)?;
        let kind = self.kind.clone();
        if let Some(kind) = &kind {
            check_kind(kind)?;
        }
        let (since, limit) = (self.since, self.limit);
        let directory = daemon.journal.directory().to_owned();
        let (viewer, own) = (standing.clone(), daemon.sessions.own_tenant().clone());
        let sessions = daemon.sessions.clone();
        let reading = move || {
            let wants = |event: &EventRecord| {
                kind.as_deref().is_none_or(|kind| is_of_kind(&event.kind, kind))
                    && session.is_none_or(|id| event.session.as_deref() == Some(&id.to_string()))
                    && sees_event(&sessions, &viewer, &own, event)
            };
            events(&directory, &EventQuery { since, limit, wants: &wants })
        };
        let ended = || io::Error::other("the daemon ends");
        let page = share.read_files(reading).await.unwrap_or_else(|| Err(ended()));
        let sees_all = standing.sees_tenant(daemon.sessions.own_tenant());
        Ok(self.list_of(page.map_err(SurfaceError::Unreadable)?, sees_all))
    }

    /// The session that is asked about, which may have been removed.
    fn session_id(
        &self,
        daemon: &Daemon,
        standing: &Standing,
    ) -> Result<Option<SessionId>, SurfaceError> {
        let Some(given) = self.session.as_deref().filter(|given| !given.is_empty()) else {
            return Ok(standing.bound_session());
        };
        match (find_known(&daemon.sessions, standing, Some(given)), given.parse()) {
            (Ok(known), _) => Ok(Some(known.id())),
            // Events say whose it was.
            (Err(_), Ok(id)) => Ok(Some(id)),
            (Err(error), Err(_)) => Err(error),
        }
    }

    /// As many as an answer holds: the oldest after `since`, or the newest. Only who `sees_all` learns that there are
    /// other records behind the last event.
    fn list_of(&self, page: EventPage, sees_all: bool) -> EventList {
        let EventPage { events, looked_to, is_broken: removed } = page;
        let mut more = self.since.is_some() && events.len() == self.limit;
        let mut events: Vec<EventWire> = events.into_iter().map(wire_of).collect();
        // Each is in the answer twice: for programs, and as text.
        let cost = |event: &EventWire| json_bytes(event) + escaped_bytes(&event.line()) + 1;
        let room = room_left(&"", "");
        if self.since.is_some() {
            let count = fitting(events.iter().map(cost), room).count.max(1);
            more |= count < events.len();
            events.truncate(count);
        } else {
            let count = fitting(events.iter().rev().map(cost), room).count.max(1);
            events.drain(..events.len().saturating_sub(count));
        }
        let before = if removed { 0 } else { self.since.unwrap_or_default() };
        let last = events.last().map_or(before, |last| last.seq);
        let next_since = if sees_all && !more { looked_to } else { last };
        EventList { untrusted: Untrusted, events, next_since, more, removed }
    }
}

fn check_kind(kind: &str) -> Result<(), SurfaceError> {
    if EVENT_KINDS.iter().any(|known| is_of_kind(known, kind)) {
        return Ok(());
    }
    let near = nearest_of(kind, EVENT_KINDS.into_iter(), 1).pop();
    let advice = match near {
        Some(near) => format!("the nearest is `{near}`"),
        None => format!("there are: {}", EVENT_KINDS.join(", ")),
    };
    Err(SurfaceError::argument("kind", format!("there is no kind `{kind}`; {advice}")))
}

fn sees_event(
    sessions: &Registry,
    standing: &Standing,
    own: &TenantId,
    event: &EventRecord,
) -> bool {
    let tenant = event.tenant.as_deref().map(str::parse::<TenantId>);
    let session = event.session.as_deref().map(str::parse::<SessionId>);
    match (session, tenant) {
        (None, None) => standing.sees_tenant(own),
        (None, Some(Ok(tenant))) => standing.sees_tenant(&tenant),
        (Some(Ok(session)), Some(Ok(tenant))) => sees(sessions, standing, &tenant, Some(session)),
        // Nobody is known to be allowed to.
        (Some(_), _) | (None, Some(Err(_))) => false,
    }
}

/// Whether a caller may know of what happened in a session, or to this tenant.
pub fn sees(
    sessions: &Registry,
    standing: &Standing,
    tenant: &TenantId,
    session: Option<SessionId>,
) -> bool {
    match session {
        Some(session) => sees_id(sessions, standing, session, tenant),
        None => standing.sees_tenant(tenant),
    }
}

/// An event for clients, with what nobody sees shown.
pub fn wire_of(event: EventRecord) -> EventWire {
    let EventRecord { seq, at_ms, kind, session, by, epoch, mut details, .. } = event;
    for value in details.values_mut() {
        if let Value::String(text) = value {
            *text = with_invisible_shown(text).into_owned();
        }
    }
    EventWire { seq, at: rfc3339(at_ms / 1_000), kind, session, by, epoch, details }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_asked_for_by_its_name_or_its_family() {
        assert!(check_kind("command").is_ok() && check_kind("bell").is_ok());
        let error = check_kind("belll").unwrap_err().to_string();
        assert_eq!(error, "kind: there is no kind `belll`; the nearest is `bell`");
        let error = check_kind("foo").unwrap_err().to_string();
        assert!(
            error.starts_with("kind: there is no kind `foo`; there are: approval_asked, "),
            "{error}"
        );
    }
}
