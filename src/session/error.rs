//! Errors of a session and of its creation, and what can be its name. They carry facts; the MCP layer chooses the error code and the hint.

use crate::core::counted::counted;
use crate::core::frame::Exit;
use crate::core::frame::delta::Delta;
use crate::core::ids::SessionId;
use crate::core::input::request::WriteError;
use crate::core::journal::NotRecorded;
use crate::core::keys::mouse::MouseError;
use crate::core::policy::denial::Denial;
use crate::session::pty::account::AccountError;
use crate::session::pty::command::CommandError;
use crate::session::pty::environment::EnvironmentError;
use crate::session::pty::sandbox::SandboxError;
use crate::session::pty::spawn::SpawnError;

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Denied(#[from] Denial),
    #[error("the terminal of this session does not answer")]
    Silent,
    #[error("the program in this session has ended")]
    Exited(Exit),
    #[error("the screen has changed since watermark {}", .0.from)]
    ScreenChanged(Box<Delta>),
    #[error("what this acts on has changed since it was judged")]
    Stale,
    #[error("the expected text is not on the screen")]
    TextNotShown(Box<Delta>),
    #[error(transparent)]
    Mouse(#[from] MouseError),
    /// The terminal reads whole lines, and the kernel would cut this one.
    #[error("a line of {bytes} bytes is longer than the {max} the terminal takes as one line")]
    LineTooLong { bytes: usize, max: usize },
    #[error("a command is running in this session")]
    CommandRunning,
    /// A program asks for input, so the terminal is not ready for a command. The text is what stands before
    /// the cursor.
    #[error("something in this session waits for input ({})", .0.trim())]
    Asks(String),
    #[error("the shell of this session has not come to its prompt yet")]
    NoPromptYet,
    #[error("too many calls are waiting for this session")]
    Busy,
    /// The session's task failed before it answered, and has restarted. The call may or may not have taken
    /// effect.
    #[error("the session failed before it answered, and was restarted")]
    Restarted,
    #[error("the session is gone")]
    Closed,
    #[error("the terminal failed: {0}")]
    Terminal(#[from] std::io::Error),
    #[error("the recording cannot be written: {0}")]
    Recording(std::io::Error),
    #[error(transparent)]
    NotRecorded(#[from] NotRecorded),
}

pub const TAGS_MAX: usize = 16;
pub const NAME_MAX: usize = 64;

#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    #[error(transparent)]
    Denied(#[from] Denial),
    #[error("a session named `{0}` exists already")]
    NameTaken(String),
    #[error(
        "invalid name `{0}`: a name has 1 to {NAME_MAX} letters, digits, `.`, `_` or `-`, begins with neither `.` nor `-`, and \
         is not a session id"
    )]
    BadName(String),
    #[error("at most {} may exist", counted(*.0, "session"))]
    TooMany(usize),
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error(transparent)]
    Account(#[from] AccountError),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error("the daemon is ending")]
    Ending,
}

/// Checks that a text is a valid session name.
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
        let told = check_name("-a").unwrap_err().to_string();
        assert!(told.contains("begins with neither `.` nor `-`"), "{told}");
        for name in ["", "a b", "../x", "-a", ".", "ä", "a/b", "0123456789ab", &long] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
