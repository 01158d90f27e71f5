//! The questions of a server that wait for the answers of clients.

use std::collections::BTreeMap;

use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinSet};

use crate::mount::asking::{AskAnswer, AskRefusal};
use crate::mount::fence::CallLease;

/// The questions of a server that wait for their answers, by its own ids.
#[derive(Debug, Default)]
pub(super) struct OpenQuestions {
    open: BTreeMap<String, OpenQuestion>,
    answers: JoinSet<(String, AskAnswer)>,
}

#[derive(Debug)]
struct OpenQuestion {
    id: Value,
    call: u64,
    under: Option<CallLease>,
    waiting: AbortHandle,
}

impl OpenQuestions {
    /// Waits for the answer of a question that was asked during a call.
    pub(super) fn add(
        &mut self,
        id: &Value,
        (call, under): (u64, Option<CallLease>),
        reply: oneshot::Receiver<AskAnswer>,
    ) {
        let key = id.to_string();
        let of = key.clone();
        let waiting = self.answers.spawn(async move {
            let over = || AskRefusal::refused("the call is over");
            (of, reply.await.unwrap_or_else(|_| Err(over())))
        });
        self.open.insert(key, OpenQuestion { id: id.clone(), call, under, waiting });
    }

    pub(super) fn is_open(&self, id: &Value) -> bool {
        self.open.contains_key(&id.to_string())
    }

    pub(super) fn of_call(&self, call: u64) -> usize {
        self.open.values().filter(|it| it.call == call).count()
    }

    /// Takes the questions of a call back that is over. Returns their ids.
    pub(super) fn end_call(&mut self, call: u64) -> Vec<Value> {
        let ended = self.open.extract_if(.., |_, it| it.call == call);
        let taken_back = |(_, question): (String, OpenQuestion)| {
            question.waiting.abort();
            question.id
        };
        ended.map(taken_back).collect()
    }

    /// Takes a question back, as its server wants.
    pub(super) fn cancel(&mut self, id: &Value) {
        if let Some(question) = self.open.remove(&id.to_string()) {
            question.waiting.abort();
        }
    }

    /// Waits for the next answer; for ever if there is no question. Cancelling this loses nothing.
    pub(super) async fn next(&mut self) -> QuestionAnswer {
        loop {
            match self.answers.join_next().await {
                None => std::future::pending().await,
                // One that was taken back.
                Some(Err(_)) => {}
                Some(Ok((key, answer))) => {
                    if let Some(OpenQuestion { id, under, .. }) = self.open.remove(&key) {
                        return QuestionAnswer { id, under, answer };
                    }
                }
            }
        }
    }
}

/// An answer for the server.
#[derive(Debug)]
pub(super) struct QuestionAnswer {
    pub(super) id: Value,
    pub(super) under: Option<CallLease>,
    pub(super) answer: AskAnswer,
}
