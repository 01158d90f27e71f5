//! The tools of a mount: those that were accepted, which clients see, and what its servers list instead.
//!
//! Both belong to the mount. A server only knows how what it listed compares with what is accepted.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::core::mount::MountName;
use crate::mount::declared::DeclaredCapabilities;
use crate::mount::definitions::{AcceptedTools, ToolSet};
use crate::mount::error::ManageError;

/// One server of a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerNumber(u64);

/// When a server listed its tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListTime {
    /// When it was started, so that no earlier start of any server says what the program lists by now.
    Start,
    /// Again, while it ran.
    Later,
}

/// The tools and capabilities of a mount, which all its servers have.
#[derive(Clone, Debug, Default)]
pub struct MountTools {
    /// The tools that clients see.
    pub accepted: Option<Arc<ToolSet>>,
    /// What a server declared when it was last greeted; `None` if that is not known.
    pub declared: Option<Arc<DeclaredCapabilities>>,
    /// How a server said that it is used, when it was last greeted by this daemon.
    pub instructions: Option<String>,
    /// What servers list instead, the newest last.
    proposed: Vec<ProposedTools>,
}

#[derive(Clone, Debug)]
struct ProposedTools {
    /// `None` if it has ended.
    server: Option<ServerNumber>,
    tools: Arc<ToolSet>,
}

impl MountTools {
    pub fn new(accepted: Option<ToolSet>, declared: Option<DeclaredCapabilities>) -> Self {
        let (accepted, declared) = (accepted.map(Arc::new), declared.map(Arc::new));
        Self { accepted, declared, ..Self::default() }
    }

    /// The tools that a server lists, where they differ from those that were accepted.
    pub fn changed(&self) -> Option<&Arc<ToolSet>> {
        self.proposed.last().map(|it| &it.tools)
    }

    /// Whether this server lists other tools than those that were accepted.
    pub fn is_proposed_by(&self, server: ServerNumber) -> bool {
        self.proposed.iter().any(|it| it.server == Some(server))
    }

    /// Takes what a server lists in the place of what it listed before. Returns whether that changes anything.
    fn on_listed(
        &mut self,
        server: ServerNumber,
        differing: Option<Arc<ToolSet>>,
        time: ListTime,
    ) -> bool {
        let before = self.proposed.len();
        self.proposed.retain(|it| match it.server {
            Some(of) => of != server,
            None => time == ListTime::Later,
        });
        let is_less = self.proposed.len() < before;
        let is_more = differing.is_some();
        self.proposed.extend(differing.map(|tools| ProposedTools { server: Some(server), tools }));
        is_less || is_more
    }

    /// A server has ended. What it listed can still be accepted if no other server lists anything else: the clients that it
    /// was refused to may have been the only ones.
    fn on_ended(&mut self, server: ServerNumber) {
        let of = |it: &ProposedTools| it.server == Some(server);
        let Some(at) = self.proposed.iter().position(of) else { return };
        let tools = self.proposed.remove(at).tools;
        self.proposed.retain(|it| it.server.is_some());
        if self.proposed.is_empty() {
            self.proposed.push(ProposedTools { server: None, tools });
        }
    }
}

/// How what a server lists compares with what is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolsStanding {
    Same,
    /// It lists others, which the mount shows.
    Proposed,
    /// Others than it lists were accepted since it listed them. It has to start again, whatever is accepted by then: what
    /// it lists meanwhile is not heard.
    Outdated,
}

/// What a server lists, and what that was compared with last.
#[derive(Clone, Debug)]
pub struct ListedTools {
    pub tools: Arc<ToolSet>,
    with: Arc<ToolSet>,
    pub standing: ToolsStanding,
}

impl ListedTools {
    /// Other tools may have been accepted.
    pub fn on_accepted(&mut self, accepted: Option<&Arc<ToolSet>>) {
        if self.standing == ToolsStanding::Outdated {
            return;
        }
        let Some(accepted) = accepted.filter(|it| !Arc::ptr_eq(it, &self.with)) else { return };
        let is_same = accepted.differences(&self.tools).is_empty();
        self.standing = if is_same { ToolsStanding::Same } else { ToolsStanding::Outdated };
        self.with = Arc::clone(accepted);
    }
}

/// The tools of one mount, with their file.
#[derive(Debug)]
pub struct PinnedTools {
    mount: MountName,
    tools: watch::Sender<MountTools>,
    kept: AcceptedTools,
    /// Held while they are compared and kept, which several servers and an operator may want at the same time.
    comparing: Mutex<()>,
    /// Changes when clients see other tools.
    lists: watch::Sender<u64>,
    servers: AtomicU64,
}

