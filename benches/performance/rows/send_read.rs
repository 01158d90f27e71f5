//! How long an agent's most common step takes: sending a few characters, then reading the screen.
//!
//! Two calls of termgate, and one call that sends, waits and returns what changed, beside two commands of a
//! lasting tmux control client, which is sent the program's output or not, and beside two tmux processes. The program in the terminal is the same:
//! raw input that the terminal echoes, 80 columns by 24 rows. Each repetition sends other
//! characters, so that it can tell whether what it read shows them already.

use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::support::agent::{Agent, number};
use crate::support::allocations::Allocations;
use crate::support::daemon::Daemon;
use crate::support::placement::Placement;
use crate::support::report::{Figure, Report, Target};
use crate::support::rounds::{Contender, Effect, Measured, take_turns};
use crate::support::samples::now;
use crate::support::table::{HEAD, compare};
use crate::support::tmux::{Control, Output, Server};

/// The program: it swallows what the terminal echoes.
const PROGRAM: &str = r"stty raw echo; printf 'ready\r\n'; exec cat >/dev/null";
/// How long the program, or the echo of what was sent, may take to show.
const SHOWN_MAX: Duration = Duration::from_secs(10);
/// How much of the time of tmux's two commands one call that sends and answers with what changed may take.
const STEP_TARGET: f64 = 0.6;
/// How long to leave a program alone that has not started yet.
const PAUSE: Duration = Duration::from_millis(5);
/// Repetitions of a turn that talks over a connection.
const CALLS: usize = 1_000;
/// Repetitions of a turn that starts processes.
const PROCESSES: usize = 100;
/// Repetitions of a turn that reads until it sees what it sent.
const UNTIL_SEEN: usize = 200;

/// Pairs after which nothing is asked for the first time any more, and those that are counted.
const PAIRS_BEFORE: u32 = 200;
const PAIRS: u32 = 2_000;
/// How often a daemon may ask for memory in a pair.
const ALLOCATIONS_MAX: Target = Target::AtMost(50.0);

pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    report.on_each_placement(HEAD, on)?;
    allocations(report)
}

/// Counts how often the daemon asks for memory while a program sends and reads.
fn allocations(report: &mut Report) -> anyhow::Result<()> {
    let counted = Allocations::prepare()?;
    let daemon = Daemon::counted(Placement::TwoCores, &counted)?;
    let mut terminal = Termgate::start(&daemon)?;
    for _ in 0..PAIRS_BEFORE {
        once(&mut terminal)?;
    }
    let before = counted.count()?;
    for _ in 0..PAIRS {
        once(&mut terminal)?;
    }
    let each = (counted.count()? - before) as f64 / f64::from(PAIRS);
    ensure!(each > 0.0, "nothing is counted");
    let each = Figure::new(each, "");
    report.table(Placement::TwoCores, "| work | allocations | target |");
    let target = report.judge("send + read, allocations", &each, ALLOCATIONS_MAX);
    println!("| send + read | {each} | {target} |");
    Ok(())
}

fn on(placement: Placement, report: &mut Report) -> anyhow::Result<()> {
    let daemon = Daemon::start(placement, "")?;
    let server = Server::start(placement)?;
    let mut ours = Termgate::start(&daemon)?;
    let mut told = Persistent::start(&server, "told", Output::Sent)?;
    let mut quiet = Persistent::start(&server, "quiet", Output::Withheld)?;
    let mut processes = Processes { server: &server, session: "quiet", texts: Texts::new('p') };

    let measured = take_turns(vec![
        Contender::new("termgate", CALLS, || once(&mut ours)),
        Contender::new("tmux -C", CALLS, || once(&mut told)),
        Contender::new("tmux -C, no-output", CALLS, || once(&mut quiet)),
        Contender::new("two tmux", PROCESSES, || once(&mut processes)),
    ])?;
    let target = match placement {
        Placement::OneCore => 0.9,
        Placement::TwoCores => 0.75,
    };
    print(report, "send + read", &measured, Some(target));
    let measured = take_turns(vec![
        Contender::new("termgate", UNTIL_SEEN, || until_seen(&mut ours)),
        Contender::new("tmux -C", UNTIL_SEEN, || until_seen(&mut told)),
        Contender::new("tmux -C, no-output", UNTIL_SEEN, || until_seen(&mut quiet)),
    ])?;
    print(report, "send, read until seen", &measured, None);
    let measured = take_turns(vec![
        Contender::new("termgate, one call", CALLS, || ours.step()),
        Contender::new("tmux -C", CALLS, || once(&mut told)),
        Contender::new("tmux -C, no-output", CALLS, || once(&mut quiet)),
    ])?;
    print(report, "a step", &measured, Some(STEP_TARGET));
    Ok(())
}

/// Prints the first of the measured beside each of the others; the target is for lasting clients.
fn print(report: &mut Report, work: &str, measured: &[Measured], target: Option<f64>) {
    let Some((ours, yardsticks)) = measured.split_first() else { return };
    for yardstick in yardsticks {
        let target = target.filter(|_| yardstick.name.starts_with("tmux -C"));
        compare(report, work, [ours, yardstick], target);
    }
}

/// A terminal that can be typed into and looked at.
trait Terminal {
    /// Sends characters that were never sent before.
    fn send(&mut self) -> anyhow::Result<()>;

    /// Looks at the screen, and whether it shows what was sent last.
    fn read(&mut self) -> anyhow::Result<Effect>;
}

