//! Tokens, which give a client the same principal on every connection.
//!
//! Secrets are compared by their hash only. No type that contains a secret can be printed by accident.

use std::fmt::{self, Write};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::core::caller::Caller;
use crate::core::ids::PrincipalId;

pub const TOKENS_MAX: usize = 256;

/// The length in bytes of a secret and of its hash.
const BYTES: usize = 32;

/// A moment of the wall clock, in whole seconds since 1970. Tokens age while no daemon runs, so they
/// cannot use the boot clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnixTime(pub u64);

impl UnixTime {
    /// The time left until `later`; zero once it has passed.
    pub fn until(self, later: Self) -> Duration {
        Duration::from_secs(later.0.saturating_sub(self.0))
    }
}

/// The secret of a token: 256 random bits.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; BYTES]);

impl Secret {
    /// The start of a secret's text, so that a secret found anywhere is recognizable.
    const PREFIX: &'static str = "tgt_";
    pub const TEXT_LEN: usize = Self::PREFIX.len() + 2 * BYTES;

    /// Takes random bits that were never used before.
    pub fn from_random(bits: [u8; BYTES]) -> Self {
        Self(bits)
    }

    /// The secret's text. Write it only to a file of its owner.
    pub fn reveal(&self) -> String {
        format!("{}{}", Self::PREFIX, hex(&self.0))
    }

    /// The hash, the only part that is stored.
    pub fn hash(&self) -> TokenHash {
        TokenHash(Sha256::digest(self.0).into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

/// The error for a text that is not a secret. It does not contain the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the text of a token")]
pub struct NotASecret;

impl FromStr for Secret {
    type Err = NotASecret;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.strip_prefix(Self::PREFIX).and_then(unhex).map(Self).ok_or(NotASecret)
    }
}

/// The SHA-256 of a secret.
#[derive(Clone, Copy, Debug)]
pub struct TokenHash([u8; BYTES]);

/// Compares in constant time.
impl PartialEq for TokenHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for TokenHash {}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// The error for a text that is not a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a hash has 64 hexadecimal digits")]
pub struct NotAHash;

impl FromStr for TokenHash {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        unhex(text).map(Self).ok_or(NotAHash)
    }
}

/// The name of a token, and the label of its owner: 1 to 40 of `A-Z a-z 0-9 . _ -`, starting with a
/// letter or a digit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenName(Arc<str>);

impl TokenName {
    /// The name as the label of the token's owner.
    pub fn label(&self) -> &Arc<str> {
        &self.0
    }
}

impl fmt::Display for TokenName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The error for an invalid name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token's name has 1 to 40 of A-Z a-z 0-9 . _ - and begins with a letter or a digit")]
pub struct NotATokenName;

impl FromStr for TokenName {
    type Err = NotATokenName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        let fits = text.len() <= Caller::LABEL_MAX && begins && text.bytes().all(fine);
        if fits { Ok(Self(Arc::from(text))) } else { Err(NotATokenName) }
    }
}

/// The most that the owner of a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenScope {
    /// Write if the policy's switches allow it.
    Write,
    /// Only watch, regardless of the policy's switches.
    ReadOnly,
    /// Watch, and approve what rules ask about.
    Approve,
    /// What operators do at the sessions of the owner's tenant.
    Operate,
}

impl TokenScope {
    pub const ALL: [Self; 4] = [Self::Write, Self::ReadOnly, Self::Approve, Self::Operate];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::ReadOnly => "read_only",
            Self::Approve => "approve",
            Self::Operate => "operate",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }
}

/// The properties of a new token.
#[derive(Clone, Debug)]
pub struct TokenTerms {
    pub name: TokenName,
    pub hash: TokenHash,
    pub scope: TokenScope,
    /// The token is invalid from this time on.
    pub expires: Option<UnixTime>,
}

/// A token as stored: with the hash of its secret, without the secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub name: TokenName,
    /// The number is never reused.
    pub number: u64,
    pub hash: TokenHash,
    pub scope: TokenScope,
    pub created: UnixTime,
    pub expires: Option<UnixTime>,
}

impl Token {
    pub fn principal(&self) -> PrincipalId {
        PrincipalId::Token(self.number)
    }

    pub fn has_expired(&self, now: UnixTime) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }
}

/// Why the daemon rejects a client that presents a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The text is not a token.
    #[error("token: not the text of a token")]
    Malformed,
    /// The token was revoked, or belongs to another user.
    #[error("this token is not known")]
    Unknown,
    #[error("this token has expired")]
    Expired,
    /// The operators' socket has no rights that a token can grant.
    #[error("the operators' socket takes no token")]
    OperatorsDoor,
    /// The client is a program inside a managed session.
    #[error("programs inside a session have no rights through its daemon, with a token neither")]
    InsideSession,
    /// The daemon cannot read the tokens or watch their file.
    #[error("the daemon cannot read its tokens")]
    Unreadable,
}

/// Why a token was not added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAdded {
    #[error("a token `{0}` exists already")]
    NameTaken(TokenName),
    #[error("there are {TOKENS_MAX} tokens, and no more may be")]
    TooMany,
}

/// The tokens of one user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    last_number: u64,
    tokens: Vec<Token>,
}

impl Tokens {
    /// Loads stored tokens. No number above `last_number` was ever assigned.
    pub fn kept(last_number: u64, tokens: Vec<Token>) -> Self {
        let last_number = tokens.iter().map(|token| token.number).fold(last_number, u64::max);
        Self { last_number, tokens }
    }

    /// The newest assigned number.
    pub fn last_number(&self) -> u64 {
        self.last_number
    }

    /// All tokens, the oldest first.
    pub fn all(&self) -> &[Token] {
        &self.tokens
    }

    /// Adds a token under a new number.
    ///
    /// # Errors
    /// The name is taken, or there are too many tokens.
    pub fn add(&mut self, now: UnixTime, wanted: TokenTerms) -> Result<&Token, NotAdded> {
        let TokenTerms { name, hash, scope, expires } = wanted;
        if self.tokens.iter().any(|token| token.name == name) {
            return Err(NotAdded::NameTaken(name));
        }
        if self.tokens.len() >= TOKENS_MAX {
            return Err(NotAdded::TooMany);
        }
        self.last_number += 1;
        let number = self.last_number;
        self.tokens.push(Token { name, number, hash, scope, created: now, expires });
        Ok(self.tokens.last().expect("one was just added"))
    }

    pub fn remove(&mut self, name: &TokenName) -> Option<Token> {
        let index = self.tokens.iter().position(|token| token.name == *name)?;
        Some(self.tokens.remove(index))
    }

    /// The token with this hash. It compares every token, so that the time reveals nothing.
    ///
    /// # Errors
    /// No token has this hash, or the token has expired.
    pub fn find(&self, now: UnixTime, hash: &TokenHash) -> Result<&Token, Rejection> {
        let mut found = None;
        for token in &self.tokens {
            if token.hash == *hash {
                found = Some(token);
            }
        }
        match found {
            None => Err(Rejection::Unknown),
            Some(token) if token.has_expired(now) => Err(Rejection::Expired),
            Some(token) => Ok(token),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes everything");
        text
    })
}

fn unhex(text: &str) -> Option<[u8; BYTES]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect();
    bytes.filter(|_| rest.is_empty())?.try_into().ok()
}

#[cfg(test)]
mod tests;
