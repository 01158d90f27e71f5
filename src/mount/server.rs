//! The task of a mount: it starts the server when it is needed, relays calls, and ends it.

mod answering;
mod asked;
mod asking;
mod calling;
mod draining;
mod greeting;
mod inputs;
mod learning;
mod links;
mod logging;
mod questions;
mod relisting;
mod roots;
mod running;
mod starting;
mod tasks;
mod watching;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use crate::core::burst::Burst;
use crate::core::ids::LeaseId;
use crate::core::moment::Moment;
use crate::core::mount::restarts::Restarts;
use crate::mount::definitions::{AcceptedTools, ToolSet};
use crate::mount::error::MountError;
use crate::mount::handle::{
    ListChanges, MountCommand, MountShared, MountStatus, ServerCall, stopping,
};
use crate::mount::json::ExactJson;
use crate::mount::link::lines::{FromServer, LostAnswer};
use crate::mount::link::{ServerAddress, ServerLink};
use crate::mount::protocol::{ServerMessage, notification, parse};
use crate::mount::server::asked::AskedWatches;
use crate::mount::server::draining::Draining;
use crate::mount::server::links::SentLinks;
use crate::mount::server::logging::{LOGGED_AT_ONCE, LOGGED_ONE_MORE};
use crate::mount::server::questions::OpenQuestions;
use crate::mount::server::relisting::Relisting;
use crate::mount::server::roots::RootsNews;
use crate::mount::server::running::{PendingCall, RunningServer};
use crate::mount::server::watching::{on_updated, watched};

/// How many messages of a server are read before calls and times have their turn: a server may write without a pause.
const READ_IN_A_ROW: usize = 32;

/// Far enough away for a task that waits for nothing.
const NEVER: Duration = Duration::from_secs(86_400);

/// The task of one mount.
pub(crate) struct MountTask {
    pub(crate) shared: Arc<MountShared>,
    pub(crate) commands: mpsc::Receiver<MountCommand>,
    /// How to reach the server, or why that cannot work.
    pub(crate) address: Result<ServerAddress, String>,
    pub(crate) accepted: AcceptedTools,
    /// Changes when clients see other tools.
    pub(crate) lists: watch::Sender<u64>,
    /// Changes when clients see other resources or prompts.
    pub(crate) contents: watch::Sender<u64>,
    pub(crate) restarts: Restarts,
    pub(crate) begun: Instant,
    /// The lease under which the server was last called, and which start of it that was.
    pub(crate) relied: Option<(LeaseId, u64)>,
    /// The tools that this server lists.
    pub(crate) listed: Option<Arc<ToolSet>>,
    /// The accepted tools that they were compared with last, and whether they differ.
    pub(crate) compared: Option<(Arc<ToolSet>, bool)>,
}

/// Why a server is not to run any longer.
enum ServerEnd {
    /// The mount is removed, or the daemon ends.
    Stopped,
    Idle,
    Restart,
    Failed(String),
}

impl MountTask {
    /// Runs until the mount is stopped.
    pub(crate) async fn run(mut self) {
        self.run_on().await;
        self.shared.watches.end_all(&stopping(self.shared.name.clone()));
    }

    async fn run_on(&mut self) {
        loop {
            let wait = self.restarts.may_start(self.now()).err().unwrap_or_default();
            let may_start = Instant::now() + wait;
            let command = tokio::select! {
                biased;
                () = self.shared.stop.cancelled() => return,
                () = self.shared.restart.notified() => {
                    self.restarts.on_reset();
                    Some(MountCommand::Learn)
                }
                command = self.commands.recv() => command,
                () = watched(&self.shared, may_start) => Some(MountCommand::Learn),
                // Nobody can call a server whose tools nobody knows.
                () = sleep_until(may_start), if self.is_to_be_learned() => {
                    Some(MountCommand::Learn)
                }
            };
            let mut first = None;
            match command {
                None => return,
                Some(MountCommand::Call(call)) => first = Some(call),
                Some(MountCommand::Learn) => {}
                Some(MountCommand::Accept(digest, reply)) => {
                    self.accept(digest.as_deref(), reply);
                    continue;
                }
            }
            // Whoever gave up before its server started asks it nothing.
            if first.as_ref().is_some_and(|call| call.reply.is_closed()) {
                continue;
            }
            while let ServerEnd::Restart = self.run_once(&mut first).await {
                self.restarts.on_reset();
            }
        }
    }

    /// Whether the server failed before anybody knew its tools, and may do better.
    fn is_to_be_learned(&self) -> bool {
        let has_failed = self.shared.view.borrow().problem.is_some();
        has_failed && self.address.is_ok() && self.shared.tools.borrow().accepted.is_none()
    }

