//! Who is asking: the authenticated caller that travels with every call.
//!
//! It knows nothing of sockets or tokens; whoever opened the door filled it in. The label is what a
//! client calls itself and is never an authority.

use std::fmt;
use std::sync::Arc;

use crate::core::ids::{ConnectionId, PrincipalId, TenantId};

/// What sort of principal is asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A program that speaks to an agents' door.
    Agent,
    /// A person at an attached terminal.
    Human,
    /// The operator's command line.
    Operator,
}

impl Kind {
    /// The word for it on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Human => "human",
            Self::Operator => "operator",
        }
    }
}

/// An authenticated caller on one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub principal: PrincipalId,
    pub connection: ConnectionId,
    pub tenant: TenantId,
    pub kind: Kind,
    /// The name of the token that was shown; else what the client calls itself, cleaned for display
    /// and at most [`Caller::LABEL_MAX`] characters; several callers may share one.
    pub label: Arc<str>,
}

impl Caller {
    /// How many characters of a client's own name are kept.
    pub const LABEL_MAX: usize = 40;

    /// What a client calls itself, without what could deceive whoever reads it.
    pub fn clean_label(name: &str) -> Arc<str> {
        let fine = |c: &char| c.is_ascii_graphic() && *c != '#';
        let label: String = name.chars().filter(fine).take(Self::LABEL_MAX).collect();
        if label.is_empty() { Arc::from("client") } else { Arc::from(label) }
    }

    /// The name others see and may hand a lease to, such as `claude-code#p12`, or `ci#t3` for the
    /// owner of a token.
    pub fn name(&self) -> PrincipalName {
        PrincipalName { label: Arc::clone(&self.label), principal: self.principal }
    }
}

/// A principal as others see it: its label and its id, which is unique in this daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrincipalName {
    pub label: Arc<str>,
    pub principal: PrincipalId,
}

impl PrincipalName {
    /// Reads a name as it is displayed.
    pub fn parse(text: &str) -> Option<Self> {
        let (label, principal) = text.rsplit_once('#')?;
        Some(Self { label: Arc::from(label), principal: principal.parse().ok()? })
    }
}

impl fmt::Display for PrincipalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.label, self.principal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principals_name_reads_back_with_and_without_a_token() {
        for text in ["claude-code#p12", "ci#t3"] {
            let name = PrincipalName::parse(text).unwrap();
            assert_eq!(name.to_string(), text);
        }
        for text in ["ci", "ci#", "ci#3", "ci#x3", "ci#t", "ci#té", "ci#é3"] {
            assert_eq!(PrincipalName::parse(text), None, "{text}");
        }
    }
}
