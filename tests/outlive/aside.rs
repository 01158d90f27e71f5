//! A daemon that stands still while the next one takes its place, and what it is asked meanwhile.
//!
//! It knows of no storm. Nothing of what it is asked may reach a program.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::daemon::Daemon;
use crate::harness::line_client::Answer;
use crate::outlive::client::{Client, Gone};
use crate::outlive::home::Home;

/// What it is asked to write, which nobody else writes.
const FORMER: &str = "former.";

/// A daemon whose place is free for another one, though it may go on.
#[derive(Debug)]
pub(crate) struct SetAside {
    daemon: Daemon,
    asked: Option<Asked>,
}

/// Somebody who asked it to write, and the calls by which.
#[derive(Debug)]
struct Asked {
    client: Client,
    calls: Vec<u64>,
}

impl SetAside {
    /// Has a daemon stand still, and gives its place free; one that has no place yet is killed.
    pub(crate) async fn of(home: &Home, daemon: Daemon) -> Option<Self> {
        if home.set_aside(&daemon).await {
            return Some(Self { daemon, asked: None });
        }
        daemon.kill().await;
        None
    }

    /// Has a client that came to it before ask it to write under leases of others, which those have with
    /// the next daemon as well.
    pub(crate) async fn is_asked(
        &mut self,
        mut client: Client,
        leases: impl IntoIterator<Item = (&str, &Value)>,
    ) {
        let mut calls = Vec::new();
        for (session, lease) in leases {
            let write = json!({"session": session, "text": FORMER, "lease_id": lease});
            let taken = json!({"session": session, "lease_id": lease, "ttl_ms": 600_000});
            for (tool, said) in
                [("send_text", &write), ("acquire_lease", &taken), ("send_text", &write)]
            {
                calls.push(client.send_call(tool, said.clone()).await.unwrap());
            }
        }
        self.asked = Some(Asked { client, calls });
    }

    /// Lets it go on, and gives back how many calls waited for it. It answers them or hangs up.
    pub(crate) async fn goes_on(&mut self) -> usize {
        self.daemon.signal(Signal::SIGCONT);
        let Some(Asked { mut client, calls }) = self.asked.take() else { return 0 };
        let waited = calls.len();
        for call in calls {
            has_no_effect(&client.answer_of_call(call).await);
        }
        waited
    }

    /// Ends it.
    pub(crate) async fn ends_by(self, signal: Signal) {
        self.daemon.signal(signal);
        self.daemon.ends().await;
    }
}

/// A write has no effect, and whoever made it is told so: the connection is gone, the call failed,
/// or not a byte was taken.
fn has_no_effect(answer: &Result<Answer, Gone>) {
    if let Ok(Ok(answer)) = answer
        && answer["lease_id"].is_null()
    {
        assert_eq!(answer["discarded"], FORMER.len(), "{answer}");
    }
}
