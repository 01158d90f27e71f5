//! How a call is passed on to the server, and cancelled there.

use std::collections::BTreeSet;
use std::mem;
use std::sync::{Arc, PoisonError};

use serde_json::json;
use tokio::time::Instant;
use uuid::Uuid;

use crate::core::ids::LeaseId;
use crate::core::mount::MountMode;
use crate::mount::eras::{LOG_LEVEL, LOGGED_FROM, ServerEra};
use crate::mount::error::MountError;
use crate::mount::fence::EpochGate;
use crate::mount::handle::ServerCall;
use crate::mount::json::ExactJson;
use crate::mount::json::reading::RepeatedNames;
use crate::mount::link::ServerAddress;
use crate::mount::link::lines::NotReading;
use crate::mount::mirrored::mirrored;
use crate::mount::protocol::TOOL_CALL;
use crate::mount::server::MountTask;
use crate::mount::server::running::{CallRequest, PendingCall, RunningServer};
use crate::mount::tasks::TASK_MAX;

/// Stands for the lease of the only client of a server.
const OF_CLIENT: LeaseId = LeaseId(Uuid::nil());

impl MountTask {
    /// Whether the holder of this lease, or the server's only client, has used an earlier start of the server. It is told
    /// so once.
    fn has_lost_state(&mut self, running: &RunningServer, lease: LeaseId) -> bool {
        let known = self.relied.replace((lease, running.generation));
        known.is_some_and(|(of, generation)| of == lease && generation != running.generation)
    }

    /// Passes a call on to the server.
    pub(super) fn begin(&mut self, running: &mut RunningServer, mut call: ServerCall) {
        if call.reply.is_closed() {
            return;
        }
        let mount = self.shared.name.clone();
        if self.has_other_tools() {
            let _ = call.reply.send(Err(MountError::Changed { mount }));
            return;
        }
        if let Some(under) = call.under {
            running.cancel_before(under.epoch);
            if running.draining.blocks(under.epoch) {
                running.draining.wait(call);
                return;
            }
        }
        // Lists, which clients ask for by themselves, are not where a client hears of a restart.
        let is_call = call.method == TOOL_CALL;
        let is_own = self.shared.settings.mode == MountMode::PerClient && is_call;
        let own = is_own.then_some(OF_CLIENT);
        let relies_on = call.under.map(|under| under.lease).or(own);
        if relies_on.is_some_and(|holder| self.has_lost_state(running, holder)) {
            let _ = call.reply.send(Err(MountError::StateLost { mount }));
            return;
        }
        let mut meta = mem::take(&mut call.channels.meta);
        if call.channels.progress.is_some() {
            meta.insert("progressToken".to_owned(), json!(call.id));
        }
        if let (ServerEra::Newer, Some((level, _))) = (running.era, &call.channels.log) {
            meta.insert(LOG_LEVEL.to_owned(), json!(level.min(&LOGGED_FROM)));
        }
        if !meta.is_empty() {
            call.params.set("_meta", &meta);
        }
        let mut kind = CallRequest::Call;
        if self.is_task(&call) {
            call.params.set("task", &json!({"ttl": TASK_MAX.as_millis() as u64}));
            kind = CallRequest::TaskCall;
        }
        let mut pending = PendingCall::new(call);
        let number = pending.call.id;
        let made = self.make_request(running, &mut pending, (number, kind));
        running.used = Instant::now();
        self.go_on(running, pending, made.map(|()| None));
    }

    /// Makes the request of a call, with the parameters that it has by now.
    pub(super) fn make_request(
        &self,
        running: &RunningServer,
        pending: &mut PendingCall,
        (number, kind): (u64, CallRequest),
    ) -> Result<(), MountError> {
        let call = &mut pending.call;
        let line = running.era.request(number, call.method, &mut call.params);
        if running.era == ServerEra::Older {
            // It is made once.
            call.params.clear();
        }
        self.send(running, pending, (number, kind, line))?;
        pending.until = pending.until.max(Instant::now() + self.shared.settings.call_timeout);
        Ok(())
    }

    /// Sends a request for a call, unless its lease is over.
    pub(super) fn send(
        &self,
        running: &RunningServer,
        pending: &mut PendingCall,
        (number, kind, line): (u64, CallRequest, Vec<u8>),
    ) -> Result<(), MountError> {
        let mount = || self.shared.name.clone();
        let headers = match kind {
            CallRequest::Call => self.headers(&pending.call),
            CallRequest::TaskCall
            | CallRequest::TaskGet
            | CallRequest::TaskUpdate
            | CallRequest::TaskResult => Vec::new(),
        };
        let sent = match pending.call.under {
            None => Some(running.link.send_call(line, None, headers)),
            Some(under) => {
                let fence = &self.shared.fence;
                let gate = Some(EpochGate::new(Arc::clone(fence), under.epoch));
                fence.pass(under.epoch, || running.link.send_call(line, gate, headers))
            }
        };
        match sent {
            Some(Ok(())) => {
                pending.requests.insert(number, kind);
                Ok(())
            }
            Some(Err(NotReading)) => Err(MountError::NotReading { mount: mount() }),
            None => Err(MountError::LeaseEnded { mount: mount() }),
        }
    }

    /// The tool that is called, as the server lists it.
    pub(super) fn listed_tool(&self, call: &ServerCall) -> Option<&Arc<ExactJson>> {
        self.listed.as_ref()?.tools.tools().get(&*call.params.text("name")?)
    }

    /// What a tool wants to be said of its arguments in headers, if there are headers.
    fn headers(&self, call: &ServerCall) -> Vec<(String, String)> {
        if !matches!(self.address, Ok(ServerAddress::Http(_))) || call.method != TOOL_CALL {
            return Vec::new();
        }
        let given = call.params.get("arguments");
        let given = given.and_then(|it| ExactJson::read(it, RepeatedNames::LeftOut).ok());
        let given = self.listed_tool(call).zip(given);
        given.map(|(tool, given)| mirrored(tool.get("inputSchema"), &given)).unwrap_or_default()
    }

    /// Cancels the calls that their callers have given up.
    pub(super) fn cancel_given_up(&self, running: &mut RunningServer) {
        let mut given_up = self.shared.given_up.lock().unwrap_or_else(PoisonError::into_inner);
        let given_up: BTreeSet<u64> = std::mem::take(&mut given_up);
        for id in given_up {
            if let Some(pending) = running.pending.remove(&id) {
                let mount = self.shared.name.clone();
                running.end_call(pending, Err(MountError::Restarted { mount }));
            }
        }
    }
}
