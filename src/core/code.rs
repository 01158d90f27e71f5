//! The stable error codes: the one table from which answers, the tool `why` and the errors page
//! are made.
//!
//! It says what a code means and what to do about it; which error gets which code is decided where
//! errors meet the wire, or the command line.

/// What a client can tell apart, stable over releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    InvalidArgument,
    SessionNotFound,
    SessionExists,
    SessionExited,
    ReadOnly,
    LeaseRequired,
    LeaseHeld,
    LeaseSuspended,
    LeaseLost,
    LeaseSuperseded,
    ScreenChanged,
    Busy,
    TooLarge,
    QuotaExceeded,
    RateLimited,
    PolicyDenied,
    TokenUnknown,
    TokenExpired,
    TokenFile,
    StorageError,
    UpstreamUnavailable,
    UpstreamRestarted,
    NotSupported,
    UpgradeFailed,
    Internal,
    DaemonUnreachable,
    Timeout,
    InvalidConfiguration,
    ClientConfig,
    ClientNotFound,
    TokenExists,
    TokenNotFound,
}

impl Code {
    /// Every code, in the order of the errors page.
    pub const ALL: [Self; 32] = [
        Self::InvalidArgument,
        Self::SessionNotFound,
        Self::SessionExists,
        Self::SessionExited,
        Self::ReadOnly,
        Self::LeaseRequired,
        Self::LeaseHeld,
        Self::LeaseSuspended,
        Self::LeaseLost,
        Self::LeaseSuperseded,
        Self::ScreenChanged,
        Self::Busy,
        Self::TooLarge,
        Self::QuotaExceeded,
        Self::RateLimited,
        Self::PolicyDenied,
        Self::TokenUnknown,
        Self::TokenExpired,
        Self::TokenFile,
        Self::StorageError,
        Self::UpstreamUnavailable,
        Self::UpstreamRestarted,
        Self::NotSupported,
        Self::UpgradeFailed,
        Self::Internal,
        Self::DaemonUnreachable,
        Self::Timeout,
        Self::InvalidConfiguration,
        Self::ClientConfig,
        Self::ClientNotFound,
        Self::TokenExists,
        Self::TokenNotFound,
    ];

