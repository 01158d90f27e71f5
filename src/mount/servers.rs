//! A mount with its servers: one for all, one for each client, or a pool.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::core::ids::PrincipalId;
use crate::core::moment::Moment;
use crate::core::mount::{MountMode, MountName, MountSettings, SERVERS_MAX};
use crate::mount::error::{ManageError, MountError};
use crate::mount::fence::Fence;
use crate::mount::handle::{ListChanges, MountServer, MountStatus, MountView};
use crate::mount::pinned::MountTools;

/// A mount. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Mount {
    first: MountServer,
    /// Further servers, where it may have several.
    replicas: Option<Arc<FurtherServers>>,
}

impl Mount {
    /// A mount with one server.
    pub fn of(first: MountServer) -> Self {
        Self { first, replicas: None }
    }

    /// The same, where `start` begins another server.
    #[must_use]
    pub fn with_others(self, start: impl Fn() -> MountServer + Send + Sync + 'static) -> Self {
        let replicas = FurtherServers { start: Box::new(start), running: Mutex::default() };
        Self { replicas: Some(Arc::new(replicas)), ..self }
    }

    pub fn name(&self) -> &MountName {
        &self.first.shared().name
    }

    pub fn settings(&self) -> &MountSettings {
        &self.first.shared().settings
    }

    /// The state of its first server that runs, with the newest failure of any: clients may have different ones.
    pub fn view(&self) -> MountView {
        let views: Vec<MountView> = self.servers().iter().map(MountServer::view).collect();
        let failed = views.iter().filter(|it| it.problem.is_some());
        let failed = failed.max_by_key(|it| it.pause.map(|pause| pause.since)).cloned();
        let unlisted = views.iter().find_map(|it| it.unlisted.clone());
        let ahead = |status| views.iter().find(|it| it.status == status).cloned();
        let shown = ahead(MountStatus::Running).or_else(|| ahead(MountStatus::Starting));
        let view = match (shown, failed) {
            (None, None) => self.first.view(),
            (None, Some(failed)) => failed,
            (Some(shown), Some(MountView { problem: Some(problem), last_line, .. }))
                if shown.problem.is_none() =>
            {
                let problem = Some(format!("one of its servers failed: {problem}"));
                MountView { problem, last_line, ..shown }
            }
            (Some(shown), _) => shown,
        };
        MountView { unlisted, late: self.first.view().late, ..view }
    }

    /// Whether its server may have this capability: the server declared it when it was last greeted, or was started
    /// before and what it declared then was not kept.
    pub fn may_have_capability(&self, name: &str) -> bool {
        let MountTools { accepted, declared, .. } = self.tools();
        declared.map_or(accepted.is_some(), |declared| declared.has(name))
    }

    /// Whether clients' lists of this method hardly wait for it now.
    pub fn is_late(&self, method: &str, now: Moment) -> bool {
        self.first.shared().view.borrow().late.get(method).is_some_and(|until| now < *until)
    }

    /// It did not answer this list in time. Such lists hardly wait for it until then, and operators are told.
    pub fn on_late_list(&self, method: &'static str, until: Moment) {
        self.first.shared().log.add(format!("[termgate] no answer to `{method}`").as_bytes());
        self.first.shared().view.send_modify(|view| _ = view.late.insert(method, until));
    }

    /// It answered this list.
    pub fn on_list(&self, method: &str) {
        self.first.shared().view.send_if_modified(|view| view.late.remove(method).is_some());
    }

    pub fn tools(&self) -> MountTools {
        self.first.shared().tools.known()
    }

    /// Lets calls pass under the lease in force.
    pub fn fence(&self) -> &Fence {
        &self.first.shared().fence
    }

