//! The tools that a server lists, beside those that were accepted.

use std::io;
use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::mount::declared::DeclaredCapabilities;
use crate::mount::definitions::{LeftOutTool, ToolSet};
use crate::mount::error::ManageError;
use crate::mount::protocol::ServerRefusal;
use crate::mount::server::greeting::Listing;
use crate::mount::server::running::RunningServer;
use crate::mount::server::{MountTask, ServerEnd};

impl MountTask {
    /// Compares the tools of the server with those that were accepted. The first ones are accepted.
    pub(super) fn learn(&mut self, tools: ToolSet) -> Result<(), String> {
        for LeftOutTool { name, problem } in tools.left_out() {
            let told = format!("[termgate] the tool `{name}` is left out: {problem}");
            self.shared.log.add(told.as_bytes());
        }
        self.shared.view.send_modify(|view| view.left_out = tools.left_out().to_vec());
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

    /// Asks the server for its tools. A list that is on its way may be the one before.
    pub(super) fn list_tools(&self, running: &mut RunningServer) {
        let listing = Listing::new(self.shared.number(), running.era);
        if running.link.send(listing.request()).is_ok() {
            running.listing = Some(listing);
        }
    }

    /// Reads on in a list of tools.
    pub(super) fn on_listed(
        &mut self,
        running: &mut RunningServer,
        listing: Listing,
        result: Result<Box<RawValue>, ServerRefusal>,
    ) -> Option<ServerEnd> {
        match listing.on_page(result, || self.shared.number()) {
            Err(problem) => Some(ServerEnd::Failed(problem)),
            Ok(Ok(tools)) => self.learn(tools).err().map(ServerEnd::Failed),
            Ok(Err(next)) => {
                if running.link.send(next.request()).is_ok() {
                    running.listing = Some(next);
                }
                None
            }
        }
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
