//! Where the recordings of sessions are, and what a recording is begun with.

use std::path::Path;

use tokio::task::spawn_blocking;

use crate::core::policy::Permit;
use crate::session::control::RecordingOrder;
use crate::session::error::SessionError;
use crate::session::handle::Session;
use crate::session::recording::RecordingPlan;
use crate::session::recording::directory::{file_name, make_room_or_warn};
use crate::session::records::identity::SessionRecord;
use crate::session::registry::Registry;

impl Registry {
    /// The directory of recordings, which need not exist.
    pub fn recordings(&self) -> &Path {
        &self.0.recordings
    }

    /// Records a session from now on, unless that is done already. Says whether it was begun.
    ///
    /// # Errors
    /// If the recording cannot be written, or the session is gone.
    pub async fn begin_recording(
        &self,
        permit: &Permit,
        session: &Session,
    ) -> Result<bool, SessionError> {
        self.make_room_for_recording().await;
        let begun_at = self.clock().wall_time();
        let about = session.about();
        let plan = RecordingPlan {
            path: self.recordings().join(&*file_name(session.id(), begun_at)),
            limits: self.limits().recording,
            title: session.name().to_string(),
            command: about.command.clone(),
            begun_at,
            // The session knows it.
            nonce: None,
        };
        session.record(permit, RecordingOrder::Begin(Box::new(plan))).await
    }

    /// The recording that is noted for a session, if there is one.
    pub(in crate::session) fn noted_recording(
        &self,
        record: &SessionRecord,
    ) -> Option<RecordingPlan> {
        Some(RecordingPlan {
            path: self.recordings().join(&**record.recording.as_ref()?),
            limits: self.limits().recording,
            title: record.name.to_string(),
            command: record.command.clone(),
            begun_at: self.clock().wall_time(),
            nonce: record.nonces.own.clone(),
        })
    }

    /// Removes the oldest recordings if there are too many.
    pub(in crate::session) async fn make_room_for_recording(&self) {
        let most = self.limits().recording.total_bytes_max;
        let directory = self.recordings().to_owned();
        let _ = spawn_blocking(move || make_room_or_warn(&directory, most)).await;
    }
}
