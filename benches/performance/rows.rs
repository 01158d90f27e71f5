//! The rows: each measures one kind of work beside its yardsticks.

mod call;
mod create;
mod doors;
mod drain;
mod drain_watched;
mod economy;
mod fan_out;
mod growth;
mod idle;
mod key;
pub(crate) mod memory;
mod mount;
mod preempt;
mod restart;
mod run;
mod search;
mod send_read;
mod snapshot;
mod standstill;

use crate::support::report::Report;

/// A kind of work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// In one line.
    pub(crate) about: &'static str,
    pub(crate) measure: fn(&mut Report) -> anyhow::Result<()>,
}

const fn row(
    name: &'static str,
    about: &'static str,
    measure: fn(&mut Report) -> anyhow::Result<()>,
) -> Row {
    Row { name, about, measure }
}

/// All rows, in the order they are measured.
pub(crate) const ROWS: &[Row] = &[
    row("call", "P1: a call beside an empty tool and an echo", call::measure),
    row("key", "P2: a key of the holder until its delta is at an observer", key::measure),
    row("drain", "P3: output as fast as a program writes it", drain::measure),
    row("drain_watched", "P4: the same with 100 observers", drain_watched::measure),
    row("fan_out", "P5: processor time of a delta at 1, 100 and 1,000 observers", fan_out::measure),
    row("run", "P6: a command until its exit code", run::measure),
    row("create", "P7: a new session until its shell takes input", create::measure),
    row("send_read", "P8: sending a few characters and reading the screen", send_read::measure),
    row("memory", "P9: memory of the daemon, of sessions and of history", memory::measure),
    row("idle", "P10: wake-ups of idle sessions", idle::measure),
    row("economy", "P11: the bytes that a model reads", economy::measure),
    row("restart", "P12: a restart until all sessions are back", restart::measure),
    row("mount", "P13: a call of a mounted server's tool", mount::measure),
    row("search", "P14: what the search index costs, and a query", search::measure),
    row("growth", "P15: cost by sessions, connections and history", growth::measure),
    row("doors", "a call and a connection during a storm of connections", doors::measure),
    row("preempt", "taking a lease while a program floods its terminal", preempt::measure),
    row("standstill", "a ping while others do what is large", standstill::measure),
    row("snapshot", "keeping a screen and restoring it", snapshot::measure),
];
