//! The tools that a server lists, beside those that were accepted.

use std::io;
use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::mount::declared::DeclaredCapabilities;
use crate::mount::definitions::{LeftOut, LeftOutTool, ToolSet};
use crate::mount::error::ManageError;
use crate::mount::protocol::ServerRefusal;
use crate::mount::server::MountTask;
use crate::mount::server::greeting::Listing;
use crate::mount::server::relisting::RelistingDue;
use crate::mount::server::running::RunningServer;

impl MountTask {
    /// Compares the tools of the server with those that were accepted. The first ones are accepted.
    pub(super) fn learn(&mut self, tools: ToolSet) -> Result<(), String> {
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
        let (tools, accepted) = (Arc::new(tools), self.shared.tools.borrow().accepted.clone());
        (self.listed, self.compared) = (Some(Arc::clone(&tools)), None);
        let Some(accepted) = accepted else {
            self.keep(&tools).map_err(|error| format!("its tools cannot be kept: {error}"))?;
            self.shared.tools.send_modify(|all| all.accepted = Some(tools));
            self.lists.send_modify(|count| *count += 1);
            return Ok(());
        };
        let is_same = accepted.differences(&tools).is_empty();
        if !is_same {
            tracing::warn!(mount = %self.shared.name, "a mounted server has changed its tools");
        }
        // What another server of the mount lists is not changed back by this one.
        let is_only = !self.shared.settings.mode.has_several();
        self.shared.tools.send_modify(|all| {
            if !is_same {
                all.changed = Some(tools);
            } else if is_only {
                all.changed = None;
            }
        });
        Ok(())
    }

    /// Remembers what the server declares, also for later daemons. Nobody has to accept it, as it adds no tools.
    pub(super) fn declare(&self, declared: DeclaredCapabilities) {
        let declared = Some(Arc::new(declared));
        let differs = self.shared.tools.send_if_modified(|all| {
            let differs = all.declared != declared;
            all.declared = declared;
            differs
        });
        let accepted = self.shared.tools.borrow().accepted.clone();
        // The first tools are kept when they are known.
        let Some(accepted) = accepted.filter(|_| differs) else { return };
        if let Err(error) = self.keep(&accepted) {
            let mount = &self.shared.name;
            tracing::warn!(%mount, %error, "the capabilities of a mounted server cannot be kept");
        }
    }

    /// Keeps these tools as accepted, with what the server declared.
    fn keep(&self, tools: &ToolSet) -> io::Result<()> {
        let declared = self.shared.tools.borrow().declared.clone();
        self.accepted.keep(&self.shared.name, tools, declared.as_deref())
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
            Ok(Ok(tools)) => self.learn(tools),
            Ok(Err(next)) => return self.list_tools(running, next),
            Err(problem) => Err(problem),
        };
        match listed {
            Ok(()) => {
                running.relisting.on_done(Instant::now());
                self.shared.view.send_if_modified(|view| view.problem.take().is_some());
            }
            Err(problem) => self.on_not_listed(running, &problem),
        }
    }

    /// The server has not listed its tools again. It keeps its state and its calls, and is asked later.
    pub(super) fn on_not_listed(&self, running: &mut RunningServer, problem: &str) {
        running.relisting.on_failed(Instant::now());
        let problem = format!("its tools may have changed, which is not known: {problem}");
        self.shared.log.add(format!("[termgate] {problem}").as_bytes());
        self.shared.view.send_modify(|view| view.problem = Some(problem));
    }

    pub(super) fn accept(
        &self,
        digest: Option<&str>,
        reply: oneshot::Sender<Result<(), ManageError>>,
    ) {
        let mount = self.shared.name.clone();
        let changed = self.shared.tools.borrow().changed.clone();
        let accepted = match changed {
            None => Err(ManageError::NothingChanged(mount)),
            Some(tools) if digest.is_some_and(|it| it != tools.digest()) => {
                Err(ManageError::OtherTools(mount))
            }
            Some(tools) => match self.keep(&tools) {
                Err(error) => Err(ManageError::NotKept { mount, problem: error.to_string() }),
                Ok(()) => {
                    self.shared.tools.send_modify(|all| {
                        // Another server of the mount may list others by now.
                        all.changed.take_if(|changed| Arc::ptr_eq(changed, &tools));
                        all.accepted = Some(tools);
                    });
                    self.lists.send_modify(|count| *count += 1);
                    Ok(())
                }
            },
        };
        let _ = reply.send(accepted);
    }
}
