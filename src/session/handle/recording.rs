//! The recording of a session, begun and ended from outside its task.

use crate::core::caller::PrincipalName;
use crate::core::policy::{Permit, PermittedAct};
use crate::session::control::RecordingOrder;
use crate::session::error::SessionError;
use crate::session::handle::Session;

impl Session {
    /// Begins or ends its recording. Says whether that was to be done.
    ///
    /// # Errors
    /// [`SessionError::Recording`] if it cannot be written.
    pub(in crate::session) async fn record(
        &self,
        permit: &Permit,
        order: RecordingOrder,
    ) -> Result<bool, SessionError> {
        permit.check(PermittedAct::Operate, None, self.0.clock.now())?;
        let done =
            self.ask_past_line(|entries, reply| entries.recordings.push_back((order, reply)));
        done.await?.map_err(SessionError::Recording)
    }

    /// Ends its recording, for an operator. Says whether there was one.
    ///
    /// # Errors
    /// If the session is gone.
    pub async fn end_recording(
        &self,
        permit: &Permit,
        by: PrincipalName,
    ) -> Result<bool, SessionError> {
        self.record(permit, RecordingOrder::End(by)).await
    }

    /// Sets a marker in its recording, if it has one.
    pub fn mark_recording(&self, marker: String) {
        if self.0.live.recording().is_some() {
            self.0.urgent.post(|entries| entries.add_markers([marker]));
        }
    }
}
