//! The tools that a server lists, beside those that were accepted.

use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::mount::definitions::{LeftOut, LeftOutTool, ToolSet};
use crate::mount::pinned::{ListTime, ToolsStanding};
use crate::mount::protocol::ServerRefusal;
use crate::mount::server::MountTask;
use crate::mount::server::greeting::Listing;
use crate::mount::server::relisting::RelistingDue;
use crate::mount::server::running::RunningServer;

impl MountTask {
    /// Compares the tools of the server with those that were accepted. The first ones are accepted.
    pub(super) fn learn(&mut self, tools: ToolSet, time: ListTime) -> Result<(), String> {
        if time == ListTime::Later && self.is_outdated() {
            // Its next start says what the program lists by now.
            return Ok(());
        }
        let LeftOut { tools: left_out, outputs } = tools.left_out();
        for LeftOutTool { name, problem } in left_out {
            let told = format!("[termgate] the tool `{name}` is left out: {problem}");
            self.shared.log.add(told.as_bytes());
        }
        for LeftOutTool { name, problem } in outputs {
            let told = format!("[termgate] the `outputSchema` of `{name}` is left out: {problem}");
            self.shared.log.add(told.as_bytes());
        }
        self.shared.view.send_modify(|view| view.left_out = tools.left_out().clone());
        let listed = self.shared.tools.on_listed(self.shared.server, tools, time);
        let listed = listed.map_err(|error| format!("its tools cannot be kept: {error}"))?;
        if listed.standing == ToolsStanding::Proposed {
            tracing::warn!(mount = %self.shared.name, "a mounted server has changed its tools");
        }
        self.listed = Some(listed);
        Ok(())
    }

    /// Whether the server lists other tools than those that are accepted.
    pub(super) fn has_other_tools(&self) -> bool {
        self.listed.as_ref().is_some_and(|it| it.standing != ToolsStanding::Same)
    }

    /// Whether others were accepted than the server lists, so that it has to start again.
    pub(super) fn is_outdated(&self) -> bool {
        self.listed.as_ref().is_some_and(|it| it.standing == ToolsStanding::Outdated)
    }

    /// Whether calls wait, because the server lists other tools, and may list those that are accepted in a moment.
    pub(super) fn waits_for_list(&self, running: &RunningServer) -> bool {
        self.has_other_tools() && running.relisting.is_awaited()
    }

    /// Other tools may have been accepted.
    pub(super) fn on_accepted(&mut self) {
        if let Some(listed) = &mut self.listed {
            listed.on_accepted(self.shared.tools.known().accepted.as_ref());
        }
    }

    /// Does what is due about lists of tools. Returns whether anything was.
    pub(super) fn on_list_time(&self, running: &mut RunningServer, now: Instant) -> bool {
        match running.relisting.on_time(now) {
            None => return false,
            Some(RelistingDue::List) => {
                self.list_tools(running, Listing::new(self.shared.number(), running.era));
            }
            Some(RelistingDue::Late) => {
                self.on_not_listed(running, "its list of tools takes too long");
            }
        }
        true
    }

    /// Asks the server for a page of its tools.
    fn list_tools(&self, running: &mut RunningServer, page: Listing) {
        match running.link.send(page.request()) {
            Ok(()) => running.relisting.on_asked(page, Instant::now()),
            Err(_) => self.on_not_listed(running, "it does not read"),
        }
    }

    /// Reads on in a list of tools.
    pub(super) fn on_listed(
        &mut self,
        running: &mut RunningServer,
        listing: Listing,
        result: Result<Box<RawValue>, ServerRefusal>,
    ) {
        let listed = match listing.on_page(result, || self.shared.number()) {
            Ok(Ok(tools)) => self.learn(tools, ListTime::Later),
            Ok(Err(next)) => return self.list_tools(running, next),
            Err(problem) => Err(problem),
        };
        match listed {
            Ok(()) => {
                running.relisting.on_done(Instant::now());
                self.shared.view.send_if_modified(|view| view.unlisted.take().is_some());
            }
            Err(problem) => self.on_not_listed(running, &problem),
        }
    }

    /// The server has not listed its tools again. It keeps its state and its calls, and is asked later.
    pub(super) fn on_not_listed(&self, running: &mut RunningServer, problem: &str) {
        running.relisting.on_failed(Instant::now());
        let problem = format!("its tools may have changed, which is not known: {problem}");
        self.shared.log.add(format!("[termgate] {problem}").as_bytes());
        self.shared.view.send_modify(|view| view.unlisted = Some(problem));
    }
}
