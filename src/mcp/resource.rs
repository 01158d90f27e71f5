//! Resources: the data of the reading tools, under URIs that support subscriptions.
//!
//! Reads use the newest frame and send nothing to the session's task.

mod git;
pub mod listed;
mod log;
mod output;
mod query;
mod recording;
pub mod work;

use serde::Serialize;
use serde_json::{Value, json};

use crate::core::frame::delta::View;
use crate::core::frame::{Cursor, Frame};
use crate::core::ids::{SessionId, Watermark};
use crate::core::policy::{Door, Standing, decide_approve, decide_operate};
use crate::mcp::prompt::Prompt;
use crate::mcp::resource::listed::{JSON, List, MARKDOWN, PLAIN, mount_leases};
use crate::mcp::resource::query::GridQuery;
use crate::mcp::resource::work::{State, Work};
use crate::mcp::shared::ServerShared;
use crate::session::handle::Session;
use crate::session::registry::silent::{Known, KnownAs};
use crate::surface::answer::budget::{IN_LIST, room_left};
use crate::surface::answer::page::{Form, Larger, Page, PageRoom};
use crate::surface::call::{Daemon, find_known, find_session, seen_known};
use crate::surface::control::approvals::waiting;
use crate::surface::control::list_events::ListEvents;
use crate::surface::error::SurfaceError;
use crate::surface::mounted::listed_mounts;
use crate::surface::terminal::read_history::{HistoryReader, ReadHistory, rows_of};
use crate::surface::terminal::read_screen::LARGE_BYTES_MAX;
use crate::wire::delta::DeltaWire;
use crate::wire::lease::{LeaseWire, ListedLease};
use crate::wire::line::Format;
use crate::wire::rows::{CursorPlace, Grid, Viewport};
use crate::wire::session::GapWire;
use crate::wire::session::SessionWire;
use crate::wire::status::DaemonStatus;
use crate::wire::untrusted::Untrusted;

/// The prefix of all URIs.
const SCHEME: &str = "termgate://";

/// The content of a resource.
#[derive(Clone, Debug, PartialEq)]
pub enum ResourceContent {
    Facts(Value),
    Markdown(String),
    /// The output of a command, and metadata about it.
    Output {
        text: String,
        facts: Value,
    },
}

