//! Newtypes for ids, so that no function takes a bare number or string and ids cannot be confused.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use uuid::Uuid;

/// The id of one session, as long as the daemon has any record of it.
///
/// Twelve lower-case hexadecimal digits, 48 random bits. A daemon does not reuse an id that it still
/// knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(u64);

impl SessionId {
    pub const DIGITS: usize = 12;

    /// Makes an id of the first 48 bits of a random UUID.
    pub fn from_random(source: Uuid) -> Self {
        let bytes = source.as_bytes();
        let mut value = 0u64;
        for byte in &bytes[..6] {
            value = value << 8 | u64::from(*byte);
        }
        Self(value)
    }

    pub fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:012x}", self.0)
    }
}

/// The error for a text that is not a session id.
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

/// The key of one lease, which only its holder sees.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub Uuid);

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// A lease id gives access to a session, so it must not reach a log by accident.
impl fmt::Debug for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseId(hidden)")
    }
}

/// The wall between groups of sessions: a user such as `uid:1000`, or a name from the configuration such as `web`.
///
/// A private session has a wall of its own within that of its tenant: `web/t3` is private to the owner of token 3, and
/// `web/u1000` to the user 1000. So whatever keeps the tenant of a session keeps who may know of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(Arc<str>);

impl TenantId {
    pub fn of_uid(uid: u32) -> Self {
        Self(Arc::from(format!("uid:{uid}")))
    }

    /// A separate tenant for the programs inside a session, which see nothing of their user's sessions.
    /// The number distinguishes sessions.
    pub fn inside(number: i32) -> Self {
        Self(Arc::from(format!("inside:{number}")))
    }

    pub fn is_inside(&self) -> bool {
        self.0.starts_with("inside:")
    }

    /// The tenant of sessions that are private to a token, or without one to a user.
    #[must_use]
    pub fn private_to(&self, token: Option<u64>, uid: u32) -> Self {
        let owner = token.map_or_else(|| format!("u{uid}"), |token| format!("t{token}"));
        Self(Arc::from(format!("{}/{owner}", self.whole())))
    }

    /// Whether it is that of a user whom the configuration puts in no other one.
    pub fn is_user(&self) -> bool {
        self.0.starts_with("uid:")
    }

    pub fn is_private(&self) -> bool {
        self.0.contains('/')
    }

    /// Whether this is the tenant, or a private part of it.
    pub fn is_of(&self, whole: &Self) -> bool {
        self.whole() == &*whole.0
    }

    /// The name without what makes it private.
    pub fn whole(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(whole, _)| whole)
    }

    /// The tenant that this is a private part of, or itself.
    #[must_use]
    pub fn of_all(&self) -> Self {
        if self.is_private() { Self(Arc::from(self.whole())) } else { self.clone() }
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

/// The error for a text that is not a tenant's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a tenant is `uid:` and the number of a user, such as uid:1000, or a name of the configuration: 1 to 40 of \
     A-Z a-z 0-9 . _ - beginning with a letter"
)]
pub struct NotATenant;

impl FromStr for TenantId {
    type Err = NotATenant;

    /// Accepts a valid tenant name in canonical form only.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (whole, owner) =
            text.split_once('/').map_or((text, None), |(whole, owner)| (whole, Some(owner)));
        let tenant = match whole.strip_prefix("uid:") {
            Some(uid) => Self::of_uid(uid.parse().map_err(|_| NotATenant)?),
            None if is_tenant_name(whole) => Self(Arc::from(whole)),
            None => return Err(NotATenant),
        };
        let number = |owner: &str, kind| owner.strip_prefix(kind)?.parse().ok();
        let tenant = match owner {
            None => tenant,
            Some(owner) => match (number(owner, 't'), owner.strip_prefix('u')) {
                (Some(token), _) => tenant.private_to(Some(token), 0),
                (None, Some(uid)) => tenant.private_to(None, uid.parse().map_err(|_| NotATenant)?),
                (None, None) => return Err(NotATenant),
            },
        };
        if tenant.as_str() == text { Ok(tenant) } else { Err(NotATenant) }
    }
}

/// Whether the configuration may name a tenant like this.
fn is_tenant_name(text: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    begins && text.len() <= 40 && text.bytes().all(fine)
}

/// An authenticated principal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PrincipalId {
    /// The client of the connection with this number, without a token.
    Connection(u64),
    /// The owner of the token with this number, on each connection and across restarts of the daemon.
    Token(u64),
}

impl PrincipalId {
    /// The holder of a lease whose daemon ended. No caller is ever this principal.
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

/// The error for a text that is not a principal's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a principal's id is p or t and a number")]
pub struct NotAPrincipalId;

impl FromStr for PrincipalId {
    type Err = NotAPrincipalId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |digits: &str| digits.parse().map_err(|_| NotAPrincipalId);
        let id = match text.split_at_checked(1) {
            Some(("p", digits)) => number(digits).map(Self::Connection),
            Some(("t", digits)) => number(digits).map(Self::Token),
            Some(_) | None => Err(NotAPrincipalId),
        }?;
        // An id has one spelling. `FORMER` has none that a caller can write.
        if id.to_string() == text { Ok(id) } else { Err(NotAPrincipalId) }
    }
}

/// One connection of one client. The daemon never reuses a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

impl ConnectionId {
    /// A connection that ended with its daemon. No live connection has this id.
    pub const FORMER: Self = Self(u64::MAX);
}

/// The number of a change of one session: grows with every change, is never reused, and is below 2^53.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Watermark(pub u64);

impl Watermark {
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Watermark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of one holding of a session's lease, which only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The highest epoch, so that clients that read numbers as doubles can distinguish epochs.
    pub const MAX: Self = Self((1 << 53) - 1);

    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The absolute number of a row. Row 0 is the first line of the session, and numbers never shift when
/// history scrolls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowNumber(pub u64);

impl RowNumber {
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
        for text in ["web", "uid:7/u7", "web/t3", "web/u4294967295", "A1.b_c-d"] {
            assert_eq!(text.parse::<TenantId>().map(|it| it.to_string()), Ok(text.to_owned()));
        }
        let others = ["", "1000", "uid:", "uid:+1", "uid:01", "uid:-1", "uid:4294967296", "uid:1 "];
        let private = ["web/", "web/5", "web/t05", "web/u-1", "web/t1/t1", "a b", "inside:7", "-a"];
        for text in others.into_iter().chain(private) {
            assert_eq!(text.parse::<TenantId>(), Err(NotATenant), "{text}");
        }
    }

    #[test]
    fn a_lease_id_does_not_show_in_debug_output() {
        assert_eq!(format!("{:?}", LeaseId(Uuid::from_u128(7))), "LeaseId(hidden)");
    }
}
