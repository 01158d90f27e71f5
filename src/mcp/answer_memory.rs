//! The memory for long answers of mounted servers that clients have not read yet.
//!
//! When it is full, clients that do not read lose their connections to those that do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::core::ids::ConnectionId;

/// How long an answer may be without a part of this memory, in bytes.
const SHORT_MAX: usize = 64 * 1024;

/// The memory for all clients, in bytes. One client has at most half of it.
const ALL_MAX: usize = 128 * 1024 * 1024;
const CLIENT_MAX: usize = ALL_MAX / 2;

/// How long a client may take to read an answer while others wait for memory.
const PATIENCE: Duration = Duration::from_secs(10);

/// The memory of all clients. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct AnswerMemory(Arc<Mutex<HeldAnswers>>);

#[derive(Debug, Default)]
struct HeldAnswers {
    used: usize,
    last: u64,
    /// In the order in which they came.
    held: BTreeMap<u64, HeldAnswer>,
}

#[derive(Debug)]
struct HeldAnswer {
    bytes: usize,
    client: ConnectionId,
    since: Instant,
    /// Disconnects the client.
    gone: CancellationToken,
}

impl AnswerMemory {
    /// Takes memory for an answer to this client, which `gone` disconnects; `None` if it, or all, have too much to read.
    pub fn hold(
        &self,
        (client, gone): (ConnectionId, &CancellationToken),
        bytes: usize,
    ) -> Option<AnswerSpace> {
        if bytes <= SHORT_MAX {
            return Some(AnswerSpace(None));
        }
        let mut answers = self.lock();
        let own = answers.held.values().filter(|it| it.client == client);
        if own.map(|it| it.bytes).sum::<usize>() + bytes > CLIENT_MAX {
            return None;
        }
        while answers.used + bytes > ALL_MAX {
            let slow = answers.slow(client)?;
            answers.give_way(slow);
        }
        answers.used += bytes;
        answers.last += 1;
        let (number, gone) = (answers.last, gone.clone());
        let answer = HeldAnswer { bytes, client, since: Instant::now(), gone };
        answers.held.insert(number, answer);
        Some(AnswerSpace(Some((self.clone(), number))))
    }

    fn lock(&self) -> MutexGuard<'_, HeldAnswers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldAnswers {
    /// The client, other than this one, that has not read an answer for longest, if that is too long.
    fn slow(&self, but: ConnectionId) -> Option<ConnectionId> {
        let oldest = self.held.values().find(|it| it.client != but)?;
        (oldest.since.elapsed() >= PATIENCE).then_some(oldest.client)
    }

    /// Disconnects a client, whose answers are dropped with its connection.
    fn give_way(&mut self, client: ConnectionId) {
        for (_, answer) in self.held.extract_if(.., |_, it| it.client == client) {
            self.used -= answer.bytes;
            answer.gone.cancel();
        }
        tracing::warn!(connection = client.0, "disconnected: it does not read, and others wait");
    }
}

/// The memory of an answer, until this is dropped.
#[derive(Debug)]
#[must_use = "the memory is given back when it is dropped"]
pub struct AnswerSpace(Option<(AnswerMemory, u64)>);

impl Drop for AnswerSpace {
    fn drop(&mut self) {
        if let Some((memory, number)) = &self.0 {
            let mut answers = memory.lock();
            let bytes = answers.held.remove(number).map_or(0, |it| it.bytes);
            answers.used -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    struct AnsweredClient(ConnectionId, CancellationToken);

    impl AnsweredClient {
        fn new(id: u64) -> Self {
            Self(ConnectionId(id), CancellationToken::new())
        }

        fn hold(&self, memory: &AnswerMemory, bytes: usize) -> Option<AnswerSpace> {
            memory.hold((self.0, &self.1), bytes)
        }

        fn is_gone(&self) -> bool {
            self.1.is_cancelled()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_client_has_half_and_gets_back_what_it_reads() {
        let (memory, ada, bob) =
            (AnswerMemory::default(), AnsweredClient::new(1), AnsweredClient::new(2));
        let half = ada.hold(&memory, CLIENT_MAX).unwrap();
        assert!(ada.hold(&memory, SHORT_MAX + 1).is_none());
        let _short = ada.hold(&memory, SHORT_MAX).unwrap();
        let _other = bob.hold(&memory, CLIENT_MAX).unwrap();
        drop(half);
        let _again = ada.hold(&memory, CLIENT_MAX).unwrap();
        advance(2 * PATIENCE).await;
        assert!(ada.hold(&memory, SHORT_MAX + 1).is_none(), "it is its own turn to read");
        assert!(!ada.is_gone() && !bob.is_gone());
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_read_gives_way_to_who_does() {
        let memory = AnswerMemory::default();
        let (slow, quick, reader) =
            (AnsweredClient::new(1), AnsweredClient::new(2), AnsweredClient::new(3));
        let _small = slow.hold(&memory, SHORT_MAX + 1).unwrap();
        let unread = slow.hold(&memory, CLIENT_MAX - SHORT_MAX - 1).unwrap();
        advance(PATIENCE / 2).await;
        let _newer = quick.hold(&memory, CLIENT_MAX).unwrap();
        assert!(reader.hold(&memory, CLIENT_MAX).is_none(), "there is time to read");
        advance(PATIENCE / 2).await;
        let _held = reader.hold(&memory, CLIENT_MAX).unwrap();
        assert!(slow.is_gone() && !quick.is_gone());
        // What is dropped with the connection was given back before.
        drop(unread);
        assert_eq!(memory.lock().used, ALL_MAX);
    }
}
