//! The rights to mounts and their leases.

use std::sync::Arc;

use crate::core::caller::Caller;
use crate::core::policy::approvals::Fingerprint;
use crate::core::policy::denial::Denial;
use crate::core::policy::{Permit, PermittedAct, Standing};
use crate::gateway::Gateway;
use crate::gateway::judging::JudgedCall;
use crate::gateway::recording::{BegunCall, RecordedCall};
use crate::mount::asking::ServerAsk;
use crate::mount::registry::MountedTool;
use crate::session::error::SessionError;
use crate::session::handle::Session;
use crate::surface::argument::lease_id;
use crate::surface::call::{Call, Daemon, Touched};
use crate::surface::call_arguments::CallArguments;
use crate::surface::error::SurfaceError;
use crate::surface::mount_lease::MountLease;
use crate::surface::mounted::{content_mount, seen_mounts};
use crate::surface::tool::ToolEntry;
use crate::surface::tool::relay::MountRequest;

impl Gateway {
    /// What a mount offers beside its tools, by the server's own name for it, if it exists for this caller.
    pub fn content_entry(
        &self,
        standing: &Standing,
        mount: &str,
        (request, own): (MountRequest, &str),
    ) -> Option<ToolEntry> {
        let mount = content_mount(&self.daemon, standing, mount, request)?;
        Some(ToolEntry::of_mount(mount, own, request))
    }

    /// Has the rules judge what a server asks the client of a call of this tool, and records that it does. Texts of the
    /// question are neither judged nor recorded.
    ///
    /// # Errors
    /// Why the client is not asked.
    pub async fn begin_question(
        &self,
        standing: &Standing,
        (tool, ask): (&MountedTool, ServerAsk),
        arguments: CallArguments,
    ) -> Result<BegunCall, SurfaceError> {
        self.admit(standing)?;
        let entry = ToolEntry::question(tool, ask);
        if !self.at_door(&entry, standing) {
            return Err(Denial::NoRole.into());
        }
        let mut call = Call::new(Arc::clone(&self.daemon), standing.clone(), Touched::default());
        let judged = JudgedCall { entry: &entry, arguments: &arguments, session: None };
        let allowed = judged.judge(&self.daemon, &mut call).await;
        let recorder = self.daemon.sessions.recorder();
        let recorded = RecordedCall::new(recorder, &call, &entry, &arguments, None);
        if let Err(error) = allowed {
            self.note_refused(&recorded, &error);
            return Err(error);
        }
        Ok(recorded.begin().map_err(SessionError::from)?)
    }

    /// What tells a call of a mount apart from all others, for the answers that its client brings back.
    pub fn fingerprint(
        &self,
        entry: &ToolEntry,
        caller: &Caller,
        arguments: &CallArguments,
    ) -> Fingerprint {
        let judged = JudgedCall { entry, arguments, session: None };
        let connection = caller.connection.0.to_be_bytes();
        let own = entry.mount().map(|it| it.tool.as_bytes()).unwrap_or_default();
        Fingerprint::of(&[judged.fingerprint(caller).as_bytes(), own, &connection])
    }

    /// Whether a client brings back what it was given when an approval of this call was asked for.
    pub fn returns_approval(
        &self,
        entry: &ToolEntry,
        caller: &Caller,
        (arguments, state): (&CallArguments, &str),
    ) -> bool {
        let judged = JudgedCall { entry, arguments, session: None };
        self.daemon.judge.opened(state, &judged.fingerprint(caller)).is_some()
    }

    /// Gives a call the right to the lease of a mount.
    pub(super) fn allow_mount(
        &self,
        call: &mut Call,
        lease: Arc<MountLease>,
    ) -> Result<(), SurfaceError> {
        call.permit = Some(self.decide_mount(&call.standing)?);
        call.mount_lease = Some(lease);
        Ok(())
    }

    /// The lease of the mount that the caller names.
    pub(super) fn mount_lease(
        &self,
        standing: &Standing,
        name: Option<&str>,
    ) -> Result<Arc<MountLease>, SurfaceError> {
        let Daemon { mounts, mount_leases, .. } = &*self.daemon;
        let seen = name.filter(|name| self.sees_mount(standing, name)).unwrap_or_default();
        mount_leases.find(mounts, seen)
    }

    /// The lease of a mount that has this id, if the caller sees the mount.
    pub(super) fn mount_of_lease(
        &self,
        standing: &Standing,
        key: Option<&str>,
    ) -> Option<Arc<MountLease>> {
        let lease = self.daemon.mount_leases.of_id(lease_id(key?).ok()?)?;
        self.sees_mount(standing, lease.mount().name().as_str()).then_some(lease)
    }

    /// Whether a caller sees any tool of a mount.
    pub(super) fn sees_mount(&self, standing: &Standing, mount: &str) -> bool {
        let mut seen = seen_mounts(&self.daemon, standing).into_iter();
        seen.any(|(it, _)| it.name().as_str() == mount)
    }

    /// Decides whether a caller may call tools of mounts that may write: where it may write at all.
    pub(super) fn decide_mount(&self, standing: &Standing) -> Result<Permit, Denial> {
        let (board, now) = (&self.daemon.switchboard, self.daemon.now());
        board.decide(standing, PermittedAct::CallMount, None::<&Session>, now)
    }
}
