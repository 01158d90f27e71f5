//! How long a key takes from the holder of a session to an observer on another connection.
//!
//! Beside tmux: from `send-keys` of a control client to `%output` at another; and beside a bare
//! terminal whose kernel echoes. Keys come with pauses, as a person types: two within the time of a
//! frame would share a delta.

use std::fs::File;
use std::io::{BufRead as _, Read as _, Write as _};
use std::time::Duration;

use anyhow::ensure;
use nix::pty::openpty;
use nix::sys::termios::{LocalFlags, SetArg, cfmakeraw, tcgetattr, tcsetattr};

use crate::support::agent::Agent;
use crate::support::daemon::Daemon;
use crate::support::observers::observe;
use crate::support::placement::Placement;
use crate::support::report::{Figure, Report, Target};
use crate::support::rounds::{Contender, take_turns};
use crate::support::samples::{now, wait_until};
use crate::support::table::{HEAD, compare};
use crate::support::tmux::{Control, Output, Server};

/// The program: it swallows what the terminal echoes.
const PROGRAM: &str = "stty raw echo; echo ready; exec cat >/dev/null";
/// Keys of a turn, and the time between two.
const KEYS: usize = 50;
const PAUSE: Duration = Duration::from_millis(12);
/// In milliseconds, and how many times tmux's.
const P50_MAX: Target = Target::AtMost(0.3);
const P99_MAX: Target = Target::AtMost(2.0);
const TMUX_MAX: f64 = 2.0;

pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    report.on_each_placement(HEAD, on)
}

fn on(placement: Placement, report: &mut Report) -> anyhow::Result<()> {
    let daemon = Daemon::start(placement, "")?;
    let mut agent = Agent::connect(&daemon.gateway())?;
    let session = format_args!(r#"{{"name":"key","command":"{PROGRAM}","rows":24,"cols":80}}"#);
    agent.call("create_session", session)?;
    agent.call("wait_for", format_args!(r#"{{"session":"key","text":"ready","since":0}}"#))?;
    let mut observer = observe(&daemon.gateway(), "key", "foreground")?;

    let server = Server::start(placement)?;
    let mut sender = Control::create(&server, "key", PROGRAM, Output::Withheld)?;
    let mut receiver = Control::attach(&server, "key")?;
    let mut bare = bare()?;

    let mut line = String::new();
    // Each turn has its own key, since output of the one before may come late.
    let (mut keys, mut tmux_keys) = (keys(), keys());
    let measured = take_turns(vec![
        Contender::told("termgate", KEYS, || {
            wait_until(now() + PAUSE);
            let key = keys.next().unwrap_or('K');
            let shown = format!("{key}\"");
            let sent = now();
            agent.begin("send_text", format_args!(r#"{{"session":"key","text":"{key}"}}"#))?;
            while !line.contains(&shown) {
                line.clear();
                ensure!(observer.read_line(&mut line)? > 0, "the daemon has gone");
            }
            let took = now() - sent;
            line.clear();
            agent.answer()?;
            Ok(took)
        }),
        Contender::told("tmux -C", KEYS, || {
            wait_until(now() + PAUSE);
            let key = tmux_keys.next().unwrap_or('K');
            let command = format!("send-keys -l {key}\n");
            let sent = now();
            sender.begin(&command)?;
            while !receiver.output()?.trim_end().ends_with(key) {}
            let took = now() - sent;
            sender.answer()?;
            Ok(took)
        }),
        Contender::told("bare terminal", KEYS, || {
            wait_until(now() + PAUSE);
            let sent = now();
            bare.0.write_all(b"k")?;
            bare.0.read_exact(&mut [0])?;
            Ok(now() - sent)
        }),
    ])?;
    let [ours, tmux, bare] = measured.as_slice() else { return Ok(()) };
    compare(report, "key to delta", [ours, tmux], Some(TMUX_MAX));
    compare(report, "key to delta", [ours, bare], None);
    let (p50, p99) = (Figure::millis(ours.all.median()), Figure::millis(ours.all.p99()));
    let (p50_max, p99_max) =
        (report.judge("p50", &p50, P50_MAX), report.judge("p99", &p99, P99_MAX));
    println!("\np50 {p50}, {p50_max}; p99 {p99}, {p99_max}");
    Ok(())
}

/// In capitals, which nothing else in a delta ends in.
fn keys() -> impl Iterator<Item = char> {
    ('A'..='Z').cycle()
}

/// Both ends of a terminal that echoes each byte.
fn bare() -> anyhow::Result<(File, File)> {
    let ends = openpty(None, None)?;
    let mut modes = tcgetattr(&ends.slave)?;
    cfmakeraw(&mut modes);
    modes.local_flags |= LocalFlags::ECHO;
    tcsetattr(&ends.slave, SetArg::TCSANOW, &modes)?;
    Ok((ends.master.into(), ends.slave.into()))
}
