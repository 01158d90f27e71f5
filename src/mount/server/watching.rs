//! Has a server tell the changes of what clients watch, and of nothing else.

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::mount::error::MountError;
use crate::mount::handle::{MountShared, ServerNews};
use crate::mount::protocol::{ServerRefusal, notification, request};
use crate::mount::server::MountTask;
use crate::mount::server::asked::{AskedWatch, WatchStep};
use crate::mount::server::running::RunningServer;

impl MountTask {
    /// Asks the server for what is missing of what clients want.
    pub(super) fn ask_watches(&mut self, running: &mut RunningServer) {
        let wanted = self.shared.watches.addresses();
        for uri in &wanted {
            if running.watches.0.contains_key(uri) {
                continue;
            }
            let problem = match self.why_untold() {
                Some(problem) => Some(problem),
                None => self.ask_watch(running, uri, WatchStep::Subscribe).err(),
            };
            if let Some(problem) = problem {
                self.shared.watches.end(uri, problem);
            }
        }
        let is_unwanted = |(uri, asked): &(&Arc<str>, &AskedWatch)| {
            matches!(asked, AskedWatch::Told) && !wanted.contains(*uri)
        };
        let unwanted = running.watches.0.iter().filter(is_unwanted);
        let unwanted: Vec<Arc<str>> = unwanted.map(|(uri, _)| Arc::clone(uri)).collect();
        for uri in unwanted {
            // If it does not read now, it is asked with the next change.
            let _ = self.ask_watch(running, &uri, WatchStep::Unsubscribe);
        }
    }

    /// Why the server cannot be asked to tell changes, if it cannot.
    fn why_untold(&mut self) -> Option<MountError> {
        let mount = self.shared.name.clone();
        if self.has_other_tools() {
            return Some(MountError::Changed { mount });
        }
        let greeting = self.shared.view.borrow().greeting.clone();
        let tells = greeting.is_some_and(|it| it.tells(ServerNews::Updates));
        (!tells).then_some(MountError::Untold { mount })
    }

    fn ask_watch(
        &self,
        running: &mut RunningServer,
        uri: &Arc<str>,
        step: WatchStep,
    ) -> Result<(), MountError> {
        let id = self.shared.number();
        let sent = running.link.send(request(id, step.method(), json!({"uri": uri})));
        sent.map_err(|_| MountError::Busy { mount: self.shared.name.clone() })?;
        let until = Instant::now() + self.shared.settings.call_timeout;
        running.watches.0.insert(Arc::clone(uri), AskedWatch::Waiting { id, step, until });
        Ok(())
    }

    /// Takes an answer, if it is to a request for a watch; else gives it back.
    pub(super) fn on_watch_answer(
        &mut self,
        running: &mut RunningServer,
        id: u64,
        result: Result<Box<RawValue>, ServerRefusal>,
    ) -> Option<Result<Box<RawValue>, ServerRefusal>> {
        let Some((uri, step)) = running.watches.take(id) else { return Some(result) };
        let mount = self.shared.name.clone();
        match (step, result) {
            (WatchStep::Subscribe, Ok(_)) => {
                running.watches.0.insert(Arc::clone(&uri), AskedWatch::Told);
                self.shared.watches.on_told(&uri);
            }
            (WatchStep::Subscribe, Err(ServerRefusal { code, message })) => {
                self.shared.watches.end(&uri, MountError::Refused { mount, code, message });
            }
            // A server that goes on telling is not heard.
            (WatchStep::Unsubscribe, _) => {}
        }
        self.ask_watches(running);
        None
    }

    /// A request for a watch will not be answered; `false` if it is another one.
    pub(super) fn on_watch_lost(&self, running: &mut RunningServer, id: u64) -> bool {
        let Some((uri, step)) = running.watches.take(id) else { return false };
        if step == WatchStep::Subscribe {
            let mount = self.shared.name.clone();
            self.shared.watches.end(&uri, MountError::Restarted { mount });
        }
        true
    }

    /// The server has ended, and answers no more.
    pub(super) fn end_watches(&self, running: &RunningServer) {
        let error = MountError::Restarted { mount: self.shared.name.clone() };
        self.shared.watches.end_asked(&error, |uri| running.watches.0.contains_key(uri));
    }

    /// Gives up the requests for watches that have waited for long enough.
    pub(super) fn on_watch_time(&self, running: &mut RunningServer, now: Instant) {
        for (id, uri, step) in running.watches.take_overdue(now) {
            let params = json!({"requestId": id, "reason": "given up"});
            // A server that does not read is not told.
            let _ = running.link.send(notification("notifications/cancelled", &params));
            if step == WatchStep::Subscribe {
                let (mount, after) = (self.shared.name.clone(), self.shared.settings.call_timeout);
                self.shared.watches.end(&uri, MountError::TimedOut { mount, after });
            }
        }
    }
}

/// The server says that a resource has changed. What nobody watches is not heard.
pub(super) fn on_updated(shared: &MountShared, params: Option<&Value>) {
    if let Some(uri) = params.and_then(|params| params["uri"].as_str()) {
        shared.watches.on_changed(uri);
    }
}

/// Waits until the server is to start for those who watch its resources. After a failure it may start from then on; those
/// who are new are refused before.
pub(super) async fn watched(shared: &MountShared, may_start: Instant) {
    while !shared.watches.has_asked() {
        let is_watched = !shared.watches.is_empty();
        tokio::select! {
            () = sleep_until(may_start), if is_watched => return,
            () = shared.watches.changed() => {}
        }
    }
}
