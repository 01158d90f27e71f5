//! Pushed deltas: whoever applies them knows exactly what a reader is told.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use unicode_width::UnicodeWidthChar;

use crate::daemon::driven::{screen, start, tell, tell_until};
use crate::daemon::harness::{Era, TestDaemon, Wire};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// What an observer knows from deltas alone.
#[derive(Debug, Default)]
struct Replica {
    watermark: u64,
    base_row: u64,
    /// Every row ever told, the newest form of each.
    rows: BTreeMap<u64, Value>,
    parts: BTreeMap<String, Value>,
    resets: usize,
}

impl Replica {
    fn apply(&mut self, delta: &Value) {
        if delta["reset"] == true {
            self.rows.clear();
            self.parts.clear();
            self.resets += 1;
        }
        assert_eq!(delta["from"], self.watermark, "a delta does not follow the one before");
        self.watermark = delta["watermark"].as_u64().unwrap();
        self.base_row = delta["base_row"].as_u64().unwrap();
        for update in delta["updates"].as_array().unwrap() {
            let kind = update["type"].as_str().unwrap().to_owned();
            match update["row"].as_u64().filter(|_| kind == "row") {
                Some(row) => drop(self.rows.insert(row, update.clone())),
                None => drop(self.parts.insert(kind, update.clone())),
            }
        }
    }

    fn part(&self, kind: &str) -> &Value {
        self.parts.get(kind).unwrap_or(&Value::Null)
    }

    fn shown(&self) -> impl Iterator<Item = &Value> {
        let rows = self.part("size")["rows"].as_u64().unwrap();
        (self.base_row..self.base_row + rows).map(|row| &self.rows[&row])
    }

    fn text(&self) -> String {
        let lines: Vec<&str> = self.shown().map(|row| row["text"].as_str().unwrap()).collect();
        lines.join("\n").trim_end_matches('\n').to_owned()
    }

    fn cells(&self) -> Vec<Value> {
        let line =
            |row: &Value| json!({"row": row["row"], "text": row["text"], "cells": cells(row)});
        self.shown().map(line).collect()
    }

    /// Says the same as the answers of `read_screen` that were made at this watermark.
    fn agrees(&self, plain: &Value, cells: &Value) {
        assert_eq!(self.text(), plain["text"]);
        assert_eq!(json!(self.cells()), cells["lines"]);
        assert_eq!(self.base_row, plain["base_row"]);
        for name in ["row", "col", "visible", "shape"] {
            assert_eq!(self.part("cursor")[name], plain["cursor"][name], "cursor {name}");
        }
        assert_eq!(self.part("size")["cols"], plain["cols"]);
        assert_eq!(self.part("size")["rows"], plain["rows"]);
        assert_eq!(self.part("mode")["mode"], plain["mode"]);
        assert_eq!(self.part("title")["title"], plain["title"]);
        assert_eq!(self.part("exit")["status"], plain["exit"]);
    }
}

/// The cells that a row's text and runs make.
fn cells(row: &Value) -> Vec<Value> {
    let nothing = Vec::new();
    let runs = row["runs"].as_array().unwrap_or(&nothing);
    let number = |run: &Value, name: &str| run[name].as_u64().unwrap();
    let style = |column: u64| {
        let covers = |run: &&Value| {
            (number(run, "col")..number(run, "col") + number(run, "len")).contains(&column)
        };
        let mut style = runs.iter().find(covers)?.as_object().unwrap().clone();
        style.retain(|name, _| name != "col" && name != "len");
        Some(Value::Object(style))
    };
    let cell = |column: u64, ch: char, width: u64| {
        let mut cell = json!({"ch": ch});
        if width > 1 {
            cell["width"] = json!(width);
        }
        if let Some(style) = style(column) {
            cell["style"] = style;
        }
        cell
    };
    let mut cells = Vec::new();
    let mut column = 0;
    for ch in row["text"].as_str().unwrap().chars() {
        let width = ch.width().unwrap() as u64;
        cells.push(cell(column, ch, width));
        column += width;
    }
    let painted = runs.last().map_or(0, |run| number(run, "col") + number(run, "len"));
    cells.extend((column..painted).map(|column| cell(column, ' ', 1)));
    cells
}

