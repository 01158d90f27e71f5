//! Calls that a server runs as tasks, which it is asked about until they are over.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::mount::inputs::InputRequests;
use crate::mount::protocol::{ServerParams, ServerRefusal};

/// The extension by which servers of the newer era may run calls as tasks.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// How long a task may take, if the server does not say less.
pub const TASK_MAX: Duration = Duration::from_secs(3_600);

/// How long to wait before a server is asked about a task again: if it does not say, and within these bounds.
const POLL: Duration = Duration::from_secs(1);
const POLL_MIN: Duration = Duration::from_millis(100);
const POLL_MAX: Duration = Duration::from_secs(60);

/// How a server says that a task is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

/// What a server says of a task, in either era.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskState {
    pub task_id: String,
    pub status: TaskStatus,
    pub status_message: Option<String>,
    /// In milliseconds from the beginning, as each era calls it.
    ttl_ms: Option<f64>,
    ttl: Option<f64>,
    poll_interval_ms: Option<f64>,
    poll_interval: Option<f64>,
    pub input_requests: Option<InputRequests>,
    pub result: Option<Box<RawValue>>,
    pub error: Option<ServerRefusal>,
}

/// The result with which a server of the older era begins a task, or which it gives instead.
#[derive(Debug, Deserialize)]
pub struct BegunTask {
    pub task: Option<TaskState>,
}

impl TaskState {
    /// How long to wait before the server is asked again.
    fn interval(&self) -> Duration {
        let given = self.poll_interval_ms.or(self.poll_interval);
        given.map_or(POLL, milliseconds).clamp(POLL_MIN, POLL_MAX)
    }
}

/// A duration of a server; what is no number of milliseconds counts as none.
fn milliseconds(given: f64) -> Duration {
    Duration::from_millis(given as u64)
}

/// A call that runs as a task.
#[derive(Debug)]
pub struct CallTask {
    id: String,
    begun: Instant,
    interval: Duration,
    /// The server is asked about it then.
    pub poll_at: Option<Instant>,
    /// It is given up then, whatever the server says.
    pub ends: Instant,
    message: Option<String>,
    messages: u64,
    asked: BTreeSet<String>,
}

impl CallTask {
    /// A task that began just now. A task may take at least as long as a call.
    pub fn new(state: &TaskState, call_timeout: Duration, now: Instant) -> Self {
        let mut task = Self {
            id: state.task_id.clone(),
            begun: now,
            interval: POLL,
            poll_at: None,
            ends: now,
            message: None,
            messages: 0,
            asked: BTreeSet::new(),
        };
        task.on_state(state, call_timeout, now);
        if state.status != TaskStatus::Working {
            // What the server has to say is in its next answer.
            task.poll_at = Some(now);
        }
        task
    }

    /// The parameters of a request about it.
    pub fn params(&self) -> ServerParams {
        let mut params = ServerParams::default();
        params.set("taskId", &self.id);
        params
    }

    /// The server has said how it is doing.
    pub fn on_state(&mut self, state: &TaskState, call_timeout: Duration, now: Instant) {
        self.interval = state.interval();
        let most = TASK_MAX.max(call_timeout);
        let ttl = state.ttl_ms.or(state.ttl).map_or(most, milliseconds).clamp(call_timeout, most);
        self.ends = self.begun + ttl;
        self.poll_at = Some(now + self.interval);
    }

    /// The server did not answer; it is asked again.
    pub fn on_silence(&mut self, now: Instant) {
        self.poll_at = Some(now + self.interval);
    }

    /// A message about it, if it is a new one, with its number.
    pub fn news(&mut self, message: Option<String>) -> Option<(u64, String)> {
        let message = message.filter(|it| self.message.as_ref() != Some(it))?;
        self.message = Some(message.clone());
        self.messages += 1;
        Some((self.messages, message))
    }

    /// The questions that were not asked before: a server repeats them until it has taken the answers.
    pub fn unasked(&mut self, mut requests: InputRequests) -> InputRequests {
        requests.retain(|name, _| !self.asked.contains(name));
        self.asked.extend(requests.keys().cloned());
        requests
    }

    /// How long it may take.
    pub fn allowed(&self) -> Duration {
        self.ends - self.begun
    }

    /// Whether this is its id.
    pub fn is(&self, id: &str) -> bool {
        self.id == id
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const CALL: Duration = Duration::from_secs(2);

    fn state(value: Value) -> TaskState {
        serde_json::from_str(&value.to_string()).unwrap()
    }

    #[test]
    fn what_servers_of_both_eras_say_is_kept_within_bounds() {
        for (said, interval, ttl) in [
            (json!({}), POLL, TASK_MAX),
            (json!({"ttlMs": 60_000, "pollIntervalMs": 5_000}), 5 * POLL, 60 * POLL),
            (json!({"ttl": 60_000.5, "pollInterval": 5_000}), 5 * POLL, 60 * POLL),
            (json!({"ttlMs": null, "pollIntervalMs": 1}), POLL_MIN, TASK_MAX),
            (json!({"ttlMs": -1, "pollIntervalMs": 1e300}), POLL_MAX, CALL),
            (json!({"ttlMs": 1e300, "pollIntervalMs": -1e300}), POLL_MIN, TASK_MAX),
        ] {
            let mut all = said.clone();
            (all["taskId"], all["status"]) = (json!("t"), json!("working"));
            let now = Instant::now();
            let task = CallTask::new(&state(all), CALL, now);
            assert_eq!(task.poll_at, Some(now + interval), "{said}");
            assert_eq!(task.ends, now + ttl, "{said}");
        }
    }

    #[test]
    fn a_question_is_asked_once_and_a_message_is_news_once() {
        let said = json!({"taskId": "t", "status": "input_required",
            "inputRequests": {"a": {"method": "roots/list"}}});
        let now = Instant::now();
        let mut task = CallTask::new(&state(said.clone()), CALL, now);
        assert_eq!(task.poll_at, Some(now), "what it asks is not known yet");
        for asked in [1, 0] {
            let requests = state(said.clone()).input_requests.unwrap();
            assert_eq!(task.unasked(requests).len(), asked);
        }
        let mut news =
            |message: &str| task.news(Some(message.to_owned())).map(|(number, _)| number);
        assert_eq!([news("x"), news("x"), news("y")], [Some(1), None, Some(2)]);
    }
}
