//! How a server is started, greeted, and asked for its tools.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::core::mount::MountMode;
use crate::mount::asking::{capabilities, capabilities_with_news};
use crate::mount::declared::ServerNews;
use crate::mount::handle::ServerCall;
use crate::mount::link::ServerLink;
use crate::mount::pinned::ListTime;
use crate::mount::server::greeting::{Greeted, greet};
use crate::mount::server::relisting::Relisting;
use crate::mount::server::{MountTask, ServerEnd};

/// How soon a server is asked again that lists other tools at its start than were accepted, and tells their changes.
const SETTLED_AFTER: Duration = Duration::from_secs(1);

impl MountTask {
    /// Starts the server, and learns its tools. They may be due to be listed again.
    pub(super) async fn start(
        &mut self,
        capabilities: Value,
    ) -> Result<(ServerLink, Relisting), ServerEnd> {
        let (link, greeted) = self.start_greeted(capabilities).await?;
        let Greeted { greeting, tools, have_changed } = greeted;
        let now = Instant::now();
        let mut relisting = Relisting::new(now);
        if have_changed {
            relisting.on_changed(now);
        }
        let (declared, instructions) = (greeting.declared.clone(), greeting.instructions.clone());
        let tells = declared.tells(ServerNews::Tools);
        let kept = self.shared.tools.known().declared;
        self.shared.view.send_modify(|view| view.on_greeted(greeting, kept.as_deref()));
        self.contents.send_modify(|count| *count += 1);
        self.shared.tools.on_greeted(declared, instructions);
        match self.learn(tools, ListTime::Start) {
            Ok(()) => {
                if tells && self.has_other_tools() {
                    // Some add tools just after they were greeted.
                    relisting.on_changed(now + SETTLED_AFTER);
                }
                Ok((link, relisting))
            }
            Err(problem) => {
                self.end_link(link).await;
                Err(ServerEnd::Failed(problem))
            }
        }
    }

    /// What the server is told that it may do. Where it has one client, which it is called by, that tells of its roots if it
    /// has declared so.
    pub(super) fn told_capabilities(&self, first: Option<&ServerCall>) -> Value {
        let is_own = self.shared.settings.mode == MountMode::PerClient;
        let tells =
            first.and_then(|call| call.channels.asker.as_ref()).is_some_and(|it| it.tells_roots);
        if is_own && tells { capabilities_with_news() } else { capabilities() }
    }

    /// Starts the server and greets it.
    async fn start_greeted(
        &mut self,
        capabilities: Value,
    ) -> Result<(ServerLink, Greeted), ServerEnd> {
        let address = self.address.as_ref().map_err(|why| ServerEnd::Failed(why.clone()))?;
        let until = Instant::now() + self.shared.settings.initialize_timeout;
        let opened = ServerLink::open(address, &self.shared.log);
        let mut link = self.in_time(until, opened).await?.map_err(ServerEnd::Failed)?;
        let greeted = self.in_time(until, greet(&mut link, &self.shared, capabilities)).await;
        match greeted.and_then(|greeted| greeted.map_err(ServerEnd::Failed)) {
            Ok(greeted) => Ok((link, greeted)),
            Err(end) => {
                self.end_link(link).await;
                Err(end)
            }
        }
    }

    /// Ends the server, and keeps what it said last.
    pub(super) async fn end_link(&mut self, link: ServerLink) {
        self.last_line = link.last_line();
        link.end().await;
    }

    /// Waits for a part of the start.
    async fn in_time<T>(
        &self,
        until: Instant,
        part: impl Future<Output = T>,
    ) -> Result<T, ServerEnd> {
        tokio::select! {
            () = self.shared.stop.cancelled() => Err(ServerEnd::Stopped),
            () = self.shared.restart.notified() => Err(ServerEnd::Restart),
            done = timeout_at(until, part) => done.map_err(|_| {
                let most = self.shared.settings.initialize_timeout.as_millis();
                ServerEnd::Failed(format!("it did not start within {most} ms"))
            }),
        }
    }
}
