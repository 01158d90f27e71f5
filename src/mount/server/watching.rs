//! Has a server tell the changes of what clients watch, and of nothing else.
//!
//! In the older era it is asked to subscribe to a resource, and to unsubscribe. In the newer one a request stays open for as
//! long as changes are told: one for each resource, and one for its lists.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep_until};

use crate::mount::declared::ServerNews;
use crate::mount::eras::{ServerEra, subscription};
use crate::mount::error::MountError;
use crate::mount::handle::MountShared;
use crate::mount::json::ExactJson;
use crate::mount::protocol::{ServerParams, ServerRefusal};
use crate::mount::server::MountTask;
use crate::mount::server::asked::{AskedWatch, WatchStep, WatchedThing};
use crate::mount::server::running::RunningServer;

/// How long to wait before a server that told no more is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// The news of lists that a server of the newer era is asked for, and their names there.
const LISTS: [(ServerNews, &str); 3] = [
    (ServerNews::Tools, "toolsListChanged"),
    (ServerNews::Resources, "resourcesListChanged"),
    (ServerNews::Prompts, "promptsListChanged"),
];

impl MountTask {
    /// Asks the server for what is missing of what clients want.
    pub(super) fn ask_watches(&mut self, running: &mut RunningServer) {
        if self.is_outdated() {
            // Its next start is asked.
            return;
        }
        let addresses = self.shared.watches.addresses().into_iter();
        let mut wanted: BTreeSet<WatchedThing> = addresses.map(WatchedThing::Resource).collect();
        if running.era == ServerEra::Newer && LISTS.iter().any(|(news, _)| self.is_told(*news)) {
            wanted.insert(WatchedThing::Lists);
        }
        for thing in &wanted {
            match (running.watches.asked.get(thing), thing) {
                (None, WatchedThing::Resource(_)) if self.waits_for_list(running) => continue,
                (None, _) => {}
                (Some(AskedWatch::Told { .. }), WatchedThing::Resource(uri)) => {
                    self.shared.watches.on_known(uri);
                    continue;
                }
                (Some(_), _) => continue,
            }
            let problem = match (self.why_untold(), thing) {
                (Some(problem), WatchedThing::Resource(_)) => Some(problem),
                (_, _) => self.subscribe(running, thing).err(),
            };
            if let Some(problem) = problem {
                self.end_watch(running, thing, problem);
            }
        }
        let is_told = |asked: &AskedWatch| matches!(asked, AskedWatch::Told { .. });
        for (thing, asked) in running.watches.find(is_told) {
            if !wanted.contains(&thing) {
                self.unsubscribe(running, thing, asked);
            }
        }
    }

    fn is_told(&self, news: ServerNews) -> bool {
        self.shared.view.borrow().greeting.as_ref().is_some_and(|it| it.declared.tells(news))
    }

    /// Why the server cannot be asked to tell changes of resources, if it cannot.
    fn why_untold(&self) -> Option<MountError> {
        let mount = self.shared.name.clone();
        if self.has_other_tools() {
            return Some(MountError::Changed { mount });
        }
        (!self.is_told(ServerNews::Updates)).then_some(MountError::Untold { mount })
    }

