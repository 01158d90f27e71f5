//! Counts the calls of each tool by their outcomes.

use std::sync::Arc;

use crate::gateway::CallOutcome;
use crate::mcp::shared::ServerShared;

/// Counts a call on drop.
#[derive(Debug)]
pub(super) struct Counted {
    shared: Arc<ServerShared>,
    tool: Arc<str>,
    pub(super) outcome: CallOutcome,
}

impl Counted {
    /// A call counts as given up until it has another outcome.
    pub(super) fn of(shared: &Arc<ServerShared>, tool: Arc<str>) -> Self {
        Self { shared: Arc::clone(shared), tool, outcome: CallOutcome::GivenUp }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.shared.gateway.calls().count(&self.tool, self.outcome);
    }
}
