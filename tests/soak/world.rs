//! What all who take part in a soak share: the daemon's home, the sessions, and what they found wrong.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, timeout};

use crate::harness::daemon::Daemon;
use crate::harness::disk::Disk;
use crate::outlive::client::{Client, Gone, Started, start};
use crate::outlive::home::Home;
use crate::outlive::programs::recorder;
use crate::soak::fault::Fault;
use crate::soak::latency::Latency;
use crate::soak::plan::Plan;
use crate::soak::printer::Printer;

/// More than these are only counted.
const FINDINGS_MAX: usize = 50;
/// How long a command may take.
const COMMAND_MAX: Duration = Duration::from_secs(60);
/// Enough for a state directory whose journal and index are bounded to less.
const DISK_KIB: u64 = 192 * 1024;
const SETTINGS: &str = "[lease]\ngrace_ms = 100\n[search]\nbytes = 16777216\n";

/// A session that writers type into, and what its program read.
#[derive(Debug)]
pub(crate) struct Typed {
    pub(crate) id: String,
    pub(crate) log: PathBuf,
}

/// Everything that all share.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) home: Home,
    /// Where the state is, where one may mount a disk.
    pub(crate) disk: Option<Disk>,
    /// Where it is mounted.
    _ground: TempDir,
    pub(crate) began: Instant,
    pub(crate) stops: AtomicBool,
    /// All that must be there to the end, with their processes.
    pub(crate) sessions: Vec<Started>,
    pub(crate) typed: Vec<Typed>,
    pub(crate) churned: Typed,
    /// Who holds its lease stands still now and then.
    pub(crate) held: String,
    pub(crate) printers: Vec<Printer>,
    pub(crate) reads: Latency,
    pub(crate) writes: Latency,
    pub(crate) calls: AtomicU64,
    pub(crate) observed_bytes: AtomicU64,
    pub(crate) checked_rows: AtomicU64,
    /// Odd while a fault and its consequences last.
    faults: AtomicU64,
    findings: Mutex<(usize, Vec<String>)>,
}

impl World {
    /// Starts a daemon and all sessions.
    pub(crate) async fn begin(plan: Plan) -> (Arc<Self>, Daemon) {
        let ground = tempfile::Builder::new().prefix("tgs").tempdir().unwrap();
        let disk = Disk::mount(ground.path(), DISK_KIB).await;
        let home = Home::new();
        if let Some(disk) = &disk {
            home.keep_state_at(&disk.path.join("state"));
        }
        home.configure(SETTINGS);
        let daemon = serve(&home, &plan).await;
        let mut client = home.client().await;
        let mut sessions = Vec::new();
        let mut typed = Vec::new();
        for number in 0..=plan.writers {
            let log = home.path(&format!("read{number}"));
            let session = start(&mut client, &recorder(&log)).await;
            let said = json!({"session": session.id, "text": "recording", "since": 0});
            client.must("wait_for", said).await;
            typed.push(Typed { id: session.id.clone(), log });
            sessions.push(session);
        }
        let churned = typed.pop().unwrap();
        let mut printers = Vec::new();
        for (name, burst) in [("busy", 20), ("calm", 2)] {
            let line = Printer::line(&home, name, burst);
            let session = start(&mut client, &line).await;
            printers.push(Printer::of(&home, name, &session.id));
            sessions.push(session);
        }
        for _ in 0..plan.flooding {
            sessions.push(start(&mut client, "exec yes 'a line of a program that floods'").await);
        }
        let held = start(&mut client, "exec cat").await;
        let mut idle = vec![held.clone()];
        while sessions.len() + idle.len() < plan.sessions {
            idle.push(start(&mut client, "echo idle; exec cat").await);
        }
        sessions.extend(idle);
        let world = Self {
            plan,
            home,
            disk,
            _ground: ground,
            began: Instant::now(),
            stops: AtomicBool::new(false),
            sessions,
            typed,
            churned,
            held: held.id,
            printers,
            reads: Latency::default(),
            writes: Latency::default(),
            calls: AtomicU64::new(0),
            observed_bytes: AtomicU64::new(0),
            checked_rows: AtomicU64::new(0),
            faults: AtomicU64::new(0),
            findings: Mutex::default(),
        };
        (Arc::new(world), daemon)
    }

