//! A running server, and what it has to answer.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::core::ids::Epoch;
use crate::core::mount::MountName;
use crate::mount::eras::ServerEra;
use crate::mount::error::MountError;
use crate::mount::handle::{CALLS_MAX, CallProgress, ServerCall};
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

pub(super) struct PendingCall {
    pub(super) call: ServerCall,
    pub(super) until: Instant,
    /// How much the server has asked during it.
    pub(super) asked: usize,
}

impl RunningServer {
    /// Cancels a call at the server.
    pub(super) fn cancel(&mut self, id: u64, call: &ServerCall) {
        self.draining.on_cancelled(id, call, Instant::now());
        self.end_questions(id);
        self.give_up(id);
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
        let of_former = |it: &PendingCall| it.call.under.is_some_and(|under| under.epoch < epoch);
        let former: Vec<u64> =
            self.pending.iter().filter(|(_, it)| of_former(it)).map(|(id, _)| *id).collect();
        for id in former {
            if let Some(PendingCall { call, .. }) = self.pending.remove(&id) {
                self.cancel(id, &call);
                let mount = mount.clone();
                let _ = call.reply.send(Err(MountError::LeaseEnded { mount }));
            }
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
