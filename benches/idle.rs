//! How often a daemon with idle sessions, and those who hold its terminals, are woken for nothing.
//!
//! Sessions that nobody uses any more, each with an observer, whose leases have ended, beside as many
//! sessions of tmux with a control client each. Counted are switches of threads within a minute.

#![allow(clippy::print_stdout, reason = "a bench prints its results")]

#[allow(dead_code, reason = "each bench uses a part of what they share")]
mod support {
    pub(crate) mod agent;
    pub(crate) mod child;
    pub(crate) mod daemon;
    pub(crate) mod home;
    pub(crate) mod machine;
    pub(crate) mod placement;
    pub(crate) mod processes;
    pub(crate) mod samples;
    pub(crate) mod shims;
    pub(crate) mod tmux;
    pub(crate) mod watcher;
}

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use anyhow::ensure;
use nix::unistd::Pid;

use crate::support::agent::Agent;
use crate::support::child::Owned;
use crate::support::daemon::Daemon;
use crate::support::machine::{load, machine};
use crate::support::placement::Placement;
use crate::support::processes::{daemon, switches};
use crate::support::samples::now;
use crate::support::tmux::{self, Server};
use crate::support::watcher::Watcher;

/// How many sessions and observers there are.
const SESSIONS: usize = 50;
/// How long is counted.
const COUNTED: Duration = Duration::from_secs(60);
/// How long everything is left alone before, so that leases have ended and grace is over.
const PAUSE: Duration = Duration::from_secs(10);
/// Leases end soon, by themselves.
const CONFIG: &str = "[lease]\nttl_ms = 1000\ngrace_ms = 1000\n";

fn main() -> anyhow::Result<()> {
    Placement::TwoCores.enter()?;
    println!("{}; {}", machine(), tmux::version()?);
    let daemon_of_sessions = Daemon::start(Placement::TwoCores, CONFIG)?;
    let mut agent = Agent::connect(&daemon_of_sessions.gateway())?;
    let mut watchers = Vec::new();
    for number in 0..SESSIONS {
        let name = format!("idle{number}");
        let session = format_args!(r#"{{"name":"{name}","command":"cat","rows":24,"cols":80}}"#);
        agent.call("create_session", session)?;
        watchers.push(Watcher::start(&daemon_of_sessions.gateway(), &name)?);
    }
    let server = Server::start(Placement::TwoCores)?;
    let clients: Vec<Owned> = (0..SESSIONS).map(|_| client(&server)).collect::<Result<_, _>>()?;
    wait(PAUSE);

    let listed = agent.call("list_sessions", format_args!("{{}}"))?;
    ensure!(!listed.contains(r#""held":true"#), "a lease is held: {listed}");
    wait(PAUSE);

    let runtime = daemon_of_sessions.gateway().with_file_name("");
    let counted = [
        Counted::start("daemon", vec![daemon(&runtime)?])?,
        Counted::start("shims", support::shims::of(&runtime))?,
        Counted::start("tmux", vec![server.pid()])?,
    ];
    wait(COUNTED);
    println!("\n| who | processes | switches | a second | target |\n|---|---|---|---|---|");
    for counted in counted {
        counted.print()?;
    }
    println!("\n{}", load());
    drop((watchers, clients));
    Ok(())
}

/// Waits at least so long; being woken before would count less than was meant.
fn wait(time: Duration) {
    let until = now() + time;
    while now() < until {
        std::thread::park_timeout(until.saturating_sub(now()));
    }
}

/// Processes whose switches are counted.
struct Counted {
    who: &'static str,
    processes: Vec<Pid>,
    before: BTreeMap<i32, u64>,
}

impl Counted {
    fn start(who: &'static str, processes: Vec<Pid>) -> anyhow::Result<Self> {
        let before = count(&processes)?;
        ensure!(before.values().all(|count| *count > 0), "{who} were never switched");
        Ok(Self { who, processes, before })
    }

    fn print(&self) -> anyhow::Result<()> {
        let after = count(&self.processes)?;
        let since = |(thread, count): (&i32, &u64)| {
            count - self.before.get(thread).copied().unwrap_or_default()
        };
        let switches: u64 = after.iter().map(since).sum();
        let a_second = switches as f64 / COUNTED.as_secs_f64();
        let target = match (self.who, switches) {
            ("tmux", _) => "none",
            (_, 0) => "0: met",
            (_, 1..) => "0: missed",
        };
        let Self { who, processes, .. } = self;
        println!("| {who} | {} | {switches} | {a_second:.2} | {target} |", processes.len());
        Ok(())
    }
}

/// How often each of their threads was switched.
fn count(processes: &[Pid]) -> anyhow::Result<BTreeMap<i32, u64>> {
    let mut all = BTreeMap::new();
    for process in processes {
        all.extend(switches(*process)?);
    }
    Ok(all)
}

/// A control client with an idle session of its own.
fn client(server: &Server) -> anyhow::Result<Owned> {
    let mut command = server.client();
    command.args(["-C", "new-session", "-x", "80", "-y", "24", "cat"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    Ok(command.spawn().map(Owned)?)
}
