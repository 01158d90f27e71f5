//! Who has used a session: the principals that had its lease, and nobody types without it.

use crate::core::ids::PrincipalId;

/// Who has had the lease of a session since this daemon knows the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionUsers {
    #[default]
    Nobody,
    Only(PrincipalId),
    Several,
}

impl SessionUsers {
    /// Notes that this one has it.
    pub fn on_holder(&mut self, holder: PrincipalId) {
        *self = match *self {
            Self::Nobody => Self::Only(holder),
            Self::Only(known) if known == holder => Self::Only(known),
            Self::Only(_) | Self::Several => Self::Several,
        };
    }

    /// Whether nobody but this one has ever had it.
    pub fn nobody_but(self, one: PrincipalId) -> bool {
        match self {
            Self::Nobody => true,
            Self::Only(known) => known == one,
            Self::Several => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_another_has_used_is_nobodys_alone_for_good() {
        let [own, other] = [1, 2].map(PrincipalId::Connection);
        let mut users = SessionUsers::default();
        assert!(users.nobody_but(own) && users.nobody_but(other));
        users.on_holder(own);
        users.on_holder(own);
        assert!(users.nobody_but(own) && !users.nobody_but(other));
        users.on_holder(other);
        users.on_holder(own);
        assert!(!users.nobody_but(own) && !users.nobody_but(other));
    }
}