    fn now(&self) -> Moment {
        Moment::from_boot(self.begun.elapsed())
    }

    /// Starts the server and serves until it ends. A call for which it did not start in the end stays where it is.
    async fn run_once(&mut self, first: &mut Option<ServerCall>) -> ServerEnd {
        if let Err(wait) = self.restarts.may_start(self.now()) {
            let problem = self.shared.view.borrow().problem.clone();
            let problem = problem.unwrap_or_else(|| "it failed".to_owned());
            self.refuse(first.take(), &problem, Some(wait));
            return ServerEnd::Idle;
        }
        self.restarts.on_start(self.now());
        let generation = self.restarts.generation();
        self.shared.view.send_modify(|view| {
            (view.status, view.generation) = (MountStatus::Starting, generation);
        });
        let ended = match self.start(self.told_capabilities(first.as_ref())).await {
            Ok(link) => self.serve(link, first.take()).await,
            Err(end) => {
                if let ServerEnd::Failed(problem) = &end {
                    self.refuse(first.take(), problem, None);
                }
                end
            }
        };
        let problem = match &ended {
            ServerEnd::Failed(problem) => {
                self.restarts.on_failure(self.now());
                tracing::warn!(mount = %self.shared.name, problem, "a mounted server failed");
                self.shared.log.add(format!("[termgate] {problem}").as_bytes());
                Some(problem.clone())
            }
            ServerEnd::Stopped | ServerEnd::Idle | ServerEnd::Restart => None,
        };
        self.shared.view.send_modify(|view| {
            (view.status, view.pid, view.problem) = (MountStatus::Stopped, None, problem);
        });
        ended
    }

    fn refuse(&self, call: Option<ServerCall>, problem: &str, retry_after: Option<Duration>) {
        let (mount, problem) = (self.shared.name.clone(), problem.to_owned());
        let error = MountError::Unavailable { mount, problem, retry_after };
        self.shared.watches.end_asked(&error, |_| true);
        if let Some(call) = call {
            // Whoever has gone needs no answer.
            let _ = call.reply.send(Err(error));
        }
    }

    async fn serve(&mut self, link: ServerLink, first: Option<ServerCall>) -> ServerEnd {
        let pid = link.pid();
        self.shared.view.send_modify(|view| {
            (view.status, view.pid, view.problem) = (MountStatus::Running, pid, None);
        });
        let (pending, used) = (BTreeMap::new(), Instant::now());
        let generation = self.restarts.generation();
        let (draining, questions) = (Draining::default(), OpenQuestions::default());
        let greeting = self.shared.view.borrow().greeting.clone();
        let era = greeting.map(|it| it.era).unwrap_or_default();
        let mut running = RunningServer {
            shared: Arc::clone(&self.shared),
            link,
            era,
            pending,
            draining,
            questions,
            links: SentLinks::default(),
            roots: RootsNews::new(),
            generation,
            relisting: Relisting::new(used),
            watches: AskedWatches::default(),
            logged: Burst::new(LOGGED_AT_ONCE, LOGGED_ONE_MORE),
            used,
            read: 0,
        };
        if let Some(call) = first {
            self.begin(&mut running, call);
        }
        self.ask_watches(&mut running);
        let end = loop {
            if let Some(end) = self.step(&mut running).await {
                break end;
            }
            for call in running.draining.take_ready() {
                self.begin(&mut running, call);
            }
        };
        for PendingCall { call, .. } in std::mem::take(&mut running.pending).into_values() {
            let mount = self.shared.name.clone();
            let _ = call.reply.send(Err(MountError::Restarted { mount }));
        }
        // Those that wait were not sent; the next start of the server has lost what they rely on.
        for call in running.draining.take_all() {
            let mount = self.shared.name.clone();
            let _ = call.reply.send(Err(MountError::StateLost { mount }));
        }
        self.end_watches(&running);
        running.link.end().await;
        end
    }

