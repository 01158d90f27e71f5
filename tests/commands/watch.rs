//! `termgate watch`: what it prints, also when daemons come and go.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::Value;

use crate::commands::blocking::until;
use crate::commands::still::Still;
use crate::harness::daemon::Daemon;
use crate::harness::home::Home;

/// `termgate watch --json` of a session, and the deltas that it prints.
struct Watch {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    /// The highest watermark so far.
    watermark: u64,
    /// The text of each row, as it was told last.
    rows: Vec<String>,
}

impl Watch {
    fn of(home: &Home, session: &str) -> Self {
        let mut command = home.termgate(&format!("watch {session} --lane history --json"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines, watermark: 0, rows: Vec::new() }
    }

    /// Takes in deltas until a row has this text.
    fn until(&mut self, text: &str) {
        self.until_times(text, 1);
    }

    /// The same until so many rows have it.
    fn until_times(&mut self, text: &str, times: usize) {
        while self.rows.iter().filter(|row| *row == text).count() < times {
            let line = self.lines.next().expect("it goes on").unwrap();
            let told: Value = serde_json::from_str(&line).unwrap();
            self.take(&told["data"]);
        }
    }

    fn take(&mut self, delta: &Value) {
        let watermark = delta["watermark"].as_u64().unwrap();
        assert!(watermark >= self.watermark, "{delta} after {}", self.watermark);
        self.watermark = watermark;
        for update in delta["updates"].as_array().unwrap() {
            if update["type"] == "row" {
                let row = usize::try_from(update["row"].as_u64().unwrap()).unwrap();
                self.rows.resize(self.rows.len().max(row + 1), String::new());
                update["text"].as_str().unwrap().clone_into(&mut self.rows[row]);
            }
        }
    }
}

/// A daemon, and a watch of its session build, which has shown `one`.
fn watched(home: &Home) -> (Daemon, Watch) {
    let daemon = home.daemon();
    home.printed("new --name build -- cat");
    let mut watch = Watch::of(home, "build");
    home.printed("send build one --enter");
    watch.until("one");
    (daemon, watch)
}

#[test]
fn it_goes_on_where_it_was_under_the_next_daemon() {
    let home = Home::new();
    let (daemon, mut watch) = watched(&home);
    home.printed("upgrade");
    home.printed("send build two --enter");
    watch.until("two");
    daemon.killed();
    let _daemon = home.daemon();
    home.printed("send build three --enter");
    watch.until_times("three", 2);
    let lines: Vec<&String> = watch.rows.iter().filter(|row| !row.is_empty()).collect();
    assert_eq!(lines, ["one", "one", "two", "two", "three", "three"]);
    home.printed("kill build");
    assert_eq!(watch.child.wait().unwrap().code(), Some(0));
}

#[test]
fn it_waits_for_a_terminal_that_does_not_answer_the_next_daemon() {
    let home = Home::new();
    let daemon = home.daemon();
    home.printed("new --name build -- cat");
    let mut command = home.termgate("watch build");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut rows = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut notes = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    home.printed("send build one --enter");
    assert!(rows.any(|row| row.contains("one")));
    let still = Still::of(&home);
    daemon.killed();
    let _daemon = home.daemon();
    assert!(notes.any(|note| note.contains("its terminal does not answer")));
    drop(still);
    until("the session to be there", || home.run("read build").status.success());
    home.printed("send build two --enter");
    assert!(rows.any(|row| row.contains("two")));
    home.printed("kill build");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn where_no_daemon_comes_back_it_says_how_to_go_on() {
    let home = Home::new();
    let (daemon, mut watch) = watched(&home);
    daemon.killed();
    let rest: String = watch.lines.by_ref().map(Result::unwrap).collect();
    assert_eq!(watch.child.wait().unwrap().code(), Some(7));
    let failure: Value = serde_json::from_str(&rest).unwrap();
    let hint = failure["hint"].as_str().unwrap_or_default();
    let since = format!("termgate watch build --since {}", watch.watermark);
    assert!(hint.contains(&since), "{failure}");
}
