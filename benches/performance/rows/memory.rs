//! How much memory sessions take, in the daemon and in the processes that hold their terminals.
//!
//! An idle daemon, what each idle session adds, and what a session with 10,000 rows of history takes,
//! beside the same in tmux. Daemons and servers are new in every round, and take turns.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use nix::unistd::Pid;

use crate::support::agent::Agent;
use crate::support::daemon::Daemon;
use crate::support::placement::Placement;
use crate::support::processes::Memory;
use crate::support::report::{Figure, Report, Target};
use crate::support::samples::now;
use crate::support::shims;
use crate::support::tmux::Server;

const ROUNDS: usize = 3;
/// How many idle sessions there are, and how many with history: so many that what all share, such as the code that the first
/// one needs, is a small part of each.
const IDLE: usize = 50;
const FULL: usize = 16;
/// How many rows a session writes: those of its history and its screen.
const ROWS: usize = 10_024;
/// How long everything is left alone before it is weighed.
const PAUSE: Duration = Duration::from_secs(5);
/// How long writing may take.
const WRITTEN_MAX: Duration = Duration::from_secs(60);
/// The argument that makes the bench a program that writes rows.
const WRITE: &str = "--write-rows";

pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    Placement::TwoCores.enter()?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(weigh(Termgate::start)?);
        theirs.push(weigh(Tmux::start)?);
    }
    report.table(Placement::TwoCores, "| what | KiB | tmux | ratio | target |");
    let mut row = |what: &str, figure: fn(&Figures) -> u64, bound: Option<Bound>| {
        line(report, what, [median(&ours, figure), median(&theirs, figure)], bound);
    };
    row("idle, resident", |it| it.idle.resident, Some(Bound::KiB(16 * 1024)));
    row("idle, proportional", |it| it.idle.proportional, None);
    row("with a client, resident", |it| it.empty.resident, None);
    row("an idle session, server", |it| it.server_each, Some(Bound::KiB(300)));
    row("an idle session, shim, private", |it| it.shim_each, Some(Bound::KiB(200)));
    row("an idle session, files in memory", |it| it.kept_each, None);
    row("an idle session, all", |it| it.idle_each, None);
    row("10,000 rows of 80", |it| it.rows[0], Some(Bound::Ratio(0.5)));
    row("10,000 rows of 80, server", |it| it.rows_in_server[0], None);
    row("10,000 rows of 200", |it| it.rows[1], Some(Bound::Ratio(0.5)));
    row("10,000 rows of 200, server", |it| it.rows_in_server[1], None);
    Ok(())
}

/// What is to be kept to.
#[derive(Clone, Copy, Debug)]
enum Bound {
    KiB(u32),
    /// Of tmux's.
    Ratio(f64),
}

fn line(report: &mut Report, what: &str, [ours, theirs]: [u64; 2], bound: Option<Bound>) {
    let ratio = ours as f64 / theirs as f64;
    let (figure, target) = match bound {
        Some(Bound::KiB(most)) => (Figure::new(ours as f64, " KiB"), Some(f64::from(most))),
        Some(Bound::Ratio(most)) => (Figure::new(ratio, " of tmux"), Some(most)),
        None => (Figure::new(ratio, " of tmux"), None),
    };
    let target = report.judge(what, &figure, target.map(Target::AtMost));
    println!("| {what} | {ours} | {theirs} | {ratio:.2} | {target} |");
}

fn median(rounds: &[Figures], figure: fn(&Figures) -> u64) -> u64 {
    let mut values: Vec<u64> = rounds.iter().map(figure).collect();
    values.sort_unstable();
    values[values.len() / 2] / 1024
}

/// What one round found, in bytes.
#[derive(Debug)]
struct Figures {
    /// Before anybody came.
    idle: Memory,
    /// Without a session, once a client is there.
    empty: Memory,
    /// What each idle session adds to the server, and to all.
    server_each: u64,
    idle_each: u64,
    /// What each idle session keeps beside the server.
    shim_each: u64,
    kept_each: u64,
    /// What each session with rows takes, at 80 and at 200 columns.
    rows: [u64; 2],
    rows_in_server: [u64; 2],
}

/// Something that has sessions.
trait Terminals {
    /// The process that has the screens.
    fn server(&self) -> anyhow::Result<Pid>;

    /// The processes that hold the terminals, if others do.
    fn shims(&self) -> Vec<Pid>;

    /// Has its client come.
    fn greet(&mut self) -> anyhow::Result<()>;

    /// Creates a session that runs a program, with arguments that need no quoting.
    fn create(&mut self, name: &str, words: &[&str], cols: usize) -> anyhow::Result<()>;

    /// Waits until a session shows a text.
    fn shows(&mut self, name: &str, text: &str) -> anyhow::Result<()>;
}

fn weigh<T: Terminals>(start: fn() -> anyhow::Result<T>) -> anyhow::Result<Figures> {
    let mut terminals = start()?;
    let (idle, _) = memory(&terminals)?;
    terminals.greet()?;
    let (empty, _) = memory(&terminals)?;
    for number in 0..IDLE {
        terminals.create(&format!("idle{number}"), &["cat"], 80)?;
    }
    let (server, all) = memory(&terminals)?;
    let count = IDLE as u64;
    let shims = Memory::of(&terminals.shims())?;
    drop(terminals);
    let [narrow, wide] = [rows(start, 80, empty)?, rows(start, 200, empty)?];
    Ok(Figures {
        idle,
        empty,
        server_each: server.own.saturating_sub(empty.own) / count,
        idle_each: all.total().saturating_sub(empty.total()) / count,
        shim_each: shims.private / count,
        kept_each: shims.kept / count,
        rows: [narrow.0, wide.0],
        rows_in_server: [narrow.1, wide.1],
    })
}

