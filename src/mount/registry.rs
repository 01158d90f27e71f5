//! All mounts of a daemon, and the names of their tools.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

use crate::core::ids::PrincipalId;
use crate::core::mount::expansion::expand;
use crate::core::mount::naming::{Exposed, ToolSource, exposed};
use crate::core::mount::restarts::Restarts;
use crate::core::mount::server::{HttpAddress, MountedServer, ServerCommand};
use crate::core::mount::{MountMode, MountName, MountSettings, MountTable, MountTrust};
use crate::mount::definitions::AcceptedTools;
use crate::mount::handle::{CALLS_MAX, MountServer, MountShared};
use crate::mount::json::ExactJson;
use crate::mount::link::ServerAddress;
use crate::mount::link::http::client::HttpServer;
use crate::mount::link::process::{ServerHost, ServerProgram};
use crate::mount::log::ServerLog;
use crate::mount::pinned::{MountTools, PinnedTools};
use crate::mount::server::MountTask;
use crate::mount::servers::Mount;

/// The variables that every server gets.
const PASSED: [&str; 4] = ["PATH", "HOME", "LANG", "USER"];

/// How long all servers may take to end.
const END_MAX: Duration = Duration::from_secs(6);

/// The environment and the directories that mounts start from.
#[derive(Clone, Debug, Default)]
pub struct MountPlaces {
    /// The daemon's environment, as it was at its start.
    pub environment: BTreeMap<OsString, OsString>,
    pub default_cwd: PathBuf,
    /// Where accepted definitions are kept.
    pub accepted: PathBuf,
    /// Starts programs. Without, none can be.
    pub host: Option<Arc<dyn ServerHost>>,
}

impl MountPlaces {
    /// How to reach the server of a mount, or why its settings do not say.
    fn address(&self, settings: &MountSettings) -> Result<ServerAddress, String> {
        Ok(match &settings.server {
            MountedServer::Program(program) => {
                let is_sandboxed = settings.trust == MountTrust::Sandboxed;
                ServerAddress::Program(self.program(program, is_sandboxed)?)
            }
            MountedServer::Socket(path) => ServerAddress::Socket(path.into()),
            MountedServer::Http(http) => ServerAddress::Http(self.http(http)?),
        })
    }

    fn program(&self, server: &ServerCommand, is_sandboxed: bool) -> Result<ServerProgram, String> {
        let host = self.host.clone().ok_or("this daemon starts no programs")?;
        let names = PASSED.into_iter().chain(server.pass_env.iter().map(String::as_str));
        let mut environment: BTreeMap<OsString, OsString> = names
            .filter_map(|name| self.environment.get_key_value(&OsString::from(name)))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        for (name, value) in &server.env {
            environment.insert(name.into(), self.expanded(&format!("env.{name}"), value)?.into());
        }
        let args = server.args.iter().map(|it| self.expanded("args", it));
        let args = args.collect::<Result<_, _>>()?;
        let command = self.expanded("command", &server.command)?;
        if command.is_empty() {
            return Err("command: its variables are empty".to_owned());
        }
        let cwd = server.cwd.as_ref().map(|it| self.expanded("cwd", it)).transpose()?;
        let cwd = cwd.map_or_else(|| self.default_cwd.clone(), Into::into);
        if !cwd.is_absolute() {
            return Err(format!("cwd: {} is not an absolute path", cwd.display()));
        }
        Ok(ServerProgram { command, args, environment, cwd, is_sandboxed, host })
    }

    fn http(&self, server: &HttpAddress) -> Result<HttpServer, String> {
        let url = self.expanded("url", &server.url)?;
        let header = |(name, value): (&String, &String)| {
            Ok((name.clone(), self.expanded(&format!("headers.{name}"), value)?))
        };
        let headers: Vec<_> = server.headers.iter().map(header).collect::<Result<_, String>>()?;
        HttpServer::new(&url, &headers, server.socket.as_ref().map(PathBuf::from))
    }

    /// A text with the variables of the daemon.
    fn expanded(&self, key: &str, text: &str) -> Result<String, String> {
        let own =
            |name: &str| self.environment.get(&OsString::from(name))?.clone().into_string().ok();
        expand(text, own).map_err(|error| format!("{key}: {error}"))
    }
}

