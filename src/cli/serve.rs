//! `serve`: runs the daemon until it is stopped.

use std::env;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use clap::{ArgAction, Args, ValueEnum};

use crate::cli::config::sources;
use crate::cli::context::{Context, runtime_paths};
use crate::cli::duration::parse_duration;
use crate::cli::exit::CommandExit;
use crate::cli::failure::CliFailure;
use crate::cli::logging::{LogFormat, start_logging};
use crate::cli::start::log::BoundedLog;
use crate::cli::status::switches;
use crate::config::Config;
use crate::config::key::Value;
use crate::config::paths::{RuntimePaths, state_directory};
use crate::config::sources::{Flag, Sources};
use crate::session::pty::environment::Environment;
use crate::session::pty::held::shims::OWN_PROGRAM;
use crate::shim::allocator::take_buffers_fresh;
use crate::shim::wire::FRAME_MAX;
use crate::transport::daemon::ending::DaemonEnd;
use crate::transport::daemon::kept_switches::SwitchOrigin;
use crate::transport::daemon::upgrade::DaemonProgram;
use crate::transport::daemon::{Banner, DaemonSettings, serve};
use crate::transport::stdio::serve_stdio;
use crate::transport::unix::handed::Handed;

/// From this many bytes on buffers are not recycled: those with all rows of a session would stay in memory, and the room
/// for a frame that each session has would be written as a whole.
const LARGE_BUFFER: i32 = FRAME_MAX as i32;

/// Run the daemon in the foreground
///
/// The daemon ends on SIGTERM, SIGINT or `termgate stop`. It also ends when its terminal closes; start it
/// with nohup to prevent that. On SIGHUP it reads its configuration again. On SIGUSR1 only the daemon ends:
/// its sessions keep running, and the next daemon resumes them.
///
/// With --stdio the daemon has no sockets. It serves one MCP client on standard input and output, and its
/// sessions end with it.
#[derive(Debug, Args)]
pub struct ServeCommand {
    /// Let clients write, as TERMGATE_ALLOW_WRITE=1 does; without it they can only watch
    #[arg(long)]
    allow_write: bool,
    /// Start read-only. This overrides the configuration, the environment and what was switched before a
    /// crash; `termgate allow-write on` switches writing on
    #[arg(long)]
    read_only: bool,
    /// The tools that clients have: `core` (terminals), `mounts` (mounted servers) [default: both]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SETS")]
    toolsets: Vec<ToolsetName>,
    /// Read this file instead of the system's and the user's; see `termgate config path`
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The format of the log on standard error
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// Log more; twice for everything
    #[arg(short, action = ArgAction::Count)]
    verbose: u8,
    /// Serve one client on standard input and output, with its own sessions
    #[arg(long, conflicts_with_all = ["socket", "linger", "detached"])]
    stdio: bool,
    /// End after this long without clients and sessions, unless a write switch was changed
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    linger: Option<Duration>,
    /// Create the gateway, the socket for MCP clients, at this path; the other sockets keep their paths
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Leave the terminal it was started from
    #[arg(long, hide = true)]
    detached: bool,
}

/// A set of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ToolsetName {
    Core,
    Mounts,
}

impl ServeCommand {
    /// Runs the command until the daemon is stopped or its terminal is closed.
    pub async fn run(self, context: &Context) -> Result<CommandExit, CliFailure> {
        take_buffers_fresh(LARGE_BUFFER);
        let mut log = None;
        if self.detached {
            // It fails if this process already leads a session.
            let _ = nix::unistd::setsid();
            log = BoundedLog::of_standard_error(&self.paths()?);
        }
        let logging = start_logging(self.log_format, self.verbose, log)?;
        if self.stdio {
            context.output.note_client_expected();
            self.serve_stdio().await?;
            return Ok(CommandExit::Done);
        }
        let settings = self.settings()?;
        let program = settings.program.clone();
        let ended = serve(settings, |banner| context.output.note(&banner_text(banner))).await?;
        // `exec` runs no destructors, so this reports the suppressed log lines first.
        drop(logging);
        match ended {
            DaemonEnd::Stopped | DaemonEnd::Left => Ok(CommandExit::Done),
            DaemonEnd::Unfinished => Ok(CommandExit::Failed),
            DaemonEnd::Replaced => Err(replace_by(&program)),
        }
    }

