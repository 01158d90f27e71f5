//! Somebody who watches a session over all its daemons and knows the screen from deltas alone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::outlive::client::{Client, Gateway, Gone};

/// What an observer knows.
#[derive(Debug, Default)]
struct Replica {
    watermark: u64,
    base_row: u64,
    rows: BTreeMap<u64, Value>,
    parts: BTreeMap<String, Value>,
}

impl Replica {
    fn apply(&mut self, delta: &Value) {
        let watermark = delta["watermark"].as_u64().unwrap();
        assert!(watermark >= self.watermark, "it went back from {}: {delta}", self.watermark);
        if delta["reset"] == true {
            self.rows.clear();
            self.parts.clear();
        } else {
            assert_eq!(delta["from"], self.watermark, "a delta does not follow the one before");
        }
        self.watermark = watermark;
        self.base_row = delta["base_row"].as_u64().unwrap();
        for update in delta["updates"].as_array().unwrap() {
            let kind = update["type"].as_str().unwrap().to_owned();
            match update["row"].as_u64().filter(|_| kind == "row") {
                Some(row) => drop(self.rows.insert(row, update.clone())),
                None => drop(self.parts.insert(kind, update.clone())),
            }
        }
    }

    /// Whether it says the same as an answer of `read_screen` in styled form; none when it stands
    /// somewhere else.
    fn compare(&self, screen: &Value) -> Option<bool> {
        if screen["watermark"] != self.watermark {
            return None;
        }
        let rows = screen["rows"].as_u64().unwrap();
        let shown = (self.base_row..self.base_row + rows).map(|row| line(&self.rows[&row]));
        let lines: Vec<Value> = screen["lines"].as_array().unwrap().iter().map(line).collect();
        let part = |kind: &str, name: &str| self.parts[kind][name].clone();
        let same_cursor = ["row", "col", "visible", "shape"]
            .iter()
            .all(|name| part("cursor", name) == screen["cursor"][*name]);
        Some(
            shown.collect::<Vec<_>>() == lines
                && same_cursor
                && screen["base_row"] == self.base_row
                && part("mode", "mode") == screen["mode"]
                && part("size", "cols") == screen["cols"],
        )
    }
}

/// What counts of a row, as a delta or a reader is told.
fn line(row: &Value) -> Value {
    json!([row["row"], row["text"], row["runs"]])
}

/// An observation that goes on whenever there is a daemon.
#[derive(Debug)]
pub(crate) struct Observer {
    session: String,
    replica: Arc<Mutex<Replica>>,
    watching: JoinHandle<()>,
}

impl Observer {
    /// Begins to watch; `check` is told each row.
    pub(crate) fn start(
        gateway: Gateway,
        session: String,
        check: impl Fn(u64, &str) + Send + Sync + 'static,
    ) -> Self {
        let replica = Arc::new(Mutex::new(Replica::default()));
        let (watched, known) = (session.clone(), Arc::clone(&replica));
        let watching = tokio::spawn(async move {
            loop {
                let mut client = gateway.find().await;
                let since = known.lock().unwrap().watermark;
                let Err(Gone) = watch(&mut client, &watched, since, &known, &check).await;
            }
        });
        Self { session, replica, watching }
    }

    /// Waits until it stands where a reader stands, and compares what both know; no longer than
    /// `patience`.
    pub(crate) async fn agrees(&self, reader: &mut Client, patience: Duration) {
        let comparing = async {
            loop {
                let asked = json!({"session": self.session, "format": "styled", "count": 1000});
                let screen = reader.must("read_screen", asked).await;
                let watermark = screen["watermark"].as_u64().unwrap();
                while self.watermark() < watermark {
                    assert!(!self.watching.is_finished(), "the observer gave up");
                    sleep(Duration::from_micros(500)).await;
                }
                let replica = self.replica.lock().unwrap();
                match replica.compare(&screen) {
                    Some(true) => return,
                    Some(false) => panic!("{replica:#?}\nis not what is read: {screen:#}"),
                    None => {}
                }
            }
        };
        let compared = timeout(patience, comparing).await;
        compared.unwrap_or_else(|_| panic!("the observer of {} is behind", self.session));
    }

    fn watermark(&self) -> u64 {
        self.replica.lock().unwrap().watermark
    }

    /// Stops watching; what went wrong meanwhile is told.
    pub(crate) async fn end(self) {
        self.watching.abort();
        match self.watching.await {
            Err(error) if error.is_cancelled() => {}
            Err(error) => std::panic::resume_unwind(error.into_panic()),
            Ok(()) => unreachable!("it watches for ever"),
        }
    }
}

async fn watch(
    client: &mut Client,
    session: &str,
    since: u64,
    replica: &Mutex<Replica>,
    check: &(impl Fn(u64, &str) + Sync),
) -> Result<std::convert::Infallible, Gone> {
    let mut params = json!({"session": session, "lane": "recent"});
    if since > 0 {
        params["since"] = json!(since);
    }
    client.send("termgate/observe", params).await?;
    loop {
        let message = client.next().await?;
        assert!(message["error"].is_null(), "{message}");
        if message["method"] != "termgate/delta" {
            continue;
        }
        let delta = &message["params"];
        for update in delta["updates"].as_array().unwrap() {
            if let Some(text) = update["text"].as_str() {
                check(update["row"].as_u64().unwrap(), text);
            }
        }
        replica.lock().unwrap().apply(delta);
    }
}
