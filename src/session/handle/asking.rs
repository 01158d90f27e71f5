//! Questions to a session's task that go ahead of its commands.

use crate::core::ids::LeaseId;
use crate::core::policy::{Permit, PermittedAct};
use crate::session::error::SessionError;
use crate::session::handle::Session;

impl Session {
    /// The id of the lease that the command line holds, which operators alone may be told.
    pub async fn command_lines_lease(
        &self,
        permit: &Permit,
    ) -> Result<Option<LeaseId>, SessionError> {
        permit.check(PermittedAct::Operate, None, self.0.clock.now())?;
        self.ask_past_line(|entries, reply| entries.finders.push_back(reply)).await
    }

    /// Whether what is typed now may be a secret, as the kernel says. It may be if the session does not answer.
    pub async fn reads_secret(&self) -> bool {
        let asked = self.ask_past_line(|entries, reply| entries.secrecy.push_back(reply));
        asked.await.unwrap_or(true)
    }
}