    /// The keys that flags set. `--read-only` comes last and wins.
    fn flags(&self) -> impl Iterator<Item = Flag> {
        let flag = |name, allow| Flag { name, key: "allow_write", value: Value::Switch(allow) };
        let write = self.allow_write.then(|| flag("--allow-write", true));
        let has = |set| self.toolsets.contains(&set);
        let set = |key, set| Flag { name: "--toolsets", key, value: Value::Switch(has(set)) };
        let sets =
            [set("toolsets.core", ToolsetName::Core), set("toolsets.mounts", ToolsetName::Mounts)];
        let sets = sets.into_iter().filter(|_| !self.toolsets.is_empty());
        let write = write.into_iter().chain(self.read_only.then(|| flag("--read-only", false)));
        write.chain(sets)
    }

    fn paths(&self) -> Result<RuntimePaths, CliFailure> {
        let paths = runtime_paths()?;
        let Some(gateway) = &self.socket else { return Ok(paths) };
        let gateway = std::path::absolute(gateway).context("--socket")?;
        Ok(paths.with_gateway(gateway).context("--socket")?)
    }

    fn settings(&self) -> Result<DaemonSettings, CliFailure> {
        let (default_cwd, environment) = surroundings()?;
        let sources = self.sources(&default_cwd, &environment)?;
        let config = load(&sources)?;
        let handed = Handed::take(|name| env::var_os(name)).context("the sockets handed over")?;
        let (paths, linger) = (self.paths()?, self.linger);
        let state = state_directory(|name| env::var_os(name));
        let program = self.program()?;
        Ok(DaemonSettings {
            config,
            read_only: self.read_only,
            sources,
            paths,
            environment,
            default_cwd,
            shim: PathBuf::from(OWN_PROGRAM),
            state,
            handed,
            linger,
            program,
        })
    }

    /// The running program, by its file's current name.
    fn program(&self) -> Result<DaemonProgram, CliFailure> {
        let path = env::current_exe().context("the program's own file is unknown")?;
        let path = by_its_name(path);
        let config = self.config.iter().flat_map(|file| ["--config".into(), file.into()]);
        let check = ["config".into(), "check".into()].into_iter().chain(config).collect();
        Ok(DaemonProgram { path, words: env::args_os().collect(), check })
    }

    async fn serve_stdio(&self) -> Result<(), CliFailure> {
        let (cwd, environment) = surroundings()?;
        let config = load(&self.sources(&cwd, &environment)?)?;
        let state = state_directory(|name| env::var_os(name));
        let state =
            state.context("there is no place for the journal; set HOME or XDG_STATE_HOME")?;
        let served = serve_stdio(&config, environment, cwd, &state).await;
        Ok(served.context("cannot serve standard input and output")?)
    }

    fn sources(&self, directory: &Path, environment: &Environment) -> Result<Sources, CliFailure> {
        let sources = sources(self.config.as_deref(), directory, environment)?;
        Ok(sources.with_flags(self.flags()))
    }
}

/// The path without the mark that the kernel adds when the file was replaced.
fn by_its_name(path: PathBuf) -> PathBuf {
    let name = path.to_str().and_then(|path| path.strip_suffix(" (deleted)"));
    match name {
        Some(name) if !path.exists() => PathBuf::from(name),
        Some(_) | None => path,
    }
}

/// Replaces this process by the program's file. Returns only on failure.
fn replace_by(program: &DaemonProgram) -> CliFailure {
    let mut command = Command::new(&program.path);
    if let Some((name, words)) = program.words.split_first() {
        command.arg0(name).args(words);
    }
    let error = command.exec();
    tracing::error!(%error, path = %program.path.display(), "the program was not replaced");
    let told =
        "the program was not replaced; the sessions keep running, and the next daemon resumes them";
    CliFailure::Other(anyhow::Error::new(error).context(told))
}

