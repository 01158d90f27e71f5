//! Errors of a session. They carry facts; the MCP layer chooses the error code and the hint.

use crate::core::frame::Exit;
use crate::core::frame::delta::Delta;
use crate::core::input::error::WriteError;
use crate::core::keys::mouse::MouseError;
use crate::core::policy::Denial;

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The lease, the write switch or the queue refused the write.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The permit does not allow it.
    #[error(transparent)]
    Denied(#[from] Denial),
    /// The shim does not answer.
    #[error("the terminal of this session does not answer")]
    Silent,
    #[error("the program in this session has ended")]
    Exited(Exit),
    /// The screen differs from what the writer expected.
    #[error("the screen has changed since watermark {}", .0.from)]
    ScreenChanged(Box<Delta>),
    /// The screen does not show the text that the writer expected.
    #[error("the expected text is not on the screen")]
    TextNotShown(Box<Delta>),
    #[error(transparent)]
    Mouse(#[from] MouseError),
    /// The terminal reads whole lines, and the kernel would cut this one.
    #[error("a line of {bytes} bytes is longer than the {max} the terminal takes as one line")]
    LineTooLong { bytes: usize, max: usize },
    /// A command is still running.
    #[error("a command is running in this session")]
    CommandRunning,
    /// A program asks for input, so the terminal is not ready for a command. The text is what stands before
    /// the cursor.
    #[error("something in this session waits for input ({})", .0.trim())]
    Asks(String),
    /// The shell has not shown its prompt yet.
    #[error("the shell of this session has not come to its prompt yet")]
    NoPromptYet,
    #[error("too many calls are waiting for this session")]
    Busy,
    /// The session's task failed before it answered, and has restarted. The call may or may not have taken
    /// effect.
    #[error("the session failed before it answered, and goes on")]
    Restarted,
    /// The session's task has ended.
    #[error("the session is gone")]
    Closed,
    #[error("the terminal failed: {0}")]
    Terminal(#[from] std::io::Error),
}