    /// The word for it on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::SessionNotFound => "session_not_found",
            Self::SessionExists => "session_exists",
            Self::SessionExited => "session_exited",
            Self::ReadOnly => "read_only",
            Self::LeaseRequired => "lease_required",
            Self::LeaseHeld => "lease_held",
            Self::LeaseSuspended => "lease_suspended",
            Self::LeaseLost => "lease_lost",
            Self::LeaseSuperseded => "lease_superseded",
            Self::ScreenChanged => "screen_changed",
            Self::Busy => "busy",
            Self::TooLarge => "too_large",
            Self::QuotaExceeded => "quota_exceeded",
            Self::RateLimited => "rate_limited",
            Self::PolicyDenied => "policy_denied",
            Self::TokenUnknown => "token_unknown",
            Self::TokenExpired => "token_expired",
            Self::TokenFile => "token_file",
            Self::StorageError => "storage_error",
            Self::UpstreamUnavailable => "upstream_unavailable",
            Self::UpstreamRestarted => "upstream_restarted",
            Self::NotSupported => "not_supported",
            Self::UpgradeFailed => "upgrade_failed",
            Self::Internal => "internal",
            Self::DaemonUnreachable => "daemon_unreachable",
            Self::Timeout => "timeout",
            Self::InvalidConfiguration => "invalid_configuration",
            Self::ClientConfig => "client_config",
            Self::ClientNotFound => "client_not_found",
            Self::TokenExists => "token_exists",
            Self::TokenNotFound => "token_not_found",
        }
    }

    /// The code that is written like this.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == text)
    }

    /// What it means.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::InvalidArgument => {
                "An argument is missing, of the wrong type, out of its bounds or unknown; nothing \
                 was done."
            }
            Self::SessionNotFound => "No session that you may see has this id, id prefix or name.",
            Self::SessionExists => "Another session already has this name.",
            Self::SessionExited => {
                "The program has ended; screen, history and exit status stay readable for an hour."
            }
            Self::ReadOnly => {
                "Writing is switched off: this daemon, session, socket or token only lets you watch."
            }
            Self::LeaseRequired => {
                "The session is free, but only the holder of its lease may write; that is not you."
            }
            Self::LeaseHeld => "Somebody else holds the lease of this session.",
            Self::LeaseSuspended => {
                "A person types in this session; your lease waits and comes back by itself, its time \
                 standing still."
            }
            Self::LeaseLost => {
                "The lease you held is gone: it expired, was released, or an operator ended it."
            }
            Self::LeaseSuperseded => {
                "The lease id is of a holding that another one replaced, or that was not taken back in \
                 time after the daemon started anew."
            }
            Self::ScreenChanged => {
                "The screen is no longer what you read, or a person typed since you read it, so \
                 nothing was sent; the answer says what changed as far as it can."
            }
            Self::Busy => "Too much is already waiting here; nothing was done.",
            Self::TooLarge => "The request is larger than this daemon takes at once.",
            Self::QuotaExceeded => {
                "A limit on sessions, connections, subscriptions, waiting callers or tokens is reached."
            }
            Self::RateLimited => {
                "Your user calls this daemon more often than it may; nothing was done."
            }
            Self::PolicyDenied => "The caller has no right to this, whatever the switches say.",
            Self::TokenUnknown => "The token was revoked, or is none of this daemon's user.",
            Self::TokenExpired => "The time of the token is over.",
            Self::TokenFile => "The token's file is missing, malformed, public or cannot be made.",
            Self::StorageError => "The tokens cannot be read, watched or written.",
            Self::UpstreamUnavailable => "The bridge cannot reach a daemon; nothing was done.",
            Self::UpstreamRestarted => {
                "The daemon ended before it answered, and nobody knows whether the call took \
                 effect; the bridge does not repeat it."
            }
            Self::NotSupported => "The program on the screen, or this daemon, cannot do that now.",
            Self::UpgradeFailed => "The program on disk cannot take the daemon's place.",
            Self::Internal => {
                "The daemon, or the command, failed in a way it should not; a daemon's log says more."
            }
            Self::DaemonUnreachable => {
                "No daemon answers the command: none runs there, it did not start, or it went away."
            }
            Self::Timeout => "The daemon was told to stop and still runs.",
            Self::InvalidConfiguration => {
                "The configuration is wrong: no daemon starts with it, one that runs keeps its own."
            }
            Self::ClientConfig => {
                "The file of an MCP client is read-only or cannot be understood; it is left as it is."
            }
            Self::ClientNotFound => "No MCP client that termgate knows is installed here.",
            Self::TokenExists => "Another token already has this name.",
            Self::TokenNotFound => "No token has this name.",
        }
    }

    /// What to do about it.
    pub fn advice(self) -> &'static str {
        match self {
            Self::InvalidArgument => "Correct the parameter that the message names.",
            Self::SessionNotFound => "Call list_sessions and use an id from there.",
            Self::SessionExists => "Choose another name, or use the session that has it.",
            Self::SessionExited => "Read what it left, or create another session.",
            Self::ReadOnly => {
                "Ask the operator to run `termgate allow-write on`, and use a socket that is not \
                 `.ro.sock`."
            }
            Self::LeaseRequired => "Call acquire_lease, then write again.",
            Self::LeaseHeld => {
                "Wait in line with acquire_lease and wait_ms, or watch until the holder is done."
            }
            Self::LeaseSuspended => {
                "Wait with acquire_lease and wait_ms, or watch the lease; then read the screen and \
                 write with expect_watermark."
            }
            Self::LeaseLost => {
                "Read the screen, then call acquire_lease if you still need to type."
            }
            Self::LeaseSuperseded => "Forget the id and call acquire_lease.",
            Self::ScreenChanged => {
                "Look at what changed, decide again, and pass the new watermark."
            }
            Self::Busy => "Let earlier calls end, then try again.",
            Self::TooLarge => "Send it in smaller parts.",
            Self::QuotaExceeded => "Close what you no longer need, or try again later.",
            Self::RateLimited => {
                "Wait for retry_after_ms, and use wait_for or observe instead of asking often."
            }
            Self::PolicyDenied => "Ask an operator to do it.",
            Self::TokenUnknown | Self::TokenExpired => {
                "Ask the operator for another token: `termgate token new NAME --out FILE`."
            }
            Self::TokenFile => {
                "Name a file that `termgate token new` made, with mode 0600; to make one, name a file \
                 that is not there."
            }
            Self::StorageError => {
                "Mend what `termgate token ls` tells; to remove the file it names revokes every token."
            }
            Self::UpstreamUnavailable => "Try again; if it stays, start the daemon.",
            Self::UpstreamRestarted => {
                "Look at the sessions and screens there are now before you repeat the call; \
                 show a lease id at once to keep that lease."
            }
            Self::NotSupported => "Read the screen to see what the program expects.",
            Self::UpgradeFailed => {
                "The daemon goes on as it was: mend what the message names, then run it again."
            }
            Self::Internal => "Try again; if it stays, report it with the daemon's log.",
            Self::DaemonUnreachable => {
                "Run `termgate doctor`; `termgate new` and `termgate serve` start a daemon."
            }
            Self::Timeout => "Look at its log, then end its process yourself.",
            Self::InvalidConfiguration => {
                "Mend what the message names; `termgate config check` tells all of it."
            }
            Self::ClientConfig => {
                "Put the text that is printed into the file yourself, or make the file writable and \
                 run it again."
            }
            Self::ClientNotFound => {
                "Name the client with --client, or print what to paste with --print."
            }
            Self::TokenExists => {
                "Choose another name, or run `termgate token revoke` with this one first."
            }
            Self::TokenNotFound => "`termgate token ls` shows the tokens there are.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_reads_back_from_its_word() {
        for code in Code::ALL {
            assert_eq!(Code::parse(code.as_str()), Some(code));
        }
        assert_eq!(Code::parse("no_such_code"), None);
    }
}
