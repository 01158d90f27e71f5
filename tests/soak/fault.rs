//! What goes wrong on purpose, and what must be true right after it.

use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep, timeout};

use crate::harness::daemon::Daemon;
use crate::harness::dice::Dice;
use crate::harness::line_client::hello;
use crate::harness::processes::stands_still;
use crate::harness::waiting::LOOK;
use crate::outlive::client::{Client, start};
use crate::soak::puppet::{Puppet, TTL};
use crate::soak::world::World;

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    DaemonKilled,
    DaemonStandsStill,
    ObserverStandsStill,
    HolderStandsStill,
    ClientGoneInMessage,
    ShimKilled,
    SocketRemoved,
    DiskFull,
    HangUp,
    Upgrade,
}

/// How long something stands still, or is full, at most.
const STILL: Duration = Duration::from_millis(1_500);
/// How soon a removed socket is there again.
const SOCKET_BACK: Duration = Duration::from_secs(10);
/// By how much a lease may outlive its time: a timer, and a busy machine.
const LATE: Duration = Duration::from_millis(500);
/// How long something may take that takes a moment.
const PATIENCE: Duration = Duration::from_secs(20);

impl Fault {
    pub(crate) const ALL: [Self; 10] = [
        Self::DaemonKilled,
        Self::DaemonStandsStill,
        Self::ObserverStandsStill,
        Self::HolderStandsStill,
        Self::ClientGoneInMessage,
        Self::ShimKilled,
        Self::SocketRemoved,
        Self::DiskFull,
        Self::HangUp,
        Self::Upgrade,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::DaemonKilled => "daemon killed",
            Self::DaemonStandsStill => "daemon stands still",
            Self::ObserverStandsStill => "observer stands still",
            Self::HolderStandsStill => "holder stands still",
            Self::ClientGoneInMessage => "client gone in a message",
            Self::ShimKilled => "shim killed",
            Self::SocketRemoved => "socket removed",
            Self::DiskFull => "disk full",
            Self::HangUp => "SIGHUP",
            Self::Upgrade => "upgrade",
        }
    }

    /// The one of this name.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|fault| fault.name() == name);
        named.ok_or_else(|| format!("unknown fault `{name}`"))
    }

    /// Whether what the daemon has in memory is gone after it.
    pub(crate) fn ends_daemon(self) -> bool {
        self == Self::DaemonKilled || self == Self::Upgrade
    }
}

/// Who makes things go wrong.
#[derive(Debug)]
pub(crate) struct Mischief<'a> {
    pub(crate) world: &'a World,
    pub(crate) dice: Dice,
    pub(crate) daemon: Option<Daemon>,
    pub(crate) observer: Puppet,
    pub(crate) holder: Puppet,
    /// How long daemons took to serve after they were killed, at most.
    pub(crate) slowest_start: Duration,
}

