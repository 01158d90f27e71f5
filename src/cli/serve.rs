//! `serve`: runs the daemon until it is told to stop.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args};

use crate::cli::context::{Context, runtime_paths};
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::logging::{LogFormat, start_logging};
use crate::config::Config;
use crate::config::paths::RuntimePaths;
use crate::transport::daemon::{Banner, Settings, serve};

/// Run the daemon in the foreground
///
/// With --socket its gateway listens at that path; all other sockets stay where they are.
#[derive(Debug, Args)]
pub struct Serve {
    /// Let clients write; without it they only watch
    #[arg(long, env = "TERMGATE_ALLOW_WRITE", value_parser = BoolishValueParser::new())]
    allow_write: bool,
    /// Start read-only, whatever the configuration and the environment say; `allow-write on` still
    /// switches writing on
    #[arg(long)]
    read_only: bool,
    /// Read the configuration from this file [default: termgate/config.toml in XDG_CONFIG_HOME]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The form of the log on standard error
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// Log more; twice for everything
    #[arg(short, action = ArgAction::Count)]
    verbose: u8,
    /// Leave the terminal it was started from
    #[arg(long, hide = true)]
    detached: bool,
}

impl Serve {
    /// Runs the command, until SIGTERM, SIGINT or `stop`.
    ///
    /// # Errors
    /// Why there is no daemon.
    pub async fn run(self, context: &Context) -> Result<Exit, Failure> {
        if self.detached {
            // It fails where we have left already.
            let _ = nix::unistd::setsid();
        }
        start_logging(self.log_format, self.verbose)?;
        let settings = self.settings(context)?;
        serve(settings, |banner| context.output.note(&banner_text(banner)))
            .await
            .context("cannot run the daemon")?;
        Ok(Exit::Done)
    }

    fn settings(&self, context: &Context) -> Result<Settings, Failure> {
        let file = self.config.clone().or_else(|| usual_config(|name| env::var_os(name)));
        let mut config = Config::load(file.as_deref()).context("the configuration")?;
        config.allow_write = (config.allow_write || self.allow_write) && !self.read_only;
        let default_cwd = env::current_dir().context("the current directory is gone")?;
        let environment = env::vars_os().collect();
        Ok(Settings { config, paths: paths(context)?, environment, default_cwd })
    }
}

/// The configuration where it usually is, if it is there: in `$XDG_CONFIG_HOME`, else `~/.config`.
fn usual_config(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let directory =
        absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(directory.join("termgate/config.toml")).filter(|path| path.exists())
}

fn paths(context: &Context) -> Result<RuntimePaths, Failure> {
    let paths = runtime_paths()?;
    let Some(gateway) = context.given_socket() else { return Ok(paths) };
    let gateway = std::path::absolute(gateway).context("--socket")?;
    Ok(paths.with_gateway(gateway).context("--socket")?)
}

/// What a daemon that is ready says of itself: what it allows, where it is, how to come in.
fn banner_text(banner: &Banner) -> String {
    let writing = if banner.allow_write {
        "on; to switch it off, run: termgate allow-write off"
    } else {
        "off; to switch it on, run: termgate allow-write on"
    };
    let Banner { version, gateway, operator, sessions, .. } = banner;
    format!(
        "termgate {version} is ready\n\
         writing   {writing}\n\
         gateway   {}\n\
         operator  {}\n\
         sessions  {}/<id>.sock, and <id>.ro.sock to watch only\n\
         An MCP client comes in at the gateway: newline-delimited JSON over that socket.",
        gateway.display(),
        operator.display(),
        sessions.display(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn banner(allow_write: bool) -> Banner {
        Banner {
            version: "9.9.9",
            allow_write,
            gateway: "/run/gateway.sock".into(),
            operator: "/run/operator.sock".into(),
            sessions: "/run/s".into(),
        }
    }

    #[test]
    fn the_configuration_is_found_where_it_usually_is() {
        let directory = tempfile::tempdir().unwrap();
        let at_home = directory.path().join(".config/termgate/config.toml");
        let home = |name: &str| (name == "HOME").then(|| directory.path().into());
        assert_eq!(usual_config(home), None);
        std::fs::create_dir_all(at_home.parent().unwrap()).unwrap();
        std::fs::write(&at_home, "").unwrap();
        assert_eq!(usual_config(home), Some(at_home));
        let elsewhere = |name: &str| match name {
            "XDG_CONFIG_HOME" => Some("/nowhere".into()),
            _ => home(name),
        };
        assert_eq!(usual_config(elsewhere), None);
        assert_eq!(usual_config(|_| None), None);
    }

    #[test]
    fn the_banner_says_what_is_allowed_and_how_to_change_it() {
        assert!(banner_text(&banner(false)).contains("off; to switch it on"));
        assert!(banner_text(&banner(true)).contains("on; to switch it off"));
    }

    #[test]
    fn the_banner_says_where_the_sockets_are() {
        let text = banner_text(&banner(false));
        for path in ["9.9.9", "/run/gateway.sock", "/run/operator.sock", "/run/s/<id>.sock"] {
            assert!(text.contains(path), "{path}");
        }
    }
}
