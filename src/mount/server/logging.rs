//! The log messages of a server, on their way to the clients whose calls it works on.

use std::time::Duration;

use crate::mount::handle::CallNews;
use crate::mount::json::ExactJson;
use crate::mount::log::LogMessage;
use crate::mount::server::MountTask;
use crate::mount::server::running::RunningServer;

/// How many log messages of a server clients are told at once, and when one more.
pub(super) const LOGGED_AT_ONCE: u32 = 64;
pub(super) const LOGGED_ONE_MORE: Duration = Duration::from_millis(50);

impl MountTask {
    /// Keeps a log message, and hands it to the client of the call that it belongs to, as a question: if that wants it, is not
    /// behind, and was not told too much. `within` is the request in whose stream it comes.
    pub(super) fn on_logged(
        &self,
        running: &mut RunningServer,
        within: Option<u64>,
        params: Option<ExactJson>,
    ) {
        self.shared.log.add_message(params.as_ref());
        let Some(ExactJson::Object(params)) = params else { return };
        let Ok(call) = running.call_of_message(within, &params) else { return };
        let wanted = running.pending.get(&call).and_then(|it| it.call.channels.log.clone());
        let Some((level, log)) = wanted else { return };
        let Some(message) = LogMessage::of(params) else { return };
        if message.level >= level && running.logged.take(self.now()) {
            let _ = log.try_send(CallNews::Logged(message));
        }
    }
}
