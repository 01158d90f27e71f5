//! A mount as others see it: what it is doing, and a way to ask its server.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::core::mount::{MountName, MountSettings};
use crate::mount::definitions::ToolSet;
use crate::mount::error::{ManageError, MountError};
use crate::mount::log::ServerLog;

/// How many calls of one mount wait or run.
pub const CALLS_MAX: usize = 64;

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

/// The state of a mount.
#[derive(Clone, Debug, Default)]
pub struct MountView {
    pub status: MountStatus,
    pub pid: Option<u32>,
    /// How often its server was started by this daemon.
    pub generation: u64,
    /// The tools that clients see.
    pub accepted: Option<Arc<ToolSet>>,
    /// The tools that the server lists, where they differ from those.
    pub changed: Option<Arc<ToolSet>>,
    /// What the server said when it was last greeted.
    pub greeting: Option<Arc<Greeting>>,
    /// Why it does not run, if it failed.
    pub problem: Option<String>,
}

/// What a server said of itself when it was greeted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Greeting {
    /// The capabilities that it declared, of those that the protocol knows, by name.
    pub capabilities: Vec<&'static str>,
    /// How it says that it is used, 4,096 bytes at most.
    pub instructions: Option<String>,
}

/// How far a call has come, as its server says.
#[derive(Clone, Debug, PartialEq)]
pub struct CallProgress {
    /// The members of the notification, without the token.
    pub members: Map<String, Value>,
}

/// A request on its way to a server.
#[derive(Debug)]
pub struct ServerCall {
    pub id: u64,
    pub method: &'static str,
    pub params: Map<String, Value>,
    pub progress: Option<mpsc::Sender<CallProgress>>,
    pub reply: oneshot::Sender<Result<Box<RawValue>, MountError>>,
}

/// What a mount's task is asked to do.
#[derive(Debug)]
pub enum MountCommand {
    Call(ServerCall),
    /// Start the server so that its tools are known.
    Learn,
    Restart,
    Accept(oneshot::Sender<Result<(), ManageError>>),
}

/// What the task of a mount and its callers share.
#[derive(Debug)]
pub struct MountShared {
    pub name: MountName,
    pub settings: MountSettings,
    pub view: watch::Sender<MountView>,
    pub log: ServerLog,
    /// Cancelled when the mount is removed or the daemon ends.
    pub stop: CancellationToken,
    /// The calls that were given up, and the news of it.
    pub given_up: Mutex<BTreeSet<u64>>,
    pub gave_up: Notify,
    /// The number of the next request to the server.
    numbers: AtomicU64,
}

impl MountShared {
    pub fn new(name: MountName, settings: MountSettings, accepted: Option<ToolSet>) -> Self {
        let view = MountView { accepted: accepted.map(Arc::new), ..MountView::default() };
        Self {
            name,
            settings,
            view: watch::Sender::new(view),
            log: ServerLog::default(),
            stop: CancellationToken::new(),
            given_up: Mutex::default(),
            gave_up: Notify::new(),
            numbers: AtomicU64::new(1),
        }
    }

    /// A number that no other request has.
    pub fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }
}

/// A mount. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Mount {
    shared: Arc<MountShared>,
    commands: mpsc::Sender<MountCommand>,
}

impl Mount {
    pub fn new(shared: Arc<MountShared>, commands: mpsc::Sender<MountCommand>) -> Self {
        Self { shared, commands }
    }

    pub fn name(&self) -> &MountName {
        &self.shared.name
    }

    pub fn settings(&self) -> &MountSettings {
        &self.shared.settings
    }

    pub fn view(&self) -> MountView {
        self.shared.view.borrow().clone()
    }

    /// The last lines that the server wrote to standard error.
    pub fn log(&self) -> Vec<String> {
        self.shared.log.lines()
    }

    /// Asks the server this, and starts it if need be. Dropping this cancels the request.
    ///
    /// # Errors
    /// [`MountError`]; only after [`MountError::Restarted`] and [`MountError::TimedOut`] the request may have had an effect.
    pub async fn request(
        &self,
        method: &'static str,
        params: Map<String, Value>,
        progress: Option<mpsc::Sender<CallProgress>>,
    ) -> Result<Box<RawValue>, MountError> {
        let mount = || self.shared.name.clone();
        let (reply, answer) = oneshot::channel();
        let id = self.shared.number();
        let call = ServerCall { id, method, params, progress, reply };
        self.commands.try_send(MountCommand::Call(call)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => MountError::Busy { mount: mount() },
            mpsc::error::TrySendError::Closed(_) => stopping(mount()),
        })?;
        let mut given_up = GivenUp { shared: Some(&self.shared), id };
        let answered = answer.await;
        given_up.shared = None;
        answered.unwrap_or_else(|_| Err(MountError::Restarted { mount: mount() }))
    }

    /// Has the server started, so that its tools are known.
    pub fn learn(&self) {
        // If so much waits already, it is started anyway.
        let _ = self.commands.try_send(MountCommand::Learn);
    }

    /// Ends the server and starts it again, also before its pause after a failure is over.
    ///
    /// # Errors
    /// [`ManageError::Stopping`].
    pub async fn restart(&self) -> Result<(), ManageError> {
        let sent = self.commands.send(MountCommand::Restart).await;
        sent.map_err(|_| ManageError::Stopping(self.shared.name.clone()))
    }

    /// Accepts the changed tools.
    ///
    /// # Errors
    /// [`ManageError`] if none have changed, or they cannot be kept.
    pub async fn accept(&self) -> Result<(), ManageError> {
        let stopping = || ManageError::Stopping(self.shared.name.clone());
        let (reply, accepted) = oneshot::channel();
        let sent = self.commands.send(MountCommand::Accept(reply)).await;
        sent.map_err(|_| stopping())?;
        accepted.await.unwrap_or_else(|_| Err(stopping()))
    }

    /// Ends the mount, with its server.
    pub fn stop(&self) {
        self.shared.stop.cancel();
    }
}

fn stopping(mount: MountName) -> MountError {
    let problem = "it is being stopped".to_owned();
    MountError::Unavailable { mount, problem, retry_after: None }
}

/// Tells the task of a call that its caller has given it up.
struct GivenUp<'a> {
    /// `None` once it is answered.
    shared: Option<&'a MountShared>,
    id: u64,
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        if let Some(shared) = self.shared {
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
