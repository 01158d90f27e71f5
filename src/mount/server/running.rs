//! A running server, and what it has to answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::core::burst::Burst;
use crate::core::ids::Epoch;
use crate::mount::eras::ServerEra;
use crate::mount::error::MountError;
use crate::mount::handle::{CALLS_MAX, CallNews, MountShared, ServerCall};
use crate::mount::inputs::InputRound;
use crate::mount::json::ExactJson;
use crate::mount::link::ServerLink;
use crate::mount::protocol::notification;
use crate::mount::server::asked::AskedWatches;
use crate::mount::server::draining::Draining;
use crate::mount::server::links::SentLinks;
use crate::mount::server::questions::OpenQuestions;
use crate::mount::server::relisting::Relisting;
use crate::mount::server::roots::RootsNews;
use crate::mount::tasks::CallTask;

/// A running server with the calls that it has to answer.
pub(super) struct RunningServer {
    pub(super) shared: Arc<MountShared>,
    pub(super) link: ServerLink,
    pub(super) era: ServerEra,
    pub(super) pending: BTreeMap<u64, PendingCall>,
    /// The calls that were cancelled, and those that wait for them.
    pub(super) draining: Draining,
    /// What it has asked.
    pub(super) questions: OpenQuestions,
    /// The links that it has sent people to.
    pub(super) links: SentLinks,
    /// The changes of roots that it has asked for.
    pub(super) roots: RootsNews,
    /// The number of this start of the server.
    pub(super) generation: u64,
    pub(super) relisting: Relisting,
    /// The resources whose changes it was asked to tell.
    pub(super) watches: AskedWatches,
    /// How many log messages clients are told.
    pub(super) logged: Burst,
    /// When it was last asked something.
    pub(super) used: Instant,
    /// How many messages were read since others had their turn.
    pub(super) read: usize,
}

/// A call that the server has to answer.
pub(super) struct PendingCall {
    pub(super) call: ServerCall,
    pub(super) until: Instant,
    /// The requests that the server has to answer for it.
    pub(super) requests: BTreeMap<u64, CallRequest>,
    /// How much the server has asked during it.
    pub(super) asked: usize,
    /// How often the server has asked with a result.
    pub(super) rounds: usize,
    /// What its client is to answer before the server goes on.
    pub(super) round: Option<InputRound>,
    /// The task as which the server runs it.
    pub(super) task: Option<CallTask>,
    /// Whether the server tells how far it has come.
    pub(super) has_progress: bool,
}

/// A request to the server for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallRequest {
    /// That of the call.
    Call,
    /// The same, which a server of the older era is to answer with a task.
    TaskCall,
    /// How the task is doing.
    TaskGet,
    /// The answers to what the task asks.
    TaskUpdate,
    /// The result of the task, which a server of the older era gives separately.
    TaskResult,
}

impl PendingCall {
    pub(super) fn new(call: ServerCall) -> Self {
        Self {
            call,
            until: Instant::now(),
            requests: BTreeMap::new(),
            asked: 0,
            rounds: 0,
            round: None,
            task: None,
            has_progress: false,
        }
    }

    /// When something is to be done about it.
    pub(super) fn deadline(&self) -> Instant {
        let poll_at = self.task.as_ref().and_then(|task| task.poll_at);
        poll_at.map_or(self.until, |at| at.min(self.until))
    }
}

impl RunningServer {
    /// The call that has this request.
    pub(super) fn call_of(&self, request: u64) -> Option<u64> {
        let found = self.pending.iter().find(|(_, it)| it.requests.contains_key(&request));
        found.map(|(call, _)| *call)
    }

    /// Takes the call that has this request, which is answered, or will not be.
    pub(super) fn take_answered(&mut self, request: u64) -> Option<(PendingCall, CallRequest)> {
        let mut pending = self.pending.remove(&self.call_of(request)?)?;
        let kind = pending.requests.remove(&request)?;
        Some((pending, kind))
    }

    /// Ends a call: what it still has at the server is cancelled, and what the server has asked during it is taken back.
    pub(super) fn end_call(
        &mut self,
        pending: PendingCall,
        answer: Result<Box<RawValue>, MountError>,
    ) {
        let PendingCall { call, requests, task, .. } = pending;
        let now = Instant::now();
        if let Some(task) = task {
            // It is over when the server says so, as an ordinary call is.
            let number = self.shared.number();
            self.draining.on_cancelled(number, &call, now);
            // A server that does not read is not told.
            let _ = self.link.send(self.era.request(number, "tasks/cancel", &mut task.params()));
        } else {
            requests.keys().for_each(|number| self.draining.on_cancelled(*number, &call, now));
        }
        self.end_questions(call.id);
        requests.keys().for_each(|number| self.give_up(*number));
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
    pub(super) fn cancel_before(&mut self, epoch: Epoch) {
        let is_former = |it: &PendingCall| it.call.under.is_some_and(|under| under.epoch < epoch);
        let former = self.pending.extract_if(.., |_, pending| is_former(pending));
        let former: Vec<PendingCall> = former.map(|(_, pending)| pending).collect();
        for pending in former {
            let mount = self.shared.name.clone();
            self.end_call(pending, Err(MountError::LeaseEnded { mount }));
        }
    }

    /// Hands a server's progress to the caller, unless it is behind.
    pub(super) fn on_progress(&mut self, params: Option<ExactJson>) {
        let Some(ExactJson::Object(mut members)) = params else { return };
        let id = members.remove("progressToken").and_then(|it| it.as_literal()?.parse().ok());
        let Some(pending) = id.and_then(|id: u64| self.pending.get_mut(&id)) else { return };
        pending.has_progress = true;
        if let Some(progress) = &pending.call.channels.progress {
            let _ = progress.try_send(CallNews::Progress(members));
        }
    }
}
