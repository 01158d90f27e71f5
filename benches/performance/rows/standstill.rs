//! How long a ping waits while others have the daemon do what is large: costly patterns, large deltas and
//! answers, a storm of connections.
//!
//! One connection pings a thousand times a second, first while nothing else happens, then during each kind
//! of work. The yardstick is the same ping in the same run without that work.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::agent::Agent;
use crate::support::daemon::Daemon;
use crate::support::observers::observe;
use crate::support::placement::Placement;
use crate::support::report::{Figure, Report, Target};
use crate::support::samples::{Samples, now};
use crate::support::table::micros;

/// How long each kind of work goes on.
const LASTS: Duration = Duration::from_secs(5);
/// How long a ping may take, in milliseconds.
const P99_MAX: Target = Target::AtMost(10.0);
/// The time between two pings.
const PAUSE: Duration = Duration::from_millis(1);
/// How many do the same work at once.
const WORKERS: usize = 4;
/// The sessions: one as wide as they may be, full of digits, and one with all the history it may have.
const WIDE: &str = "yes 1 | head -n 90000 | tr -d '\\\\n'; exec cat";
const LONG: &str = "yes 0123456789012345678901234567890123456789 | head -n 20000; exec cat";

/// Fills the whole of the largest screen that there may be, 40 times within two seconds.
const LARGE: &str =
    "for n in $(seq 10 50); do yes $n | head -n 100000 | tr -d '\\\\n'; sleep 0.05; done";

/// What somebody does at a daemon's socket, again and again.
type Work = fn(&Path) -> anyhow::Result<()>;

/// How many pings were answered, and in which time.
type Pings = (usize, Samples);

pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    let placement = Placement::TwoCores;
    placement.enter()?;
    let daemon = Daemon::start(placement, "")?;
    let gateway = daemon.gateway();
    let mut agent = Agent::connect(&gateway)?;
    for (name, line, rows, cols) in [("wide", WIDE, 100, 1_000), ("long", LONG, 24, 80)] {
        let session = format_args!(
            r#"{{"name":"{name}","command":"sh","args":["-c","{line}"],"rows":{rows},"cols":{cols}}}"#
        );
        agent.call("create_session", session)?;
        let quiet = format_args!(r#"{{"session":"{name}","idle_ms":500}}"#);
        agent.call("wait_for", quiet)?;
    }
    report.table(
        placement,
        "| while | pings | p50 | p99 | p99 to that of the idle daemon | target |",
    );
    let idle = pings(&gateway)?;
    row(report, "nothing else happens", &idle, &idle);
    let works: [(&str, Work); 5] = [
        ("four wait for a hostile pattern", hostile_pattern),
        ("four observe all of a long history", long_history),
        ("four read a wide screen in cells", wide_screen),
        ("four sessions paint the largest screen", large_screen),
        ("four connect, greet and hang up", storm),
    ];
    for (name, work) in works {
        let stop = Arc::new(AtomicBool::new(false));
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| {
                let (stop, gateway) = (Arc::clone(&stop), gateway.clone());
                thread::spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        work(&gateway)?;
                    }
                    anyhow::Ok(())
                })
            })
            .collect();
        let measured = pings(&gateway)?;
        stop.store(true, Ordering::Relaxed);
        for worker in workers {
            worker.join().map_err(|_| anyhow::anyhow!("a worker panicked"))??;
        }
        row(report, name, &measured, &idle);
    }
    Ok(())
}

/// Pings for as long as a kind of work lasts.
fn pings(gateway: &Path) -> anyhow::Result<Pings> {
    let mut agent = Agent::connect(gateway)?;
    let (mut count, mut samples) = Pings::default();
    let end = now() + LASTS;
    while now() < end {
        let asked = now();
        agent.ping()?;
        samples.push(now() - asked);
        count += 1;
        thread::park_timeout(PAUSE);
    }
    Ok((count, samples))
}

fn row(report: &mut Report, name: &str, (count, measured): &Pings, (_, idle): &Pings) {
    let p99 = Figure::millis(measured.p99());
    let target = report.judge(format!("ping while {name}, p99"), &p99, P99_MAX);
    let ratio = measured.p99().as_secs_f64() / idle.p99().as_secs_f64();
    let median = micros(measured.median());
    println!("| {name} | {count} | {median} | {p99} | {ratio:.1} | {target} |");
}

fn hostile_pattern(gateway: &Path) -> anyhow::Result<()> {
    let wait = format_args!(
        r#"{{"session":"wide","pattern":"1[01]{{12000}}[^01]","since":0,"timeout_ms":2000}}"#
    );
    Agent::connect(gateway)?.call("wait_for", wait)?;
    Ok(())
}

fn long_history(gateway: &Path) -> anyhow::Result<()> {
    observe(gateway, "long", "history")?;
    Ok(())
}

fn wide_screen(gateway: &Path) -> anyhow::Result<()> {
    let read = format_args!(r#"{{"session":"wide","format":"cells","count":1000}}"#);
    Agent::connect(gateway)?.call("read_screen", read)?;
    Ok(())
}

fn large_screen(gateway: &Path) -> anyhow::Result<()> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("large{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let mut agent = Agent::connect(gateway)?;
    let session = format_args!(
        r#"{{"name":"{name}","command":"sh","args":["-c","{LARGE}"],"rows":200,"cols":1000}}"#
    );
    agent.call("create_session", session)?;
    agent.call("wait_for", format_args!(r#"{{"session":"{name}","exit":true}}"#))?;
    // One that has ended is removed by it.
    agent.call("manage_session", format_args!(r#"{{"session":"{name}","action":"kill"}}"#))?;
    Ok(())
}

fn storm(gateway: &Path) -> anyhow::Result<()> {
    Agent::connect(gateway)?;
    Ok(())
}
