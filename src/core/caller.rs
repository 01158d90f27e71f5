//! The authenticated caller that travels with every call.
//!
//! Its label is the name that a client gives itself, and never grants a right.

use std::fmt;
use std::sync::Arc;

use crate::core::ids::{ConnectionId, PrincipalId, TenantId};

/// The kind of principal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A program that speaks to the agents' socket.
    Agent,
    /// A person at an attached terminal.
    Human,
    /// The operator's command line.
    Operator,
}

impl Kind {
    /// The word for it in the protocol.
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
    /// The name of the caller's token. Without a token, the name that the client gives itself, cleaned for
    /// display, at most [`Caller::LABEL_MAX`] characters. Several callers may share a label.
    pub label: Arc<str>,
}

impl Caller {
    /// How many characters of a client's own name are kept.
    pub const LABEL_MAX: usize = 40;

    /// A client's own name, without characters that could deceive a reader.
    pub fn clean_label(name: &str) -> Arc<str> {
        let fine = |c: &char| c.is_ascii_graphic() && *c != '#';
        let label: String = name.chars().filter(fine).take(Self::LABEL_MAX).collect();
        if label.is_empty() { Arc::from("client") } else { Arc::from(label) }
    }

    /// The caller's name for others, who may pass it a lease: `claude-code#p12`, or `ci#t3` for the
    /// owner of a token.
    pub fn name(&self) -> PrincipalName {
        PrincipalName { label: Arc::clone(&self.label), principal: self.principal }
    }
}

/// A principal as others see it: its label, and its id, which is unique in this daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrincipalName {
    pub label: Arc<str>,
    pub principal: PrincipalId,
}

impl PrincipalName {
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