    /// Whether this is the same mount, not another one of its name.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(self.first.shared(), other.first.shared())
    }

    /// The last lines that its servers wrote to standard error.
    pub fn log(&self) -> Vec<String> {
        self.first.shared().log.lines()
    }

    /// The server for a call of this client.
    ///
    /// # Errors
    /// [`MountError::TooManyClients`] if each client has a server of its own, and there are too many clients.
    pub fn server_for(&self, client: PrincipalId) -> Result<MountServer, MountError> {
        match (self.settings().mode, &self.replicas) {
            (MountMode::PerClient, Some(replicas)) => {
                let full = || MountError::TooManyClients { mount: self.name().clone() };
                replicas.of_client(&self.first, client).ok_or_else(full)
            }
            (MountMode::Pool(size), Some(replicas)) => Ok(replicas.of_pool(&self.first, size)),
            (_, None) | (MountMode::Shared | MountMode::Leased, _) => Ok(self.first.clone()),
        }
    }

    /// The server that tells this client of changes: its own, or the first one.
    ///
    /// # Errors
    /// As those of [`Mount::server_for`].
    pub fn server_of_news(&self, client: PrincipalId) -> Result<MountServer, MountError> {
        match self.settings().mode {
            MountMode::PerClient => self.server_for(client),
            MountMode::Shared | MountMode::Leased | MountMode::Pool(_) => Ok(self.first.clone()),
        }
    }

    /// How often the lists that this client sees have changed: those of its own server, or of all servers.
    pub fn list_changes(&self, client: PrincipalId) -> ListChanges {
        let own = |replicas: &Arc<FurtherServers>| replicas.known_of(client);
        let servers = match self.settings().mode {
            MountMode::PerClient => self.replicas.as_ref().and_then(own).into_iter().collect(),
            MountMode::Shared | MountMode::Leased | MountMode::Pool(_) => self.servers(),
        };
        servers.iter().map(|server| server.view().changes).fold(
            ListChanges::default(),
            |all, it| ListChanges {
                resources: all.resources + it.resources,
                prompts: all.prompts + it.prompts,
            },
        )
    }

    /// Ends the server of a client that is gone.
    pub fn leave(&self, client: PrincipalId) {
        if let Some(replicas) = &self.replicas {
            replicas.leave(client);
        }
    }

    /// How many of its servers run.
    pub fn running(&self) -> usize {
        self.servers().iter().filter(|it| it.view().status == MountStatus::Running).count()
    }

    /// Has its first server started, so that its tools are known.
    pub fn learn(&self) {
        self.first.learn();
    }

    /// Ends its servers and starts them again.
    pub fn restart(&self) {
        self.servers().iter().for_each(MountServer::restart);
    }

    /// Accepts the changed tools, if they have this digest.
    ///
    /// # Errors
    /// [`ManageError`] if none have changed, they are others, or they cannot be kept.
    pub fn accept(&self, digest: Option<&str>) -> Result<(), ManageError> {
        self.first.shared().tools.accept(digest)
    }

    /// Ends the mount, with its servers.
    pub fn stop(&self) {
        // Before the others are looked up: from now on there are no further ones.
        self.first.stop();
        self.servers().iter().for_each(MountServer::stop);
    }

    fn servers(&self) -> Vec<MountServer> {
        let others = self.replicas.as_ref().map(|it| it.all()).unwrap_or_default();
        std::iter::once(self.first.clone()).chain(others).collect()
    }
}

/// Further servers of one mount.
struct FurtherServers {
    start: Box<dyn Fn() -> MountServer + Send + Sync>,
    running: Mutex<Vec<FurtherServer>>,
}

#[derive(Debug)]
struct FurtherServer {
    /// Whose it is alone; `None` in a pool.
    client: Option<PrincipalId>,
    server: MountServer,
}

impl fmt::Debug for FurtherServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FurtherServers").field("running", &self.running).finish_non_exhaustive()
    }
}

impl FurtherServers {
    /// The server of this client alone; `None` if there are as many clients as may be. Of a mount that has ended, it is
    /// `first`, which says so.
    fn of_client(&self, first: &MountServer, client: PrincipalId) -> Option<MountServer> {
        let mut running = self.lock();
        if first.is_stopped() {
            return Some(first.clone());
        }
        if let Some(own) = running.iter().find(|it| it.client == Some(client)) {
            return Some(own.server.clone());
        }
        if running.len() == SERVERS_MAX {
            // The owner of a token keeps its server until that has been idle for long enough.
            let stopped = |it: &FurtherServer| it.server.view().status == MountStatus::Stopped;
            let place = running.iter().position(|it| stopped(it) && it.server.calls() == 0)?;
            running.swap_remove(place).server.stop();
        }
        let server = (self.start)();
        running.push(FurtherServer { client: Some(client), server: server.clone() });
        Some(server)
    }

    /// The server of this client alone, if it has one already.
    fn known_of(&self, client: PrincipalId) -> Option<MountServer> {
        let running = self.lock();
        running.iter().find(|it| it.client == Some(client)).map(|it| it.server.clone())
    }

    /// The server that has the fewest calls, of `first` and the others of a pool of this size. One that refuses calls has
    /// none, so that it comes last; of those that are idle, one that runs comes before one that would have to start.
    fn of_pool(&self, first: &MountServer, size: usize) -> MountServer {
        let mut running = self.lock();
        if first.is_stopped() {
            return first.clone();
        }
        let rank = |it: &&MountServer| {
            let runs = it.shared().view.borrow().status == MountStatus::Running;
            (it.refuses(), it.calls(), !runs)
        };
        let least = running.iter().map(|it| &it.server).chain([first]).min_by_key(rank);
        match least {
            Some(least) if least.calls() == 0 || running.len() + 1 >= size => least.clone(),
            Some(_) | None => {
                let server = (self.start)();
                running.push(FurtherServer { client: None, server: server.clone() });
                server
            }
        }
    }

    /// Ends the server of a client that is gone.
    fn leave(&self, client: PrincipalId) {
        self.lock().retain(|it| {
            let stays = it.client != Some(client);
            if !stays {
                it.server.stop();
            }
            stays
        });
    }

    /// All of them.
    fn all(&self) -> Vec<MountServer> {
        self.lock().iter().map(|it| it.server.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<FurtherServer>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
