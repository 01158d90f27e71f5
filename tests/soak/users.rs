//! Those who use the sessions: readers, writers each in a session of its own, writers that take turns with a lease,
//! and observers.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::harness::dice::Dice;
use crate::harness::line_client::hello;
use crate::harness::waiting::LOOK;
use crate::outlive::client::{Client, Gone};
use crate::soak::world::{Typed, World};

/// The time between two calls of one of so many who make this many calls a second together.
fn pace(users: usize, per_second: u64) -> Duration {
    Duration::from_secs(users as u64) / u32::try_from(per_second).unwrap()
}

/// Reads screens, histories and lists of any sessions.
pub(crate) async fn read(world: &World, mut dice: Dice) {
    let mut client = world.home.gateway().find().await;
    let mut turn = interval(pace(world.plan.readers, world.plan.reads_per_second));
    turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while world.goes_on() {
        turn.tick().await;
        let any = dice.below(world.sessions.len() as u64) as usize;
        let session = &world.sessions[any].id;
        let (tool, arguments) = match dice.below(20) {
            0..13 => ("read_screen", json!({"session": session})),
            13..17 => ("list_sessions", json!({"session": session})),
            17..19 => ("read_history", json!({"session": session, "tail": 50})),
            _ => ("list_sessions", json!({})),
        };
        if world.timed(&mut client, &world.reads, tool, arguments).await == Err(Gone) {
            client = world.home.gateway().find().await;
        }
    }
}

/// A text that is to be typed once.
#[derive(Debug)]
struct Piece {
    key: String,
    text: String,
}

/// Writes numbered lines into a session of its own, each under a key, and compares what the program read with what was
/// acknowledged.
pub(crate) async fn write(world: &World, typed: &Typed) {
    let mut client = world.home.gateway().find().await;
    let mut turn = interval(pace(world.plan.writers, world.plan.writes_per_second * 6 / 10));
    turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut lease = Value::Null;
    let mut count = 0;
    while world.goes_on() {
        turn.tick().await;
        let mut pieces =
            VecDeque::from([Piece { key: format!("{count}"), text: numbered(&typed.id, count) }]);
        while let Some(piece) = pieces.pop_front() {
            match write_piece(world, &mut client, typed, &mut lease, &piece).await {
                Ok(rest) => pieces.extend(rest),
                Err(again) => {
                    pieces.push_front(piece);
                    if again == Again::Elsewhere {
                        client = world.home.gateway().find().await;
                    }
                    sleep(LOOK).await;
                }
            }
        }
        count += 1;
    }
    let expected: String = (0..count).map(|number| numbered(&typed.id, number)).collect();
    let read = read_by(typed, |read| read.len() >= expected.len()).await;
    if read != expected {
        let same =
            read.bytes().zip(expected.bytes()).take_while(|(one, other)| one == other).count();
        world.finds(format!(
            "{} read {} bytes of {}, and other ones from {same} on: {:?}",
            typed.id,
            read.len(),
            expected.len(),
            read.get(same.saturating_sub(40)..(same + 40).min(read.len()))
        ));
    }
}

fn numbered(name: &str, number: u64) -> String {
    format!("<{name} {number} {}>\r", "0123456789abcdef".repeat((number % 7) as usize))
}

/// What the program of a session has read, once that is enough or it takes too long.
async fn read_by(typed: &Typed, is_enough: impl Fn(&str) -> bool) -> String {
    for _ in 0..1_000 {
        let read = fs::read_to_string(&typed.log).unwrap_or_default();
        if is_enough(&read) {
            return read;
        }
        sleep(LOOK * 5).await;
    }
    fs::read_to_string(&typed.log).unwrap_or_default()
}

/// How a call that told nothing is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    Here,
    /// At the next daemon.
    Elsewhere,
}

/// Types one piece, and says what is left of it.
async fn write_piece(
    world: &World,
    client: &mut Client,
    typed: &Typed,
    lease: &mut Value,
    piece: &Piece,
) -> Result<Option<Piece>, Again> {
    if lease.is_null() {
        let asked = json!({"session": typed.id, "ttl_ms": 600_000, "wait_ms": 20_000});
        let granted = client.call("acquire_lease", asked).await.map_err(|Gone| Again::Elsewhere)?;
        *lease = granted.map_err(|_| Again::Here)?["lease_id"].take();
    }
    let asked = json!({
        "session": typed.id, "text": piece.text, "lease_id": lease, "idempotency_key": piece.key,
    });
    let before = world.faults();
    let answer = world.timed(client, &world.writes, "send_text", asked).await;
    let calm = world.is_calm_since(before);
    let written = match answer.map_err(|Gone| Again::Elsewhere)? {
        Ok(written) => written,
        Err(error) => {
            let code = error["error_code"].as_str().unwrap_or_default();
            if !["storage_error", "upstream_unavailable", "upstream_restarted", "busy"]
                .contains(&code)
            {
                world.finds(format!("{} lost its lease: {error}", typed.id));
                *lease = Value::Null;
            }
            return Err(Again::Here);
        }
    };
    let count = |name: &str| written[name].as_u64().unwrap() as usize;
    let (taken, discarded) = (count("written"), count("discarded"));
    if count("queued_bytes") > 0 && !calm {
        // A daemon that stood still for a second answers what it knows, and later what became of it.
        return Err(Again::Here);
    }
    if taken + discarded != piece.text.len() {
        world.finds(format!("{:?} was answered {written}", piece.text));
    }
    let rest = &piece.text[taken.min(piece.text.len())..];
    let key = format!("{}+{taken}", piece.key);
    Ok((discarded > 0).then(|| Piece { key, text: rest.to_owned() }))
}

