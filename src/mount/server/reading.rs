//! What a running server writes: answers, requests and news.

use tokio::time::Instant;

use crate::mount::handle::ListChanges;
use crate::mount::json::ExactJson;
use crate::mount::link::lines::{FromServer, LostAnswer};
use crate::mount::protocol::{ServerMessage, parse};
use crate::mount::server::running::RunningServer;
use crate::mount::server::watching::on_updated;
use crate::mount::server::{MountTask, ServerEnd};

impl MountTask {
    /// Acts on what the server has written. Returns why the server is to end, if it is.
    pub(super) fn on_read(
        &mut self,
        running: &mut RunningServer,
        read: FromServer,
    ) -> Option<ServerEnd> {
        let (line, within) = match read {
            FromServer::Line(line) => (line, None),
            FromServer::Within { request, line } => (line, Some(request)),
            FromServer::Closed(problem) => return Some(ServerEnd::Failed(problem)),
            FromServer::Lost { request, problem } => {
                self.on_lost(running, request, &problem);
                return None;
            }
        };
        match parse(&line) {
            None => {
                self.shared.log.add(&[b"[termgate] no message: ", &line[..]].concat());
                None
            }
            Some(ServerMessage::Asks(request)) => {
                self.on_asked(running, within, request);
                None
            }
            Some(ServerMessage::Tells { method, params }) => {
                self.on_told(running, within, (&method, params));
                None
            }
            Some(ServerMessage::Answer { id, result }) => {
                if let Some(listing) = running.relisting.take(id) {
                    self.on_listed(running, listing, result);
                    return None;
                }
                let result = self.on_watch_answer(running, id, result)?;
                running.draining.on_answered(id);
                self.on_answer(running, id, result);
                None
            }
        }
    }

    /// A request will not be answered.
    fn on_lost(&self, running: &mut RunningServer, id: u64, problem: &LostAnswer) {
        if running.relisting.take(id).is_some() {
            self.on_not_listed(running, &problem.to_string());
        } else if !self.on_watch_lost(running, id) {
            self.on_call_lost(running, id, problem);
        }
    }

    fn on_told(
        &mut self,
        running: &mut RunningServer,
        within: Option<u64>,
        (method, params): (&str, Option<ExactJson>),
    ) {
        match method {
            "notifications/progress" => running.on_progress(params),
            "notifications/resources/updated" => on_updated(&self.shared, params.as_ref()),
            "notifications/resources/list_changed" => {
                self.on_list_changed(|changes| changes.resources += 1);
            }
            "notifications/prompts/list_changed" => {
                self.on_list_changed(|changes| changes.prompts += 1);
            }
            "notifications/cancelled" => running.on_cancelled(params.as_ref()),
            "notifications/elicitation/complete" => running.links.on_followed(params.as_ref()),
            "notifications/message" => self.on_logged(running, within, params),
            "notifications/tools/list_changed" => running.relisting.on_changed(Instant::now()),
            "notifications/subscriptions/acknowledged" => {
                self.on_acknowledged(running, params.as_ref());
            }
            _ => {}
        }
    }

    pub(super) fn on_list_changed(&self, count: impl FnOnce(&mut ListChanges)) {
        self.shared.view.send_modify(|view| count(&mut view.changes));
        self.contents.send_modify(|count| *count += 1);
    }
}
