//! The rights to mounts and their leases.

use std::sync::Arc;

use crate::core::policy::{Denial, Permit, PermittedAct, Standing};
use crate::gateway::Gateway;
use crate::session::handle::Session;
use crate::surface::argument::lease_id;
use crate::surface::call::{Call, Daemon};
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
