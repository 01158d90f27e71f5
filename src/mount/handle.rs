//! One server of a mount as others see it: what it is doing, and a way to ask it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::core::ids::ConnectionId;
use crate::core::moment::Moment;
use crate::core::mount::{MountName, MountSettings};
use crate::mount::asking::CallAsker;
use crate::mount::declared::{DeclaredCapabilities, ServerNews};
use crate::mount::definitions::LeftOut;
use crate::mount::eras::ServerEra;
use crate::mount::error::MountError;
use crate::mount::fence::{CallLease, Fence};
use crate::mount::json::ExactObject;
use crate::mount::log::{LogLevel, LogMessage, ServerLog};
use crate::mount::pinned::{PinnedTools, ServerNumber};
use crate::mount::protocol::ServerParams;
use crate::mount::shares::{ClientShare, ClientShares, MountClient};
use crate::mount::watches::{ResourceWatch, ResourceWatches, WatchState};

/// How many calls of one mount wait or run.
pub const CALLS_MAX: usize = 64;

/// How many of them one client may have.
pub const CALLS_OF_CLIENT_MAX: usize = CALLS_MAX / 2;

/// What the server of a mount is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MountStatus {
    /// It starts with the next call.
    #[default]
    Stopped,
    Starting,
    Running,
}

impl MountStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Starting => "starting",
            Self::Running => "running",
        }
    }
}

/// The state of a server.
#[derive(Clone, Debug, Default)]
pub struct MountView {
    pub status: MountStatus,
    pub pid: Option<u32>,
    /// How often its server was started by this daemon.
    pub generation: u64,
    /// What the server said when it was last greeted.
    pub greeting: Option<Arc<Greeting>>,
    /// Why it does not run, if it failed.
    pub problem: Option<String>,
    /// When it failed last, unless it has run since.
    pub pause: Option<ServerPause>,
    /// How often its lists have changed.
    pub changes: ListChanges,
    /// What clients are not told of its tools.
    pub left_out: LeftOut,
    /// The last line that it wrote to standard error before it failed. It is for operators: it may have secrets.
    pub last_line: Option<String>,
    /// Whether it is started again without a call, because it failed before its tools were known.
    pub retries: bool,
    /// Why it has not listed its tools again.
    pub unlisted: Option<String>,
    /// Until when clients' lists of this method hardly wait for it, because it did not answer one.
    pub late: BTreeMap<&'static str, Moment>,
}

/// The time in which a server that failed is not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerPause {
    pub since: Instant,
    pub until: Instant,
}

/// How often the lists of a server have changed, as far as it tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListChanges {
    pub resources: u64,
    pub prompts: u64,
}

impl MountView {
    /// What an operator should know: why it does not run, or else which of its lists it does not answer.
    pub fn problems(&self) -> Option<String> {
        let late = || {
            let methods: Vec<String> = self.late.keys().map(|it| format!("`{it}`")).collect();
            let methods = (!methods.is_empty()).then(|| methods.join(" and "))?;
            Some(format!("it does not answer {methods}, which clients get without its part"))
        };
        self.problem.clone().or_else(|| self.unlisted.clone()).or_else(late)
    }

    /// It was greeted. It tells nothing while it does not run, so that a list of which it tells the changes counts as
    /// changed. `kept` is what clients knew before this daemon greeted it.
    pub fn on_greeted(&mut self, greeting: Greeting, kept: Option<&DeclaredCapabilities>) {
        self.late.clear();
        let greeting = Arc::new(greeting);
        let before = self.greeting.replace(Arc::clone(&greeting));
        let before = before.as_ref().map(|it| &it.declared).or(kept);
        let now = &greeting.declared;
        let differs = |list| before.is_some_and(|it| it.has(list)) != now.has(list);
        let changed = |list, news| u64::from(differs(list) || now.tells(news));
        self.changes.resources += changed("resources", ServerNews::Resources);
        self.changes.prompts += changed("prompts", ServerNews::Prompts);
    }
}

/// What a server said of itself when it was greeted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Greeting {
    pub era: ServerEra,
    pub declared: DeclaredCapabilities,
    /// Whether its tools may be called as tasks, which servers of the newer era decide themselves.
    pub runs_tasks: bool,
    /// How it says that it is used, 4,096 bytes at most.
    pub instructions: Option<String>,
}

