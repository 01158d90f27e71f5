//! The calls that wait for an approval, which the person lets pass or denies with a key.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cli::attach::client::Desk;
use crate::cli::attach::notice::NoticeReason;
use crate::cli::attach::requests::Purpose;
use crate::cli::failure::CliFailure;
use crate::wire::policy::{ApprovalList, ApprovalWire};

/// The resource that changes when an approval is asked for or decided.
const APPROVALS: &str = "termgate://approvals";

/// The calls that wait, as far as the daemon told.
#[derive(Debug, Default)]
pub(super) struct WaitingApprovals {
    calls: Vec<ApprovalWire>,
    /// When the first of them expires.
    due: Option<Instant>,
}

impl WaitingApprovals {
    fn of(list: ApprovalList, now: Instant) -> Self {
        let calls = list.approvals;
        let first = calls.iter().map(|call| call.expires_in_ms).min();
        Self { due: first.map(|left| now + Duration::from_millis(left)), calls }
    }

    /// When to ask for them again.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whether one has expired that was told, which is said once.
    pub(super) fn are_old(&mut self, now: Instant) -> bool {
        self.due.take_if(|due| *due <= now).is_some()
    }
}

impl Desk<'_> {
    /// Asks to be told of calls that wait. An older daemon knows none.
    pub(super) fn follow_approvals(&mut self) -> Result<(), CliFailure> {
        self.ask(Purpose::FollowApprovals, "resources/subscribe", &json!({"uri": APPROVALS}))
    }

    pub(super) fn ask_for_approvals(&mut self) -> Result<(), CliFailure> {
        let call = json!({"name": "list_approvals", "arguments": {}});
        self.ask(Purpose::Approvals, "tools/call", &call)
    }

    pub(super) fn on_approvals(&mut self, list: &Value) {
        let list = ApprovalList::deserialize(list).ok();
        let waiting = |list| WaitingApprovals::of(list, Instant::now());
        self.approvals = list.map(waiting).unwrap_or_default();
    }

    /// The oldest call in this session that waits.
    pub(super) fn waiting_here(&self) -> Option<&ApprovalWire> {
        let here = |call: &&ApprovalWire| call.session.as_ref() == Some(&self.view.session);
        self.approvals.calls.iter().find(here)
    }

    /// Lets that call pass, or denies it.
    pub(super) fn decide(&mut self, grants: bool) -> Result<(), CliFailure> {
        let Some(call) = self.waiting_here() else {
            self.tell("nothing waits for an approval here", NoticeReason::News);
            return Ok(());
        };
        let arguments = json!({"approval_id": call.approval_id});
        let tool = if grants { "approve" } else { "deny" };
        self.ask(Purpose::Decide, "tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Tells what became of a decision.
    pub(super) fn on_decided(&mut self, answer: &Value) {
        let text = answer["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        self.tell(text, NoticeReason::News);
    }
}
