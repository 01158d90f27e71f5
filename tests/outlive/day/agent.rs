//! An agent that does one act after the other, each once, and bears what a day brings.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::harness::waiting::LOOK;
use crate::outlive::client::{Client, Gateway, Gone};

/// A tool, and its arguments without those that every act has.
pub(super) type Act = (&'static str, Value);

/// What somebody has done so far.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) done: AtomicU64,
    /// How often nothing could be recorded.
    pub(super) refusals: AtomicU64,
    pub(super) stop: AtomicBool,
}

impl Progress {
    pub(super) fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// An agent at work.
#[derive(Debug)]
pub(super) struct Agent {
    progress: Arc<Progress>,
    working: JoinHandle<()>,
}

impl Agent {
    pub(super) fn start(gateway: Gateway, session: &str, act: fn(&str, u64) -> Act) -> Self {
        let progress = Arc::new(Progress::default());
        let work = Work {
            session: session.to_owned(),
            act,
            lease: None,
            seen: None,
            progress: Arc::clone(&progress),
        };
        Self { progress, working: tokio::spawn(work.run(gateway)) }
    }

    pub(super) fn done(&self) -> u64 {
        assert!(!self.working.is_finished(), "an agent gave up");
        self.progress.done.load(Ordering::Relaxed)
    }

    pub(super) fn refusals(&self) -> u64 {
        self.progress.refusals.load(Ordering::Relaxed)
    }

    /// Has it finish what it does, and gives back how much it did.
    pub(super) async fn end(self) -> u64 {
        self.progress.stop.store(true, Ordering::Relaxed);
        self.working.await.unwrap();
        self.progress.done.load(Ordering::Relaxed)
    }
}

struct Work {
    session: String,
    act: fn(&str, u64) -> Act,
    lease: Option<Value>,
    /// What it saw after a person typed.
    seen: Option<Value>,
    progress: Arc<Progress>,
}

impl Work {
    async fn run(mut self, gateway: Gateway) {
        let mut number = 0;
        while !self.progress.stops() {
            let mut client = gateway.find().await;
            // Its own lease, which the daemon before this one gave it.
            let mut has_lease = false;
            while !self.progress.stops() {
                let tried = match has_lease {
                    true => self.act(&mut client, number).await,
                    false => self.take_lease(&mut client).await,
                };
                match tried {
                    Err(Gone) => break,
                    Ok(Ok(())) if has_lease => {
                        self.seen = None;
                        number += 1;
                        self.progress.done.store(number, Ordering::Relaxed);
                    }
                    Ok(Ok(())) => has_lease = true,
                    Ok(Err(error)) if error["error_code"] == "screen_changed" => {
                        if self.look(&mut client).await.is_err() {
                            break;
                        }
                    }
                    Ok(Err(error)) => {
                        has_lease &= self.bears(&error);
                        sleep(LOOK).await;
                    }
                }
            }
        }
    }

    async fn take_lease(&mut self, client: &mut Client) -> Result<Result<(), Value>, Gone> {
        let mut asked = json!({"session": self.session, "ttl_ms": 600_000});
        if let Some(lease) = &self.lease {
            asked["lease_id"] = lease.clone();
        }
        let taken = client.call("acquire_lease", asked).await?;
        Ok(taken.map(|granted| self.lease = Some(granted["lease_id"].clone())))
    }

    /// Does the act with this number, again where it may have been done before.
    async fn act(&mut self, client: &mut Client, number: u64) -> Result<Result<(), Value>, Gone> {
        let (tool, mut arguments) = (self.act)(&self.session, number);
        arguments["session"] = json!(self.session);
        arguments["lease_id"] = self.lease.clone().unwrap();
        arguments["idempotency_key"] = json!(number.to_string());
        if let Some(seen) = &self.seen {
            arguments["expect_watermark"] = seen.clone();
        }
        let answer = client.call(tool, arguments).await?;
        Ok(answer.map(|answer| assert_ne!(answer["status"], "timeout", "{answer}")))
    }

    /// Looks at what a person did.
    async fn look(&mut self, client: &mut Client) -> Result<(), Gone> {
        let screen = client.call("read_screen", json!({"session": self.session})).await?.unwrap();
        self.seen = Some(screen["watermark"].clone());
        Ok(())
    }

    /// Whether it still has its lease after an error, which must be one that a day brings.
    fn bears(&mut self, error: &Value) -> bool {
        match error["error_code"].as_str().unwrap() {
            "storage_error" => drop(self.progress.refusals.fetch_add(1, Ordering::Relaxed)),
            "lease_suspended" | "lease_held" | "busy" => {}
            "lease_lost" | "lease_superseded" | "lease_required" => {
                self.lease = None;
                return false;
            }
            _ => panic!("{error}"),
        }
        true
    }
}