/// Loads the configuration and logs ignored values.
fn load(sources: &Sources) -> Result<Config, CliFailure> {
    let effective = sources.load()?;
    for note in &effective.notes {
        tracing::warn!("{note}");
    }
    Ok(effective.config)
}

/// The working directory and environment, which sessions start from.
fn surroundings() -> Result<(PathBuf, Environment), CliFailure> {
    let directory = env::current_dir().context("the current directory is gone")?;
    Ok((directory, env::vars_os().collect()))
}

/// The message of a ready daemon: whether it allows writing, where it listens, how to connect.
fn banner_text(banner: &Banner) -> String {
    let (state, other) = if banner.write.on.is_empty() { ("off", "on") } else { ("on", "off") };
    let told = match banner.write_from {
        SwitchOrigin::Configured => state.to_owned(),
        SwitchOrigin::Kept => {
            format!("{}, as it was switched before the restart", switches(&banner.write))
        }
        SwitchOrigin::Unknown => {
            format!("{state}: the setting from before the restart is unknown")
        }
    };
    let writing = format!("{told}; to switch it {other}, run: termgate allow-write {other}");
    let Banner { version, gateway, operator, sessions, .. } = banner;
    format!(
        "termgate {version} is ready\n\
         writing   {writing}\n\
         gateway   {}\n\
         operator  {}\n\
         sessions  {}/<id>.sock, and <id>.ro.sock to watch only\n\
         MCP clients connect to the gateway: newline-delimited JSON over that socket.",
        gateway.display(),
        operator.display(),
        sessions.display(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::status::{SwitchWire, WriteStatus};

    fn banner(on: Option<Option<u64>>, write_from: SwitchOrigin) -> Banner {
        let switch = |closes_in_ms| SwitchWire { scope: "everything".to_owned(), closes_in_ms };
        Banner {
            version: "9.9.9",
            write: WriteStatus {
                on: on.map(switch).into_iter().collect(),
                ..WriteStatus::default()
            },
            write_from,
            gateway: "/run/gateway.sock".into(),
            operator: "/run/operator.sock".into(),
            sessions: "/run/s".into(),
        }
    }

    #[test]
    fn the_banner_says_what_is_allowed_and_how_to_change_it() {
        let told = |on| banner_text(&banner(on, SwitchOrigin::Configured));
        assert!(told(None).contains("  off; to switch it on, run: termgate allow-write on\n"));
        let on = told(Some(None));
        assert!(on.contains("  on; to switch it off, run: termgate allow-write off\n"), "{on}");
    }

    #[test]
    fn the_banner_says_where_writing_is_not_as_configured_but_as_it_was_switched() {
        let told = |on| banner_text(&banner(on, SwitchOrigin::Kept));
        let off = "off everywhere, as it was switched before the restart; to switch it on, run:";
        assert!(told(None).contains(off));
        let (all, left) = (told(Some(None)), told(Some(Some(540_000))));
        assert!(all.contains("on for everything, as it was switched before the restart"), "{all}");
        assert!(left.contains("on for everything for 9m, as it was switched before"), "{left}");
        assert!(left.contains("to switch it off, run: termgate allow-write off"), "{left}");
        let unknown = banner_text(&banner(None, SwitchOrigin::Unknown));
        let off = "off: the setting from before the restart is unknown; to switch it on";
        assert!(unknown.contains(off), "{unknown}");
    }

    #[test]
    fn a_program_whose_file_was_replaced_already_is_looked_for_by_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("termgate");
        let marked = directory.path().join("termgate (deleted)");
        assert_eq!(by_its_name(marked.clone()), path);
        std::fs::write(&marked, "").unwrap();
        assert_eq!(by_its_name(marked.clone()), marked);
    }

    #[test]
    fn the_banner_says_where_the_sockets_are() {
        let text = banner_text(&banner(None, SwitchOrigin::Configured));
        for path in ["9.9.9", "/run/gateway.sock", "/run/operator.sock", "/run/s/<id>.sock"] {
            assert!(text.contains(path), "{path}");
        }
    }
}