/// A tool of a mount, as it was accepted.
#[derive(Clone, Debug)]
pub struct MountedTool {
    pub mount: Mount,
    /// The server's own name for it.
    pub tool: Arc<str>,
    pub definition: Arc<ExactJson>,
}

impl MountedTool {
    /// What is called as a tool is, and is none that the server lists.
    pub fn undefined(mount: Mount, own: &str) -> Self {
        Self { mount, tool: own.into(), definition: Arc::new(ExactJson::of(&())) }
    }
}

/// All mounts.
#[derive(Debug)]
pub struct Mounts {
    places: MountPlaces,
    running: Mutex<RunningMounts>,
    /// Changes when clients see other tools.
    lists: watch::Sender<u64>,
    /// Changes when clients see other resources or prompts.
    contents: watch::Sender<u64>,
}

/// The names that clients know, and what they stand for.
type ToolNames = BTreeMap<Arc<str>, Exposed>;

#[derive(Debug, Default)]
struct RunningMounts {
    mounts: BTreeMap<MountName, Mount>,
    tasks: TaskTracker,
    /// The names of the tools, and the change for which they were made.
    names: Option<(u64, Arc<ToolNames>)>,
}

impl Mounts {
    pub fn new(places: MountPlaces) -> Self {
        let (lists, contents) = (watch::Sender::new(0), watch::Sender::new(0));
        Self { places, running: Mutex::default(), lists, contents }
    }

    /// Has these mounts, and no others. One whose settings are the same keeps running.
    ///
    /// Must be called inside a runtime.
    pub fn set(&self, table: &MountTable) {
        let mut running = self.lock();
        let RunningMounts { mounts, tasks, .. } = &mut *running;
        let mut changes = false;
        mounts.retain(|name, mount| {
            let stays = table.get(name) == Some(mount.settings());
            if !stays {
                mount.stop();
                changes = true;
            }
            stays
        });
        for (name, settings) in table {
            if !mounts.contains_key(name) {
                mounts.insert(name.clone(), self.start(name, settings, tasks));
                changes = true;
            }
        }
        drop(running);
        if changes {
            self.lists.send_modify(|count| *count += 1);
            self.contents.send_modify(|count| *count += 1);
        }
    }

    fn start(&self, name: &MountName, settings: &MountSettings, tasks: &TaskTracker) -> Mount {
        let kept = AcceptedTools::at(self.places.accepted.clone());
        let read = kept.read(name);
        let unreadable = read.as_ref().err().map(|error| {
            let file = kept.file(name);
            let file = file.display();
            format!(
                "its accepted tools cannot be read: {error}; remove {file}, then restart the daemon"
            )
        });
        let (accepted, declared) = read.ok().flatten().unzip();
        let is_known = accepted.is_some();
        let tools = MountTools::new(accepted, declared.flatten());
        let tools = PinnedTools::new(name.clone(), tools, kept, self.lists.clone());
        let seed = MountSeed {
            name: name.clone(),
            settings: settings.clone(),
            tools: Arc::new(tools),
            log: ServerLog::default(),
            address: match unreadable {
                Some(problem) => Err(problem),
                None => self.places.address(settings),
            },
            contents: self.contents.clone(),
            tasks: tasks.clone(),
        };
        let mount = Mount::of(seed.begin());
        let mount = match settings.mode {
            MountMode::Shared | MountMode::Leased => mount,
            MountMode::PerClient | MountMode::Pool(_) => mount.with_others(move || seed.begin()),
        };
        if !is_known {
            mount.learn();
        }
        mount
    }

    /// All mounts, by name.
    pub fn all(&self) -> Vec<Mount> {
        self.lock().mounts.values().cloned().collect()
    }

    /// The mount of this name.
    pub fn find(&self, name: &str) -> Option<Mount> {
        let name: MountName = name.parse().ok()?;
        self.lock().mounts.get(&name).cloned()
    }

