//! Requests that the daemon makes to a client, and their answers.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};
use uuid::Uuid;

use crate::mount::asking::{AskAnswer, AskRefusal};

/// What the ids of all these requests begin with.
pub const ID_PREFIX: &str = "termgate-";

/// How many requests of the daemon one client answers at a time.
const PENDING_MAX: usize = 16;

type PendingAnswers = HashMap<String, oneshot::Sender<AskAnswer>>;

/// The requests to one client that wait for its answer. Their ids are never used again, also by later daemons.
#[derive(Debug, Default)]
pub struct ClientRequests {
    pending: Mutex<PendingAnswers>,
    asks: Notify,
}

impl ClientRequests {
    /// Takes the answer of a client. Nobody may wait for it any more.
    pub fn answer(&self, id: &str, answer: AskAnswer) {
        if let Some(waiting) = self.lock().remove(id) {
            let _ = waiting.send(answer);
        }
    }

    /// The client has answered with what cannot be read. Returns whether it was the answer to a request.
    pub fn refuse(&self, id: &str, problem: &impl fmt::Display) -> bool {
        let waiting = self.lock().remove(id);
        let refused = || AskRefusal::refused(format!("the client's answer is refused: {problem}"));
        waiting.map(|waiting| waiting.send(Err(refused()))).is_some()
    }

    /// Expects the answer to one more request. Returns the id of the request; `None` if too many wait.
    pub fn expect(&self) -> Option<(String, oneshot::Receiver<AskAnswer>)> {
        let mut pending = self.lock();
        if pending.len() >= PENDING_MAX {
            return None;
        }
        let id = format!("{ID_PREFIX}{}", Uuid::new_v4().simple());
        let (sender, answer) = oneshot::channel();
        pending.insert(id.clone(), sender);
        drop(pending);
        self.asks.notify_waiters();
        Some((id, answer))
    }

    /// Expects the answer to a request no more. Returns whether it was expected.
    pub fn forget(&self, id: &str) -> bool {
        self.lock().remove(id).is_some()
    }

    /// How many requests wait for an answer.
    pub fn pending(&self) -> usize {
        self.lock().len()
    }

    /// Tells of each further request.
    pub fn asks(&self) -> &Notify {
        &self.asks
    }

    fn lock(&self) -> MutexGuard<'_, PendingAnswers> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
