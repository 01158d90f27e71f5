//! What the search index costs: a drain while it lags behind, how fast it catches up, and a query.
//!
//! The yardsticks: the same drain without an index; the same lines put into a table of SQLite's FTS5, one line a
//! row, and nothing else; and `grep` in a file of the same lines.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rusqlite::{Connection, OpenFlags};

use crate::support::agent::{Agent, number};
use crate::support::daemon::Daemon;
use crate::support::placement::Placement;
use crate::support::pump::Mode;
use crate::support::report::{Figure, Report, Target};
use crate::support::rounds::{Contender, Effect, ROUNDS, take_turns};
use crate::support::samples::{now, wait_until};
use crate::support::speed::{self, compare};
use crate::support::streams::{BLOCK, Stream};
use crate::support::table;
use crate::support::terminals::Terminal;

/// The daemon, its shim and the index take turns on two.
const PLACEMENT: Placement = Placement::TwoCores;
/// How many blocks are drained in a turn: enough that the index works through most of it, as it waits a quarter of a second
/// for more before it begins.
const DRAINED: u8 = 25;
/// How many are indexed in a turn; as much history is kept.
const INDEXED: u8 = 10;
/// Repetitions of a query in a turn.
const QUERIES: usize = 50;
const CONFIG: &str =
    "[history]\nrows = 1000000\nbytes = 1073741824\n[search]\nbytes = 1073741824\n";
const WITHOUT: &str = "[search]\nenabled = false\n";
/// How much of the speed of a drain is left while the index lags.
const DRAIN_MIN: f64 = 0.9;
const CATCH_UP_MIN: f64 = 12.0;
const QUERY_MAX_MS: f64 = 1.0;
/// How long between two looks whether the index has all.
const LOOK: Duration = Duration::from_millis(5);
/// How long nothing is indexed once all is: longer than rows wait to be stored together.
const STILL: Duration = Duration::from_millis(500);
/// How long it may take to index all.
const CATCH_UP_MAX: Duration = Duration::from_secs(60);

pub(crate) fn measure(report: &mut Report) -> anyhow::Result<()> {
    PLACEMENT.enter()?;
    drain(report)?;
    let daemon = catch_up(report)?;
    query(report, &daemon)
}

/// A program that writes without a pause: the index is behind all the time. Each turn begins when it has caught up, so that
/// it does not work in a turn of the yardstick.
fn drain(report: &mut Report) -> anyhow::Result<()> {
    let bytes = usize::from(DRAINED) * BLOCK;
    report.table(format_args!("drain, {} MB a turn, {PLACEMENT}", bytes / 1_000_000), speed::HEAD);
    let daemons = [Daemon::start(PLACEMENT, "")?, Daemon::start(PLACEMENT, WITHOUT)?];
    let mut terminals = Vec::new();
    for daemon in &daemons {
        let pump = Terminal::in_session(&mut Agent::connect(&daemon.gateway())?, "pump")?;
        terminals.push(Terminal::new(pump, daemon.processes()?));
    }
    let [indexed, plain] = terminals.as_mut_slice() else { return Ok(()) };
    let still = || until_still(&daemons[0]);
    for stream in [Stream::Plain, Stream::Styled] {
        let written = (stream, Mode::Cooked);
        let measured = take_turns(vec![
            indexed.draining("with the index", written, DRAINED).after(still),
            plain.draining("without", written, DRAINED).after(still),
        ])?;
        let [ours, without] = measured.as_slice() else { return Ok(()) };
        let speeds = [indexed.speed(ours), plain.speed(without)];
        compare(report, (stream.name(), bytes), speeds, Some(DRAIN_MIN));
    }
    Ok(())
}