/// What a server tells while it works on a request.
#[derive(Clone, Debug, PartialEq)]
pub enum CallNews {
    /// How far it has come: the members of the notification, without the token.
    Progress(ExactObject),
    Logged(LogMessage),
}

/// What a server may tell and ask the caller while it works on a request, and what the caller tells it beside.
#[derive(Debug, Default)]
pub struct CallChannels {
    /// What of the caller's `_meta` is for the server.
    pub meta: Map<String, Value>,
    /// Where it tells how far it has come, if the caller wants to know.
    pub progress: Option<mpsc::Sender<CallNews>>,
    /// Where its log messages go from this level on, if the caller wants them.
    pub log: Option<(LogLevel, mpsc::Sender<CallNews>)>,
    /// Where it asks, if the caller can be asked.
    pub asker: Option<CallAsker>,
}

/// A request on its way to a server.
#[derive(Debug)]
pub struct ServerCall {
    pub id: u64,
    pub method: &'static str,
    pub params: ServerParams,
    pub channels: CallChannels,
    /// The lease that the call needs, and whose end cancels it.
    pub under: Option<CallLease>,
    pub reply: oneshot::Sender<Result<Box<RawValue>, MountError>>,
}

impl ServerCall {
    /// The client that made the call, if it can be asked.
    pub fn client(&self) -> Option<ConnectionId> {
        self.channels.asker.as_ref().map(|it| it.client)
    }
}

/// What a mount's task is asked to do.
#[derive(Debug)]
pub enum MountCommand {
    Call(ServerCall),
    /// Start the server so that its tools are known.
    Learn,
}

/// What the task of a mount and its callers share.
#[derive(Debug)]
pub struct MountShared {
    pub name: MountName,
    pub settings: MountSettings,
    pub view: watch::Sender<MountView>,
    pub tools: Arc<PinnedTools>,
    /// Which server of the mount it is.
    pub server: ServerNumber,
    /// The calls that wait or run.
    pub calls: AtomicUsize,
    /// How many calls each client has.
    pub shares: Arc<ClientShares>,
    pub log: ServerLog,
    /// Cancelled when the mount is removed or the daemon ends.
    pub stop: CancellationToken,
    /// The calls that were given up, and the news of it.
    pub given_up: Mutex<BTreeSet<u64>>,
    pub gave_up: Notify,
    /// An operator wants the server to start again, whatever it is doing.
    pub restart: Notify,
    pub fence: Arc<Fence>,
    /// The resources whose changes clients are told.
    pub watches: Arc<ResourceWatches>,
    /// The number of the next request to the server.
    numbers: AtomicU64,
}

impl MountShared {
    pub fn new(
        name: MountName,
        settings: MountSettings,
        tools: Arc<PinnedTools>,
        log: ServerLog,
    ) -> Self {
        let left_out = tools.known().accepted.map(|it| it.left_out().clone());
        let view = MountView { left_out: left_out.unwrap_or_default(), ..MountView::default() };
        Self {
            name,
            settings,
            view: watch::Sender::new(view),
            server: tools.number(),
            tools,
            calls: AtomicUsize::new(0),
            shares: Arc::default(),
            log,
            stop: CancellationToken::new(),
            given_up: Mutex::default(),
            gave_up: Notify::new(),
            restart: Notify::new(),
            fence: Arc::default(),
            watches: Arc::default(),
            numbers: AtomicU64::new(1),
        }
    }

    /// A number that no other request has.
    pub fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }
}

/// One server of a mount. Clones are the same one.
#[derive(Clone, Debug)]
pub struct MountServer {
    shared: Arc<MountShared>,
    commands: mpsc::Sender<MountCommand>,
}

impl MountServer {
    pub fn new(shared: Arc<MountShared>, commands: mpsc::Sender<MountCommand>) -> Self {
        Self { shared, commands }
    }

    /// What its task and its callers share.
    pub fn shared(&self) -> &Arc<MountShared> {
        &self.shared
    }

    pub fn view(&self) -> MountView {
        self.shared.view.borrow().clone()
    }

    /// How many calls wait or run.
    pub fn calls(&self) -> usize {
        self.shared.calls.load(Ordering::Relaxed)
    }