impl Mischief<'_> {
    /// Has it go wrong and waits until it is over.
    pub(crate) async fn make(&mut self, fault: Fault) -> Result<(), String> {
        match fault {
            Fault::DaemonKilled => {
                self.kill_daemon().await;
                Ok(())
            }
            Fault::DaemonStandsStill => self.stop_daemon().await,
            Fault::ObserverStandsStill => self.stop_observer().await,
            Fault::HolderStandsStill => self.stop_holder().await,
            Fault::ClientGoneInMessage => self.leave_in_message().await,
            Fault::ShimKilled => self.kill_shim().await,
            Fault::SocketRemoved => self.remove_socket().await,
            Fault::DiskFull => self.fill_disk().await,
            Fault::HangUp => {
                self.daemon().signal(Signal::SIGHUP);
                Ok(())
            }
            Fault::Upgrade => self.world.printed("upgrade").await.map(drop),
        }
    }

    /// All sessions are there, with their programs.
    pub(crate) async fn all_are_there(&self) -> Result<(), String> {
        let mut client = self.world.home.client().await;
        for session in &self.world.sessions {
            let asked = json!({"session": session.id});
            let told = called(&mut client, "list_sessions", asked).await?;
            let told = &told["sessions"][0];
            if told["state"] != "running" || told["pid"] != session.pid {
                return Err(format!("{} is not as it was: {told}", session.id));
            }
        }
        Ok(())
    }

    fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("one serves between faults")
    }

    async fn kill_daemon(&mut self) {
        if let Some(daemon) = self.daemon.take() {
            daemon.kill().await;
        }
        sleep(self.dice.moment(STILL / 5)).await;
        let since = Instant::now();
        self.daemon = Some(self.world.serve().await);
        self.slowest_start = self.slowest_start.max(since.elapsed());
    }

    async fn stop_daemon(&mut self) -> Result<(), String> {
        stands_still(self.daemon().pid()).await;
        sleep(self.dice.moment(STILL)).await;
        self.daemon().signal(Signal::SIGCONT);
        Ok(())
    }

    async fn stop_observer(&mut self) -> Result<(), String> {
        self.observer.stands_still().await;
        sleep(STILL).await;
        self.observer.goes_on();
        if self.observer.has_ended() { Err("the observer has ended".to_owned()) } else { Ok(()) }
    }

    /// Who waits gets the lease of one who stands still when its time is up.
    async fn stop_holder(&mut self) -> Result<(), String> {
        let mut client = self.world.home.client().await;
        let session = &self.world.held;
        let is_held = async {
            while called(&mut client, "list_sessions", json!({"session": session})).await?["sessions"]
                [0]["lease"]["held"]
                != true
            {
                sleep(LOOK).await;
            }
            Ok::<(), String>(())
        };
        timeout(PATIENCE, is_held).await.map_err(|_| "nobody holds the lease".to_owned())??;
        self.holder.stands_still().await;
        let since = Instant::now();
        let asked = json!({"session": session, "ttl_ms": 1_000, "wait_ms": 10_000});
        let granted = called(&mut client, "acquire_lease", asked).await;
        let waited = since.elapsed();
        self.holder.goes_on();
        let lease = granted?["lease_id"].take();
        called(&mut client, "release_lease", json!({"lease_id": lease})).await?;
        // A miniature runs beside other tests, and is glad to get it.
        if self.world.plan.judges_figures && waited > TTL + LATE {
            return Err(format!("the lease of a holder that stands still lasted for {waited:?}"));
        }
        Ok(())
    }

    async fn leave_in_message(&mut self) -> Result<(), String> {
        let session = &self.world.held;
        let greeting =
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello("gone")});
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "acquire_lease", "arguments": {"session": session, "wait_ms": 10_000}}});
        let text = format!("{greeting}\n{call}\n");
        for _ in 0..20 {
            let cut = self.dice.below(text.len() as u64 + 1) as usize;
            let path = &self.world.home.gateway().path;
            let mut stream = UnixStream::connect(path).await.map_err(|error| error.to_string())?;
            stream.write_all(&text.as_bytes()[..cut]).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// A session whose shim is killed has ended, and is the only one.
    async fn kill_shim(&mut self) -> Result<(), String> {
        let mut client = self.world.home.client().await;
        let session = start(&mut client, "exec cat").await;
        let shim = self.world.home.shim(&session.id);
        kill(Pid::from_raw(shim), Signal::SIGKILL).map_err(|error| error.to_string())?;
        let asked = json!({"session": session.id, "exit": true, "timeout_ms": 10_000});
        let ended = called(&mut client, "wait_for", asked).await?;
        if ended["outcome"] != "exited" {
            return Err(format!("the session of a killed shim goes on: {ended}"));
        }
        let since = Instant::now();
        loop {
            let asked = json!({"session": session.id, "action": "kill"});
            let removed = called(&mut client, "manage_session", asked).await;
            // A look at all processes takes its time on a busy machine, and then is to be taken again.
            match removed {
                Err(error) if since.elapsed() > PATIENCE => return Err(error),
                Err(_) => sleep(LOOK * 50).await,
                Ok(_) => return Ok(()),
            }
        }
    }

    async fn remove_socket(&mut self) -> Result<(), String> {
        let names = ["gateway.sock", "operator.sock"];
        let path = self.world.home.runtime(names[self.dice.below(2) as usize]);
        fs::remove_file(&path).map_err(|error| error.to_string())?;
        let since = Instant::now();
        while Client::connect(&path).await.is_err() {
            if since.elapsed() > SOCKET_BACK {
                return Err(format!("{} is not there again", path.display()));
            }
            sleep(LOOK).await;
        }
        Ok(())
    }

    async fn fill_disk(&mut self) -> Result<(), String> {
        let Some(disk) = &self.world.disk else { return Ok(()) };
        let filling = disk.fill();
        sleep(self.dice.moment(STILL)).await;
        filling.abort();
        // It was aborted.
        let _ = filling.await;
        fs::remove_file(disk.filling()).map_err(|error| error.to_string())
    }
}

async fn called(client: &mut Client, tool: &str, arguments: Value) -> Result<Value, String> {
    match client.call(tool, arguments.clone()).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(format!("{tool} {arguments}: {error}")),
        Err(gone) => Err(format!("{tool} {arguments}: {gone:?}")),
    }
}