/// An observation and what was learned from it.
#[derive(Debug)]
struct Observer {
    wire: Wire,
    id: u64,
    replica: Replica,
}

impl Observer {
    async fn start(daemon: &TestDaemon, era: Era, params: Value) -> Self {
        Self::resume(daemon, era, params, Replica::default()).await
    }

    async fn resume(daemon: &TestDaemon, era: Era, params: Value, replica: Replica) -> Self {
        let mut wire = daemon.client(era).await;
        let id = wire.send("termgate/observe", params).await;
        Self { wire, id, replica }
    }

    async fn next(&mut self) -> Value {
        let delta = self.wire.receiver.notification("termgate/delta").await;
        assert_eq!(delta["observe"], self.id);
        self.replica.apply(&delta);
        delta
    }

    /// Takes deltas until one brings what is wanted.
    async fn until(&mut self, wanted: impl Fn(&Replica) -> bool) {
        while !wanted(&self.replica) {
            self.next().await;
        }
    }

    /// Takes deltas until it stands where a reader stands, and compares what both know.
    async fn agrees(&mut self, reader: &mut Wire, session: &str) {
        loop {
            let plain = screen(reader, session).await;
            let asked = json!({"session": session, "format": "cells", "count": 1000});
            let cells = reader.structured("read_screen", asked).await;
            let watermark = plain["watermark"].as_u64().unwrap();
            self.until(|replica| replica.watermark >= watermark).await;
            if cells["watermark"] == watermark && self.replica.watermark == watermark {
                return self.replica.agrees(&plain, &cells);
            }
        }
    }
}

fn row_text(row: &Value) -> &str {
    row["text"].as_str().unwrap()
}

/// Prints `seq`'s numbers and then a sign that no number contains.
fn count_to(count: u32) -> String {
    format!("seq 1 {count}; echo over")
}

#[tokio::test]
async fn the_first_delta_is_the_whole_frame() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut writer = daemon.client(Era::Legacy).await;
        let session = start(&mut writer).await;
        let mut observer = Observer::start(&daemon, era, json!({"session": session})).await;
        let first = observer.next().await;
        assert_eq!((&first["from"], &first["reset"]), (&json!(0), &json!(true)));
        assert_eq!(first["session"], session);
        assert_eq!(observer.replica.rows.len(), 40);
        observer.agrees(&mut writer, &session).await;
        daemon.stop().await;
    }
}

#[tokio::test]
async fn only_the_newer_era_tags_deltas_with_the_subscription() {
    let daemon = TestDaemon::writable().await;
    let mut writer = daemon.client(Era::Legacy).await;
    let session = start(&mut writer).await;
    let mut modern = Observer::start(&daemon, Era::Modern, json!({"session": session})).await;
    assert_eq!(modern.next().await["_meta"][SUBSCRIPTION], modern.id);
    let mut legacy = Observer::start(&daemon, Era::Legacy, json!({"session": session})).await;
    assert_eq!(legacy.next().await["_meta"], Value::Null);
    daemon.stop().await;
}

#[tokio::test]
async fn deltas_add_up_to_what_a_reader_is_told() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut writer = daemon.client(Era::Legacy).await;
        let session = start(&mut writer).await;
        let mut observer = Observer::start(&daemon, era, json!({"session": session})).await;
        for line in [
            r"printf '\033[1;31mred\033[0m plain \033[44mblue\033[0m\n'",
            r"printf '漢字 wide \033[7m   \033[0m\n'",
            r"printf '\033[5;5Hmiddle\033[38;2;1;2;3mrgb\033[0m\033[K'",
            r"printf '\033[2J\033[H\033[3q\033[?25l'",
            r"printf '\033[?25h\033[5 qbeam\n'",
            "seq 1 100",
            r"printf '\033[8mhidden\033[0m shown\n'",
            r"printf '\033[?1049halternate'",
            r"printf '\033[?1049l'",
            r"printf '\033]2;a title\007'",
        ] {
            tell_until(&mut writer, &session, &format!("{line}; echo over"), "over").await;
            observer.agrees(&mut writer, &session).await;
        }
        daemon.stop().await;
    }
}

