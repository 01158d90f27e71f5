//! What a server wrote to standard error or sent as log messages, and what happened to it: the last lines, in memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::mount::json::{ExactJson, ExactObject};

/// How many lines are kept, and how long one may be in bytes.
const LINES_MAX: usize = 200;
pub const LOG_LINE_MAX: usize = 1_000;

/// The longest parameters of a log message that clients are told, in bytes of JSON.
const MESSAGE_MAX: usize = 64 * 1024;

/// How severe a log message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

/// A log message of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct LogMessage {
    pub level: LogLevel,
    pub logger: Option<String>,
    pub data: ExactJson,
}

impl LogMessage {
    /// Reads the parameters of a `notifications/message`; `None` if they are malformed or too long for clients.
    pub fn of(mut params: ExactObject) -> Option<Self> {
        if params.to_string().len() > MESSAGE_MAX {
            return None;
        }
        let level = serde_json::from_str(&params.get("level")?.to_string()).ok()?;
        let logger = params.text("logger").map(str::to_owned);
        Some(Self { level, logger, data: params.remove("data")? })
    }
}

/// The log of one mount; clones share it.
#[derive(Clone, Debug, Default)]
pub struct ServerLog(Arc<Mutex<VecDeque<String>>>);

impl ServerLog {
    /// A line as it is kept. What is not UTF-8 is replaced, and the end of a long line is cut.
    pub fn kept(line: &[u8]) -> String {
        let line = &line[..line.len().min(LOG_LINE_MAX)];
        String::from_utf8_lossy(line).trim_end().to_owned()
    }

    /// Adds a line.
    pub fn add(&self, line: &[u8]) {
        let mut lines = self.lock();
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(Self::kept(line));
    }

    /// Adds the message of a `notifications/message`: its level, its logger, and its data as one line.
    pub fn add_message(&self, params: Option<&ExactJson>) {
        let Some(data) = params.and_then(|params| params.get("data")) else { return };
        let member = |name: &str| params.and_then(|params| params.get(name)?.as_text());
        let data = data.as_text().map_or_else(|| data.to_string(), str::to_owned);
        let (level, logger) = (member("level").unwrap_or("info"), member("logger"));
        let logger = logger.map(|logger| format!("{logger}: ")).unwrap_or_default();
        self.add(format!("[{level}] {logger}{data}").replace('\n', " ").as_bytes());
    }

    /// The lines that are kept, oldest first.
    pub fn lines(&self) -> Vec<String> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_message_is_one_line() {
        let log = ServerLog::default();
        let text = json!({"level": "warning", "logger": "db", "data": "a\nb"});
        for params in [text, json!({"data": {"x": 1}}), json!({"level": "error"}), json!([])] {
            log.add_message(Some(&ExactJson::of(&params)));
        }
        log.add_message(None);
        assert_eq!(log.lines(), ["[warning] db: a b", r#"[info] {"x":1}"#]);
    }

    #[test]
    fn what_clients_are_told_is_of_the_protocol_and_bounded() {
        let of = |params: Value| LogMessage::of(ExactJson::of(&params).try_into().unwrap());
        let told =
            of(json!({"level": "critical", "logger": "db", "data": [1], "more": 2})).unwrap();
        let expected = (LogLevel::Critical, Some("db"), ExactJson::of(&[1]));
        assert_eq!((told.level, told.logger.as_deref(), told.data), expected);
        for params in [
            json!({"level": "loud", "data": 1}),
            json!({"level": 1, "data": 1}),
            json!({"data": 1}),
            json!({"level": "info"}),
            json!({"level": "info", "data": "x".repeat(MESSAGE_MAX)}),
        ] {
            assert_eq!(of(params), None);
        }
        assert!(LogLevel::Debug < LogLevel::Warning && LogLevel::Alert < LogLevel::Emergency);
    }

    #[test]
    fn the_newest_lines_are_kept_and_long_ones_are_cut() {
        let log = ServerLog::default();
        for number in 0..LINES_MAX + 5 {
            log.add(format!("{number}\n").as_bytes());
        }
        log.add(&vec![b'x'; 5_000]);
        let lines = log.lines();
        assert_eq!((lines.len(), lines[0].as_str()), (LINES_MAX, "6"));
        assert_eq!(lines[LINES_MAX - 1].len(), LOG_LINE_MAX);
    }
}
