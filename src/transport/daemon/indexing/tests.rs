//! What is read of frames for the index, and who finds it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::core::caller::{Caller, Kind};
use crate::core::frame::history::HistoryLimits;
use crate::core::frame::{Exit, Size};
use crate::core::ids::{ConnectionId, PrincipalId, TenantId};
use crate::core::moment::Moment;
use crate::core::policy::{Door, Reach, Standing};
use crate::core::screen::{Facts, Origin, Screen, ScreenLimits};
use crate::session::clock::Clock;
use crate::store::journal::writer::Journal;
use crate::surface::call::Call;
use crate::surface::call_arguments::CallArguments;
use crate::surface::tool::ToolAnswer;
use crate::transport::daemon::Assembly;
use crate::transport::daemon::journal::journal_limits;
use crate::transport::daemon::places::Places;

/// A terminal of four rows and ten columns, in which something printed.
struct Printed {
    screen: Screen,
    facts: Facts,
}

impl Printed {
    fn new(rows_max: usize) -> Self {
        let history = HistoryLimits { rows_max, ..HistoryLimits::default() };
        let limits = ScreenLimits { history, ..ScreenLimits::default() };
        let size = Size { rows: 4, cols: 10 };
        Self { screen: Screen::new(size, limits, Origin::default()), facts: Facts::default() }
    }

    fn print(&mut self, text: &str) -> Arc<Frame> {
        self.screen.feed(Moment::default(), text.as_bytes());
        self.screen.publish(Moment::default(), &self.facts).expect("it changed")
    }

    fn end(&mut self) -> Arc<Frame> {
        self.facts.exit = Some(Exit::Code(0));
        self.screen.publish(Moment::default(), &self.facts).expect("it ended")
    }
}

/// What the index lacks of a frame if it has the rows up to this one.
fn read(frame: &Arc<Frame>, next: u64) -> Option<RowBatch> {
    let session = IndexedSession {
        id: "00000000000a".parse().unwrap(),
        tenant: TenantId::of_uid(1_000),
        name: "build".into(),
    };
    BatchReader { session, clock: Clock::paused(), next, commands: BTreeSet::new() }.read(frame)
}

fn lines(batch: &RowBatch) -> Vec<(u64, &str)> {
    batch.lines.iter().map(|line| (line.row, line.text.as_str())).collect()
}

