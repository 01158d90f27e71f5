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
mod reading;
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
use crate::mount::error::MountError;
use crate::mount::handle::{
    MountCommand, MountShared, MountStatus, STOPPING, ServerCall, ServerPause, stopping,
};
use crate::mount::link::{ServerAddress, ServerLink};
use crate::mount::pinned::{ListedTools, MountTools};
use crate::mount::protocol::notification;
use crate::mount::server::asked::AskedWatches;
use crate::mount::server::draining::Draining;
use crate::mount::server::links::SentLinks;
use crate::mount::server::logging::{LOGGED_AT_ONCE, LOGGED_ONE_MORE};
use crate::mount::server::questions::OpenQuestions;
use crate::mount::server::relisting::Relisting;
use crate::mount::server::roots::RootsNews;
use crate::mount::server::running::{PendingCall, RunningServer};
use crate::mount::server::watching::watched;

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
    /// Changes when clients see other resources or prompts.
    pub(crate) contents: watch::Sender<u64>,
    pub(crate) restarts: Restarts,
    pub(crate) begun: Instant,
    /// The lease under which the server was last called, and which start of it that was.
    pub(crate) relied: Option<(LeaseId, u64)>,
    /// What the server that ended last wrote last to standard error.
    pub(crate) last_line: Option<String>,
    /// The tools that this server lists.
    pub(crate) listed: Option<ListedTools>,
    /// Changes when others may have been accepted.
    pub(crate) tools_news: watch::Receiver<MountTools>,
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
        let stopped = stopping(self.shared.name.clone());
        self.shared.watches.end_all(&stopped);
        // Nothing of what still waits was sent.
        self.commands.close();
        while let Ok(command) = self.commands.try_recv() {
            if let MountCommand::Call(call) = command {
                // Whoever has gone needs no answer.
                let _ = call.reply.send(Err(stopped.clone()));
            }
        }
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
                () = sleep_until(may_start), if self.shared.view.borrow().retries => {
                    Some(MountCommand::Learn)
                }
            };
            let mut first = None;
            match command {
                None => return,
                Some(MountCommand::Call(call)) => first = Some(call),
                Some(MountCommand::Learn) => {}
            }
            // Whoever gave up before its server started asks it nothing.
            if first.as_ref().is_some_and(|call| call.reply.is_closed()) {
                continue;
            }
            loop {
                match self.run_once(&mut first).await {
                    ServerEnd::Restart => self.restarts.on_reset(),
                    // The call was not made yet.
                    ServerEnd::Idle | ServerEnd::Failed(_) if first.is_some() => {}
                    ServerEnd::Stopped | ServerEnd::Idle | ServerEnd::Failed(_) => break,
                }
            }
        }
    }

    /// Whether the server is started without a call after it has failed: nobody knows its tools, and it may do better.
    fn may_retry(&self) -> bool {
        self.address.is_ok() && self.shared.tools.known().accepted.is_none()
    }

    fn now(&self) -> Moment {
        Moment::from_boot(self.begun.elapsed())
    }

    /// Starts the server and serves until it ends. A call that it was neither asked nor refused for stays where it is.
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
        let started = self.start(self.told_capabilities(first.as_ref())).await;
        let has_started = started.is_ok();
        let ended = match started {
            Ok(started) => self.serve(started, first).await,
            Err(end) => end,
        };
        self.shared.tools.on_ended(self.shared.server);
        let mut pause = None;
        let problem = match &ended {
            ServerEnd::Failed(problem) => {
                self.restarts.on_failure(self.now());
                let (since, wait) = (Instant::now(), self.restarts.may_start(self.now()));
                pause = Some(ServerPause { since, until: since + wait.err().unwrap_or_default() });
                tracing::warn!(mount = %self.shared.name, problem, "a mounted server failed");
                self.shared.log.add(format!("[termgate] {problem}").as_bytes());
                Some(problem.clone())
            }
            ServerEnd::Stopped | ServerEnd::Idle | ServerEnd::Restart => None,
        };
        let (last_line, retries) = (self.last_line.take(), problem.is_some() && self.may_retry());
        self.shared.view.send_modify(|view| {
            (view.status, view.pid, view.problem) = (MountStatus::Stopped, None, problem);
            (view.last_line, view.retries, view.unlisted) = (last_line, retries, None);
            view.pause = pause;
        });
        match &ended {
            ServerEnd::Failed(problem) if !has_started => self.refuse(first.take(), problem, None),
            ServerEnd::Stopped => self.refuse(first.take(), STOPPING, None),
            ServerEnd::Failed(_) | ServerEnd::Idle | ServerEnd::Restart => {}
        }
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

    async fn serve(
        &mut self,
        (link, relisting): (ServerLink, Relisting),
        first: &mut Option<ServerCall>,
    ) -> ServerEnd {
        let pid = link.pid();
        self.shared.view.send_modify(|view| {
            (view.status, view.pid, view.problem) = (MountStatus::Running, pid, None);
            (view.retries, view.pause) = (false, None);
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
            relisting,
            watches: AskedWatches::default(),
            logged: Burst::new(LOGGED_AT_ONCE, LOGGED_ONE_MORE),
            used,
            read: 0,
        };
        self.begin_first(&mut running, first);
        self.ask_watches(&mut running);
        let end = loop {
            let waited = self.waits_for_list(&running);
            if let Some(end) = self.step(&mut running).await {
                break end;
            }
            if self.is_outdated() && running.pending.is_empty() {
                self.shared.log.add(b"[termgate] other tools were accepted than it lists");
                break ServerEnd::Idle;
            }
            if waited && !self.waits_for_list(&running) {
                self.ask_watches(&mut running);
            }
            self.begin_first(&mut running, first);
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
        self.end_link(running.link).await;
        end
    }

    /// Makes the call for which the server was started, unless that waits.
    fn begin_first(&mut self, running: &mut RunningServer, first: &mut Option<ServerCall>) {
        if let Some(call) = first.take_if(|_| self.takes_calls(running)) {
            self.begin(running, call);
        }
    }

    /// Whether calls are made. What an outdated server is not asked any more waits for its next start.
    fn takes_calls(&self, running: &RunningServer) -> bool {
        running.has_room() && !self.is_outdated() && !self.waits_for_list(running)
    }

    /// Waits for one thing to happen, and acts on it. Returns why the server is to end, if it is.
    async fn step(&mut self, running: &mut RunningServer) -> Option<ServerEnd> {
        let deadline = self.deadline(running);
        let shared = Arc::clone(&self.shared);
        let reads = running.read < READ_IN_A_ROW;
        let takes = self.takes_calls(running);
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
            // It lives as long as the mount.
            _ = self.tools_news.changed() => {
                self.on_accepted();
                None
            }
            read = running.link.next(), if reads => self.on_read(running, read),
            command = self.commands.recv(), if takes => match command {
                None => Some(ServerEnd::Stopped),
                Some(MountCommand::Call(call)) => {
                    self.begin(running, call);
                    None
                }
                Some(MountCommand::Learn) => None,
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
        let is_relied_on =
            self.shared.fence.is_held() || is_watched || self.waits_for_list(running);
        if self.shared.settings.idle_stop.is_zero() || is_relied_on {
            // Its holder relies on its state, those who watch its resources on its news, and calls may wait for a list.
            running.used = now;
            return None;
        }
        Some(ServerEnd::Idle)
    }
}