/// The lines of a drain until the last one is indexed, from its first byte on.
fn catch_up(report: &mut Report) -> anyhow::Result<Daemon> {
    let bytes = usize::from(INDEXED) * BLOCK;
    report.table(format_args!("catching up, {} MB a turn", bytes / 1_000_000), speed::HEAD);
    let daemon = Daemon::start(PLACEMENT, CONFIG)?;
    let mut agent = Agent::connect(&daemon.gateway())?;
    let mut pump = Terminal::in_session(&mut agent, "pump")?;
    let (directory, block) = (tempfile::tempdir()?, Stream::Plain.make("\n"));
    let bare = bare_table(&directory.path().join("bare.db"))?;
    let block = std::str::from_utf8(&block)?;
    let measured = take_turns(vec![
        Contender::told("until all is indexed", 1, || {
            let started = now();
            pump.drain(Stream::Plain, Mode::Cooked, INDEXED)?;
            let screen = agent.call("read_screen", format_args!(r#"{{"session":"pump"}}"#))?;
            let rows = number(screen, "base_row")?;
            until_indexed(&daemon, rows)?;
            Ok(now() - started)
        }),
        Contender::new("a table of FTS5", 1, || {
            for _ in 0..INDEXED {
                insert(&bare, block)?;
            }
            Ok(Effect::Seen)
        }),
    ])?;
    let [ours, table] = measured.as_slice() else { return Ok(daemon) };
    let untold = Duration::ZERO;
    compare(report, ("plain", bytes), [(ours, untold), (table, untold)], None);
    let speed = bytes as f64 / 1e6 / ours.all.median().as_secs_f64();
    let speed = Figure::new(speed, " MB/s");
    let verdict = report.judge("indexed", &speed, Target::AtLeast(CATCH_UP_MIN));
    println!("\nindexed: {speed}, {verdict}");
    Ok(daemon)
}

/// Waits until the index has all rows before this one.
fn until_indexed(daemon: &Daemon, row: u64) -> anyhow::Result<()> {
    let give_up = now() + CATCH_UP_MAX;
    loop {
        let next = indexed(daemon).unwrap_or_default();
        // The last line may go on upon the screen.
        if next + 2 >= row {
            return Ok(());
        }
        ensure!(now() < give_up, "row {next} of {row} is indexed");
        wait_until(now() + LOOK);
    }
}

/// Waits until nothing was indexed for a while.
fn until_still(daemon: &Daemon) -> anyhow::Result<()> {
    let give_up = now() + CATCH_UP_MAX;
    let (mut row, mut since) = (None, now());
    while now() < since + STILL {
        ensure!(now() < give_up, "the index does not catch up");
        wait_until(now() + LOOK);
        let next = indexed(daemon).ok();
        if next != row {
            (row, since) = (next, now());
        }
    }
    Ok(())
}

/// Up to which row the index has the only session.
fn indexed(daemon: &Daemon) -> anyhow::Result<u64> {
    let index = Connection::open_with_flags(daemon.index()?, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let next: i64 = index.query_row("SELECT next_row FROM session", [], |it| it.get(0))?;
    Ok(next.unsigned_abs())
}

fn bare_table(path: &Path) -> anyhow::Result<Connection> {
    let table = Connection::open(path)?;
    table.pragma_update(None, "journal_mode", "WAL")?;
    table.pragma_update(None, "synchronous", "NORMAL")?;
    table.execute_batch("CREATE VIRTUAL TABLE line USING fts5(text)")?;
    Ok(table)
}

fn insert(table: &Connection, block: &str) -> anyhow::Result<()> {
    let together = table.unchecked_transaction()?;
    let mut insert = together.prepare_cached("INSERT INTO line (text) VALUES (?1)")?;
    for line in block.lines() {
        insert.execute([line])?;
    }
    drop(insert);
    Ok(together.commit()?)
}

/// A number that few lines have, looked for in all that was indexed.
fn query(report: &mut Report, daemon: &Daemon) -> anyhow::Result<()> {
    let lines = tempfile::NamedTempFile::new()?;
    let block = Stream::Plain.make("\n");
    let blocks = usize::from(INDEXED) * (ROUNDS + 1);
    fs::write(lines.path(), block.repeat(blocks))?;
    let megabytes = blocks * BLOCK / 1_000_000;
    report.table(format_args!("a query in {megabytes} MB of lines"), table::HEAD);
    let mut agent = Agent::connect(&daemon.gateway())?;
    let measured = take_turns(vec![
        Contender::new("search", QUERIES, || {
            let found = agent.call("search", format_args!(r#"{{"query":"[12345]"}}"#))?;
            ensure!(found.contains(r#""snippet":"#), "nothing is found: {found}");
            Ok(Effect::Seen)
        }),
        Contender::new("grep", 2, || {
            let mut grep = Command::new("grep");
            grep.args(["-F", "-m", "20", "[12345]"]).arg(lines.path()).stdout(Stdio::null());
            ensure!(grep.status().context("cannot start grep")?.success(), "grep found nothing");
            Ok(Effect::Seen)
        }),
    ])?;
    let [search, grep] = measured.as_slice() else { return Ok(()) };
    table::compare(report, "[12345]", [search, grep], None);
    let median = Figure::millis(search.all.median());
    let verdict = report.judge("a query", &median, Target::AtMost(QUERY_MAX_MS));
    println!("\na query: {median}, {verdict}");
    Ok(())
}
