//! A person who is attached to a session, types, and gives the keyboard back.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::outlive::client::{Client, Gone};
use crate::outlive::day::agent::Progress;

/// People pause, so that others get their turn.
const PAUSE: Duration = Duration::from_millis(30);

/// A person at work.
#[derive(Debug)]
pub(super) struct Person {
    progress: Arc<Progress>,
    typing: JoinHandle<()>,
}

impl Person {
    pub(super) fn start(operator: PathBuf, session: &str, text: fn(u64) -> String) -> Self {
        let progress = Arc::new(Progress::default());
        let work =
            Work { operator, session: session.to_owned(), text, progress: Arc::clone(&progress) };
        Self { progress, typing: tokio::spawn(work.run()) }
    }

    pub(super) fn done(&self) -> u64 {
        assert!(!self.typing.is_finished(), "a person gave up");
        self.progress.done.load(Ordering::Relaxed)
    }

    pub(super) fn refusals(&self) -> u64 {
        self.progress.refusals.load(Ordering::Relaxed)
    }

    pub(super) async fn end(self) {
        self.progress.stop.store(true, Ordering::Relaxed);
        self.typing.await.unwrap();
    }
}

struct Work {
    operator: PathBuf,
    session: String,
    text: fn(u64) -> String,
    progress: Arc<Progress>,
}

impl Work {
    async fn run(self) {
        let mut number = 0;
        while !self.progress.stops() {
            let mut client = Client::find(&self.operator).await;
            let Err(Gone) = self.stay(&mut client, &mut number).await else { return };
        }
    }

    /// Attaches, and types until it shall stop. What a daemon did not answer is not typed again.
    async fn stay(&self, client: &mut Client, number: &mut u64) -> Result<(), Gone> {
        let size = json!({"session": self.session, "cols": 100, "rows": 30});
        let attach = client.send("termgate/attach", size).await?;
        while client.next().await?["params"]["observe"] != attach {}
        while !self.progress.stops() {
            *number += 1;
            let data = STANDARD.encode((self.text)(*number));
            let typed = json!({"attach": attach, "data": data, "resize": false});
            let id = client.send("termgate/attach/input", typed).await?;
            match client.answer(id).await? {
                Ok(_) => drop(self.progress.done.fetch_add(1, Ordering::Relaxed)),
                Err(error) => self.bears(&error),
            }
            let id = client.send("termgate/attach/hand_back", json!({"attach": attach})).await?;
            let _ = client.answer(id).await?;
            sleep(PAUSE).await;
        }
        Ok(())
    }

    fn bears(&self, error: &Value) {
        assert_eq!(error["data"]["error_code"], "storage_error", "{error}");
        self.progress.refusals.fetch_add(1, Ordering::Relaxed);
    }
}