#[tokio::test]
async fn an_observer_with_a_limited_rate_ends_up_with_the_same_screen() {
    let daemon = TestDaemon::writable().await;
    let mut writer = daemon.client(Era::Legacy).await;
    let session = start(&mut writer).await;
    let params = json!({"session": session, "max_rate_hz": 5});
    let mut observer = Observer::start(&daemon, Era::Modern, params).await;
    for _ in 0..3 {
        tell_until(&mut writer, &session, &count_to(5_000), "over").await;
    }
    observer.agrees(&mut writer, &session).await;
    daemon.stop().await;
}

#[tokio::test]
async fn an_observer_that_reads_slowly_gets_fewer_and_larger_deltas() {
    let daemon = TestDaemon::writable().await;
    let mut writer = daemon.client(Era::Legacy).await;
    let session = start(&mut writer).await;
    let mut slow = Observer::start(&daemon, Era::Legacy, json!({"session": session})).await;
    let mut fast = Observer::start(&daemon, Era::Legacy, json!({"session": session})).await;
    // Together the screens are far more than a socket holds, and none is read by the slow one.
    let mut frames = 0;
    for round in 0..100 {
        let sign = format!("over{round:03}");
        let line = format!("seq -f '%0110g' {round} $(({round}+45)); echo {sign}");
        tell_until(&mut writer, &session, &line, &sign).await;
        let shown = |replica: &Replica| replica.rows.values().any(|row| row_text(row) == sign);
        while !shown(&fast.replica) {
            fast.next().await;
            frames += 1;
        }
    }
    let mut taken = 0;
    while slow.replica.watermark < fast.replica.watermark {
        slow.next().await;
        taken += 1;
    }
    assert!(taken < frames, "the slow one got {taken} deltas, the fast one {frames}");
    slow.agrees(&mut writer, &session).await;
    fast.agrees(&mut writer, &session).await;
    daemon.stop().await;
}

#[tokio::test]
async fn an_observer_goes_on_without_a_gap_from_the_watermark_it_saw() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut writer = daemon.client(Era::Legacy).await;
        let session = start(&mut writer).await;
        let mut before = Observer::start(&daemon, era, json!({"session": session})).await;
        before.agrees(&mut writer, &session).await;
        let Observer { wire, replica, .. } = before;
        drop(wire);
        tell_until(&mut writer, &session, &count_to(10), "over").await;
        let seen = replica.watermark;
        let params = json!({"session": session, "since": seen});
        let mut after = Observer::resume(&daemon, era, params, replica).await;
        let first = after.next().await;
        assert_eq!((&first["from"], &first["reset"]), (&json!(seen), &Value::Null));
        after.agrees(&mut writer, &session).await;
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_watermark_too_old_or_unknown_gets_the_whole_frame() {
    let daemon = TestDaemon::writable().await;
    let mut writer = daemon.client(Era::Legacy).await;
    let session = start(&mut writer).await;
    let old = screen(&mut writer, &session).await["watermark"].as_u64().unwrap();
    // Rows are numbered anew, so no delta leads from before to after.
    let size = json!({"session": session, "cols": 60, "rows": 20});
    writer.structured("resize", size).await;
    for since in [old, old + 1_000_000] {
        let mut wire = daemon.client(Era::Legacy).await;
        wire.send("termgate/observe", json!({"session": session, "since": since})).await;
        let delta = wire.receiver.notification("termgate/delta").await;
        assert_eq!(delta["reset"], true, "since {since}");
        let rows = delta["updates"].as_array().unwrap().iter().filter(|it| it["type"] == "row");
        assert_eq!(rows.count(), 20, "since {since}");
    }
    daemon.stop().await;
}

