//! What a delta costs for each observer it is delivered to: the daemon's processor time, beside that of
//! a thread that writes as many bytes to as many sockets and does nothing else.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use crate::support::agent::Agent;
use crate::support::daemon::Daemon;
use crate::support::observers::Crowd;
use crate::support::painter::{FRAMES, INTERVAL, PAINT};
use crate::support::placement::Placement;
use crate::support::plot::plot;
use crate::support::processes::processor_time;
use crate::support::report::Report;
use crate::support::rounds::{Contender, take_turns};
use crate::support::samples::{now, wait_until};
use crate::support::table::{HEAD, compare};

const PLACEMENT: Placement = Placement::TwoCores;
/// Observers, and how many times the yardstick's time a delivery may take.
const OBSERVERS: [(usize, f64); 3] = [(1, 2.5), (100, 2.0), (1_000, 2.0)];
/// How long a second of frames takes until all of it is delivered.
const TURN: Duration = Duration::from_millis(1_200);

pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    PLACEMENT.enter()?;
    report.table(format_args!("processor time of a delivery, {FRAMES} frames a second"), HEAD);
    let program = std::env::current_exe()?.display().to_string();
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for (count, target) in OBSERVERS {
        let daemon = Daemon::start(PLACEMENT, "")?;
        let mut agent = Agent::connect(&daemon.gateway())?;
        let command = format_args!(r#""command":"{program}","args":["{PAINT}"]"#);
        let session = format_args!(r#"{{"name":"frames",{command},"rows":24,"cols":80}}"#);
        agent.call("create_session", session)?;
        let mut deliveries = Deliveries {
            observers: Crowd::observe(&daemon.gateway(), "frames", count)?,
            daemon,
            agent,
        };
        let (_, bytes) = deliveries.second()?;
        let mut sockets = Sockets::new(count)?;
        let measured = take_turns(vec![
            Contender::told("termgate", 1, || Ok(deliveries.second()?.0)),
            Contender::told("writing alone", 1, || sockets.second(bytes)),
        ])?;
        let [delivery, writing] = measured.as_slice() else { return Ok(()) };
        let work = format!("observers: {count}, {bytes} B");
        compare(report, &work, [delivery, writing], Some(target));
        for (line, measured) in [(&mut ours, delivery), (&mut bare, writing)] {
            line.push((count as f64, measured.all.median().as_secs_f64() * 1e6));
        }
    }
    let axes = ["observers", "processor time of a delivery, µs"];
    plot("observers", axes, &[("termgate", ours), ("writing alone", bare)])
}

/// A session that is painted at an order, and those who observe it.
struct Deliveries {
    observers: Crowd,
    daemon: Daemon,
    agent: Agent,
}

impl Deliveries {
    /// Has a second of frames painted. Returns the daemon's time of a delivery, and its bytes.
    fn second(&mut self) -> anyhow::Result<(Duration, usize)> {
        let daemon = [self.daemon.pid()?];
        let end = now() + TURN;
        let paint = format_args!(r#"{{"session":"frames","text":"","enter":true}}"#);
        self.agent.call("send_text", paint)?;
        let (time, (lines, bytes)) = (processor_time(&daemon)?, self.observers.received());
        wait_until(end);
        let used = processor_time(&daemon)?.saturating_sub(time);
        let received = self.observers.received();
        let deltas = (received.0 - lines).max(1);
        Ok((used.div_f64(deltas as f64), ((received.1 - bytes) / deltas) as usize))
    }
}

/// Sockets that are written to, and those who read them.
struct Sockets {
    writers: Vec<UnixStream>,
    _readers: Crowd,
}

impl Sockets {
    fn new(count: usize) -> anyhow::Result<Self> {
        let pairs = (0..count).map(|_| UnixStream::pair()).collect::<Result<Vec<_>, _>>()?;
        let (writers, readers) = pairs.into_iter().unzip();
        Ok(Self { writers, _readers: Crowd::read(readers)? })
    }

    /// Writes so many bytes to each for every frame of a second. Returns the time of one write.
    fn second(&mut self, bytes: usize) -> anyhow::Result<Duration> {
        let mut line = vec![b'x'; bytes - 1];
        line.push(b'\n');
        let own = || clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from);
        let (started, before) = (now(), own()?);
        for frame in 1..=FRAMES {
            for writer in &mut self.writers {
                writer.write_all(&line)?;
            }
            wait_until(started + INTERVAL * frame);
        }
        Ok((own()? - before).div_f64(f64::from(FRAMES) * self.writers.len() as f64))
    }
}
