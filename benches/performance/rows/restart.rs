//! How long a daemon that was killed and started again takes until it shows all its sessions.
//!
//! Daemons with many sessions, with few and with none take turns: each is killed without warning and
//! started anew. Timed is from its start until the answer in which no session is missing. What the
//! one without sessions takes is what any restart costs.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::support::agent::Agent;
use crate::support::child::Owned;
use crate::support::home::Home;
use crate::support::placement::Placement;
use crate::support::report::{Figure, Report, Target};
use crate::support::samples::{Samples, now};

/// How many sessions the daemons have, and within how many milliseconds they are to be there again.
const DAEMONS: [(usize, Option<Target>); 3] =
    [(0, None), (8, Some(Target::AtMost(300.0))), (200, Some(Target::AtMost(2_000.0)))];
/// How often each is killed; the first time does not count.
const TIMES: usize = 11;
/// How long a restart may take at all.
const RESTART_MAX: Duration = Duration::from_secs(30);
/// How long the daemons are left alone before one after the other is killed.
const PAUSE: Duration = Duration::from_secs(2);
/// A shell that has written three screens full and waits.
const PROGRAM: &str = "for i in $(seq 71); do echo \\\"$i a line of text as it is usual\\\"; done; \
    echo last line; exec sh";

pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    Placement::TwoCores.enter()?;
    let mut daemons = DAEMONS.map(|_| None);
    for (daemon, (sessions, _)) in daemons.iter_mut().zip(DAEMONS) {
        *daemon = Some(Restarted::start(sessions)?);
    }
    for time in 0..TIMES {
        std::thread::park_timeout(PAUSE);
        for daemon in daemons.iter_mut().flatten() {
            let took = daemon.restart()?;
            if time > 0 {
                daemon.samples.push(took);
            }
        }
    }
    report.table(Placement::TwoCores, "| sessions | until all are shown, p50 | most | target |");
    for (daemon, (sessions, target)) in daemons.iter().flatten().zip(DAEMONS) {
        let median = Figure::millis(daemon.samples.median());
        let target = report.judge(format!("{sessions} sessions"), &median, target);
        let most = Figure::millis(daemon.samples.p99());
        println!("| {sessions} | {median} | {most} | {target} |");
    }
    Ok(())
}

/// A daemon that is started again and again with the same sessions.
struct Restarted {
    process: Owned,
    home: Home,
    sessions: usize,
    samples: Samples,
}

impl Restarted {
    fn start(sessions: usize) -> anyhow::Result<Self> {
        let home = Home::new("")?;
        let process = serve(&home)?;
        let started = Self { process, home, sessions, samples: Samples::default() };
        let mut agent = started.agent()?;
        for number in 0..sessions {
            let command = format_args!(r#""command":"sh","args":["-c","{PROGRAM}"]"#);
            let lease = r#""lease":false,"rows":24,"cols":80"#;
            let session = format_args!(r#"{{"name":"s{number}",{command},{lease}}}"#);
            agent.call("create_session", session)?;
        }
        for number in 0..sessions {
            let shown = format_args!(r#"{{"session":"s{number}","text":"last line","since":0}}"#);
            let answer = agent.call("wait_for", shown)?;
            ensure!(answer.contains(r#""outcome":"matched""#), "it wrote nothing: {answer}");
        }
        Ok(started)
    }

    /// Kills the daemon, starts it anew, and says how long it took until all sessions were shown.
    fn restart(&mut self) -> anyhow::Result<Duration> {
        self.process.0.kill()?;
        self.process.0.wait()?;
        let started = now();
        let give_up = started + RESTART_MAX;
        self.process = serve(&self.home)?;
        let mut agent = self.agent()?;
        loop {
            let shown = agent.count_sessions()?;
            if shown == self.sessions {
                break;
            }
            ensure!(now() < give_up, "{shown} of {} sessions are there", self.sessions);
        }
        let took = now() - started;
        for number in 0..self.sessions {
            let screen = format_args!(r#"{{"session":"s{number}"}}"#);
            let screen = agent.call("read_screen", screen)?;
            ensure!(screen.contains("last line"), "s{number} is not as it was: {screen}");
        }
        Ok(took)
    }

    /// Comes as an operator, who is shown every session.
    fn agent(&self) -> anyhow::Result<Agent> {
        let give_up = now() + RESTART_MAX;
        loop {
            match Agent::connect(&self.home.runtime().join("operator.sock")) {
                Ok(agent) => return Ok(agent),
                Err(error) => ensure!(now() < give_up, "the daemon does not answer: {error:#}"),
            }
            std::thread::park_timeout(Duration::from_micros(200));
        }
    }
}

fn serve(home: &Home) -> anyhow::Result<Owned> {
    let mut command = home.serve(Placement::TwoCores, &[]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(Owned).context("cannot start the daemon")
}
