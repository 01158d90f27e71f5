//! The exit codes, the same for every command.

use std::process::ExitCode;

use crate::core::code::Code;
use crate::wire::wait::WaitOutcome;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandExit {
    Done,
    Failed,
    Usage,
    NotFound,
    LeaseConflict,
    Denied,
    TimedOut,
    Unreachable,
    /// The exit code of the command that was run, or a special code of `run`.
    Command(u8),
}

impl CommandExit {
    /// `run`: the command waits for input and keeps running.
    pub const NEEDS_INPUT: Self = Self::Command(122);
    /// `run`: exit code unknown.
    pub const UNKNOWN: Self = Self::Command(123);
    /// `run`: the command takes longer and keeps running.
    pub const GOES_ON: Self = Self::Command(124);

    /// `run`: the command was interrupted because standard output was closed. A program that writes to a
    /// closed pipe ends with the same code.
    pub const UNREAD: Self = Self::Command(141);

    pub fn number(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::LeaseConflict => 4,
            Self::Denied => 5,
            Self::TimedOut => 6,
            Self::Unreachable => 7,
            Self::Command(code) => code,
        }
    }

    /// The exit code for a daemon's error code, which may be from a later release.
    pub fn of_error(code: &str) -> Self {
        Code::parse(code).map_or(Self::Failed, Self::of_code)
    }

    fn of_code(code: Code) -> Self {
        match code {
            Code::InvalidArgument | Code::InvalidConfiguration => Self::Usage,
            Code::SessionNotFound | Code::TokenNotFound | Code::ClientNotFound => Self::NotFound,
            Code::ReadOnly
            | Code::PolicyDenied
            | Code::ApprovalRequired
            | Code::ApprovalStale
            | Code::TokenUnknown
            | Code::TokenExpired => Self::Denied,
            Code::LeaseRequired
            | Code::LeaseHeld
            | Code::LeaseSuspended
            | Code::LeaseLost
            | Code::LeaseSuperseded
            | Code::ScreenChanged => Self::LeaseConflict,
            Code::DaemonUnreachable => Self::Unreachable,
            Code::Timeout => Self::TimedOut,
            Code::SessionExists
            | Code::SessionExited
            | Code::TerminalSilent
            | Code::Busy
            | Code::TooLarge
            | Code::QuotaExceeded
            | Code::RateLimited
            | Code::TokenFile
            | Code::TokenExists
            | Code::StorageError
            // A session or a mounted server failed; the daemon answers.
            | Code::UpstreamUnavailable
            | Code::UpstreamRestarted
            | Code::UpstreamError
            | Code::NotSupported
            | Code::ClientConfig
            | Code::UpgradeFailed
            | Code::DaemonRunning
            | Code::Internal => Self::Failed,
        }
    }

    /// The exit code for the outcome of a wait. A program's exit is a success only if it was a condition.
    pub fn of_outcome(outcome: WaitOutcome, waited_for: WaitedFor) -> Self {
        match (outcome, waited_for) {
            (
                WaitOutcome::Matched
                | WaitOutcome::Changed
                | WaitOutcome::Idle
                | WaitOutcome::CommandDone
                | WaitOutcome::NeedsInput,
                _,
            )
            | (WaitOutcome::Exited, WaitedFor::Exit) => Self::Done,
            (WaitOutcome::Timeout, _) => Self::TimedOut,
            (WaitOutcome::LeaseLost | WaitOutcome::LeaseSuspended, _) => Self::LeaseConflict,
            (WaitOutcome::DaemonLeft, _) => Self::Unreachable,
            (WaitOutcome::Stopped | WaitOutcome::PatternTooCostly, _)
            | (WaitOutcome::Exited, WaitedFor::OtherThings) => Self::Failed,
        }
    }
}

impl From<CommandExit> for ExitCode {
    fn from(exit: CommandExit) -> Self {
        Self::from(exit.number())
    }
}

/// Whether the program's exit is a condition of the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitedFor {
    Exit,
    OtherThings,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_codes_end_a_command_by_their_family() {
        let expected = [
            (2, &["invalid_argument", "invalid_configuration"][..]),
            (3, &["session_not_found", "client_not_found"]),
            (
                4,
                &[
                    "lease_required",
                    "lease_held",
                    "lease_lost",
                    "lease_superseded",
                    "screen_changed",
                ],
            ),
            (
                5,
                &[
                    "read_only",
                    "policy_denied",
                    "approval_required",
                    "token_unknown",
                    "token_expired",
                ],
            ),
            (6, &["timeout"]),
            (7, &["daemon_unreachable"]),
            (
                1,
                &[
                    "session_exists",
                    "session_exited",
                    "busy",
                    "upstream_unavailable",
                    "upstream_restarted",
                    "rate_limited",
                    "client_config",
                    "internal",
                    "from_the_future",
                ],
            ),
        ];
        for (number, codes) in expected {
            for code in codes {
                assert_eq!(CommandExit::of_error(code).number(), number, "{code}");
            }
        }
    }

    #[test]
    fn a_wait_ends_by_its_outcome() {
        let number = |outcome| CommandExit::of_outcome(outcome, WaitedFor::OtherThings).number();
        assert_eq!(number(WaitOutcome::Matched), 0);
        assert_eq!(number(WaitOutcome::Stopped), 1);
        assert_eq!(number(WaitOutcome::LeaseLost), 4);
        assert_eq!(number(WaitOutcome::Timeout), 6);
        assert_eq!(number(WaitOutcome::DaemonLeft), 7);
    }

    #[test]
    fn the_end_of_the_program_is_a_success_only_where_it_was_waited_for() {
        let exited = WaitOutcome::Exited;
        assert_eq!(CommandExit::of_outcome(exited, WaitedFor::Exit), CommandExit::Done);
        assert_eq!(CommandExit::of_outcome(exited, WaitedFor::OtherThings), CommandExit::Failed);
    }
}
