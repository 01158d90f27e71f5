//! `mcp`: connects an MCP client on standard input and output to the daemon.
//!
//! It finds the socket and the daemon; the bridge forwards the messages.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;

use crate::cli::context::Context;
use crate::cli::daemon::DaemonClient;
use crate::cli::exit::CommandExit;
use crate::cli::expected::expected_at;
use crate::cli::failure::CliFailure;
use crate::cli::logging::{LogFormat, start_logging};
use crate::cli::start::{DaemonStart, StartRights, Stay, connect_or_start};
use crate::core::code::Code;
use crate::core::ids::SessionId;
use crate::core::token::Secret;
use crate::session::pty::environment::ClientEnvironment;
use crate::transport::bridge::{CreationDefaults, Dial, Undialed, Upstream, bridge};
use crate::transport::client::ConnectError;
use crate::transport::connection::link;
use crate::transport::signals::Signals;
use crate::transport::tokens::read_secret;
use crate::wire::error::ErrorWire;

/// Connect an MCP client on standard input and output to the daemon
///
/// Starts the daemon when none is running, unless TERMGATE_AUTOSTART=0. Such a daemon exits when no
/// client is connected and no session is left. With --socket it connects to that socket and starts
/// nothing.
#[derive(Debug, Args)]
pub struct McpCommand {
    /// Show only this session: id, unique prefix of one, or name
    #[arg(long, value_name = "SESSION", conflicts_with = "socket")]
    session: Option<String>,
    /// Only watch, even if the daemon allows writing
    #[arg(long, conflicts_with_all = ["allow_write", "socket"])]
    read_only: bool,
    /// Start the daemon with writing allowed; a running daemon keeps its switches
    #[arg(long, conflicts_with_all = ["session", "socket", "no_spawn"])]
    allow_write: bool,
    /// Do not start a daemon
    #[arg(long)]
    no_spawn: bool,
    /// Connect to this socket of a daemon, and start none
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Present the token in this file, from `termgate token new`, on every connection
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// How to reach the daemon.
struct Way {
    socket: PathBuf,
    /// With `--session`: the daemon's gateway, which answers even without that session, and the session.
    gateway: Option<(PathBuf, SessionId)>,
    /// How to start one, if allowed.
    start: Option<DaemonStart>,
    token_file: Option<PathBuf>,
}

impl McpCommand {
    /// Runs the command until the client disconnects, or until SIGTERM or SIGINT.
    pub async fn run(self, context: &Context) -> Result<CommandExit, CliFailure> {
        let signals = Signals::listen().context("cannot listen to signals")?;
        let _logging = start_logging(LogFormat::Text, 0, None)?;
        let way = self.way(context).await?;
        let upstream = way.dial(Dial::ConnectOrStart).await?;
        context.output.note_client_expected();
        let cwd = env::current_dir().ok();
        let environment = ClientEnvironment::of(env::vars_os());
        let defaults = CreationDefaults::of(cwd.as_deref(), &environment);
        let dial = async |dial| way.dial(dial).await.map_err(undialed);
        tokio::select! {
            () = bridge(link::stdio(), upstream, dial, defaults) => {}
            _ = signals.told() => {}
        }
        Ok(CommandExit::Done)
    }

    async fn way(&self, context: &Context) -> Result<Way, CliFailure> {
        let way = |socket| Way {
            socket,
            gateway: None,
            start: None,
            token_file: self.token_file.clone(),
        };
        if let Some(socket) = &self.socket {
            // The argument parser does not see a socket before the subcommand.
            if self.read_only || self.allow_write || self.session.is_some() {
                let words = "--socket cannot be used with --read-only, --allow-write or --session";
                return Err(CliFailure::Usage(words.to_owned()));
            }
            return Ok(way(socket.clone()));
        }
        let (paths, may_start) = context.place()?;
        let gateway =
            if self.read_only { paths.gateway_read_only() } else { paths.gateway().to_owned() };
        let Some(session) = &self.session else {
            let rights = StartRights::of_flag(self.allow_write);
            let start = DaemonStart { paths, rights, stay: Stay::Short };
            let start = Some(start).filter(|_| may_start && !self.no_spawn);
            return Ok(Way { start, ..way(gateway) });
        };
        // A daemon that we would start does not have the session.
        let id = find(&gateway, session, self.token_file.as_deref()).await?;
        let socket = if self.read_only { paths.session_read_only(id) } else { paths.session(id) };
        Ok(Way { gateway: Some((gateway, id)), ..way(socket) })
    }
}

impl Way {
    async fn dial(&self, dial: Dial) -> Result<Upstream, CliFailure> {
        let secret = self.token_file.as_deref().map(secret_in).transpose()?;
        let connect = async || {
            Upstream::connect(&self.socket, expected_at(&self.socket), secret.as_ref()).await
        };
        let start = self.start.as_ref().filter(|_| dial == Dial::ConnectOrStart);
        match connect_or_start(connect, start).await? {
            Ok(upstream) => Ok(upstream),
            Err(ConnectError::Rejected(said)) => Err(CliFailure::of_tool(*said)),
            Err(source) => Err(self.absence(source).await),
        }
    }

    /// The failure when no process listens at the socket: a daemon may run without the session.
    async fn absence(&self, source: ConnectError) -> CliFailure {
        let is_gone = matches!(source, ConnectError::Absent | ConnectError::Refused);
        let daemon = match &self.gateway {
            Some((gateway, id)) if is_gone => {
                let secret = self.token_file.as_deref().and_then(|file| secret_in(file).ok());
                let daemon = DaemonClient::try_connect_as(gateway, secret.as_ref()).await.ok();
                daemon.map(|daemon| (daemon, id.to_string()))
            }
            Some(_) | None => None,
        };
        match daemon {
            Some((daemon, id)) if daemon.is_silent(&id, Duration::ZERO).await.unwrap_or(false) => {
                let message = "the terminal of the session does not answer";
                CliFailure::of_tool(ErrorWire::new(Code::TerminalSilent, message))
            }
            // The session may have returned meanwhile, which the next attempt will show.
            Some(_) => {
                let message = "the session is no longer there";
                CliFailure::of_tool(ErrorWire::new(Code::SessionNotFound, message))
            }
            None => CliFailure::unreachable(self.socket.clone(), source).without_start(),
        }
    }
}

/// Reads the secret from a token's file.
fn secret_in(file: &Path) -> Result<Secret, CliFailure> {
    let failed = |source| CliFailure::TokenFile { path: file.to_owned(), source };
    read_secret(file).map_err(failed)
}

/// Why a bridge that lost its daemon reaches none. A rejection keeps its own code; every other failure
/// means that the daemon is unavailable.
fn undialed(failure: CliFailure) -> Undialed {
    let turned_away = matches!(failure, CliFailure::TokenFile { .. } | CliFailure::Tool { .. });
    let code = failure.code().and_then(Code::parse).filter(|_| turned_away);
    let code = code.unwrap_or(Code::UpstreamUnavailable);
    Undialed { code, reason: failure.to_string() }
}

/// Finds a session among those that the owner of the token sees.
async fn find(
    gateway: &Path,
    session: &str,
    token_file: Option<&Path>,
) -> Result<SessionId, CliFailure> {
    let secret = token_file.map(secret_in).transpose()?;
    let daemon = DaemonClient::try_connect_as(gateway, secret.as_ref()).await;
    let daemon = daemon.map_err(|source| CliFailure::unreachable(gateway.to_owned(), source))?;
    let session = daemon.session(session).await?;
    Ok(session.id.parse().context("the daemon names no session")?)
}
