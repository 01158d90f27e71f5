//! The stable error codes: the one table behind answers, the tool `why` and the errors page.
//!
//! The places that answer requests and commands map their errors to these codes.

/// An error code, stable over releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    InvalidArgument,
    SessionNotFound,
    SessionExists,
    SessionExited,
    TerminalSilent,
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
    ApprovalRequired,
    ApprovalStale,
    TokenUnknown,
    TokenExpired,
    TokenFile,
    StorageError,
    UpstreamUnavailable,
    UpstreamRestarted,
    UpstreamError,
    NotSupported,
    UpgradeFailed,
    Internal,
    DaemonUnreachable,
    DaemonRunning,
    Timeout,
    InvalidConfiguration,
    ClientConfig,
    ClientNotFound,
    TokenExists,
    TokenNotFound,
}

/// The texts of one code.
struct CodeTexts {
    code: Code,
    word: &'static str,
    meaning: &'static str,
    advice: &'static str,
}

impl Code {
    pub const ALL: [Self; TABLE.len()] = {
        let mut all = [Self::InvalidArgument; TABLE.len()];
        let mut index = 0;
        while index < all.len() {
            all[index] = TABLE[index].code;
            assert!(all[index] as usize == index, "the table has each code at its place");
            index += 1;
        }
        all
    };

    /// The word for it in the protocol.
    pub fn as_str(self) -> &'static str {
        self.entry().word
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == text)
    }

    pub fn meaning(self) -> &'static str {
        self.entry().meaning
    }

    pub fn advice(self) -> &'static str {
        self.entry().advice
    }

    fn entry(self) -> &'static CodeTexts {
        const { assert!(Self::LAST as usize + 1 == TABLE.len(), "the table has every code") };
        &TABLE[self as usize]
    }

    const LAST: Self = Self::TokenNotFound;
}