    fn subscribe(
        &self,
        running: &mut RunningServer,
        thing: &WatchedThing,
    ) -> Result<(), MountError> {
        let (method, params) = match (running.era, thing) {
            (ServerEra::Older, WatchedThing::Resource(uri)) => {
                ("resources/subscribe", json!({"uri": uri}))
            }
            (_, WatchedThing::Resource(uri)) => {
                ("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": [uri]}}))
            }
            (_, WatchedThing::Lists) => {
                let told = LISTS.into_iter().filter(|(news, _)| self.is_told(*news));
                let lists: Map<_, _> =
                    told.map(|(_, name)| (name.to_owned(), json!(true))).collect();
                ("subscriptions/listen", json!({"notifications": lists}))
            }
        };
        self.ask_watch(running, thing, (WatchStep::Subscribe, method, params))
    }

    fn unsubscribe(&self, running: &mut RunningServer, thing: WatchedThing, asked: AskedWatch) {
        match (asked, &thing) {
            (AskedWatch::Told { through: Some(id) }, _) => {
                running.watches.asked.remove(&thing);
                running.give_up(id);
            }
            (_, WatchedThing::Resource(uri)) => {
                let step = WatchStep::Unsubscribe;
                let asked = (step, "resources/unsubscribe", json!({"uri": uri}));
                // If it does not read now, it is asked with the next change.
                let _ = self.ask_watch(running, &thing, asked);
            }
            (_, WatchedThing::Lists) => {}
        }
    }

    fn ask_watch(
        &self,
        running: &mut RunningServer,
        thing: &WatchedThing,
        (step, method, params): (WatchStep, &str, Value),
    ) -> Result<(), MountError> {
        let id = self.shared.number();
        let mut params = to_raw_value(&params).map(|it| ServerParams::of(&it)).unwrap_or_default();
        let sent = running.link.send(running.era.request(id, method, &mut params));
        sent.map_err(|_| MountError::NotReading { mount: self.shared.name.clone() })?;
        let until = Instant::now() + self.shared.settings.call_timeout;
        running.watches.asked.insert(thing.clone(), AskedWatch::Waiting { id, step, until });
        Ok(())
    }

    /// Takes an answer, if it is to a request for a watch; else gives it back.
    pub(super) fn on_watch_answer(
        &mut self,
        running: &mut RunningServer,
        id: u64,
        result: Result<Box<RawValue>, ServerRefusal>,
    ) -> Option<Result<Box<RawValue>, ServerRefusal>> {
        let Some((thing, asked)) = running.watches.take(id) else { return Some(result) };
        let mount = self.shared.name.clone();
        match (asked, result) {
            (AskedWatch::Waiting { step: WatchStep::Subscribe, .. }, Ok(_)) => {
                match running.era {
                    ServerEra::Older => self.on_subscribed(running, &thing, None),
                    // It ends what it has not acknowledged.
                    ServerEra::Newer => {
                        self.end_watch(running, &thing, MountError::Untold { mount })
                    }
                }
            }
            (AskedWatch::Waiting { step: WatchStep::Subscribe, .. }, Err(refusal)) => {
                self.end_watch(running, &thing, self.refused(refusal));
            }
            (AskedWatch::Told { .. }, _) => self.pause(running, thing),
            // A server that goes on telling is not heard.
            (AskedWatch::Waiting { .. } | AskedWatch::Pausing { .. }, _) => {}
        }
        self.ask_watches(running);
        None
    }

    /// A server of the newer era tells what was asked from now on, as far as it says so.
    pub(super) fn on_acknowledged(
        &mut self,
        running: &mut RunningServer,
        params: Option<&ExactJson>,
    ) {
        let Some(params) = params else { return };
        let Some(id) = subscription(params) else { return };
        let Some((thing, _)) = running.watches.take(id) else { return };
        let told = params.get("notifications").and_then(|it| it.get("resourceSubscriptions"));
        let told = told.map(ExactJson::items).unwrap_or_default();
        let is_told = |uri: &str| told.iter().any(|it| it.as_text() == Some(uri));
        match &thing {
            WatchedThing::Resource(uri) if !is_told(uri) => {
                running.give_up(id);
                let mount = self.shared.name.clone();
                self.end_watch(running, &thing, MountError::Untold { mount });
            }
            WatchedThing::Resource(_) | WatchedThing::Lists => {
                self.on_subscribed(running, &thing, Some(id));
            }
        }
        self.ask_watches(running);
    }

    fn on_subscribed(
        &mut self,
        running: &mut RunningServer,
        thing: &WatchedThing,
        through: Option<u64>,
    ) {
        running.watches.asked.insert(thing.clone(), AskedWatch::Told { through });
        match thing {
            WatchedThing::Resource(uri) => self.shared.watches.on_told(uri),
            // They may have changed since they were read, or since they were told last.
            WatchedThing::Lists => {
                running.relisting.on_changed(Instant::now());
                if std::mem::replace(&mut running.watches.has_told_lists, true) {
                    self.on_list_changed(|changes| {
                        (changes.resources, changes.prompts) =
                            (changes.resources + 1, changes.prompts + 1);
                    });
                }
            }
        }
    }

    /// A request for a watch will not be answered; `false` if it is another one.
    pub(super) fn on_watch_lost(&self, running: &mut RunningServer, id: u64) -> bool {
        let Some((thing, asked)) = running.watches.take(id) else { return false };
        match asked {
            AskedWatch::Waiting { step: WatchStep::Subscribe, .. } => {
                let mount = self.shared.name.clone();
                self.end_watch(running, &thing, MountError::Restarted { mount });
            }
            AskedWatch::Told { .. } => self.pause(running, thing),
            AskedWatch::Waiting { .. } | AskedWatch::Pausing { .. } => {}
        }
        true
    }

    /// Has the server asked again, but not without end.
    fn pause(&self, running: &mut RunningServer, thing: WatchedThing) {
        self.shared.log.add(b"[termgate] it tells no more changes, and is asked again");
        let until = Instant::now() + PAUSE;
        running.watches.asked.insert(thing, AskedWatch::Pausing { until });
    }

    fn end_watch(&self, running: &mut RunningServer, thing: &WatchedThing, error: MountError) {
        match thing {
            WatchedThing::Resource(uri) => self.shared.watches.end(uri, error),
            WatchedThing::Lists => {
                self.shared
                    .log
                    .add(format!("[termgate] its lists are not told: {error}").as_bytes());
                // It is not asked again before its next start.
                let told = AskedWatch::Told { through: None };
                running.watches.asked.insert(thing.clone(), told);
            }
        }
    }

    /// The server has ended, and answers no more.
    pub(super) fn end_watches(&self, running: &RunningServer) {
        let error = MountError::Restarted { mount: self.shared.name.clone() };
        self.shared.watches.end_asked(&error, |uri| running.watches.has(uri));
    }

    /// Gives up the requests for watches that have waited for long enough, and makes those that have paused.
    pub(super) fn on_watch_time(&mut self, running: &mut RunningServer, now: Instant) {
        let is_due = |asked: &AskedWatch| asked.deadline().is_some_and(|until| until <= now);
        let due = running.watches.find(is_due);
        for (thing, asked) in &due {
            running.watches.asked.remove(thing);
            let AskedWatch::Waiting { id, step, .. } = asked else { continue };
            running.give_up(*id);
            if *step == WatchStep::Subscribe {
                let (mount, after) = (self.shared.name.clone(), self.shared.settings.call_timeout);
                self.end_watch(running, thing, MountError::TimedOut { mount, after });
            }
        }
        if !due.is_empty() {
            self.ask_watches(running);
        }
    }
}

/// The server says that a resource has changed. What nobody watches is not heard.
pub(super) fn on_updated(shared: &MountShared, params: Option<&ExactJson>) {
    if let Some(uri) = params.and_then(|params| params.get("uri")?.as_text()) {
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
