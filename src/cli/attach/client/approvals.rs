//! The calls that wait for an approval, which the person lets pass or denies with a key.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cli::attach::asked_call::{CallExtent, CallPage, DecisionKey, DrawnCall};
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
    /// The one that the person sees.
    drawn: DrawnCall,
}

impl WaitingApprovals {
    fn on_told(&mut self, calls: Vec<ApprovalWire>, now: Instant) {
        let first = calls.iter().map(|call| call.expires_in_ms).min();
        self.due = first.map(|left| now + Duration::from_millis(left));
        self.calls = calls;
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
        let calls = ApprovalList::deserialize(list).map_or_else(|_| Vec::new(), |it| it.approvals);
        self.approvals.on_told(calls, Instant::now());
    }

    /// The first call in this session that waits.
    pub(super) fn waiting_here(&self) -> Option<&ApprovalWire> {
        let here = |call: &&ApprovalWire| call.session.as_ref() == Some(&self.view.session);
        self.approvals.calls.iter().find(here)
    }

    /// The page of that call to which the person has turned; none once another call waits.
    pub(super) fn turned_page(&mut self) -> Option<CallPage> {
        let index = self.carried.chords.call_page()?;
        let call = self.waiting_here().filter(|call| self.approvals.drawn.is(&call.approval_id));
        let page = call.and_then(|call| CallPage::of(call, index, self.room()));
        if page.is_none() {
            self.carried.chords.uncover();
        }
        page
    }

    /// Closes the call. With another size its pages have other parts of it.
    pub(super) fn close_call(&mut self) {
        if self.carried.chords.call_page().is_some() {
            self.carried.chords.uncover();
        }
    }

    /// Notes how much of which call the new picture shows.
    pub(super) fn note_drawn(&mut self, extent: CallExtent, now: Instant) {
        let id = self.waiting_here().map(|call| call.approval_id.clone());
        self.approvals.drawn.on_drawn(id.as_deref(), extent, now);
    }

    /// Lets the call pass that the person sees, or denies it.
    pub(super) fn decide(&mut self, grants: bool) -> Result<(), CliFailure> {
        let id = match self.approvals.drawn.on_key(grants, Instant::now()) {
            DecisionKey::Decides(id) => id,
            DecisionKey::Shows(page) => {
                self.carried.chords.show_call(page);
                return Ok(());
            }
            DecisionKey::TooSoon => {
                self.tell("another call is shown now: press again", NoticeReason::News);
                return Ok(());
            }
            DecisionKey::NothingWaits => {
                self.tell("nothing waits for an approval here", NoticeReason::News);
                return Ok(());
            }
        };
        let arguments = json!({"approval_id": id});
        let tool = if grants { "approve" } else { "deny" };
        self.carried.chords.uncover();
        self.ask(Purpose::Decide, "tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Tells what became of a decision.
    pub(super) fn on_decided(&mut self, answer: &Value) {
        let text = answer["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        self.tell(text, NoticeReason::News);
    }
}