    /// Waits for one thing to happen, and acts on it. Returns why the server is to end, if it is.
    async fn step(&mut self, running: &mut RunningServer) -> Option<ServerEnd> {
        let deadline = self.deadline(running);
        let shared = Arc::clone(&self.shared);
        let reads = running.read < READ_IN_A_ROW;
        running.read = if reads { running.read + 1 } else { 0 };
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => Some(ServerEnd::Stopped),
            () = shared.restart.notified() => Some(ServerEnd::Restart),
            () = shared.gave_up.notified() => {
                self.cancel_given_up(running);
                None
            }
            () = shared.watches.changed() => {
                self.ask_watches(running);
                None
            }
            answered = running.questions.next() => {
                self.on_client_answer(running, answered);
                None
            }
            () = running.roots.next() => {
                let changed = notification("notifications/roots/list_changed", &json!({}));
                // A server that does not read asks for them when it does.
                let _ = running.link.send(changed);
                None
            }
            read = running.link.next(), if reads => self.on_read(running, read),
            command = self.commands.recv(), if running.has_room() => match command {
                None => Some(ServerEnd::Stopped),
                Some(MountCommand::Call(call)) => {
                    self.begin(running, call);
                    None
                }
                Some(MountCommand::Learn) => None,
                Some(MountCommand::Accept(digest, reply)) => {
                    self.accept(digest.as_deref(), reply);
                    None
                }
            },
            () = sleep_until(deadline) => self.on_time(running),
            () = yield_now(), if !reads => None,
        }
    }

    /// When the next call times out, or the server has been idle for long enough.
    fn deadline(&self, running: &RunningServer) -> Instant {
        let first = running.pending.values().map(PendingCall::deadline).min();
        let others = running.draining.deadline().into_iter().chain(running.watches.deadline());
        let first = first.into_iter().chain(others).min();
        let idle = self.shared.settings.idle_stop;
        let idle = if idle.is_zero() { NEVER } else { idle };
        let first = first.unwrap_or_else(|| running.used + idle);
        running.relisting.deadline().map_or(first, |at| at.min(first))
    }

    fn on_time(&mut self, running: &mut RunningServer) -> Option<ServerEnd> {
        let now = Instant::now();
        let was_listing = self.on_list_time(running, now);
        let was_waiting =
            running.draining.deadline().is_some() || running.watches.deadline().is_some();
        running.draining.on_time(now);
        self.on_watch_time(running, now);
        let was_overdue = self.on_call_time(running, now);
        if was_listing || was_waiting || was_overdue || !running.pending.is_empty() {
            return None;
        }
        let is_watched = !self.shared.watches.is_empty();
        if self.shared.settings.idle_stop.is_zero() || self.shared.fence.is_held() || is_watched {
            // Its holder relies on its state, and those who watch its resources on its news.
            running.used = now;
            return None;
        }
        Some(ServerEnd::Idle)
    }

    fn on_read(&mut self, running: &mut RunningServer, read: FromServer) -> Option<ServerEnd> {
        let (line, within) = match read {
            FromServer::Line(line) => (line, None),
            FromServer::Within { request, line } => (line, Some(request)),
            FromServer::Closed(problem) => return Some(ServerEnd::Failed(problem)),
            FromServer::Lost { request, problem } => {
                self.on_lost(running, request, &problem);
                return None;
            }
        };
        match parse(&line) {
            None => {
                self.shared.log.add(&[b"[termgate] no message: ", &line[..]].concat());
                None
            }
            Some(ServerMessage::Asks(request)) => {
                self.on_asked(running, within, request);
                None
            }
            Some(ServerMessage::Tells { method, params }) => {
                self.on_told(running, within, (&method, params));
                None
            }
            Some(ServerMessage::Answer { id, result }) => {
                if let Some(listing) = running.relisting.take(id) {
                    self.on_listed(running, listing, result);
                    return None;
                }
                let result = self.on_watch_answer(running, id, result)?;
                running.draining.on_answered(id);
                self.on_answer(running, id, result);
                None
            }
        }
    }

    /// A request will not be answered.
    fn on_lost(&self, running: &mut RunningServer, id: u64, problem: &LostAnswer) {
        if running.relisting.take(id).is_some() {
            self.on_not_listed(running, &problem.to_string());
        } else if !self.on_watch_lost(running, id) {
            self.on_call_lost(running, id, problem);
        }
    }

    fn on_told(
        &mut self,
        running: &mut RunningServer,
        within: Option<u64>,
        (method, params): (&str, Option<ExactJson>),
    ) {
        match method {
            "notifications/progress" => running.on_progress(params),
            "notifications/resources/updated" => on_updated(&self.shared, params.as_ref()),
            "notifications/resources/list_changed" => {
                self.on_list_changed(|changes| changes.resources += 1);
            }
            "notifications/prompts/list_changed" => {
                self.on_list_changed(|changes| changes.prompts += 1);
            }
            "notifications/cancelled" => running.on_cancelled(params.as_ref()),
            "notifications/elicitation/complete" => running.links.on_followed(params.as_ref()),
            "notifications/message" => self.on_logged(running, within, params),
            "notifications/tools/list_changed" => running.relisting.on_changed(Instant::now()),
            "notifications/subscriptions/acknowledged" => {
                self.on_acknowledged(running, params.as_ref());
            }
            _ => {}
        }
    }

    fn on_list_changed(&self, count: impl FnOnce(&mut ListChanges)) {
        self.shared.view.send_modify(|view| count(&mut view.changes));
        self.contents.send_modify(|count| *count += 1);
    }
}