/// Takes the lease of a session that others want as well, writes a line and gives it back. Gives back which lines were
/// acknowledged: none else may be read twice, these exactly once.
pub(crate) async fn churn(world: &World, number: usize) -> Vec<(String, bool)> {
    let mut client = world.home.gateway().find().await;
    let per_second = world.plan.writes_per_second * 4 / 10;
    let mut turn = interval(pace(world.plan.churners, per_second) * 3);
    turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut lines = Vec::new();
    while world.goes_on() {
        turn.tick().await;
        let line = format!("<{number}.{}>", lines.len());
        let mut sent = false;
        let acknowledged = churn_once(world, &mut client, &line, &mut sent).await;
        if acknowledged == Err(Gone) {
            client = world.home.gateway().find().await;
        }
        if sent {
            lines.push((line, acknowledged == Ok(true)));
        }
    }
    lines
}

async fn churn_once(
    world: &World,
    client: &mut Client,
    line: &str,
    sent: &mut bool,
) -> Result<bool, Gone> {
    let session = &world.churned.id;
    let asked = json!({"session": session, "ttl_ms": 2_000, "wait_ms": 5_000});
    // It waits for others, so that its time says nothing.
    let Ok(granted) = client.call("acquire_lease", asked).await? else { return Ok(false) };
    world.calls.fetch_add(1, Ordering::Relaxed);
    let asked = json!({"session": session, "text": line});
    *sent = true;
    let written = client.call("send_text", asked).await?;
    world.calls.fetch_add(1, Ordering::Relaxed);
    let whole = written.is_ok_and(|written| written["written"] == line.len());
    let asked = json!({"lease_id": granted["lease_id"]});
    let _ = world.timed(client, &world.writes, "release_lease", asked).await?;
    Ok(whole)
}

/// Compares what the program of the shared session read with what its writers were answered.
pub(crate) async fn settle_churn(world: &World, lines: Vec<(String, bool)>) {
    let acknowledged: usize =
        lines.iter().filter(|(_, acknowledged)| *acknowledged).map(|(line, _)| line.len()).sum();
    let read = read_by(&world.churned, |read| read.len() >= acknowledged).await;
    let mut counts = BTreeMap::new();
    for part in read.split_inclusive('>') {
        // A line that was cut has no end of its own.
        let line = &part[part.rfind('<').unwrap_or_default()..];
        *counts.entry(line).or_insert(0_usize) += 1;
    }
    for (line, acknowledged) in &lines {
        let count = counts.remove(line.as_str()).unwrap_or_default();
        if count > 1 || (*acknowledged && count == 0) {
            world.finds(format!("{line} was typed {count} times, acknowledged: {acknowledged}"));
        }
    }
    if !counts.is_empty() {
        world.finds(format!("nobody wrote {counts:?}"));
    }
    if acknowledged == 0 {
        world.finds("nobody wrote under a lease that changes hands");
    }
}

/// Watches the busy session without looking at what comes, over all daemons.
pub(crate) async fn observe(world: &World) {
    while world.goes_on() {
        // Who is not there is looked for again.
        let _ = observe_once(world).await;
        sleep(LOOK * 5).await;
    }
}

async fn observe_once(world: &World) -> std::io::Result<()> {
    let stream = UnixStream::connect(&world.home.gateway().path).await?;
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    let session = &world.printers[0].session;
    for line in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello("observer")}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "termgate/observe",
               "params": {"session": session, "lane": "recent"}}),
    ] {
        writer.write_all(format!("{line}\n").as_bytes()).await?;
    }
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = timeout(LOOK * 500, reader.read_until(b'\n', &mut line)).await;
        match read {
            Ok(Ok(0)) => return Ok(()),
            Ok(read) => drop(read?),
            // Nothing was to be told for so long.
            Err(_) => {}
        }
        world.observed_bytes.fetch_add(line.len() as u64, Ordering::Relaxed);
        if !world.goes_on() {
            return Ok(());
        }
    }
}
