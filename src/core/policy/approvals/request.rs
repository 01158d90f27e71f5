//! A call that is to be approved, and the state of its terminal.

use std::collections::BTreeSet;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::core::caller::PrincipalName;
use crate::core::frame::Frame;
use crate::core::ids::{Epoch, PrincipalId, SessionId, TenantId, Watermark};
use crate::core::policy::decision::DecisionId;
use crate::core::shell::commands::record::CommandId;

/// Tells calls apart: the hash of who calls which tool with which arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Of these parts, each hashed with its length, so that no two lists of parts are the same.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The state of a terminal on which it depends what a call does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Witness {
    /// Of the lease, if somebody else than the caller holds it; of the lease of a mount, if anybody does.
    pub others_epoch: Option<Epoch>,
    /// The last command that was run.
    pub command: CommandId,
    pub directory: Option<String>,
    /// The process group in front.
    pub foreground: Option<i32>,
    /// When the screen last changed, for a call whose effect may depend on what it shows.
    pub screen: Option<Watermark>,
    /// How often anything was typed, for such a call: what is typed may show later.
    pub typed: Option<u64>,
}

impl Witness {
    /// The state of a terminal that shows this, with a program in front that works in `directory`, for a call of `own`.
    /// `typed` says how often anything was typed there, for a call whose effect may depend on what the screen shows.
    pub fn of(
        frame: &Frame,
        own: PrincipalId,
        directory: Option<String>,
        typed: Option<u64>,
    ) -> Self {
        let holding = frame.lease.value.holding.as_ref();
        Self {
            others_epoch: holding.filter(|held| held.by.principal != own).map(|held| held.epoch),
            command: frame.commands.value.last(),
            directory,
            foreground: frame.activity.value.foreground.as_ref().map(|group| group.group),
            screen: typed.map(|_| frame.screen_watermark()),
            typed,
        }
    }
}

/// A call that is to be approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRequest {
    pub decision: DecisionId,
    pub fingerprint: Fingerprint,
    pub witness: Witness,
    pub by: PrincipalName,
    /// The user who asks, where no token says who that is.
    pub user: Option<u32>,
    /// Whether an operator asks: a person, whose own calls nobody's denial is about.
    pub is_operators: bool,
    /// Of the session, or of the one to be created.
    pub tenant: TenantId,
    pub session: Option<SessionId>,
    pub tool: Arc<str>,
    /// Of the rules that asked.
    pub generation: u64,
    /// What the call does, in one line for people.
    pub what: Arc<str>,
    /// The hash of what its command line runs, if all of that is known. Blanks and quotes do not change it.
    pub line: Option<Fingerprint>,
    /// The programs that it runs with their flags, if all are known and none runs others.
    pub programs: Option<BTreeSet<String>>,
    pub rule: Option<Arc<str>>,
    pub reason: Option<Arc<str>>,
    /// Whether the person in front of the calling client may approve it.
    pub client_may_approve: bool,
    /// What a rule for good would be about; none if not all programs are known, or one runs others.
    pub command: Option<KnownCommand>,
}

/// A command of which all is known, and who runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownCommand {
    pub line: Arc<str>,
    /// Of the caller.
    pub tenant: TenantId,
    /// The name of the caller's token.
    pub token: Option<Arc<str>>,
    /// The rules that ask.
    pub asked_by: Vec<Arc<str>>,
}

impl ApprovalRequest {
    /// Whether it is asked for the same user, or with the same token, about the same place as another one.
    pub(super) fn is_asked_as(&self, other: &Self) -> bool {
        let is_one_user = self.user.is_some() && self.user == other.user;
        let is_one_asker = self.by.principal == other.by.principal
            || is_one_user && !self.is_operators && !other.is_operators;
        is_one_asker && (&self.tenant, self.session) == (&other.tenant, other.session)
    }

    /// Whether a call does the same, however it is written, and whichever connection makes it.
    pub(super) fn does_as(&self, other: &Self) -> bool {
        let runs = self.line.is_some() && self.session.is_some() && self.line == other.line;
        let is_same = self.fingerprint == other.fingerprint || self.what == other.what;
        self.is_asked_as(other) && self.tool == other.tool && (runs || is_same)
    }
}
