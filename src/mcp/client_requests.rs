//! Requests that the daemon makes to a client, and their answers.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;
use serde_json::Value;
use tokio::sync::oneshot;
use uuid::Uuid;

/// How many requests of the daemon one client answers at a time.
const PENDING_MAX: usize = 16;

/// The requests to one client that wait for its answer. Their ids are never used again, also by later daemons.
#[derive(Debug, Default)]
pub struct ClientRequests(Mutex<HashMap<String, oneshot::Sender<Option<Value>>>>);

impl ClientRequests {
    /// Takes the answer of a client: its result, or none for an error. Returns whether one was expected.
    pub fn answer(&self, id: &RequestId, result: Option<Value>) -> bool {
        let RequestId::String(id) = id else { return false };
        let Some(waiting) = self.lock().remove(&**id) else { return false };
        // Nobody may wait any more.
        let _ = waiting.send(result);
        true
    }

    /// Expects the answer to one more request. Returns the id of the request; `None` if too many wait.
    pub fn expect(&self) -> Option<(String, oneshot::Receiver<Option<Value>>)> {
        let mut pending = self.lock();
        if pending.len() >= PENDING_MAX {
            return None;
        }
        let id = format!("termgate-{}", Uuid::new_v4().simple());
        let (sender, answer) = oneshot::channel();
        pending.insert(id.clone(), sender);
        Some((id, answer))
    }

    /// Expects the answer to a request no more. Returns whether it was expected.
    pub fn forget(&self, id: &str) -> bool {
        self.lock().remove(id).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<Option<Value>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
