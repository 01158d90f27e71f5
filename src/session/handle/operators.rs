//! What is asked of a session's lease past the line of agents' commands, at once: by operators, and where
//! a right ends.

use tokio::sync::oneshot;

use crate::core::caller::PrincipalName;
use crate::core::ids::{LeaseId, PrincipalId};
use crate::core::policy::{Permit, PermittedAct};
use crate::session::error::SessionError;
use crate::session::handle::Session;

impl Session {
    /// Ends the lease in force, whoever holds it; says whether anybody did. It never stands in the
    /// line of agents' commands.
    ///
    /// # Errors
    /// [`SessionError::Closed`] when the session is gone, [`SessionError::Restarted`] when its task failed.
    pub async fn preempt(&self, permit: &Permit, by: PrincipalName) -> Result<bool, SessionError> {
        permit.check(PermittedAct::Operate, None, self.0.clock.now())?;
        let (reply, answer) = oneshot::channel();
        self.0.urgent.post(|entries| entries.preempts.push_back((by, reply)));
        answer.await.map_err(|_| self.unanswered())
    }

    /// Ends all that a principal has of the lease, since it may not write any more.
    pub fn end_right_of(&self, principal: PrincipalId) {
        self.0.urgent.post(|entries| {
            entries.ended_rights.insert(principal);
        });
    }

    /// The id of the lease that the command line holds, which operators alone may be told.
    ///
    /// # Errors
    /// [`SessionError::Closed`] when the session is gone, [`SessionError::Restarted`] when its task failed.
    pub async fn command_lines_lease(
        &self,
        permit: &Permit,
    ) -> Result<Option<LeaseId>, SessionError> {
        permit.check(PermittedAct::Operate, None, self.0.clock.now())?;
        let (reply, answer) = oneshot::channel();
        self.0.urgent.post(|entries| entries.finders.push_back(reply));
        answer.await.map_err(|_| self.unanswered())
    }
}
