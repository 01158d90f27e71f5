//! How long a new session takes until its shell takes input: one, and fifty at once.
//!
//! Beside tmux, by a process for each and by one control client, and beside a shell that is started in
//! a bare terminal. Every shell tells that it prompts through the same pipe.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::support::agent::Agent;
use crate::support::daemon::Daemon;
use crate::support::placement::Placement;
use crate::support::report::Report;
use crate::support::rounds::{Contender, take_turns};
use crate::support::samples::now;
use crate::support::shell::BareShell;
use crate::support::table::{HEAD, compare};
use crate::support::tmux::{Control, Output, Server};

const PLACEMENT: Placement = Placement::TwoCores;
/// How many are created at once, and how often in a turn.
const KINDS: [(usize, usize); 2] = [(1, 10), (50, 1)];
/// How long a shell may take, in milliseconds.
const PROMPT_MAX: u16 = 10_000;

pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    PLACEMENT.enter()?;
    report.table(PLACEMENT, HEAD);
    let home = tempfile::tempdir()?;
    let home = home.path();
    let prompts = Prompts::of_shells_in(home)?;
    let daemon = Daemon::start(PLACEMENT, "")?;
    let mut agent = Agent::connect(&daemon.gateway())?;
    let server = Server::start(PLACEMENT)?;
    let mut control = Control::create(&server, "kept", "cat", Output::Withheld)?;
    let mut other = Control::attach(&server, "kept")?;
    for (at_once, times) in KINDS {
        let measured = take_turns(vec![
            Contender::told("termgate", times, || in_termgate(&mut agent, home, at_once, &prompts)),
            Contender::told("tmux", times, || {
                let begun = now();
                let clients = (0..at_once).map(|number| {
                    server.client().args(new_session(home, number).split(' ')).spawn()
                });
                for mut client in clients.collect::<Result<Vec<_>, _>>()? {
                    ensure!(client.wait()?.success(), "tmux created no session");
                }
                let took = prompts.since(begun, at_once)?;
                end_all(&mut other, at_once)?;
                Ok(took)
            }),
            Contender::told("tmux -C", times, || {
                let begun = now();
                let all = (0..at_once).map(|number| new_session(home, number) + "\n");
                control.begin(&all.collect::<String>())?;
                (0..at_once).try_for_each(|_| control.answer().map(drop))?;
                let took = prompts.since(begun, at_once)?;
                end_all(&mut control, at_once)?;
                Ok(took)
            }),
            Contender::told("bare terminal", times, || {
                let begun = now();
                let shells = (0..at_once).map(|_| BareShell::spawn("bash", home));
                let _shells = shells.collect::<Result<Vec<_>, _>>()?;
                prompts.since(begun, at_once)
            }),
        ])?;
        let [ours, process, client, bare] = measured.as_slice() else { return Ok(()) };
        let work = format!("{at_once} at once");
        let process_max = (at_once == 1).then_some(0.9);
        compare(report, &work, [ours, process], process_max);
        compare(report, &work, [ours, client], Some(1.0));
        compare(report, &work, [ours, bare], None);
    }
    Ok(())
}

fn in_termgate(
    agent: &mut Agent,
    home: &Path,
    count: usize,
    prompts: &Prompts,
) -> anyhow::Result<Duration> {
    let begun = now();
    for number in 0..count {
        let shell = format_args!(r#""command":"bash","args":[],"rows":24,"cols":80"#);
        let home = format_args!(r#""env":{{"HOME":"{}"}}"#, home.display());
        agent.begin("create_session", format_args!(r#"{{"name":"s{number}",{shell},{home}}}"#))?;
    }
    (0..count).try_for_each(|_| agent.answer().map(drop))?;
    let took = prompts.since(begun, count)?;
    for number in 0..count {
        let killed = format_args!(r#"{{"session":"s{number}","action":"kill"}}"#);
        agent.call("manage_session", killed)?;
    }
    Ok(took)
}

fn new_session(home: &Path, number: usize) -> String {
    format!("new-session -d -s s{number} -e HOME={} -x 80 -y 24 bash -i", home.display())
}

fn end_all(control: &mut Control, count: usize) -> anyhow::Result<()> {
    (0..count).try_for_each(|number| control.run(&format!("kill-session -t s{number}\n")).map(drop))
}

/// A pipe into which shells write a line when they prompt.
struct Prompts(File);

impl Prompts {
    /// Makes it, and the file that has every bash of this home use it.
    fn of_shells_in(home: &Path) -> anyhow::Result<Self> {
        let pipe = home.join("prompts");
        mkfifo(&pipe, Mode::S_IRWXU)?;
        std::fs::write(
            home.join(".bashrc"),
            format!("PROMPT_COMMAND='echo >{}'\n", pipe.display()),
        )?;
        // Without a writer of its own it would end with each shell.
        Ok(Self(OpenOptions::new().read(true).write(true).open(pipe)?))
    }

    /// Waits until so many shells prompt, and says how long that took.
    fn since(&self, begun: Duration, count: usize) -> anyhow::Result<Duration> {
        let mut missing = count;
        while missing > 0 {
            let mut readable = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
            let ready = poll(&mut readable, PollTimeout::from(PROMPT_MAX))?;
            ensure!(ready > 0, "{missing} of {count} shells do not prompt");
            missing -= (&self.0).read(&mut vec![0; missing])?;
        }
        Ok(now() - begun)
    }
}