    /// All tools, by the names that clients know them by.
    pub fn tools(&self) -> Vec<(Arc<str>, MountedTool)> {
        let mut running = self.lock();
        let names = self.names(&mut running);
        let tool = |(name, exposed): (&Arc<str>, &Exposed)| {
            Some((Arc::clone(name), running.tool(exposed)?))
        };
        names.iter().filter_map(tool).collect()
    }

    /// The names that several tools would have, so that none has them.
    pub fn contested(&self) -> Vec<(Arc<str>, Vec<ToolSource>)> {
        let names = self.names(&mut self.lock());
        let contested = names.iter().filter_map(|(name, exposed)| match exposed {
            Exposed::Tool(_) => None,
            Exposed::Contested(sources) => Some((Arc::clone(name), sources.clone())),
        });
        contested.collect()
    }

    /// Changes when clients see other tools.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.lists.subscribe()
    }

    /// The number of the last such change.
    pub fn change(&self) -> u64 {
        *self.lists.borrow()
    }

    /// Changes when clients may see other resources or prompts.
    pub fn content_changes(&self) -> watch::Receiver<u64> {
        self.contents.subscribe()
    }

    /// Ends the servers of a client that is gone.
    pub fn leave(&self, client: PrincipalId) {
        self.lock().mounts.values().for_each(|mount| mount.leave(client));
    }

    /// Ends all mounts with their servers, in bounded time.
    pub async fn end(&self) {
        let tasks = {
            let mut running = self.lock();
            running.mounts.values().for_each(Mount::stop);
            running.mounts.clear();
            running.tasks.close();
            running.tasks.clone()
        };
        let ended = timeout(END_MAX, tasks.wait()).await;
        if ended.is_err() {
            tracing::error!("a mounted server did not end");
        }
    }

    fn names(&self, running: &mut RunningMounts) -> Arc<ToolNames> {
        let change = self.change();
        match &running.names {
            Some((of, names)) if *of == change => Arc::clone(names),
            Some(_) | None => {
                let names = Arc::new(exposed(running.sources()));
                running.names = Some((change, Arc::clone(&names)));
                names
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, RunningMounts> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What each server of a mount begins with.
struct MountSeed {
    name: MountName,
    settings: MountSettings,
    tools: Arc<PinnedTools>,
    log: ServerLog,
    address: Result<ServerAddress, String>,
    contents: watch::Sender<u64>,
    tasks: TaskTracker,
}

impl MountSeed {
    /// Begins the task of a server, which starts it when it is needed.
    fn begin(&self) -> MountServer {
        let (name, settings) = (self.name.clone(), self.settings.clone());
        let (tools, log) = (Arc::clone(&self.tools), self.log.clone());
        let shared = Arc::new(MountShared::new(name, settings, tools, log));
        let (sender, commands) = mpsc::channel(CALLS_MAX);
        let task = MountTask {
            shared: Arc::clone(&shared),
            commands,
            address: self.address.clone(),
            contents: self.contents.clone(),
            restarts: Restarts::default(),
            begun: Instant::now(),
            relied: None,
            last_line: None,
            listed: None,
            tools_news: self.tools.changes(),
        };
        self.tasks.spawn(task.run());
        MountServer::new(shared, sender)
    }
}

impl RunningMounts {
    fn sources(&self) -> Vec<ToolSource> {
        let mut sources = Vec::new();
        for (name, mount) in &self.mounts {
            let (known, filter) = (mount.tools(), &mount.settings().tools);
            let exists = |tool: &&Arc<str>| filter.as_ref().is_none_or(|it| it.matches(tool));
            let tools = known.accepted.iter().flat_map(|it| it.offered()).filter(exists);
            let source = |tool: &Arc<str>| ToolSource { mount: name.clone(), tool: tool.clone() };
            sources.extend(tools.map(source));
        }
        sources
    }

    fn tool(&self, exposed: &Exposed) -> Option<MountedTool> {
        let Exposed::Tool(ToolSource { mount, tool }) = exposed else { return None };
        let mount = self.mounts.get(mount)?.clone();
        let definition = Arc::clone(mount.tools().accepted.as_ref()?.tools().get(tool)?);
        Some(MountedTool { mount, tool: Arc::clone(tool), definition })
    }
}

#[cfg(test)]
mod tests;
