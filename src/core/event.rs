//! Events: what happened in sessions and to the daemon, for those who look back or wait for it.

pub mod source;

use std::sync::Arc;

use crate::core::caller::Caller;
use crate::core::frame::Exit;
use crate::core::ids::{Epoch, SessionId, TenantId};
use crate::core::lease::view::LeaseChange;
use crate::core::mount::MountName;
use crate::core::policy::decision::DecisionId;
use crate::core::screen::sequence::TaskProgress;
use crate::core::shell::activity::Evidence;
use crate::core::shell::commands::record::CommandId;

/// Where an event happened, and so who may learn of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventScope<'a> {
    pub tenant: &'a TenantId,
    /// `None` for what concerns the daemon as a whole.
    pub session: Option<SessionId>,
}

/// What a lease is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeaseOf {
    Session(SessionId),
    Mount(MountName),
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    DaemonStopped {
        /// Why, in one word.
        cause: &'static str,
    },
    /// The configuration was read again; the names of the keys that changed.
    ConfigurationRead {
        changed: Vec<&'static str>,
    },
    SessionCreated {
        name: Arc<str>,
        /// As a person would type it.
        command: String,
    },
    SessionRenamed {
        name: Arc<str>,
    },
    /// The program of the session ended.
    SessionEnded {
        exit: Exit,
    },
    /// The session is not listed any more.
    SessionRemoved,
    Lease {
        /// The mount whose lease it is; `None` for that of a session.
        mount: Option<MountName>,
        holder: Caller,
        epoch: Epoch,
        change: LeaseChange,
    },
    CommandStarted {
        id: CommandId,
        text: Arc<str>,
        by: Option<Arc<str>>,
    },
    CommandEnded {
        id: CommandId,
        /// `None` if nothing told it.
        code: Option<i32>,
        evidence: Evidence,
    },
    /// The session's program waits for input, and has for [`source::NEEDS_INPUT_AFTER`].
    NeedsInput {
        is_secret: bool,
        /// The program in front, if the kernel told it.
        program: Option<Arc<str>>,
    },
    /// The bell rang.
    Bell {
        /// How often so far in this session.
        count: u64,
    },
    /// A program sent a text for the person at the terminal (OSC 9, OSC 777).
    Notification {
        title: Option<String>,
        body: String,
        /// Its place in the output.
        offset: u64,
    },
    /// A program told how far it is (OSC 9;4).
    Progress {
        progress: TaskProgress,
        offset: u64,
    },
    /// Programs sent more than are kept.
    LeftOut {
        count: u64,
        /// The place in the output up to which they were counted.
        offset: u64,
    },
    /// A person attached.
    Attached {
        person: Caller,
    },
    Detached {
        person: Caller,
    },
    /// Writing was switched on or off.
    WritingSwitched {
        is_on: bool,
        /// When it is switched back, in milliseconds from now.
        for_ms: Option<u64>,
        /// `None` if its time was over.
        by: Option<Caller>,
    },
    /// A call needs an approval.
    ApprovalAsked {
        /// The approval's id.
        id: DecisionId,
        /// What the call does, in one line.
        what: Arc<str>,
        by: Caller,
    },
    /// A call that needed an approval has it, or was denied.
    ApprovalDecided {
        id: DecisionId,
        granted: bool,
        by: Caller,
    },
    /// A part of termgate failed.
    Fault {
        what: &'static str,
    },
}

/// What an event is called in records and answers. A word before an underscore names a family.
pub const EVENT_KINDS: [&str; 31] = [
    "approval_asked",
    "approval_denied",
    "approval_granted",
    "attached",
    "bell",
    "command_ended",
    "command_started",
    "configuration_read",
    "daemon_started",
    "daemon_stopped",
    "detached",
    "fault",
    "lease_ended",
    "lease_expired",
    "lease_granted",
    "lease_handed_over",
    "lease_preempted",
    "lease_released",
    "lease_renewed",
    "lease_resumed",
    "lease_suspended",
    "left_out",
    "needs_input",
    "notification",
    "progress",
    "refused",
    "session_created",
    "session_ended",
    "session_removed",
    "session_renamed",
    "writing_switched",
];

/// Whether an event kind is `wanted`, or of that family: the word before an underscore.
pub fn is_of_kind(kind: &str, wanted: &str) -> bool {
    let rest = kind.strip_prefix(wanted);
    rest.is_some_and(|rest| rest.is_empty() || (rest.starts_with('_') && !wanted.is_empty()))
}

/// Kinds and families of events that somebody chose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventKinds(Arc<[Arc<str>]>);

impl EventKinds {
    /// `None` if one of the words is neither a kind nor a family.
    pub fn of<'a>(words: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let known = |word: &'a str| EVENT_KINDS.iter().any(|kind| is_of_kind(kind, word));
        let kinds = words.into_iter().map(|word| known(word).then(|| Arc::from(word)));
        kinds.collect::<Option<_>>().map(Self)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, kind: &str) -> bool {
        self.0.iter().any(|wanted| is_of_kind(kind, wanted))
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|kind| &**kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_chosen_by_name_or_family() {
        let kinds = EventKinds::of(["lease", "bell"]).unwrap();
        assert!(kinds.contains("lease_expired") && kinds.contains("bell"));
        assert!(!kinds.contains("command_ended") && !kinds.contains("leased"));
        assert!(EventKinds::of([]).unwrap().is_empty());
        for word in ["", "lease_", "lease_exp", "bells", "*"] {
            assert_eq!(EventKinds::of([word]), None, "{word}");
        }
    }
}
