//! The generations of the protocol.

use rmcp::model::ProtocolVersion;

/// The generation of the protocol that a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// The client sent `initialize`, with a revision up to 2025-11-25.
    Legacy,
    /// The client names its revision in each request, 2026-07-28 or newer.
    Modern,
}

impl Era {
    /// The era of a revision. Revisions are dates, so their names compare like dates.
    pub fn of(version: &ProtocolVersion) -> Self {
        if version.as_str() >= ProtocolVersion::V_2026_07_28.as_str() {
            Self::Modern
        } else {
            Self::Legacy
        }
    }
}