fn once(terminal: &mut impl Terminal) -> anyhow::Result<Effect> {
    terminal.send()?;
    terminal.read()
}

fn until_seen(terminal: &mut impl Terminal) -> anyhow::Result<Effect> {
    terminal.send()?;
    shown(terminal)?;
    Ok(Effect::Seen)
}

fn shown(terminal: &mut impl Terminal) -> anyhow::Result<()> {
    let give_up = now() + SHOWN_MAX;
    while terminal.read()? == Effect::NotYet {
        ensure!(now() < give_up, "what was sent is never shown");
        // Without it, reader and daemon can keep the shim from the only core for seconds.
        std::thread::yield_now();
    }
    Ok(())
}

/// Waits for the program with pauses: two processes that wake each other without end can keep a third
/// from the only core for seconds.
fn ready(terminal: &mut impl Terminal) -> anyhow::Result<()> {
    let give_up = now() + SHOWN_MAX;
    while terminal.read()? == Effect::NotYet {
        ensure!(now() < give_up, "it shows nothing");
        std::thread::park_timeout(PAUSE);
    }
    Ok(())
}

/// Texts of eight columns, ten to a row, so that none is broken over two.
#[derive(Debug)]
struct Texts {
    mark: char,
    count: u32,
    /// The last one without the blank at its end, which screens do not keep.
    last: String,
}

impl Texts {
    fn new(mark: char) -> Self {
        Self { mark, count: 0, last: "ready".to_owned() }
    }

    fn next(&mut self) -> &str {
        self.count += 1;
        self.last = format!("{}{:06}", self.mark, self.count);
        &self.last
    }

    fn effect(&self, screen: &str) -> Effect {
        if screen.contains(&self.last) { Effect::Seen } else { Effect::NotYet }
    }
}

/// A session of termgate, with its lease.
struct Termgate {
    agent: Agent,
    session: String,
    since: u64,
    texts: Texts,
}

impl Termgate {
    fn start(daemon: &Daemon) -> anyhow::Result<Self> {
        let mut agent = Agent::connect(&daemon.gateway())?;
        let command = PROGRAM.replace('\\', "\\\\");
        let session = "bench".to_owned();
        agent.call(
            "create_session",
            format_args!(r#"{{"name":"{session}","command":"{command}","rows":24,"cols":80}}"#),
        )?;
        let mut started = Self { agent, session, since: 0, texts: Texts::new('k') };
        ready(&mut started).context("in termgate the program did not start")?;
        Ok(started)
    }
}

impl Termgate {
    /// Sends, waits until the program waits again, and gets what changed, in one call.
    fn step(&mut self) -> anyhow::Result<Effect> {
        let Self { agent, session, texts, .. } = self;
        let text = texts.next().to_owned();
        let arguments =
            format_args!(r#"{{"session":"{session}","text":"{text} ","wait_ms":5000}}"#);
        let effect = texts.effect(agent.call("send_text", arguments)?);
        ensure!(effect == Effect::Seen, "the answer does not show what was sent");
        Ok(effect)
    }
}

impl Terminal for Termgate {
    fn send(&mut self) -> anyhow::Result<()> {
        let Self { agent, session, texts, .. } = self;
        let text = texts.next();
        agent.call("send_text", format_args!(r#"{{"session":"{session}","text":"{text} "}}"#))?;
        Ok(())
    }

    fn read(&mut self) -> anyhow::Result<Effect> {
        let Self { agent, session, since, texts } = self;
        let arguments = format_args!(r#"{{"session":"{session}","since":{since}}}"#);
        let screen = agent.call("read_screen", arguments)?;
        *since = number(screen, "watermark")?;
        Ok(texts.effect(screen))
    }
}

/// A session of tmux, used by one control client that stays.
struct Persistent {
    control: Control,
    texts: Texts,
}

impl Persistent {
    fn start(server: &Server, session: &str, sent: Output) -> anyhow::Result<Self> {
        let control = Control::create(server, session, PROGRAM, sent)?;
        let mut started = Self { control, texts: Texts::new('c') };
        ready(&mut started).context("in tmux the program did not start")?;
        Ok(started)
    }
}

impl Terminal for Persistent {
    fn send(&mut self) -> anyhow::Result<()> {
        let text = self.texts.next();
        self.control.run(&format!("send-keys -l '{text} '\n"))?;
        Ok(())
    }

    fn read(&mut self) -> anyhow::Result<Effect> {
        Ok(self.texts.effect(self.control.run("capture-pane -p\n")?))
    }
}

/// A session of tmux, used by a process for each command.
struct Processes<'a> {
    server: &'a Server,
    session: &'a str,
    texts: Texts,
}

impl Processes<'_> {
    fn run(&self, command: &[&str]) -> anyhow::Result<String> {
        let output = self.server.client().args(command).output()?;
        ensure!(
            output.status.success(),
            "tmux failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?)
    }
}

impl Terminal for Processes<'_> {
    fn send(&mut self) -> anyhow::Result<()> {
        let text = format!("{} ", self.texts.next());
        self.run(&["send-keys", "-t", self.session, "-l", &text]).map(drop)
    }

    fn read(&mut self) -> anyhow::Result<Effect> {
        let screen = self.run(&["capture-pane", "-t", self.session, "-p"])?;
        Ok(self.texts.effect(&screen))
    }
}
