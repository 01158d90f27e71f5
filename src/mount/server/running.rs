//! A running server, and what it has to answer.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::core::ids::Epoch;
use crate::core::mount::MountName;
use crate::mount::eras::ServerEra;
use crate::mount::error::MountError;
use crate::mount::handle::{CALLS_MAX, CallProgress, ServerCall};
use crate::mount::inputs::InputRound;
use crate::mount::link::ServerLink;
use crate::mount::protocol::notification;
use crate::mount::server::asked::AskedWatches;
use crate::mount::server::draining::Draining;
use crate::mount::server::greeting::Listing;
use crate::mount::server::questions::OpenQuestions;

/// A running server with the calls that it has to answer.
pub(super) struct RunningServer {
    pub(super) link: ServerLink,
    pub(super) era: ServerEra,
    pub(super) pending: BTreeMap<u64, PendingCall>,
    /// The calls that were cancelled, and those that wait for them.
    pub(super) draining: Draining,
    /// What it has asked.
    pub(super) questions: OpenQuestions,
    /// The number of this start of the server.
    pub(super) generation: u64,
    pub(super) listing: Option<Listing>,
    /// The resources whose changes it was asked to tell.
    pub(super) watches: AskedWatches,
    /// When it was last asked something.
    pub(super) used: Instant,
}

/// A call that the server has to answer.
pub(super) struct PendingCall {
    pub(super) call: ServerCall,
    pub(super) until: Instant,
    /// The request that the server has to answer for it.
    pub(super) request: Option<u64>,
    /// How much the server has asked during it.
    pub(super) asked: usize,
    /// How often the server has asked with a result.
    pub(super) rounds: usize,
    /// What its client is to answer before the request is made again.
    pub(super) round: Option<InputRound>,
}

impl PendingCall {
    pub(super) fn new(call: ServerCall) -> Self {
        let until = Instant::now();
        Self { call, until, request: None, asked: 0, rounds: 0, round: None }
    }

    /// Whether it waits for nothing but its client.
    pub(super) fn is_asking(&self) -> bool {
        self.request.is_none()
    }
}

impl RunningServer {
    /// The call that has this request.
    pub(super) fn call_of(&self, request: u64) -> Option<u64> {
        let found = self.pending.iter().find(|(_, it)| it.request == Some(request));
        found.map(|(call, _)| *call)
    }

    /// Takes the call that has this request, which is answered, or will not be.
    pub(super) fn take_answered(&mut self, request: u64) -> Option<PendingCall> {
        let mut pending = self.pending.remove(&self.call_of(request)?)?;
        pending.request = None;
        Some(pending)
    }

    /// Ends a call: what it still has at the server is cancelled, and what the server has asked during it is taken back.
    pub(super) fn end_call(
        &mut self,
        pending: PendingCall,
        answer: Result<Box<RawValue>, MountError>,
    ) {
        let PendingCall { call, request, .. } = pending;
        if let Some(request) = request {
            self.draining.on_cancelled(request, &call, Instant::now());
        }
        self.end_questions(call.id);
        if let Some(request) = request {
            self.give_up(request);
        }
        // Whoever has gone needs no answer.
        let _ = call.reply.send(answer);
    }

    /// Gives up a request.
    pub(super) fn give_up(&self, id: u64) {
        let params = json!({"requestId": id, "reason": "given up"});
        // A server that does not read is not told.
        let _ = self.link.send(notification("notifications/cancelled", &params));
    }

    /// Whether there is room for another call.
    pub(super) fn has_room(&self) -> bool {
        self.pending.len() + self.draining.waiting() < CALLS_MAX
    }

    /// Cancels the calls of earlier holders.
    pub(super) fn cancel_before(&mut self, epoch: Epoch, mount: &MountName) {
        let is_former = |it: &PendingCall| it.call.under.is_some_and(|under| under.epoch < epoch);
        let former = self.pending.extract_if(.., |_, pending| is_former(pending));
        let former: Vec<PendingCall> = former.map(|(_, pending)| pending).collect();
        for pending in former {
            self.end_call(pending, Err(MountError::LeaseEnded { mount: mount.clone() }));
        }
    }

    /// Hands a server's progress to the caller, unless it is behind.
    pub(super) fn on_progress(&self, params: Option<Value>) {
        let Some(Value::Object(mut members)) = params else { return };
        let id = members.remove("progressToken").and_then(|token| token.as_u64());
        let progress = id
            .and_then(|id| self.pending.get(&id))
            .and_then(|pending| pending.call.progress.as_ref());
        if let Some(progress) = progress {
            let _ = progress.try_send(CallProgress { members });
        }
    }
}
