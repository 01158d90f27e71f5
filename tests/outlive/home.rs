//! A home in which one daemon gives way to another.

use std::fs;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use tokio::process::Command;
use tokio::sync::watch;

use crate::harness;
use crate::harness::daemon::Daemon;
use crate::harness::processes::PROGRAM;
use crate::harness::processes::{command_line, contains, stands_still};
use crate::harness::waiting::{line_in, until};
use crate::outlive::client::{Client, Gateway};

/// Such a home. Tests look at what it has as at any other's.
#[derive(Debug)]
pub(crate) struct Home {
    home: harness::home::Home,
    replaced: watch::Sender<()>,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self::with_root(|ground| ground.join("user"))
    }

    /// A home whose user's directories are where `place` says.
    pub(crate) fn with_root(place: impl FnOnce(&Path) -> PathBuf) -> Self {
        let home = harness::home::Home::with_root(place);
        Self { home, replaced: watch::Sender::new(()) }
    }

    /// Has the user's state directory elsewhere.
    pub(crate) fn keep_state_at(&self, place: &Path) {
        fs::create_dir_all(place).unwrap();
        let [.., (_, state), _, _, _] = self.environment();
        fs::remove_dir(&state).unwrap();
        std::os::unix::fs::symlink(place, state).unwrap();
    }

    pub(crate) fn gateway(&self) -> Gateway {
        let replaced = self.replaced.subscribe();
        Gateway { path: self.runtime("gateway.sock"), replaced }
    }

    /// Has a daemon stand still, and makes way for the next one: the lock is its own for as long as it
    /// lives, and only an operator can take it away. Says no when it had none yet, so that it is one of
    /// those that come next.
    pub(crate) async fn set_aside(&self, daemon: &Daemon) -> bool {
        stands_still(daemon.pid()).await;
        let lock = self.runtime("daemon.lock");
        let owner = fs::read_to_string(&lock).unwrap_or_default();
        let owned = owner.trim() == daemon.pid().to_string();
        if owned {
            fs::remove_file(lock).unwrap();
        }
        owned
    }

    /// Tells everybody who came by [`Self::gateway`] that daemons which were set aside are not to be waited
    /// for any more.
    pub(crate) fn tell_replaced(&self) {
        self.replaced.send_replace(());
    }

    /// The environment of its user as words for `env`.
    pub(crate) fn clean_environment(&self) -> String {
        let said = |(name, value)| format!("{name}={value}");
        self.environment().map(said).join(" ")
    }

    /// Starts a daemon from a shell with a limit, as words for `ulimit`, and waits until it serves.
    pub(crate) async fn serve_with_limit(&self, limit: &str) -> Daemon {
        let line = format!("ulimit {limit} && exec \"$0\" serve --allow-write");
        let mut command = self.command("bash");
        command.args(["-c", &line, PROGRAM]);
        let mut daemon = self.start(command);
        daemon.is_ready().await;
        daemon
    }

    /// A client of the daemon that serves now.
    pub(crate) async fn client(&self) -> Client {
        Client::find(&self.gateway().path).await
    }

    /// A client behind a bridge, which ends with it.
    pub(crate) async fn bridged_client(&self) -> Client {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut bridge = self.termgate("mcp --no-spawn");
        let theirs = OwnedFd::from(theirs);
        bridge.stdin(theirs.try_clone().unwrap()).stdout(theirs);
        let mut bridge = Command::from(bridge).spawn().unwrap();
        // Its end is that of its client.
        tokio::spawn(async move { bridge.wait().await });
        ours.set_nonblocking(true).unwrap();
        let stream = tokio::net::UnixStream::from_std(ours).unwrap();
        Client::over(stream).await.expect("there is a daemon behind it")
    }

    /// The process that holds the terminal of a session.
    pub(crate) fn shim(&self, session: &str) -> i32 {
        let socket = format!("{session}.sock");
        let holds = |pid: &i32| command_line(*pid).contains(&socket);
        self.shims().into_iter().find(holds).expect("somebody holds it")
    }

    /// The processes with this word in their command lines.
    pub(crate) fn running(&self, word: &str) -> Vec<i32> {
        let said = |pid: &i32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        self.processes().into_iter().filter(|pid| contains(&said(pid), word.as_bytes())).collect()
    }
}

impl Deref for Home {
    type Target = harness::home::Home;

    fn deref(&self) -> &Self::Target {
        &self.home
    }
}

/// Waits until one of two daemons has ended, and gives back that one first.
pub(crate) async fn first_to_end(mut one: Daemon, mut other: Daemon) -> (Daemon, Daemon) {
    until("a daemon to end", || one.ended().is_some() || other.ended().is_some()).await;
    if one.ended().is_some() { (one, other) } else { (other, one) }
}

/// Reads the number that a program wrote as a line of a file, once it is whole.
pub(crate) async fn number_in(path: &Path) -> u64 {
    line_in(path).await.parse().unwrap()
}
