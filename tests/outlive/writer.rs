//! Somebody who writes numbered lines over all daemons of a session, each with a key of its own.
//!
//! It keeps several calls under way, and repeats what was not answered under the same lease and key.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::outlive::client::{Client, Gateway, Gone};

/// How many calls are under way at once.
const UNDER_WAY: usize = 3;

/// The line that a writer sends as its `number`th.
pub(crate) fn line(name: &str, number: u64) -> String {
    let filling = "0123456789abcdef".repeat((number % 13) as usize);
    format!("<{name} {number} {filling}>\n")
}

/// A writer at work.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) name: String,
    pub(crate) lease: Value,
    stop: Arc<AtomicBool>,
    writing: JoinHandle<u64>,
}

impl Writer {
    /// Takes the lease, and begins to write.
    pub(crate) async fn start(gateway: Gateway, session: String) -> Self {
        let mut client = gateway.find().await;
        let asked = json!({"session": session, "ttl_ms": 600_000});
        let granted = client.must("acquire_lease", asked).await;
        let lease = granted["lease_id"].clone();
        let stop = Arc::new(AtomicBool::new(false));
        let name = session.clone();
        let work = Work {
            gateway,
            session,
            lease: lease.clone(),
            epoch: granted["epoch"].as_u64().unwrap(),
            unanswered: VecDeque::new(),
            next: 0,
            stop: Arc::clone(&stop),
        };
        Self { name, lease, stop, writing: tokio::spawn(work.run(client)) }
    }

    /// Whether it still writes; one that does not has panicked.
    pub(crate) fn is_at_work(&self) -> bool {
        !self.writing.is_finished()
    }

    /// Has it finish what is under way, and gives back how many lines were acknowledged.
    pub(crate) async fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.writing.await.unwrap()
    }
}

/// A write that was sent, or shall be, and not acknowledged.
#[derive(Debug)]
struct Unanswered {
    key: String,
    text: String,
}

struct Work {
    gateway: Gateway,
    session: String,
    lease: Value,
    epoch: u64,
    unanswered: VecDeque<Unanswered>,
    next: u64,
    stop: Arc<AtomicBool>,
}

impl Work {
    async fn run(mut self, mut client: Client) -> u64 {
        let mut written = self.write(&mut client).await;
        while written == Err(Gone) {
            client = self.gateway.find().await;
            written = self.go_on(&mut client).await;
        }
        self.next
    }

    /// Takes the lease back, and goes on where it was when the daemon went away.
    async fn go_on(&mut self, client: &mut Client) -> Result<(), Gone> {
        self.take_back(client).await?;
        // What may have been written is settled one by one, so that lines stay in order.
        while let Some(first) = self.unanswered.front() {
            let answer = client.call("send_text", self.arguments(first)).await?;
            self.settle(answer);
        }
        self.write(client).await
    }

    /// Writes until it shall stop and everything was answered.
    async fn write(&mut self, client: &mut Client) -> Result<(), Gone> {
        while !self.stop.load(Ordering::Relaxed) {
            let mut ids = Vec::new();
            while self.unanswered.len() < UNDER_WAY {
                let text = line(&self.session, self.next);
                let one = Unanswered { key: format!("{}", self.next), text };
                let arguments = self.arguments(&one);
                self.unanswered.push_back(one);
                self.next += 1;
                ids.push(client.send_call("send_text", arguments).await?);
            }
            for id in ids {
                let answer = client.answer_of_call(id).await?;
                self.settle(answer);
            }
            assert!(self.unanswered.is_empty(), "part of a line was not taken");
        }
        Ok(())
    }

    async fn take_back(&mut self, client: &mut Client) -> Result<(), Gone> {
        let asked = json!({"session": self.session, "lease_id": self.lease, "ttl_ms": 600_000});
        let taken = client.call("acquire_lease", asked).await?;
        let taken = taken.unwrap_or_else(|error| panic!("the lease is lost: {error}"));
        assert_eq!(taken["lease_id"], self.lease);
        let epoch = taken["epoch"].as_u64().unwrap();
        assert!(epoch > self.epoch, "epoch {epoch} after {}", self.epoch);
        self.epoch = epoch;
        Ok(())
    }

    fn arguments(&self, one: &Unanswered) -> Value {
        json!({
            "session": self.session,
            "text": one.text,
            "lease_id": self.lease,
            "idempotency_key": one.key,
        })
    }

    /// Takes the answer for the oldest write that had none.
    fn settle(&mut self, answer: Result<Value, Value>) {
        let one = self.unanswered.pop_front().expect("it was sent");
        let answer = answer.unwrap_or_else(|error| panic!("{one:?}: {error}"));
        let number = |name: &str| usize::try_from(answer[name].as_u64().unwrap()).unwrap();
        let (written, queued, discarded) =
            (number("written"), number("queued_bytes"), number("discarded"));
        assert_eq!(queued, 0, "nobody reads: {answer}");
        assert_eq!(written + discarded, one.text.len(), "{answer}");
        if discarded > 0 {
            let rest = one.text[written..].to_owned();
            let rest = Unanswered { key: format!("{}+{written}", one.key), text: rest };
            self.unanswered.push_front(rest);
        }
    }
}
