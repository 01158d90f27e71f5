//! The questions of a server that wait for the answers of clients.

use std::collections::BTreeMap;

use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinSet};

use crate::mount::asking::{AskAnswer, AskRefusal};
use crate::mount::fence::CallLease;
use crate::mount::json::ExactJson;

/// The questions of a server that wait for their answers.
#[derive(Debug, Default)]
pub(super) struct OpenQuestions {
    open: BTreeMap<QuestionKey, OpenQuestion>,
    answers: JoinSet<(QuestionKey, AskAnswer)>,
}

/// How a server has asked, which says where the answer goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum QuestionKey {
    /// By a request with this id, as JSON.
    Request(String),
    /// By this name in a result of this call.
    Result { call: u64, name: String },
}

impl QuestionKey {
    /// That of a request.
    pub(super) fn of(id: &ExactJson) -> Self {
        Self::Request(id.to_string())
    }
}

#[derive(Debug)]
struct OpenQuestion {
    call: u64,
    under: Option<CallLease>,
    waiting: AbortHandle,
}

impl OpenQuestions {
    /// Waits for the answer of a question that was asked during a call.
    pub(super) fn add(
        &mut self,
        key: QuestionKey,
        (call, under): (u64, Option<CallLease>),
        reply: oneshot::Receiver<AskAnswer>,
    ) {
        let of = key.clone();
        let waiting = self.answers.spawn(async move {
            let over = || AskRefusal::refused("the call is over");
            (of, reply.await.unwrap_or_else(|_| Err(over())))
        });
        self.open.insert(key, OpenQuestion { call, under, waiting });
    }

    pub(super) fn is_open(&self, key: &QuestionKey) -> bool {
        self.open.contains_key(key)
    }

    pub(super) fn of_call(&self, call: u64) -> usize {
        self.open.values().filter(|it| it.call == call).count()
    }

    /// Takes the questions of a call back that is over.
    pub(super) fn end_call(&mut self, call: u64) -> Vec<QuestionKey> {
        let ended = self.open.extract_if(.., |_, it| it.call == call);
        let taken_back = |(key, question): (QuestionKey, OpenQuestion)| {
            question.waiting.abort();
            key
        };
        ended.map(taken_back).collect()
    }

    /// Takes a question back, as its server wants.
    pub(super) fn cancel(&mut self, key: &QuestionKey) {
        if let Some(question) = self.open.remove(key) {
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
                    if let Some(OpenQuestion { under, .. }) = self.open.remove(&key) {
                        return QuestionAnswer { key, under, answer };
                    }
                }
            }
        }
    }
}

/// An answer for the server.
#[derive(Debug)]
pub(super) struct QuestionAnswer {
    pub(super) key: QuestionKey,
    pub(super) under: Option<CallLease>,
    pub(super) answer: AskAnswer,
}
