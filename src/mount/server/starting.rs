//! How a server is started, greeted, and asked for its tools.

use std::sync::atomic::Ordering;

use tokio::time::{Instant, timeout_at};

use crate::mount::link::ServerLink;
use crate::mount::server::greeting::{Greeted, NotGreeted, greet};
use crate::mount::server::{MountTask, ServerEnd};

impl MountTask {
    /// Starts the server, and learns its tools.
    pub(super) async fn start(&mut self) -> Result<ServerLink, ServerEnd> {
        let (link, Greeted { greeting, tools, .. }) = self.start_greeted().await?;
        self.shared.view.send_modify(|view| view.on_greeted(greeting));
        self.contents.send_modify(|count| *count += 1);
        match self.learn(tools) {
            Ok(()) => Ok(link),
            Err(problem) => {
                link.end().await;
                Err(ServerEnd::Failed(problem))
            }
        }
    }

    /// Starts the server and greets it: in the newer way first, unless it is known not to understand that.
    async fn start_greeted(&self) -> Result<(ServerLink, Greeted), ServerEnd> {
        let address = self.address.as_ref().map_err(|why| ServerEnd::Failed(why.clone()))?;
        let mut probes = !self.is_older.load(Ordering::Relaxed);
        loop {
            let until = Instant::now() + self.shared.settings.initialize_timeout;
            let opened = ServerLink::open(address, &self.shared.log);
            let mut link = self.in_time(until, opened).await?.map_err(ServerEnd::Failed)?;
            let greeted = self.in_time(until, greet(&mut link, &self.shared, probes)).await;
            let end = match greeted {
                Ok(Ok(greeted)) => {
                    self.is_older.fetch_or(!probes || greeted.is_older, Ordering::Relaxed);
                    return Ok((link, greeted));
                }
                Ok(Err(NotGreeted::Ended(_))) if probes => None,
                Ok(Err(NotGreeted::Ended(problem) | NotGreeted::Failed(problem))) => {
                    Some(ServerEnd::Failed(problem))
                }
                Err(end) => Some(end),
            };
            link.end().await;
            if let Some(end) = end {
                return Err(end);
            }
            probes = false;
        }
    }

    /// Waits for a part of the start.
    async fn in_time<T>(
        &self,
        until: Instant,
        part: impl Future<Output = T>,
    ) -> Result<T, ServerEnd> {
        tokio::select! {
            () = self.shared.stop.cancelled() => Err(ServerEnd::Stopped),
            done = timeout_at(until, part) => done.map_err(|_| {
                let most = self.shared.settings.initialize_timeout.as_millis();
                ServerEnd::Failed(format!("it did not start within {most} ms"))
            }),
        }
    }
}
