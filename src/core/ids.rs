//! Names of things: small newtypes that never cross a function as a bare number or string.
//!
//! They know nothing of how they are minted (randomness lives in the shell) nor of JSON; one place
//! for them keeps two ids from being confused for each other.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use uuid::Uuid;

/// Names one session for as long as anything remembers it.
///
/// Twelve lower-case hexadecimal digits, 48 random bits; a daemon refuses to reuse one that it
/// still knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(u64);

impl SessionId {
    /// How many hexadecimal digits an id has.
    pub const DIGITS: usize = 12;

    /// Takes the 48 bits of an id from the head of a random UUID.
    pub fn from_random(source: Uuid) -> Self {
        let bytes = source.as_bytes();
        let mut value = 0u64;
        for byte in &bytes[..6] {
            value = value << 8 | u64::from(*byte);
        }
        Self(value)
    }

    /// Its 48 bits.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:012x}", self.0)
    }
}

/// Says that a text is not a session id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a session id has twelve hexadecimal digits")]
pub struct NotASessionId;

impl FromStr for SessionId {
    type Err = NotASessionId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits =
            text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        if text.len() != Self::DIGITS || !digits {
            return Err(NotASessionId);
        }
        u64::from_str_radix(text, 16).map(Self).map_err(|_| NotASessionId)
    }
}

/// The key of one lease, shown to its holder only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub Uuid);

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// A lease id opens a session to whoever has it, so it must not reach a log by accident.
impl fmt::Debug for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseId(hidden)")
    }
}

/// The wall between groups of sessions; on a local socket, the uid of the peer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(Arc<str>);

impl TenantId {
    /// The tenant of a local user.
    pub fn of_uid(uid: u32) -> Self {
        Self(Arc::from(format!("uid:{uid}")))
    }

    /// A tenant of their own for the programs inside a session, which see nothing of their user's; the
    /// number tells sessions apart.
    pub fn inside(number: i32) -> Self {
        Self(Arc::from(format!("inside:{number}")))
    }

    /// Whether these are programs inside a session.
    pub fn is_inside(&self) -> bool {
        self.0.starts_with("inside:")
    }

    /// The tenant's name as operators write it, such as `uid:1000`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Says that a text is no tenant's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a tenant is named `uid:` and the number of a user, such as uid:1000")]
pub struct NotATenant;

impl FromStr for TenantId {
    type Err = NotATenant;

    /// Takes a name that a tenant could have, in the one form in which it is written.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let uid = text.strip_prefix("uid:").and_then(|uid| uid.parse().ok()).ok_or(NotATenant)?;
        let tenant = Self::of_uid(uid);
        if tenant.as_str() == text { Ok(tenant) } else { Err(NotATenant) }
    }
}

/// Who is asking, already authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PrincipalId {
    /// Whoever is on the connection of this number and showed no token.
    Connection(u64),
    /// Whoever shows the token of this number, on each of its connections; the same over restarts of
    /// the daemon.
    Token(u64),
}

impl PrincipalId {
    /// Whoever held a lease when its daemon ended; nobody who asks is ever this principal.
    pub const FORMER: Self = Self::Connection(u64::MAX);

    /// The number, unique among the principals of its kind.
    pub fn number(self) -> u64 {
        match self {
            Self::Connection(number) | Self::Token(number) => number,
        }
    }
}

impl fmt::Display for PrincipalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::FORMER => f.write_str("former"),
            Self::Connection(number) => write!(f, "p{number}"),
            Self::Token(number) => write!(f, "t{number}"),
        }
    }
}

/// Says that a text is no principal's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a principal's id is p or t and a number")]
pub struct NotAPrincipalId;

impl FromStr for PrincipalId {
    type Err = NotAPrincipalId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |digits: &str| digits.parse().map_err(|_| NotAPrincipalId);
        match text.split_at_checked(1) {
            Some(("p", digits)) => number(digits).map(Self::Connection),
            Some(("t", digits)) => number(digits).map(Self::Token),
            Some(_) | None => Err(NotAPrincipalId),
        }
    }
}

/// One connection of one client, never reused while the daemon lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

impl ConnectionId {
    /// A connection that ended with its daemon; none that lives is ever this one.
    pub const FORMER: Self = Self(u64::MAX);
}

/// Counts the changes of one session; grows with every change and is never reused. Below 2^53.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Watermark(pub u64);

impl Watermark {
    /// The watermark of the change after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Watermark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Counts the holders of one session's lease; only ever grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// No epoch is above it, so that clients that know numbers as doubles can tell epochs apart.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// The epoch of the holding after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The absolute number of a row: row 0 is the first line the session ever had, and numbers never
/// shift when history scrolls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowNumber(pub u64);

impl RowNumber {
    /// The row `count` below this one.
    pub fn plus(self, count: usize) -> Self {
        Self(self.0 + count as u64)
    }
}

impl fmt::Display for RowNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_reads_back_what_it_writes() {
        let id = SessionId::from_random(Uuid::from_u128(0x0123_4567_89ab_cdef << 64));
        assert_eq!(id.to_string(), "0123456789ab");
        assert_eq!("0123456789ab".parse(), Ok(id));
    }

    #[test]
    fn a_session_id_of_another_shape_is_refused() {
        for text in ["", "0123", "0123456789AB", "0123456789abc", "../../etc/pa", "+12345678901"] {
            assert_eq!(text.parse::<SessionId>(), Err(NotASessionId), "{text}");
        }
    }

    #[test]
    fn a_tenant_reads_back_from_its_name_and_nothing_else_is_one() {
        let tenant = TenantId::of_uid(1000);
        assert_eq!(tenant.as_str().parse(), Ok(tenant));
        for text in ["", "1000", "uid:", "uid:+1", "uid:01", "uid:-1", "uid:4294967296", "uid:1 "] {
            assert_eq!(text.parse::<TenantId>(), Err(NotATenant), "{text}");
        }
    }

    #[test]
    fn a_lease_id_does_not_show_in_debug_output() {
        assert_eq!(format!("{:?}", LeaseId(Uuid::from_u128(7))), "LeaseId(hidden)");
    }
}
