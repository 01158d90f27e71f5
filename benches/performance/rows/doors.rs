//! What those who only come and go cost those who are in: a call, and a new connection, while two threads
//! connect and hang up in a loop at two doors of agents, or at that of operators, beside the same on a still daemon.
//!
//! All take turns in one run, against one daemon.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::agent::{Agent, number};
use crate::support::daemon::Daemon;
use crate::support::placement::Placement;
use crate::support::report::Report;
use crate::support::rounds::{Contender, Effect, take_turns};
use crate::support::table::{HEAD, compare};

/// Repetitions of a turn.
const CALLS: usize = 500;
const CONNECTIONS: usize = 10;
/// The doors that are stormed, by a thread each: those of agents, or that of operators.
const DOORS: [&str; 2] = ["gateway.sock", "gateway.ro.sock"];
const OPERATORS: [&str; 2] = ["operator.sock", "operator.sock"];

pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    report.on_each_placement(HEAD, on)
}

fn on(placement: Placement, report: &mut Report) -> anyhow::Result<()> {
    let daemon = Daemon::start(placement, "")?;
    let gateway = daemon.gateway();
    let mut agent = Agent::connect(&gateway)?;
    let session = format_args!(r#"{{"name":"bench","command":"cat","rows":24,"cols":80}}"#);
    agent.call("create_session", session)?;
    let mut second = Agent::connect(&gateway)?;
    let [storm, siege] =
        [DOORS, OPERATORS].map(|doors| Storm::at(doors.map(|door| gateway.with_file_name(door))));
    let operator = gateway.with_file_name(OPERATORS[0]);
    let call = |agent: &mut Agent| {
        let listed = agent.call("list_sessions", format_args!("{{}}"))?;
        Ok(if number(listed, "rows")? == 24 { Effect::Seen } else { Effect::NotYet })
    };
    let connect = |door: &Path| Agent::connect(door).map(|_| Effect::Seen);
    let measured = take_turns(vec![
        Contender::new("call in a storm", CALLS, || {
            storm.rages();
            call(&mut agent)
        }),
        Contender::new("call, still", CALLS, || {
            storm.rests()?;
            call(&mut second)
        }),
        Contender::new("connection in a storm", CONNECTIONS, || {
            storm.rages();
            connect(&gateway)
        }),
        Contender::new("connection, still", CONNECTIONS, || {
            storm.rests()?;
            connect(&gateway)
        }),
        Contender::new("operator in a storm", CONNECTIONS, || {
            siege.rages();
            connect(&operator)
        }),
        Contender::new("operator, still", CONNECTIONS, || {
            siege.rests()?;
            connect(&operator)
        }),
    ])?;
    let [call, still, connection, quiet, besieged, free] = measured.as_slice() else {
        return Ok(());
    };
    for (work, ours, yardstick) in [
        ("list_sessions", call, still),
        ("connect and greet", connection, quiet),
        ("the same as operator", besieged, free),
    ] {
        compare(report, work, [ours, yardstick], None);
    }
    let made = storm.made() + siege.made();
    println!("\n{made} connections were made and hung up");
    Ok(())
}

/// Threads that connect and hang up as fast as they can, while they are let.
#[derive(Debug)]
struct Storm {
    doors: [PathBuf; 2],
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: AtomicU8,
    made: AtomicU64,
}

const RESTS: u8 = 0;
const RAGES: u8 = 1;
const OVER: u8 = 2;

impl Storm {
    fn at(doors: [PathBuf; 2]) -> Self {
        let shared = Arc::new(Shared { state: AtomicU8::new(RESTS), made: AtomicU64::new(0) });
        for door in doors.clone() {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.storm(&door));
        }
        Self { doors, shared }
    }

    fn rages(&self) {
        self.shared.state.store(RAGES, Ordering::Relaxed);
    }

    /// Has it rest; the first time waits until the doors have seen the last of it.
    fn rests(&self) -> anyhow::Result<()> {
        if self.shared.state.swap(RESTS, Ordering::Relaxed) == RAGES {
            for door in &self.doors {
                Agent::connect(door)?;
            }
        }
        Ok(())
    }

    fn made(&self) -> u64 {
        self.shared.made.load(Ordering::Relaxed)
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        self.shared.state.store(OVER, Ordering::Relaxed);
    }
}

impl Shared {
    fn storm(&self, door: &Path) {
        loop {
            match self.state.load(Ordering::Relaxed) {
                RAGES => {
                    let made = UnixStream::connect(door).is_ok();
                    self.made.fetch_add(u64::from(made), Ordering::Relaxed);
                }
                RESTS => thread::park_timeout(Duration::from_millis(1)),
                _ => return,
            }
        }
    }
}
