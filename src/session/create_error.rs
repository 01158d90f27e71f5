//! Why no session is created, and what can be its name.

use crate::core::ids::SessionId;
use crate::core::policy::Denial;
use crate::session::pty::command::CommandError;
use crate::session::pty::environment::EnvironmentError;
use crate::session::pty::spawn::SpawnError;

/// The most tags of a session.
pub const TAGS_MAX: usize = 16;
/// The longest session name, in characters.
pub const NAME_MAX: usize = 64;

#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The permit does not allow it.
    #[error(transparent)]
    Denied(#[from] Denial),
    /// Another session of the tenant has this name.
    #[error("there is a session named `{0}`")]
    NameTaken(String),
    /// The name has characters that are not allowed.
    #[error(
        "`{0}` is no name: 1 to {NAME_MAX} letters, digits, `.`, `_` or `-`, and no session id"
    )]
    BadName(String),
    /// The tenant has reached its limit of sessions.
    #[error("{0} sessions are as many as there may be")]
    TooMany(usize),
    /// The program, its arguments or its directory is unusable.
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error("the daemon is ending")]
    Ending,
}

/// Checks that a text is a valid session name.
///
/// # Errors
/// [`CreateError::BadName`] if it is not.
pub fn check_name(name: &str) -> Result<(), CreateError> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let length = 1..=NAME_MAX;
    let shaped = length.contains(&name.len()) && name.chars().all(fine);
    let is_id = name.parse::<SessionId>().is_ok();
    if shaped && !name.starts_with(['-', '.']) && !is_id {
        return Ok(());
    }
    Err(CreateError::BadName(name.chars().take(NAME_MAX).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_letters_digits_and_a_few_signs() {
        for name in ["a", "build-2", "my.session", "A_b"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        let long = "x".repeat(NAME_MAX + 1);
        for name in ["", "a b", "../x", "-a", ".", "ä", "a/b", "0123456789ab", &long] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