impl ResourceContent {
    pub fn mime_type(&self) -> &'static str {
        match self {
            Self::Facts(_) => JSON,
            Self::Markdown(_) => MARKDOWN,
            Self::Output { .. } => PLAIN,
        }
    }

    /// The text, and metadata if there is any.
    pub fn into_parts(self) -> (String, Option<Value>) {
        match self {
            Self::Facts(facts) => (facts.to_string(), None),
            Self::Markdown(text) => (text, None),
            Self::Output { text, facts } => (text, Some(facts)),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    Daemon,
    Approvals,
    Sessions { after: Option<String> },
    Leases { after: Option<String> },
    Mounts,
    Events(ListEvents),
    Grid { session: String, query: GridQuery },
    Cursor { session: String },
    History { session: String, query: ReadHistory },
    Lease { session: String },
    Work { session: String, work: Work },
    Recording { session: String, offset: Option<u64> },
    Skill(&'static Prompt),
}

/// What a subscription to a resource waits for.
#[derive(Clone, Debug)]
pub enum Watched {
    Approvals,
    Sessions,
    Leases,
    Mounts,
    Events,
    Part(Session, SessionPart),
    /// A part of a session whose shim does not answer yet.
    Silent(SessionId, SessionPart),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionPart {
    Grid,
    /// The grid since a watermark, which also tells changes that nothing on the screen shows.
    GridChanges,
    Cursor,
    History,
    Lease,
    Recording,
    Work(Work),
}

impl SessionPart {
    /// The value that changes whenever this part does.
    pub fn state(self, session: &Session, frame: &Frame) -> State {
        let changed = match self {
            Self::Grid => frame.screen_watermark().max(frame.title.changed),
            Self::GridChanges | Self::Recording => frame.watermark,
            Self::Cursor => frame.cursor.changed,
            Self::History => frame.scrolled.max(frame.reset),
            Self::Lease => frame.lease.changed,
            Self::Work(work) => return work.state(session, frame),
        };
        (changed, None)
    }
}

impl Resource {
    /// Parses a URI. `None` when it names no resource.
    pub fn parse(uri: &str) -> Result<Option<Self>, SurfaceError> {
        let Some(rest) = uri.strip_prefix(SCHEME) else { return Ok(None) };
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let parts: Vec<&str> = path.split('/').collect();
        let after = || query::only(query, "after").map(|it| it.map(str::to_owned));
        let plain = match parts.as_slice() {
            ["daemon"] => Self::Daemon,
            ["approvals"] => Self::Approvals,
            ["mounts"] => Self::Mounts,
            ["sessions"] => return Ok(Some(Self::Sessions { after: after()? })),
            ["leases"] => return Ok(Some(Self::Leases { after: after()? })),
            ["events"] => return Ok(Some(Self::Events(query::events(query)?))),
            ["session", session, part @ ..] if !session.is_empty() => {
                return Self::parse_part((*session).to_owned(), part, query);
            }
            ["skills", name] => match Prompt::of_skill(name) {
                Some(prompt) => Self::Skill(prompt),
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        query::none(query)?;
        Ok(Some(plain))
    }

    fn parse_part(
        session: String,
        part: &[&str],
        query: &str,
    ) -> Result<Option<Self>, SurfaceError> {
        let part = match part {
            ["grid"] => Self::Grid { session, query: GridQuery::parse(query)? },
            ["history"] => Self::History { session, query: query::history(query)? },
            ["recording"] => {
                Self::Recording { session, offset: query::only_number(query, "offset")? }
            }
            ["cursor"] => {
                query::none(query)?;
                Self::Cursor { session }
            }
            ["lease"] => {
                query::none(query)?;
                Self::Lease { session }
            }
            _ => {
                let work = Work::parse(part, query)?;
                return Ok(work.map(|work| Self::Work { session, work }));
            }
        };
        Ok(Some(part))
    }

    /// Whether the resource exists for this caller. Operators alone see data of all tenants.
    pub fn is_told_to(&self, standing: &Standing) -> bool {
        match self {
            Self::Daemon => standing.is_operator(),
            Self::Approvals => standing.approves(),
            Self::Mounts => true,
            Self::Sessions { .. }
            | Self::Leases { .. }
            | Self::Events(_)
            | Self::Grid { .. }
            | Self::Cursor { .. }
            | Self::History { .. }
            | Self::Lease { .. }
            | Self::Work { .. }
            | Self::Recording { .. }
            | Self::Skill(_) => standing.sessions,
        }
    }

    /// The resource's content for this caller.
    ///
    /// # Errors
    /// * [`SurfaceError::SessionNotFound`]: the caller sees no such session.
    /// * [`SurfaceError::Argument`]: the query is out of bounds.
    /// * [`SurfaceError::Denied`]: the caller may not read it.
    pub async fn read(
        &self,
        shared: &ServerShared,
        standing: &Standing,
    ) -> Result<ResourceContent, SurfaceError> {
        let daemon = &**shared.gateway.daemon();
        let now = daemon.now();
        let share = daemon.turns.share_of(&standing.caller.tenant);
        let find = |session: &str| find_session(&daemon.sessions, standing, Some(session));
        let whole = standing.door == Door::Operator;
        let list = |name, after| List { name, after: Option::as_deref(after), whole };
        let facts = match self {
            Self::Skill(prompt) => return Ok(ResourceContent::Markdown(prompt.skill())),
            Self::Work { session, work } => {
                // The command line shows people the whole output of a command.
                let room = if whole { LARGE_BYTES_MAX } else { room_left(&"", "") };
                return work.read(&find(session)?, daemon.sessions.clock(), room, &share).await;
            }
            Self::Recording { session, offset } => {
                let part = recording::read(daemon, standing, &find(session)?, *offset).await?;
                json!({"recording": part})
            }
            Self::Daemon => {
                let permit = decide_operate(standing)?;
                value_of(DaemonStatus::of(shared, &permit))?
            }
            Self::Approvals => {
                let _permit = decide_approve(standing)?;
                json!(waiting(daemon, standing))
            }
            Self::Sessions { after } => {
                let entry = |it: &Known| {
                    let writable = daemon.switchboard.may_write(standing, it, now);
                    json!(SessionWire::of_known(it, standing, writable, now).within(IN_LIST))
                };
                list("sessions", after).of(
                    &seen_known(&daemon.sessions, standing),
                    Known::name,
                    entry,
                )
            }
            Self::Leases { after } => {
                let entry = |it: &Session| {
                    let (session, lease) = (Some(it.id().to_string()), lease_of(daemon, it));
                    json!(ListedLease { session, surface: None, lease })
                };
                let first = mount_leases(daemon, standing);
                list("leases", after).behind(first, &seen(daemon, standing), Session::name, entry)
            }
            Self::Mounts => json!({"mounts": listed_mounts(daemon, standing)}),
            Self::Events(query) => value_of(query.read(daemon, standing, &share).await?)?,
            Self::Grid { session, query } => {
                let (session, query) = (find(session)?, query.clone());
                let size = session.frame().size.value;
                let cells = usize::from(size.rows) * usize::from(size.cols);
                share.off_worker(cells, move || grid(&session, &query)).await
            }
            Self::Cursor { session } => {
                let frame = find(session)?.frame();
                json!({"cursor": cursor(&frame), "watermark": frame.watermark.0})
            }
            Self::History { session, query } => {
                let session = find(session)?;
                let (query, door) = (query.clone(), standing.door);
                let rows = rows_of(&session, query, HistoryReader::Resource, door, &share).await?;
                value_of(rows.result)?
            }
            Self::Lease { session } => {
                let session = find(session)?;
                let watermark = session.frame().lease.changed.0;
                json!({"lease": lease_of(daemon, &session), "watermark": watermark})
            }
        };
        Ok(ResourceContent::Facts(facts))
    }

    /// What a subscription to the resource waits for.
    ///
    /// # Errors
    /// * [`SurfaceError::SessionNotFound`]: the caller sees no such session.
    /// * [`SurfaceError::Argument`]: the resource always changes, or never.
    pub fn watched(&self, daemon: &Daemon, standing: &Standing) -> Result<Watched, SurfaceError> {
        let part = |session: &str, part| {
            let known = find_known(&daemon.sessions, standing, Some(session))?;
            Ok(match known.as_is {
                KnownAs::Here(session) => Watched::Part(session, part),
                KnownAs::Silent(record) => Watched::Silent(record.id, part),
            })
        };
        Ok(match self {
            Self::Daemon => {
                return Err(SurfaceError::argument("uri", "its counters always move: read it"));
            }
            Self::Recording { session, .. } => return part(session, SessionPart::Recording),
            Self::Skill(_) => {
                return Err(SurfaceError::argument("uri", "it never changes: read it"));
            }
            Self::Approvals => Watched::Approvals,
            Self::Sessions { .. } => Watched::Sessions,
            Self::Leases { .. } => Watched::Leases,
            Self::Mounts => Watched::Mounts,
            Self::Events(_) => Watched::Events,
            Self::Grid { session, query } => {
                let changes = query.since.is_some();
                let watched = if changes { SessionPart::GridChanges } else { SessionPart::Grid };
                return part(session, watched);
            }
            Self::Cursor { session } => return part(session, SessionPart::Cursor),
            Self::History { session, .. } => return part(session, SessionPart::History),
            Self::Lease { session } => return part(session, SessionPart::Lease),
            Self::Work { session, work } => return part(session, SessionPart::Work(*work)),
        })
    }
}

fn value_of(content: impl Serialize) -> Result<Value, SurfaceError> {
    serde_json::to_value(content).map_err(|error| SurfaceError::Internal(error.to_string()))
}

/// The URI of a part of a session, without a query.
pub fn uri_of(session: SessionId, part: &str) -> String {
    format!("{SCHEME}session/{session}/{part}")
}

/// The URI of a prompt's skill.
pub fn uri_of_skill(prompt: &Prompt) -> String {
    format!("{SCHEME}skills/{}", prompt.name)
}

/// The sessions of this daemon that the caller sees, sorted by name.
pub fn seen(daemon: &Daemon, standing: &Standing) -> Vec<Session> {
    let known = daemon.sessions.known();
    known.iter().filter(|it| standing.sees(*it)).filter_map(Known::here).cloned().collect()
}

fn lease_of(daemon: &Daemon, session: &Session) -> LeaseWire {
    let lease = LeaseWire::from(&*session.frame().lease.value);
    lease.expiring(session.live().lease_expires_at(), daemon.now())
}

fn cursor(frame: &Frame) -> CursorPlace {
    let Cursor { row, col, visible, .. } = frame.cursor.value;
    CursorPlace { row: row.0, col, seq: frame.cursor.changed.0, visible }
}

fn grid(session: &Session, query: &GridQuery) -> Value {
    let frame = session.frame();
    let size = frame.size.value;
    let view = View { top: query.top, rows: query.rows, ..View::default() };
    let delta = frame.delta_since(query.since.map(Watermark), &view, None);
    let form = match query.format {
        Format::Plain | Format::Ansi => Form::Text,
        Format::Styled | Format::Cells => Form::Object,
    };
    let room = PageRoom { bytes: LARGE_BYTES_MAX, form, larger: Larger::Whole };
    let page = Page::of(delta.rows(), query.format, room);
    let top = query.top.min(size.rows);
    let height = query.rows.unwrap_or(size.rows).min(size.rows - top);
    let shown = frame.base_row.0..=frame.end_row().0;
    json!(Grid {
        untrusted: Untrusted,
        cols: size.cols,
        rows: size.rows,
        base_row: frame.base_row.0,
        viewport: Viewport { top: frame.base_row.0 + u64::from(top), height },
        lines: page.lines,
        cursor: cursor(&frame),
        watermark: frame.watermark.0,
        next_top: page.next.map(|next| next.0.saturating_sub(frame.base_row.0)),
        lost_output: GapWire::among(session.live().gaps().as_slice(), shown),
        reset: query.since.map(|_| delta.reset),
        updates: query.since.map(|_| DeltaWire::others(&delta)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::resource::listed::{LISTS, OUTPUT, PARTS};

    #[test]
    fn every_template_reads_back_as_its_resource() {
        for template in PARTS.iter().chain([&OUTPUT]) {
            let uri = template.uri.replace("{session}", "x").replace("{id}", "1");
            let uri = uri.split('{').next().unwrap();
            assert!(matches!(Resource::parse(uri), Ok(Some(_))), "{uri}");
        }
        for (uri, ..) in LISTS {
            assert!(matches!(Resource::parse(uri), Ok(Some(_))), "{uri}");
        }
    }

    #[test]
    fn a_query_belongs_to_its_resource() {
        let parsed = Resource::parse("termgate://session/build/grid?since=7").unwrap();
        let query = GridQuery { since: Some(7), ..GridQuery::default() };
        assert_eq!(parsed, Some(Resource::Grid { session: "build".to_owned(), query }));
    }

    #[test]
    fn anything_else_is_no_resource() {
        for uri in [
            "",
            "http://sessions",
            "termgate://session",
            "termgate://session//grid",
            "termgate://session/a/b/grid",
            "termgate://session/a/colour?since=x",
            "termgate://session/a/command/x/output",
            "termgate://session/a/command/1",
            "termgate://skills",
            "termgate://skills/nothing",
        ] {
            assert!(matches!(Resource::parse(uri), Ok(None)), "{uri}");
        }
    }

    #[test]
    fn a_wrong_query_is_told_and_does_not_hide_the_resource() {
        for uri in [
            "termgate://session/a/grid?since=x",
            "termgate://session/a/history?since=1",
            "termgate://session/a/cursor?since=1",
            "termgate://session/a/lease?since=1",
            "termgate://session/a/commands?since=1",
            "termgate://session/a/command/1/output?since=1",
            "termgate://sessions?since=1",
        ] {
            let error = Resource::parse(uri).unwrap_err();
            assert!(error.to_string().starts_with("since: "), "{uri}: {error}");
        }
    }
}
