//! `mcp`: joins an MCP client at standard input and output with the daemon.
//!
//! It finds the socket and the daemon behind it; what passes between the two is the bridge's affair.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use crate::cli::context::{Context, Place};
use crate::cli::daemon::Daemon;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::logging::{LogFormat, start_logging};
use crate::cli::start::{Rights, Stay, settled, start};
use crate::config::paths::RuntimePaths;
use crate::core::ids::SessionId;
use crate::session::pty::environment::ClientEnvironment;
use crate::transport::bridge::{CreationDefaults, Dial, Upstream, bridge};
use crate::transport::client::ConnectError;
use crate::transport::connection::link;
use crate::transport::signals::Signals;

/// Join an MCP client at standard input and output with the daemon
///
/// Starts the daemon when none is running, unless TERMGATE_AUTOSTART=0; a daemon started so ends
/// when nobody is connected and no session is left. With --socket it joins whatever listens there
/// and starts nothing.
#[derive(Debug, Args)]
pub struct Mcp {
    /// Show this session alone; an id, a unique beginning of one, or a name
    #[arg(long, value_name = "S", conflicts_with = "socket")]
    session: Option<String>,
    /// Only watch, whatever the daemon allows
    #[arg(long, conflicts_with_all = ["allow_write", "socket"])]
    read_only: bool,
    /// Let the daemon that is started write; one that runs keeps its own switches
    #[arg(long)]
    allow_write: bool,
    /// Do not start a daemon
    #[arg(long)]
    no_spawn: bool,
}

/// Where the daemon is, and what may be done when it is not there.
struct Way {
    socket: PathBuf,
    /// The place of the daemon that may be started.
    start: Option<RuntimePaths>,
    rights: Rights,
}

impl Mcp {
    /// Runs the command until the client has gone, or SIGTERM or SIGINT.
    ///
    /// # Errors
    /// Why there is no daemon at first. Later the client is told.
    pub async fn run(self, context: &Context) -> Result<Exit, Failure> {
        let signals = Signals::listen().context("cannot listen to signals")?;
        start_logging(LogFormat::Text, 0)?;
        let way = self.way(context).await?;
        let upstream = way.dial(Dial::ConnectOrStart).await?;
        let cwd = env::current_dir().ok();
        let environment = ClientEnvironment::of(env::vars_os());
        let defaults = CreationDefaults::of(cwd.as_deref(), &environment);
        let dial = async |dial| way.dial(dial).await;
        tokio::select! {
            () = bridge(link::stdio(), upstream, dial, defaults) => {}
            () = signals.told_to_end() => {}
        }
        Ok(Exit::Done)
    }

    async fn way(&self, context: &Context) -> Result<Way, Failure> {
        let rights = Rights::of_flag(self.allow_write);
        if let Some(socket) = context.given_socket() {
            return Ok(Way { socket: socket.clone(), start: None, rights });
        }
        let Place { paths, may_start } = context.place()?;
        let gateway =
            if self.read_only { paths.gateway_read_only() } else { paths.gateway().to_owned() };
        let Some(session) = &self.session else {
            let start = (may_start && !self.no_spawn).then_some(paths);
            return Ok(Way { socket: gateway, start, rights });
        };
        // A daemon that is started has no session that could be meant.
        let id = find(&gateway, session).await?;
        let socket = if self.read_only { paths.session_read_only(id) } else { paths.session(id) };
        Ok(Way { socket, start: None, rights })
    }
}

impl Way {
    async fn dial(&self, dial: Dial) -> Result<Upstream, Failure> {
        let connected = settled(async || Upstream::connect(&self.socket).await).await;
        match (connected, &self.start, dial) {
            (Ok(upstream), _, _) => Ok(upstream),
            (
                Err(ConnectError::Absent | ConnectError::Refused),
                Some(paths),
                Dial::ConnectOrStart,
            ) => {
                let reach = async || Upstream::connect(&self.socket).await.ok();
                start(paths, self.rights, Stay::Short, reach).await
            }
            (Err(source), _, _) => Err(Failure::Unreachable { path: self.socket.clone(), source }),
        }
    }
}

/// The id of the session that is meant.
async fn find(gateway: &Path, session: &str) -> Result<SessionId, Failure> {
    let daemon = Daemon::connect(gateway).await?;
    let listed = daemon.call("list_sessions", json!({"session": session})).await?;
    let id = listed.text_at("/sessions/0/id").parse();
    Ok(id.context("the daemon names no session")?)
}