const TABLE: &[CodeTexts] = &[
    CodeTexts {
        code: Code::InvalidArgument,
        word: "invalid_argument",
        meaning: "An argument is missing, of the wrong type, out of its bounds or unknown; \
                  nothing was done.",
        advice: "Correct the parameter that the message names.",
    },
    CodeTexts {
        code: Code::SessionNotFound,
        word: "session_not_found",
        meaning: "No session that you may see has this id, id prefix or name.",
        advice: "Call list_sessions and use an id from there.",
    },
    CodeTexts {
        code: Code::SessionExists,
        word: "session_exists",
        meaning: "Another session that runs already has this name.",
        advice: "Choose another name, or use the session that has it.",
    },
    CodeTexts {
        code: Code::SessionExited,
        word: "session_exited",
        meaning: "The program has ended; screen, history and exit status stay readable for an \
                  hour.",
        advice: "Read what it left, or create another session.",
    },
    CodeTexts {
        code: Code::TerminalSilent,
        word: "terminal_silent",
        meaning: "The process that holds the terminal does not answer. The session keeps \
                  running, and can be read and killed meanwhile unless the daemon has \
                  restarted.",
        advice: "Wait for retry_after_ms, then read the screen and try again. `termgate doctor` \
                 names that process; if it is suspended, `kill -CONT` resumes it.",
    },
    CodeTexts {
        code: Code::ReadOnly,
        word: "read_only",
        meaning: "Writing is switched off: this daemon, session, socket or token only lets you \
                  watch.",
        advice: "Ask the operator to run `termgate allow-write on`, and use a socket that is not \
                 `.ro.sock`.",
    },
    CodeTexts {
        code: Code::LeaseRequired,
        word: "lease_required",
        meaning: "The session or mounted server is free, but only the holder of its lease may \
                  write; that is not you.",
        advice: "Call acquire_lease, then write again.",
    },
    CodeTexts {
        code: Code::LeaseHeld,
        word: "lease_held",
        meaning: "Another principal holds the lease of this session or mounted server.",
        advice: "Wait in line with acquire_lease and wait_ms, ask the holder, or watch a session \
                 with wait_for.",
    },
    CodeTexts {
        code: Code::LeaseSuspended,
        word: "lease_suspended",
        meaning: "A person types in this session; your lease is paused and comes back by itself.",
        advice: "Until the person is done, wait with acquire_lease and wait_ms, or watch with wait_for; then read the screen and write with \
                 expect_watermark.",
    },
    CodeTexts {
        code: Code::LeaseLost,
        word: "lease_lost",
        meaning: "The lease you held is gone: it expired, was released, or an operator ended it.",
        advice: "If you still need to write, look at what has changed (a session: read the screen), \
                 then call acquire_lease.",
    },
    CodeTexts {
        code: Code::LeaseSuperseded,
        word: "lease_superseded",
        meaning: "The lease id belongs to an earlier grant, or was not reclaimed in time after \
                  the daemon restarted.",
        advice: "Forget the id and call acquire_lease.",
    },
    CodeTexts {
        code: Code::ScreenChanged,
        word: "screen_changed",
        meaning: "The screen is no longer what you read, or a person typed since you read it, so \
                  nothing was sent; the answer says what changed as far as it can.",
        advice: "Look at what changed, decide again, and pass the new watermark.",
    },
    CodeTexts {
        code: Code::Busy,
        word: "busy",
        meaning: "Too much is already waiting here, or a program has the terminal that a command \
                  was meant for; nothing was done.",
        advice: "Let earlier calls end, then try again; `activity` of a session shows what its \
                 program does.",
    },
    CodeTexts {
        code: Code::TooLarge,
        word: "too_large",
        meaning: "The request is larger than this daemon takes at once.",
        advice: "Send it in smaller parts.",
    },
    CodeTexts {
        code: Code::QuotaExceeded,
        word: "quota_exceeded",
        meaning: "A limit on sessions, connections, clients of a mounted server, subscriptions, \
                  waiting callers, patterns, tokens or unread answers is reached, or the system has no more of what a session \
                  needs.",
        advice: "Close what you no longer need, read the answers that wait, or try again later.",
    },
    CodeTexts {
        code: Code::RateLimited,
        word: "rate_limited",
        meaning: "Your user calls this daemon more often than it may; nothing was done.",
        advice: "Wait for retry_after_ms, and use wait_for or observe instead of asking often.",
    },
    CodeTexts {
        code: Code::PolicyDenied,
        word: "policy_denied",
        meaning: "The caller has no right to this, whatever the switches say, or a rule or a person denies it.",
        advice: "Do something else, or ask an operator to do it. If there is a decision_id, why explains it.",
    },
    CodeTexts {
        code: Code::ApprovalRequired,
        word: "approval_required",
        meaning: "A rule wants somebody to approve this call first; nothing was done.",
        advice: "Tell your user that `termgate approve APPROVAL_ID` lets it pass. Then make exactly the same call again.",
    },
    CodeTexts {
        code: Code::ApprovalStale,
        word: "approval_stale",
        meaning: "What the call acts on has changed since it was judged or approved; nothing was done.",
        advice: "Look at it again. If the call is still right, make it again; one that was approved needs another approval.",
    },
    CodeTexts {
        code: Code::TokenUnknown,
        word: "token_unknown",
        meaning: "The token was revoked, or belongs to another user.",
        advice: "Ask the operator for another token: `termgate token new NAME --out FILE`.",
    },
    CodeTexts {
        code: Code::TokenExpired,
        word: "token_expired",
        meaning: "The token has expired.",
        advice: "Ask the operator for another token: `termgate token new NAME --out FILE`.",
    },
    CodeTexts {
        code: Code::TokenFile,
        word: "token_file",
        meaning: "The token's file is missing, malformed, public or cannot be made.",
        advice: "Name a file that `termgate token new` made, with mode 0600; to make one, name a \
                 file that is not there.",
    },
    CodeTexts {
        code: Code::StorageError,
        word: "storage_error",
        meaning: "The journal cannot be written, so nothing may be changed; or the tokens cannot be \
                  read, watched or written, or the directory where terminals are held cannot be used.",
        advice: "Free disk space, or fix what the message or `termgate token ls` names. Reading still \
                 works. Deleting the token file revokes every token.",
    },
    CodeTexts {
        code: Code::UpstreamUnavailable,
        word: "upstream_unavailable",
        meaning: "The bridge cannot reach a daemon, or the daemon leaves its sessions to the \
                  next one; nothing was done.",
        advice: "Try again; if it stays, start the daemon.",
    },
    CodeTexts {
        code: Code::UpstreamRestarted,
        word: "upstream_restarted",
        meaning: "The daemon or the session failed before it answered and was started again. The \
                  call may have taken effect; the bridge does not repeat it.",
        advice: "Look at the sessions and screens there are now before you repeat the call. \
                 After a restart of the daemon, show a lease id at once to keep that lease; \
                 after one of a session, acquire its lease again.",
    },
    CodeTexts {
        code: Code::UpstreamError,
        word: "upstream_error",
        meaning: "A mounted server refused the call with an error of the protocol, or answered what \
                  is no result.",
        advice: "Read the message, which is the server's; an operator finds more with: \
                 termgate mounts log NAME.",
    },
    CodeTexts {
        code: Code::NotSupported,
        word: "not_supported",
        meaning: "The program on the screen, or this daemon, cannot do that now.",
        advice: "Read the screen to see what the program expects.",
    },
    CodeTexts {
        code: Code::UpgradeFailed,
        word: "upgrade_failed",
        meaning: "The program on disk cannot take the daemon's place.",
        advice: "The daemon keeps running as it was: fix what the message names, then run it \
                 again.",
    },
    CodeTexts {
        code: Code::Internal,
        word: "internal",
        meaning: "The daemon, or the command, failed in a way it should not; a daemon's log says \
                  more.",
        advice: "Try again; if it stays, report it with the daemon's log.",
    },
    CodeTexts {
        code: Code::DaemonUnreachable,
        word: "daemon_unreachable",
        meaning: "No daemon answers the command: none runs there, it did not start, or it went \
                  away.",
        advice: "Run `termgate doctor`; `termgate new` and `termgate serve` start a daemon.",
    },
    CodeTexts {
        code: Code::DaemonRunning,
        word: "daemon_running",
        meaning: "Another process is the daemon of these directories, and there can be only one.",
        advice: "Use that one, or end it with `termgate stop`. If it does not answer, the message \
                 names its process: `kill -CONT` resumes a suspended one, `kill -9` ends it, and \
                 the next daemon resumes its sessions.",
    },
    CodeTexts {
        code: Code::Timeout,
        word: "timeout",
        meaning: "The daemon did not stop in time.",
        advice: "Look at its log, then end its process yourself.",
    },
    CodeTexts {
        code: Code::InvalidConfiguration,
        word: "invalid_configuration",
        meaning: "The configuration is wrong: no daemon starts with it, one that runs keeps its \
                  own.",
        advice: "Fix what the message names; `termgate config check` lists every problem.",
    },
    CodeTexts {
        code: Code::ClientConfig,
        word: "client_config",
        meaning: "The file of an MCP client is read-only or cannot be understood; it is left as \
                  it is.",
        advice: "Put the text that is printed into the file yourself, or make the file writable \
                 and run it again.",
    },
    CodeTexts {
        code: Code::ClientNotFound,
        word: "client_not_found",
        meaning: "No MCP client that termgate knows is installed here.",
        advice: "Name the client with --client, or print what to paste with --print.",
    },
    CodeTexts {
        code: Code::TokenExists,
        word: "token_exists",
        meaning: "Another token already has this name.",
        advice: "Choose another name, or run `termgate token revoke` with this one first.",
    },
    CodeTexts {
        code: Code::TokenNotFound,
        word: "token_not_found",
        meaning: "No token has this name.",
        advice: "`termgate token ls` shows the tokens there are.",
    },
];

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