#[tokio::test]
async fn a_partial_view_holds_its_rows_also_after_scrolling() {
    let daemon = TestDaemon::writable().await;
    let mut writer = daemon.client(Era::Legacy).await;
    let session = start(&mut writer).await;
    let params = json!({"session": session, "top": 38, "rows": 2});
    let mut observer = Observer::start(&daemon, Era::Modern, params).await;
    observer.next().await;
    assert_eq!(observer.replica.rows.keys().copied().collect::<Vec<_>>(), [38, 39]);
    tell_until(&mut writer, &session, &count_to(100), "over").await;
    // `ready`, a hundred numbers and the sign stand in rows 0 to 101, the cursor in row 102.
    observer.until(|replica| replica.base_row == 63).await;
    let row = |number: u64| row_text(&observer.replica.rows[&number]).to_owned();
    assert_eq!((row(101), row(102)), ("over".to_owned(), String::new()));
    assert!(observer.replica.rows.keys().all(|row| *row >= 38), "a row outside of the view");
    daemon.stop().await;
}

#[tokio::test]
async fn the_lane_history_brings_every_row_there_ever_was() {
    let daemon = TestDaemon::writable().await;
    let mut writer = daemon.client(Era::Legacy).await;
    let session = start(&mut writer).await;
    let params = json!({"session": session, "lane": "history"});
    let mut early = Observer::start(&daemon, Era::Legacy, params.clone()).await;
    early.next().await;
    tell_until(&mut writer, &session, &count_to(2_000), "over").await;
    let mut late = Observer::start(&daemon, Era::Legacy, params).await;
    for observer in [&mut early, &mut late] {
        observer.until(|replica| replica.base_row == 1_963).await;
        for row in 1..=2_000 {
            assert_eq!(observer.replica.rows[&row]["text"], row.to_string());
        }
    }
    daemon.stop().await;
}

#[tokio::test]
async fn the_lane_recent_brings_the_last_four_screens_above() {
    let daemon = TestDaemon::writable().await;
    let mut writer = daemon.client(Era::Legacy).await;
    let session = start(&mut writer).await;
    let params = json!({"session": session, "lane": "recent"});
    let mut early = Observer::start(&daemon, Era::Legacy, params.clone()).await;
    early.next().await;
    tell_until(&mut writer, &session, &count_to(150), "over").await;
    early.until(|replica| replica.base_row == 113).await;
    for row in 1..=150 {
        assert_eq!(early.replica.rows[&row]["text"], row.to_string());
    }
    tell_until(&mut writer, &session, &count_to(1_000), "over").await;
    let mut late = Observer::start(&daemon, Era::Legacy, params).await;
    late.next().await;
    let first = *late.replica.rows.keys().next().unwrap();
    assert_eq!(late.replica.base_row - first, 4 * 40);
    daemon.stop().await;
}

#[tokio::test]
async fn nothing_follows_a_cancel() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut writer = daemon.client(Era::Legacy).await;
        let session = start(&mut writer).await;
        let mut observer = Observer::start(&daemon, era, json!({"session": session})).await;
        observer.agrees(&mut writer, &session).await;
        let Observer { mut wire, id, .. } = observer;
        wire.sender.cancel(id).await;
        // Whatever was on its way has come when later requests are answered and observed.
        let list = wire.request("tools/list", json!({})).await;
        assert!(list.is_ok());
        tell_until(&mut writer, &session, "echo after", "after").await;
        wire.send("termgate/observe", json!({"session": session})).await;
        let delta = wire.receiver.notification("termgate/delta").await;
        assert_eq!(delta["observe"], id + 2);
        assert_eq!(wire.receiver.kept().count(), 0, "{:?}", wire.receiver);
        daemon.stop().await;
    }
}

#[tokio::test]
async fn deltas_tell_the_bell_the_title_the_size_and_the_mode() {
    let daemon = TestDaemon::writable().await;
    let mut writer = daemon.client(Era::Legacy).await;
    let session = start(&mut writer).await;
    let mut observer = Observer::start(&daemon, Era::Modern, json!({"session": session})).await;
    tell(&mut writer, &session, r"printf '\a\a\a'").await;
    observer.until(|replica| replica.part("bell")["count"] == 3).await;
    tell(&mut writer, &session, r"printf '\033]2;hello\007'").await;
    observer.until(|replica| replica.part("title")["title"] == "hello").await;
    tell(&mut writer, &session, r"printf '\033[?1049h'").await;
    observer.until(|replica| replica.part("mode")["mode"] == "alt").await;
    tell(&mut writer, &session, r"printf '\033[?1049l'").await;
    observer.until(|replica| replica.part("mode")["mode"] == "normal").await;
    let size = json!({"session": session, "cols": 50, "rows": 10});
    writer.structured("resize", size).await;
    observer.until(|replica| replica.part("size")["cols"] == 50).await;
    assert_eq!(observer.replica.part("size")["rows"], 10);
    // The count of bells lasts through every reset.
    assert_eq!(observer.replica.part("bell")["count"], 3);
    observer.agrees(&mut writer, &session).await;
    daemon.stop().await;
}

