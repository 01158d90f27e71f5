//! What those who only come and go cost those who are in: a call, and a new connection, while two threads
//! connect and hang up in a loop at two doors, beside the same on a still daemon.
//!
//! All take turns in one run, against one daemon.

#![allow(clippy::print_stdout, reason = "a bench prints its results")]

#[allow(dead_code, reason = "each bench uses a part of what they share")]
mod support {
    pub(crate) mod agent;
    pub(crate) mod child;
    pub(crate) mod daemon;
    pub(crate) mod holders;
    pub(crate) mod home;
    pub(crate) mod machine;
    pub(crate) mod placement;
    pub(crate) mod rounds;
    pub(crate) mod samples;
    pub(crate) mod table;
}

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::agent::{Agent, number};
use crate::support::daemon::Daemon;
use crate::support::machine::{load, machine};
use crate::support::placement::Placement;
use crate::support::rounds::{Contender, Effect, measure};
use crate::support::table::{Comparison, HEAD};

/// Repetitions of a turn.
const CALLS: usize = 500;
const CONNECTIONS: usize = 10;
/// The doors that are stormed.
const DOORS: [&str; 2] = ["gateway.sock", "gateway.ro.sock"];

fn main() -> anyhow::Result<()> {
    println!("{}", machine());
    for placement in Placement::ALL {
        placement.enter()?;
        println!("\n{placement}\n\n{HEAD}");
        compare(placement)?;
        println!("\n{}", load());
    }
    Ok(())
}

fn compare(placement: Placement) -> anyhow::Result<()> {
    let daemon = Daemon::start(placement, "")?;
    let gateway = daemon.gateway();
    let mut agent = Agent::connect(&gateway)?;
    let session = format_args!(r#"{{"name":"bench","command":"cat","rows":24,"cols":80}}"#);
    agent.call("create_session", session)?;
    let mut second = Agent::connect(&gateway)?;
    let storm = Storm::at(DOORS.map(|door| gateway.with_file_name(door)));
    let call = |agent: &mut Agent| {
        let listed = agent.call("list_sessions", format_args!("{{}}"))?;
        Ok(if number(listed, "rows")? == 24 { Effect::Seen } else { Effect::NotYet })
    };
    let connect = || Agent::connect(&gateway).map(|_| Effect::Seen);
    let measured = measure(vec![
        Contender::new("call in a storm", CALLS, || {
            storm.rages();
            call(&mut agent)
        }),
        Contender::new("call, still", CALLS, || {
            storm.rests(&gateway)?;
            call(&mut second)
        }),
        Contender::new("connection in a storm", CONNECTIONS, || {
            storm.rages();
            connect()
        }),
        Contender::new("connection, still", CONNECTIONS, || {
            storm.rests(&gateway)?;
            connect()
        }),
    ])?;
    let [call, still, connection, quiet] = measured.as_slice() else { return Ok(()) };
    for (work, ours, yardstick) in
        [("list_sessions", call, still), ("connect and greet", connection, quiet)]
    {
        println!("{}", Comparison { work, ours, yardstick, target: None });
    }
    println!("\n{} connections were made and hung up", storm.made());
    Ok(())
}

/// Threads that connect and hang up as fast as they can, while they are let.
#[derive(Debug)]
struct Storm(Arc<Shared>);

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
        for door in doors {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.storm(&door));
        }
        Self(shared)
    }

    fn rages(&self) {
        self.0.state.store(RAGES, Ordering::Relaxed);
    }

    /// Has it rest; the first time waits until the doors have seen the last of it.
    fn rests(&self, gateway: &Path) -> anyhow::Result<()> {
        if self.0.state.swap(RESTS, Ordering::Relaxed) == RAGES {
            for door in DOORS {
                Agent::connect(&gateway.with_file_name(door))?;
            }
        }
        Ok(())
    }

    fn made(&self) -> u64 {
        self.0.made.load(Ordering::Relaxed)
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        self.0.state.store(OVER, Ordering::Relaxed);
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
