//! The news that a client's roots have changed, for the mounted servers that have asked for them.

use std::sync::Arc;

use rmcp::model::RequestMetaObject;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::mcp::era::Era;
use crate::mcp::server::Server;
use crate::mcp::server::questions::{ClientAsker, ClientWay};
use crate::mount::asking::{ANSWER_WAIT, CallAsker};

impl Server {
    /// Tells the servers that have asked for the client's roots that these have changed, and lets each ask for them again.
    pub(super) fn tell_roots_changed(&self) {
        for (hearer, tool) in self.after_questions.hearers() {
            let (questions, mut asked) = mpsc::channel(1);
            hearer.tell(CallAsker { client: self.connection.id, questions, tells_roots: true });
            let asker = ClientAsker {
                shared: Arc::clone(&self.shared),
                standing: self.standing(&RequestMetaObject::default()),
                tool,
                capabilities: self.declared(Era::Legacy, &RequestMetaObject::default()),
                way: ClientWay::Connected(
                    Arc::clone(&self.connection),
                    Arc::clone(&self.after_questions),
                ),
            };
            let ended = self.connection.ended.clone();
            self.after_questions.spawn(async move {
                // The server drops its end when it has asked, hears of another change, or ends.
                let asking = async {
                    if let Some(question) = asked.recv().await {
                        asker.ask(question).await;
                    }
                };
                let _ = ended.run_until_cancelled(timeout(ANSWER_WAIT, asking)).await;
            });
        }
    }
}