    /// Starts the next daemon, and waits until it serves.
    pub(crate) async fn serve(&self) -> Daemon {
        serve(&self.home, &self.plan).await
    }

    pub(crate) fn goes_on(&self) -> bool {
        !self.stops.load(Ordering::Relaxed)
    }

    /// Whether this can go wrong here.
    pub(crate) fn can_make(&self, fault: Fault) -> bool {
        self.plan.without != Some(fault) && (fault != Fault::DiskFull || self.disk.is_some())
    }

    /// Notes what must not be.
    pub(crate) fn finds(&self, what: impl Into<String>) {
        let (count, findings) = &mut *self.findings.lock().unwrap();
        *count += 1;
        if findings.len() < FINDINGS_MAX {
            let what = what.into();
            eprintln!("FOUND after {:?}: {what}", self.began.elapsed());
            findings.push(what);
        }
    }

    /// How much was found wrong.
    pub(crate) fn found(&self) -> usize {
        self.findings.lock().unwrap().0
    }

    /// Whether a fault lasts, or did since this was the number of them.
    pub(crate) fn is_calm_since(&self, before: u64) -> bool {
        before.is_multiple_of(2) && self.faults.load(Ordering::Relaxed) == before
    }

    pub(crate) fn faults(&self) -> u64 {
        self.faults.load(Ordering::Relaxed)
    }

    /// A fault begins, or its consequences have ended.
    pub(crate) fn turn(&self) {
        self.faults.fetch_add(1, Ordering::Relaxed);
    }

    /// Calls a tool, and notes how long it took if nothing went wrong on purpose meanwhile. An error counts as
    /// found unless a fault may be its cause.
    pub(crate) async fn timed(
        &self,
        client: &mut Client,
        latency: &Latency,
        tool: &str,
        arguments: Value,
    ) -> Result<Result<Value, Value>, Gone> {
        let (before, since) = (self.faults(), Instant::now());
        let answer = client.call(tool, arguments).await;
        self.calls.fetch_add(1, Ordering::Relaxed);
        let calm = self.is_calm_since(before);
        if calm {
            latency.add(since.elapsed());
        }
        match &answer {
            Ok(Err(error)) if calm && error["error_code"] != "lease_held" => {
                self.finds(format!("{tool} between faults: {error}"));
            }
            Err(Gone) if calm => self.finds(format!("{tool} between faults: hung up")),
            Ok(_) | Err(Gone) => {}
        }
        answer
    }

    /// The program under test with these words.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = self.home.command(&self.plan.program);
        command.args(line.split_whitespace());
        command
    }

    /// Runs the program to its end.
    pub(crate) async fn run(&self, line: &str) -> Result<Output, String> {
        let mut command = tokio::process::Command::from(self.command(line));
        command.kill_on_drop(true);
        match timeout(COMMAND_MAX, command.output()).await {
            Ok(Ok(output)) => Ok(output),
            Ok(Err(error)) => Err(format!("{line}: {error}")),
            Err(_) => Err(format!("{line} did not end in {COMMAND_MAX:?}")),
        }
    }

    /// Runs the program, which must succeed, and gives back what it printed.
    pub(crate) async fn printed(&self, line: &str) -> Result<String, String> {
        let output = self.run(line).await?;
        let (said, failed) = (String::from_utf8_lossy(&output.stdout), !output.status.success());
        if failed {
            return Err(format!("{line}: {said}{}", String::from_utf8_lossy(&output.stderr)));
        }
        Ok(said.into_owned())
    }
}

async fn serve(home: &Home, plan: &Plan) -> Daemon {
    let mut command = home.command(&plan.program);
    command.args(["serve", "--allow-write"]);
    let mut daemon = home.start(command);
    daemon.is_ready().await;
    daemon
}
