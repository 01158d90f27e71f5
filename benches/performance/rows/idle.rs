//! How often a daemon with idle sessions, and those who hold its terminals, are woken for nothing.
//!
//! Sessions that nobody uses any more, each with an observer, whose leases have ended, beside as many
//! sessions of tmux with a control client each. Counted are switches of threads within a minute.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use anyhow::ensure;
use nix::unistd::Pid;

use crate::support::agent::Agent;
use crate::support::child::Owned;
use crate::support::daemon::Daemon;
use crate::support::observers::Crowd;
use crate::support::placement::Placement;
use crate::support::processes::switches;
use crate::support::report::{Figure, Report, Target};
use crate::support::samples::{now, wait_until};
use crate::support::shims;
use crate::support::tmux::Server;

/// How many sessions and observers there are.
const SESSIONS: usize = 50;
/// How long is counted.
const COUNTED: Duration = Duration::from_secs(60);
/// How long everything is left alone before, so that leases have ended and grace is over.
const PAUSE: Duration = Duration::from_secs(10);
/// Leases end soon, by themselves.
const CONFIG: &str = "[lease]\nttl_ms = 1000\ngrace_ms = 1000\n";

pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    Placement::TwoCores.enter()?;
    let daemon_of_sessions = Daemon::start(Placement::TwoCores, CONFIG)?;
    let mut agent = Agent::connect(&daemon_of_sessions.gateway())?;
    let mut watchers = Vec::new();
    for number in 0..SESSIONS {
        let name = format!("idle{number}");
        let session = format_args!(r#"{{"name":"{name}","command":"cat","rows":24,"cols":80}}"#);
        agent.call("create_session", session)?;
        watchers.push(Crowd::observe(&daemon_of_sessions.gateway(), &name, 1)?);
    }
    let server = Server::start(Placement::TwoCores)?;
    let clients: Vec<Owned> = (0..SESSIONS).map(|_| client(&server)).collect::<Result<_, _>>()?;
    wait_until(now() + PAUSE);

    let listed = agent.call("list_sessions", format_args!("{{}}"))?;
    ensure!(!listed.contains(r#""held":true"#), "a lease is held: {listed}");
    wait_until(now() + PAUSE);

    let runtime = daemon_of_sessions.gateway().with_file_name("");
    let counted = [
        Counted::start("daemon", vec![daemon_of_sessions.pid()?])?,
        Counted::start("shims", shims::of(&runtime))?,
        Counted::start("tmux", vec![server.pid()])?,
    ];
    wait_until(now() + COUNTED);
    report.table(Placement::TwoCores, "| who | processes | switches | a second | target |");
    for counted in counted {
        counted.print(report)?;
    }
    drop((watchers, clients));
    Ok(())
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

    fn print(&self, report: &mut Report) -> anyhow::Result<()> {
        let after = count(&self.processes)?;
        let since = |(thread, count): (&i32, &u64)| {
            count - self.before.get(thread).copied().unwrap_or_default()
        };
        let switches: u64 = after.iter().map(since).sum();
        let a_second = switches as f64 / COUNTED.as_secs_f64();
        let Self { who, processes, .. } = self;
        let target = (*who != "tmux").then_some(Target::AtMost(0.0));
        let target = report.judge(who, &Figure::new(a_second, " a second"), target);
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