#[tokio::test(start_paused = true)]
async fn rows_are_read_once_they_left_the_screen() {
    let mut printed = Printed::new(1_000);
    let frame = printed.print("one\r\ntwo\r\nthree");
    assert_eq!(read(&frame, 0), None);
    let frame = printed.print("\r\nfour\r\n\r\nsix");
    let batch = read(&frame, 0).unwrap();
    assert_eq!(lines(&batch), [(0, "one"), (1, "two")]);
    assert_eq!((batch.next_row, batch.skipped, batch.ended), (2, 0, false));
    assert_eq!(read(&frame, 2), None);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_makes_the_rest_of_its_screen_final() {
    let mut printed = Printed::new(1_000);
    printed.print("one\r\ntwo\r\nthree\r\nfour\r\n\r\nsix\r\n");
    let frame = printed.end();
    let batch = read(&frame, 2).unwrap();
    assert_eq!(lines(&batch), [(2, "three"), (3, "four"), (5, "six")]);
    assert!(batch.ended);
}

#[tokio::test(start_paused = true)]
async fn a_line_that_wrapped_waits_for_its_last_row() {
    let mut printed = Printed::new(1_000);
    let frame = printed.print("first\r\n0123456789abcdefghijABCDEFGHIJ\r\nlast");
    let batch = read(&frame, 0).unwrap();
    assert_eq!(lines(&batch), [(0, "first")]);
    let frame = printed.print("\r\n\r\n\r\n");
    let batch = read(&frame, 1).unwrap();
    assert_eq!(lines(&batch), [(1, "0123456789abcdefghijABCDEFGHIJ")]);
    assert_eq!(batch.next_row, 4);
}

#[tokio::test(start_paused = true)]
async fn rows_that_were_trimmed_before_they_were_read_are_counted() {
    let mut printed = Printed::new(128);
    let text: String = (0..1_000).map(|row| format!("row {row}\r\n")).collect();
    let frame = printed.print(&text);
    let first = frame.history.first().0;
    let batch = read(&frame, 10).unwrap();
    assert!(first > 800, "{first}");
    assert_eq!((batch.from_row, batch.skipped), (10, first - 10));
    assert_eq!(lines(&batch)[0], (first, &*format!("row {first}")));
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_bounded_and_the_next_one_continues() {
    let mut printed = Printed::new(10_000);
    let text: String = (0..2_000).map(|row| format!("row {row}\r\n")).collect();
    let frame = printed.print(&text);
    let (mut next, mut read_rows) = (0, Vec::new());
    while let Some(batch) = read(&frame, next) {
        assert!(batch.lines.len() as u64 <= ROWS_MAX);
        read_rows.extend(batch.lines.into_iter().map(|line| line.row));
        next = batch.next_row;
    }
    assert!(read_rows.into_iter().eq(0..frame.history.end().0));
}

fn standing(uid: u32, door: Door, reach: Reach) -> Standing {
    let caller = Caller {
        principal: PrincipalId::Connection(1),
        connection: ConnectionId(1),
        tenant: TenantId::of_uid(uid),
        kind: Kind::Agent,
        label: Arc::from("agent"),
    };
    Standing::of_member(caller, uid, door, reach)
}

/// The texts that a caller finds in the whole daemon.
async fn found(assembly: &Assembly, standing: &Standing, arguments: Value) -> Vec<String> {
    let gateway = &assembly.doors.shared.gateway;
    let call = Call::new(Arc::clone(gateway.daemon()), standing.clone(), Arc::default());
    let Value::Object(arguments) = arguments else { panic!("no arguments") };
    let search = gateway.entry("search", standing).expect("it is for everybody");
    let answer = match gateway.call(&search, call, CallArguments::Values(arguments)).await {
        Ok(ToolAnswer::Own(answer)) => answer,
        Ok(ToolAnswer::Relayed(_) | ToolAnswer::Watching(_)) => panic!("it is no mounted tool"),
        Err(error) => return vec![error.to_string()],
    };
    let mut json = Vec::new();
    answer.result.write_json(&mut json).unwrap();
    let results: Value = serde_json::from_slice(&json).unwrap();
    let hits = results["hits"].as_array().unwrap();
    hits.iter().map(|hit| hit["snippet"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_are_gone_are_found_by_their_own_tenant_at_doors_for_all_sessions() {
    let directory = tempfile::tempdir().unwrap();
    let config = Config::built_in();
    let index = index_of(&config, directory.path().join("index"));
    let journal = Journal::at(directory.path().join("journal"), journal_limits(&config));
    let places = Places { index: index.clone(), ..Places::default() };
    let assembly = Assembly::new(&config, places, &journal, Clock::boot().unwrap());
    for (number, uid) in [(1, 1_000), (2, 1_001)] {
        let id = format!("{number:012x}").parse().unwrap();
        let session = IndexedSession { id, tenant: TenantId::of_uid(uid), name: "build".into() };
        let lines = vec![IndexedLine { row: 0, text: format!("shared word of {uid}") }];
        let stored = RowBatch {
            session,
            from_row: 0,
            next_row: 1,
            skipped: 0,
            lines,
            commands: Vec::new(),
            at_ms: 1_000,
            ended: true,
        };
        assert_eq!(index.store(stored).await, BatchOutcome::Stored);
    }
    let (own, query) = (standing(1_000, Door::Gateway, Reach::Tenant), json!({"query": "shared"}));
    assert_eq!(found(&assembly, &own, query.clone()).await, ["shared word of 1000"]);
    let by_name = json!({"query": "shared", "session": "build"});
    assert_eq!(found(&assembly, &own, by_name.clone()).await, ["shared word of 1000"]);
    let other = json!({"query": "shared", "session": "000000000002"});
    assert_eq!(found(&assembly, &own, other).await, ["no session `000000000002`"]);

    let elsewhere = "0000000000ff".parse().unwrap();
    let bound = standing(1_000, Door::Session(elsewhere), Reach::Session(elsewhere));
    assert!(found(&assembly, &bound, query).await.is_empty());
    assert_eq!(found(&assembly, &bound, by_name).await, ["no session `build`"]);
}