#[tokio::test]
async fn deltas_tell_who_holds_the_lease_and_never_its_key() {
    let daemon = TestDaemon::writable().await;
    let mut writer = daemon.client(Era::Legacy).await;
    let session = start(&mut writer).await;
    let mut observer = Observer::start(&daemon, Era::Legacy, json!({"session": session})).await;
    observer.until(|replica| replica.part("lease")["lease"]["held"] == true).await;
    let grant = writer.acquire(&session).await;
    writer.structured("release_lease", json!({"lease_id": grant["lease_id"]})).await;
    observer.until(|replica| replica.part("lease")["lease"]["held"] == false).await;
    let grant = writer.acquire(&session).await;
    observer.until(|replica| replica.part("lease")["lease"]["held"] == true).await;
    let lease = observer.replica.part("lease").clone();
    assert_eq!(lease["lease"]["kind"], "agent");
    assert_eq!(lease["lease"]["epoch"], grant["epoch"]);
    assert!(!lease.to_string().contains(grant["lease_id"].as_str().unwrap()), "{lease}");
    daemon.stop().await;
}

#[tokio::test]
async fn a_delta_tells_how_the_program_ended() {
    for (line, status) in [("exit 7", json!({"code": 7})), ("kill -9 $$", json!({"signal": 9}))] {
        let daemon = TestDaemon::writable().await;
        let mut writer = daemon.client(Era::Legacy).await;
        let session = start(&mut writer).await;
        let mut observer = Observer::start(&daemon, Era::Modern, json!({"session": session})).await;
        tell(&mut writer, &session, line).await;
        observer.until(|replica| replica.part("exit")["status"] == status).await;
        observer.agrees(&mut writer, &session).await;
        daemon.stop().await;
    }
}

#[tokio::test]
async fn an_observation_ends_with_its_session() {
    let daemon = TestDaemon::writable().await;
    let mut writer = daemon.client(Era::Legacy).await;
    let session = start(&mut writer).await;
    let mut observer = Observer::start(&daemon, Era::Legacy, json!({"session": session})).await;
    observer.next().await;
    writer.structured("manage_session", json!({"session": session, "action": "kill"})).await;
    writer.wait_for_exit(&session).await;
    writer.structured("manage_session", json!({"session": session, "action": "kill"})).await;
    let ended = observer.wire.receiver.answer(observer.id).await.unwrap();
    assert_eq!(ended["session"], session);
    daemon.stop().await;
}

#[tokio::test]
async fn a_malformed_observation_is_refused() {
    let daemon = TestDaemon::writable().await;
    let mut writer = daemon.client(Era::Legacy).await;
    let session = start(&mut writer).await;
    for (name, value) in [
        ("max_rate_hz", json!(0)),
        ("max_rate_hz", json!(1_001)),
        ("since", json!(-1)),
        ("since", json!("x")),
        ("top", json!(70_000)),
        ("rows", json!("all")),
        ("lane", json!("fast")),
        ("colour", json!(true)),
    ] {
        let params = json!({"session": session, name: value});
        let error = writer.request("termgate/observe", params).await.unwrap_err();
        assert_eq!(error["code"], -32602, "{name}: {error}");
        assert!(error["message"].as_str().unwrap().contains(name), "{name}: {error}");
    }
    let nobody = json!({"session": "nobody"});
    let error = writer.request("termgate/observe", nobody.clone()).await.unwrap_err();
    assert_eq!(error["code"], -32002);
    let mut modern = daemon.client(Era::Modern).await;
    let error = modern.request("termgate/observe", nobody).await.unwrap_err();
    assert_eq!(error["code"], -32602);
    daemon.stop().await;
}