/// What each of some sessions with rows takes, altogether and in the server.
fn rows<T: Terminals>(
    start: fn() -> anyhow::Result<T>,
    cols: usize,
    empty: Memory,
) -> anyhow::Result<(u64, u64)> {
    let mut terminals = start()?;
    terminals.greet()?;
    let program = std::env::current_exe()?.display().to_string();
    for number in 0..FULL {
        let name = format!("full{number}");
        terminals.create(&name, &[&program, WRITE, &cols.to_string()], cols)?;
        terminals.shows(&name, "the last of the rows")?;
    }
    let (server, all) = memory(&terminals)?;
    let each = |after: u64, before: u64| after.saturating_sub(before) / FULL as u64;
    Ok((each(all.total(), empty.total()), each(server.own, empty.own)))
}

/// The memory of the server, and of everything together, after a while.
fn memory(terminals: &impl Terminals) -> anyhow::Result<(Memory, Memory)> {
    std::thread::park_timeout(PAUSE);
    let server = terminals.server()?;
    let mut all = terminals.shims();
    all.push(server);
    Ok((Memory::of(&[server])?, Memory::of(&all)?))
}

struct Termgate {
    daemon: Daemon,
    agent: Option<Agent>,
}

impl Termgate {
    fn start() -> anyhow::Result<Self> {
        let daemon = Daemon::start(Placement::TwoCores, "")?;
        Ok(Self { daemon, agent: None })
    }

    fn call(&mut self, tool: &str, arguments: fmt::Arguments<'_>) -> anyhow::Result<&str> {
        self.agent.as_mut().context("no client has come")?.call(tool, arguments)
    }

    fn runtime(&self) -> PathBuf {
        self.daemon.gateway().with_file_name("")
    }
}

impl Terminals for Termgate {
    fn server(&self) -> anyhow::Result<Pid> {
        self.daemon.pid()
    }

    fn shims(&self) -> Vec<Pid> {
        shims::of(&self.runtime())
    }

    fn greet(&mut self) -> anyhow::Result<()> {
        self.agent = Some(Agent::connect(&self.daemon.gateway())?);
        Ok(())
    }

    fn create(&mut self, name: &str, words: &[&str], cols: usize) -> anyhow::Result<()> {
        let (program, arguments) = (words[0], &words[1..]);
        let size = format_args!(r#""lease":false,"rows":24,"cols":{cols}"#);
        let command = format_args!(r#""command":"{program}","args":{arguments:?}"#);
        self.call("create_session", format_args!(r#"{{"name":"{name}",{command},{size}}}"#))?;
        Ok(())
    }

    fn shows(&mut self, name: &str, text: &str) -> anyhow::Result<()> {
        let shown = format_args!(r#"{{"session":"{name}","text":"{text}","since":0}}"#);
        let answer = self.call("wait_for", shown)?;
        ensure!(answer.contains(r#""outcome":"matched""#), "it is not shown: {answer}");
        Ok(())
    }
}

struct Tmux(Server);

impl Tmux {
    fn start() -> anyhow::Result<Self> {
        let server = Server::start(Placement::TwoCores)?;
        server.client().args(["set-option", "-g", "history-limit", "10000"]).status()?;
        Ok(Self(server))
    }
}

impl Terminals for Tmux {
    fn server(&self) -> anyhow::Result<Pid> {
        Ok(self.0.pid())
    }

    fn shims(&self) -> Vec<Pid> {
        Vec::new()
    }

    fn greet(&mut self) -> anyhow::Result<()> {
        let listed = self.0.client().arg("list-sessions").status()?;
        ensure!(listed.success(), "tmux does not answer");
        Ok(())
    }

    fn create(&mut self, name: &str, words: &[&str], cols: usize) -> anyhow::Result<()> {
        let mut command = self.0.client();
        command.args(["new-session", "-d", "-x", &cols.to_string(), "-y", "24", "-s", name]);
        let created = command.arg(format!("exec {}", words.join(" "))).status()?;
        ensure!(created.success(), "tmux did not create a session");
        Ok(())
    }

    fn shows(&mut self, name: &str, text: &str) -> anyhow::Result<()> {
        let give_up = now() + WRITTEN_MAX;
        loop {
            let shown = self.0.client().args(["capture-pane", "-p", "-t", name]).output()?;
            if String::from_utf8_lossy(&shown.stdout).contains(text) {
                return Ok(());
            }
            ensure!(now() < give_up, "tmux does not show it");
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }
}

/// Writes rows of so many columns and waits, if that is what this process was started for.
#[allow(clippy::print_stdout, reason = "it is a program in a terminal then")]
pub(crate) fn write_if_asked() -> anyhow::Result<bool> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, asked, cols] = arguments.as_slice() else { return Ok(false) };
    if asked != WRITE {
        return Ok(false);
    }
    let cols: usize = cols.parse()?;
    let text = "the request of a session was answered from a cache that nobody had cleared ";
    let text = text.repeat(cols.div_ceil(text.len()) + 1);
    for row in 1..ROWS {
        let start = row % 40;
        println!("{row:>6} {}", &text[start..start + cols - 8]);
    }
    print!("the last of the rows");
    std::io::Write::flush(&mut std::io::stdout())?;
    std::io::stdin().read_line(&mut String::new())?;
    Ok(true)
}