impl PinnedTools {
    pub fn new(
        mount: MountName,
        tools: MountTools,
        kept: AcceptedTools,
        lists: watch::Sender<u64>,
    ) -> Self {
        let (tools, comparing) = (watch::Sender::new(tools), Mutex::default());
        Self { mount, tools, kept, comparing, lists, servers: AtomicU64::new(1) }
    }

    /// A number that no other server of the mount has.
    pub fn number(&self) -> ServerNumber {
        ServerNumber(self.servers.fetch_add(1, Ordering::Relaxed))
    }

    pub fn known(&self) -> MountTools {
        self.tools.borrow().clone()
    }

    pub fn changes(&self) -> watch::Receiver<MountTools> {
        self.tools.subscribe()
    }

    /// Compares the tools of a server with those that were accepted. The first ones are accepted.
    ///
    /// # Errors
    /// The first ones cannot be kept.
    pub fn on_listed(
        &self,
        server: ServerNumber,
        tools: ToolSet,
        time: ListTime,
    ) -> io::Result<ListedTools> {
        let _comparing = self.comparing.lock().unwrap_or_else(PoisonError::into_inner);
        let tools = Arc::new(tools);
        let Some(with) = self.known().accepted else {
            self.accept_these(&tools)?;
            let with = Arc::clone(&tools);
            return Ok(ListedTools { tools, with, standing: ToolsStanding::Same });
        };
        let differing = (!with.differences(&tools).is_empty()).then(|| Arc::clone(&tools));
        let standing = match differing {
            Some(_) => ToolsStanding::Proposed,
            None => ToolsStanding::Same,
        };
        self.tools.send_if_modified(|all| all.on_listed(server, differing, time));
        Ok(ListedTools { tools, with, standing })
    }

    /// A server has ended, however often it is started again.
    pub fn on_ended(&self, server: ServerNumber) {
        self.tools.send_modify(|all| all.on_ended(server));
    }

    /// Accepts the changed tools, if they have this digest. Servers that list others have to start again.
    ///
    /// # Errors
    /// [`ManageError`] if none have changed, they are others, or they cannot be kept.
    pub fn accept(&self, digest: Option<&str>) -> Result<(), ManageError> {
        let _comparing = self.comparing.lock().unwrap_or_else(PoisonError::into_inner);
        let mount = || self.mount.clone();
        let known = self.known();
        let tools = known.changed().ok_or_else(|| ManageError::NothingChanged(mount()))?;
        if digest.is_some_and(|it| it != tools.digest()) {
            return Err(ManageError::OtherTools(mount()));
        }
        let not_kept =
            |error: io::Error| ManageError::NotKept { mount: mount(), problem: error.to_string() };
        self.accept_these(tools).map_err(not_kept)
    }

    fn accept_these(&self, tools: &Arc<ToolSet>) -> io::Result<()> {
        self.keep(tools)?;
        self.tools.send_modify(|all| {
            all.accepted = Some(Arc::clone(tools));
            all.proposed.clear();
        });
        self.lists.send_modify(|count| *count += 1);
        Ok(())
    }

    /// Remembers what a server says of itself; what it declares also for later daemons. Nobody has to accept it, as it adds
    /// no tools.
    pub fn on_greeted(&self, declared: DeclaredCapabilities, instructions: Option<String>) {
        let _comparing = self.comparing.lock().unwrap_or_else(PoisonError::into_inner);
        let declared = Some(Arc::new(declared));
        let differs = self.tools.send_if_modified(|all| {
            let differs = all.declared != declared;
            (all.declared, all.instructions) = (declared, instructions);
            differs
        });
        // The first tools are kept when they are known.
        let Some(accepted) = self.known().accepted.filter(|_| differs) else { return };
        if let Err(error) = self.keep(&accepted) {
            let mount = &self.mount;
            tracing::warn!(%mount, %error, "the capabilities of a mounted server cannot be kept");
        }
    }

