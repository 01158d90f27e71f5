//! `record_session`: begins, ends and lists recordings, for operators.

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::task::spawn_blocking;

use crate::core::counted::counted;
use crate::core::policy::Standing;
use crate::session::recording::directory::{RecordingEntry, recordings};
use crate::surface::call::{Call, Daemon};
use crate::surface::error::SurfaceError;
use crate::surface::tool::{Answer, Tool, ToolAccess};
use crate::wire::date::rfc3339;
use crate::wire::recording::{RecordingList, RecordingWire};

/// What becomes of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecordingAction {
    Start,
    Stop,
    Status,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct RecordSession {
    action: RecordingAction,
    /// Id, prefix or name; status lists all without, and those of sessions that are gone by id
    session: Option<String>,
}

impl Tool for RecordSession {
    const NAME: &'static str = "record_session";
    const TITLE: &'static str = "Record a session";
    const DESCRIPTION: &'static str = "Starts or stops recording the output of a session, or lists \
        the recordings.";
    const ACCESS: ToolAccess = ToolAccess::Operate;
    const IDEMPOTENT: bool = true;
    const READS_IF: Option<(&'static str, &'static str)> = Some(("action", "status"));

    type Result = RecordingList;

    async fn call(self, mut call: Call) -> Result<Answer<RecordingList>, SurfaceError> {
        let permit = call.take_permit()?;
        let only_lists = self.action == RecordingAction::Status;
        let (session, gone) = match self.session.as_deref() {
            None if only_lists => (None, None),
            None => return Err(SurfaceError::argument("session", "missing")),
            Some(given) => match call.session(Some(given)) {
                // The recordings of a session stay when it is gone.
                Err(error @ SurfaceError::SessionNotFound { .. }) if only_lists => {
                    (None, Some(error))
                }
                found => (Some(found?), None),
            },
        };
        let changed = match (&session, self.action) {
            (Some(session), RecordingAction::Start) => {
                call.daemon.sessions.begin_recording(&permit, session).await?
            }
            (Some(session), RecordingAction::Stop) => {
                session.end_recording(&permit, call.standing.caller.name()).await?
            }
            (_, RecordingAction::Status) | (None, _) => false,
        };
        let mut found = recordings_of(&call.daemon, &call.standing).await?;
        let id = session.as_ref().map(|session| session.id().to_string()).or(self.session);
        found.retain(|recording| id.as_ref().is_none_or(|id| recording.session.starts_with(id)));
        if let Some(error) = gone.filter(|_| found.is_empty()) {
            return Err(error);
        }
        if !only_lists {
            let newest = found.len().saturating_sub(1);
            found.drain(..newest);
        }
        let text = match (self.action, changed, found.last()) {
            (RecordingAction::Start, true, Some(it)) => format!("recording to {}", it.path),
            (RecordingAction::Start, false, Some(it)) => {
                format!("already recording to {}", it.path)
            }
            (RecordingAction::Stop, true, Some(it)) => format!("the recording is {}", it.path),
            (RecordingAction::Stop, false, _) => "no recording was running".to_owned(),
            (_, _, _) => counted(found.len(), "recording").to_string(),
        };
        let directory = call.daemon.sessions.recordings().display().to_string();
        Ok(Answer { result: RecordingList { directory, changed, recordings: found }, text })
    }
}

/// The recordings, oldest first, with the names of sessions that the caller sees.
async fn recordings_of(
    daemon: &Daemon,
    standing: &Standing,
) -> Result<Vec<RecordingWire>, SurfaceError> {
    let directory = daemon.sessions.recordings().to_owned();
    let found = spawn_blocking(move || recordings(&directory)).await;
    let found = found.map_err(|error| SurfaceError::Internal(error.to_string()))?;
    let found = found.map_err(SurfaceError::UnreadableRecording)?;
    Ok(found.iter().map(|entry| wire_of(daemon, standing, entry)).collect())
}

/// What is told of a recording.
pub fn wire_of(daemon: &Daemon, standing: &Standing, entry: &RecordingEntry) -> RecordingWire {
    let session = daemon.sessions.get(entry.session);
    let session = session.filter(|session| standing.sees(session));
    let file = entry.path.file_name().and_then(|name| name.to_str());
    let running = session.as_ref().and_then(|session| session.live().recording());
    RecordingWire {
        session: entry.session.to_string(),
        name: session.map(|session| session.name().to_string()),
        path: entry.path.display().to_string(),
        begun_at: rfc3339(entry.begun_ms / 1_000),
        bytes: entry.bytes,
        running: running.is_some() && running.as_deref() == file,
    }
}