    /// Whether it refuses calls as far as is known: it pauses after a failure, or lists other tools than are accepted.
    pub fn refuses(&self) -> bool {
        let pause = self.shared.view.borrow().pause;
        let pauses = pause.is_some_and(|it| Instant::now() < it.until);
        pauses || self.shared.tools.known().is_proposed_by(self.shared.server)
    }

    /// Takes the place of one call of this client, which is to be held as long as its request.
    ///
    /// # Errors
    /// [`MountError::TooManyCalls`].
    pub fn place_for(&self, client: &MountClient) -> Result<ClientShare, MountError> {
        let MountShared { name, shares, .. } = &*self.shared;
        let most = CALLS_OF_CLIENT_MAX;
        let too_many = || MountError::TooManyCalls { mount: name.clone(), most };
        shares.take(client, most).ok_or_else(too_many)
    }

    /// Asks the server this, and starts it if need be. Dropping this cancels the request.
    ///
    /// # Errors
    /// [`MountError`]; only after those of [`MountError::had_effect`] the request may have had an effect.
    pub async fn request(
        &self,
        method: &'static str,
        params: ServerParams,
        channels: CallChannels,
        under: Option<CallLease>,
    ) -> Result<Box<RawValue>, MountError> {
        let mount = || self.shared.name.clone();
        let (reply, answer) = oneshot::channel();
        let id = self.shared.number();
        let call = ServerCall { id, method, params, channels, under, reply };
        let mut given_up = GivenUp { shared: &self.shared, id, is_answered: true };
        self.shared.calls.fetch_add(1, Ordering::Relaxed);
        self.commands.try_send(MountCommand::Call(call)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => MountError::Busy { mount: mount() },
            mpsc::error::TrySendError::Closed(_) => stopping(mount()),
        })?;
        given_up.is_answered = false;
        let answered = answer.await;
        given_up.is_answered = true;
        answered.unwrap_or_else(|_| Err(MountError::Restarted { mount: mount() }))
    }

    /// Has it tell the changes of a resource, and starts it if need be. All who watch a resource share one subscription.
    ///
    /// # Errors
    /// [`MountError`] if it does not run, does not tell changes or refuses, or too many resources are watched.
    pub async fn watch(
        &self,
        client: &MountClient,
        uri: &str,
    ) -> Result<ResourceWatch, MountError> {
        let MountShared { name, watches, stop, .. } = &*self.shared;
        let too_many = || MountError::TooManyWatched { mount: name.clone() };
        let mut watch = watches.watch(client, uri).ok_or_else(too_many)?;
        let begun = tokio::select! {
            begun = watch.begun() => begun,
            () = stop.cancelled() => WatchState::Asked,
        };
        match begun {
            WatchState::Told { .. } => Ok(watch),
            WatchState::Ended(error) => Err(error),
            WatchState::Asked => Err(stopping(name.clone())),
        }
    }

    /// Has it started, so that its tools are known.
    pub fn learn(&self) {
        // If so much waits already, it is started anyway.
        let _ = self.commands.try_send(MountCommand::Learn);
    }

    /// Ends it and starts it again, also before its pause after a failure is over.
    pub fn restart(&self) {
        self.shared.restart.notify_one();
    }

    /// Ends it, and its task.
    pub fn stop(&self) {
        self.shared.stop.cancel();
    }

    pub fn is_stopped(&self) -> bool {
        self.shared.stop.is_cancelled()
    }
}

/// What is wrong with a server that is ended for good.
pub const STOPPING: &str = "it is being stopped";

/// The error of a server that is ended for good.
pub fn stopping(mount: MountName) -> MountError {
    let problem = STOPPING.to_owned();
    MountError::Unavailable { mount, problem, retry_after: None }
}

/// Counts a call, and tells the task if its caller has given it up.
struct GivenUp<'a> {
    shared: &'a MountShared,
    id: u64,
    is_answered: bool,
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        let Self { shared, is_answered, .. } = self;
        shared.calls.fetch_sub(1, Ordering::Relaxed);
        if !*is_answered {
            let mut given_up = shared.given_up.lock().unwrap_or_else(PoisonError::into_inner);
            // More than can be pending are of calls that ended already.
            if given_up.len() < 2 * CALLS_MAX {
                given_up.insert(self.id);
            }
            drop(given_up);
            shared.gave_up.notify_one();
        }
    }
}
