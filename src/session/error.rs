//! Why a session did not do what it was asked.
//!
//! It carries the facts; which code and which advice a client gets is decided above.

use crate::core::frame::Exit;
use crate::core::frame::delta::Delta;
use crate::core::input::error::WriteError;
use crate::core::keys::mouse::MouseError;

/// Why a session refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The lease, the write switch or the queue said no.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Whoever keeps the terminal does not answer now.
    #[error("the terminal of this session does not answer")]
    Silent,
    /// The program has ended.
    #[error("the program in this session has ended")]
    Exited(Exit),
    /// The screen is not what the writer expected.
    #[error("the screen has changed since watermark {}", .0.from)]
    ScreenChanged(Box<Delta>),
    /// The text that the writer expected is not on the screen.
    #[error("the expected text is not on the screen")]
    TextNotShown(Box<Delta>),
    /// The program does not take this mouse event.
    #[error(transparent)]
    Mouse(#[from] MouseError),
    /// A line too long for a terminal that reads whole lines: the kernel would cut it.
    #[error("a line of {bytes} bytes is longer than the {max} the terminal takes as one line")]
    LineTooLong { bytes: usize, max: usize },
    /// The terminal is not ready for another command.
    #[error("a command is running in this session")]
    CommandRunning,
    /// The terminal is not ready for another command, since something asks there; this stands before the
    /// cursor.
    #[error("something in this session waits for input ({})", .0.trim())]
    Asks(String),
    /// The shell that would take a command has not come to its prompt.
    #[error("the shell of this session has not come to its prompt yet")]
    NoPromptYet,
    /// Too many calls wait for this session's task.
    #[error("too many calls are waiting for this session")]
    Busy,
    /// The session's task failed before it answered, and goes on; nobody knows whether the call took effect.
    #[error("the session failed before it answered, and goes on")]
    Restarted,
    /// The session's task has ended.
    #[error("the session is gone")]
    Closed,
    /// The terminal itself failed.
    #[error("the terminal failed: {0}")]
    Terminal(#[from] std::io::Error),
}