    /// Keeps these tools as accepted, with what a server declared.
    fn keep(&self, tools: &ToolSet) -> io::Result<()> {
        let declared = self.known().declared;
        self.kept.keep(&self.mount, tools, declared.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::mount::json::ExactJson;
    use ToolsStanding::{Outdated, Proposed, Same};

    fn set(names: &[&str]) -> ToolSet {
        let tool = |name| ExactJson::of(&json!({"name": name, "inputSchema": {"type": "object"}}));
        ToolSet::of(names.iter().map(tool).collect()).unwrap()
    }

    /// A mount for which `a` is accepted.
    fn pinned(directory: &tempfile::TempDir) -> PinnedTools {
        let (kept, lists) = (AcceptedTools::at(directory.path().into()), watch::Sender::new(0));
        let tools = MountTools::new(Some(set(&["a"])), None);
        PinnedTools::new("x".parse().unwrap(), tools, kept, lists)
    }

    fn shown(pinned: &PinnedTools) -> Option<Vec<String>> {
        let known = pinned.known();
        known.changed().map(|it| it.tools().keys().map(ToString::to_string).collect())
    }

    #[test]
    fn what_a_server_lists_is_shown_until_it_lists_what_is_accepted() {
        let directory = tempfile::tempdir().unwrap();
        let pinned = pinned(&directory);
        let (one, two) = (pinned.number(), pinned.number());
        let lists = |server, names: &[&str]| {
            pinned.on_listed(server, set(names), ListTime::Later).unwrap().standing
        };
        assert_eq!((lists(one, &["b"]), shown(&pinned)), (Proposed, Some(vec!["b".to_owned()])));
        assert_eq!((lists(two, &["c"]), shown(&pinned)), (Proposed, Some(vec!["c".to_owned()])));
        assert_eq!((lists(two, &["a"]), shown(&pinned)), (Same, Some(vec!["b".to_owned()])));
        assert_eq!((lists(one, &["a"]), shown(&pinned)), (Same, None));
        assert_eq!(pinned.accept(None), Err(ManageError::NothingChanged("x".parse().unwrap())));
    }

    #[test]
    fn what_the_last_server_listed_can_be_accepted_until_another_one_starts() {
        let directory = tempfile::tempdir().unwrap();
        let pinned = pinned(&directory);
        let (old, gone, fresh) = (pinned.number(), pinned.number(), pinned.number());
        let lists =
            |server, names: &[&str], time| pinned.on_listed(server, set(names), time).unwrap();
        lists(old, &["a"], ListTime::Start);
        lists(gone, &["b"], ListTime::Start);
        pinned.on_ended(gone);
        lists(old, &["a"], ListTime::Later);
        assert_eq!(shown(&pinned), Some(vec!["b".to_owned()]));
        lists(fresh, &["a"], ListTime::Start);
        assert_eq!(shown(&pinned), None);
        // What a running server lists goes before what one listed that has ended.
        lists(gone, &["b"], ListTime::Start);
        lists(fresh, &["c"], ListTime::Later);
        pinned.on_ended(gone);
        assert_eq!(shown(&pinned), Some(vec!["c".to_owned()]));
        lists(fresh, &["a"], ListTime::Later);
        assert_eq!(shown(&pinned), None);
    }

    #[test]
    fn a_server_that_lists_what_is_no_longer_accepted_is_outdated_and_proposes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let pinned = pinned(&directory);
        let (old, new, other) = (pinned.number(), pinned.number(), pinned.number());
        let lists =
            |server, names: &[&str]| pinned.on_listed(server, set(names), ListTime::Start).unwrap();
        let mut servers = [lists(old, &["a"]), lists(other, &["c"]), lists(new, &["b"])];
        pinned.accept(Some(&set(&["b"]).digest())).unwrap();
        for server in &mut servers {
            server.on_accepted(pinned.known().accepted.as_ref());
        }
        assert_eq!(servers.map(|it| it.standing), [Outdated, Outdated, Same]);
        assert_eq!(shown(&pinned), None);
        let kept = AcceptedTools::at(directory.path().into()).read(&"x".parse().unwrap());
        assert_eq!(kept.unwrap().unwrap().0, set(&["b"]));
        // Started again, they say what they list now.
        assert_eq!((lists(old, &["b"]).standing, lists(other, &["c"]).standing), (Same, Proposed));
        assert_eq!(shown(&pinned), Some(vec!["c".to_owned()]));
    }

    #[test]
    fn an_outdated_server_stays_so_until_it_starts_again() {
        let directory = tempfile::tempdir().unwrap();
        let pinned = pinned(&directory);
        let (old, other) = (pinned.number(), pinned.number());
        let mut listed = pinned.on_listed(old, set(&["a"]), ListTime::Start).unwrap();
        // It may list something else by the time at which what it listed first is accepted again.
        for (names, standing) in [(["b"], Outdated), (["a"], Outdated)] {
            pinned.on_listed(other, set(&names), ListTime::Later).unwrap();
            pinned.accept(None).unwrap();
            listed.on_accepted(pinned.known().accepted.as_ref());
            assert_eq!(listed.standing, standing, "{names:?}");
        }
        let listed = pinned.on_listed(old, set(&["a"]), ListTime::Start).unwrap();
        assert_eq!(listed.standing, Same);
    }
}
