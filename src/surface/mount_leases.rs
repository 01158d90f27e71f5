//! The leases of all mounts whose mode is `leased`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::{AbortHandle, JoinSet};

use crate::core::ids::{ConnectionId, Epoch, LeaseId, PrincipalId, TenantId};
use crate::core::lease::error::EndCause;
use crate::core::mount::{MountMode, MountName};
use crate::mount::epochs::EpochFiles;
use crate::mount::registry::Mounts;
use crate::mount::servers::Mount;
use crate::session::registry::Registry;
use crate::surface::error::SurfaceError;
use crate::surface::mount_lease::MountLease;

/// The leases of the mounts that have one.
#[derive(Debug)]
pub struct MountLeases {
    sessions: Registry,
    epochs: EpochFiles,
    kept: Mutex<KeptLeases>,
}

#[derive(Debug, Default)]
struct KeptLeases {
    by_name: BTreeMap<MountName, (Arc<MountLease>, AbortHandle)>,
    /// Each does what time does to one lease.
    tasks: JoinSet<()>,
}

impl MountLeases {
    pub fn new(sessions: Registry, epochs: EpochFiles) -> Self {
        Self { sessions, epochs, kept: Mutex::default() }
    }

    /// Has a lease for each of these mounts whose mode is `leased`, and for no other. The leases of mounts that are gone
    /// end.
    ///
    /// Must be called inside a runtime.
    pub fn follow(&self, mounts: &Mounts) {
        let mounts: Vec<Mount> = mounts.all();
        let is_there = |lease: &MountLease| mounts.iter().any(|mount| mount.is_same(lease.mount()));
        let mut kept = self.lock();
        let KeptLeases { by_name, tasks } = &mut *kept;
        while tasks.try_join_next().is_some() {}
        by_name.retain(|_, (lease, task)| {
            let stays = is_there(lease);
            if !stays {
                lease.end_rights_of(|_| true, &EndCause::RightEnded);
                task.abort();
            }
            stays
        });
        for mount in mounts.iter().filter(|it| it.settings().mode == MountMode::Leased) {
            if !by_name.contains_key(mount.name()) {
                let lease = Arc::new(self.begin(mount));
                let kept = Arc::clone(&lease);
                let task = tasks.spawn(async move { kept.keep_time().await });
                by_name.insert(mount.name().clone(), (lease, task));
            }
        }
    }

    fn begin(&self, mount: &Mount) -> MountLease {
        // Also above those of a daemon before where the file was lost.
        let micros = self.sessions.clock().now().since_boot().as_micros();
        let least = Epoch(u64::try_from(micros).unwrap_or(Epoch::MAX.0).min(Epoch::MAX.0));
        let above = self.epochs.begin(mount.name(), least).unwrap_or_else(|error| {
            tracing::warn!(mount = %mount.name(), %error, "the epochs of a mount's lease cannot be kept");
            least
        });
        MountLease::new(mount.clone(), self.sessions.clone(), above)
    }

    /// The lease of this mount, if it has one.
    pub fn of(&self, mount: &MountName) -> Option<Arc<MountLease>> {
        self.lock().by_name.get(mount).map(|(lease, _)| Arc::clone(lease))
    }

    /// The lease of the mount of this name.
    ///
    /// # Errors
    /// [`SurfaceError::Argument`] if there is no such mount, or it has no lease.
    pub fn find(&self, mounts: &Mounts, name: &str) -> Result<Arc<MountLease>, SurfaceError> {
        let unknown =
            || SurfaceError::argument("surface", "there is no mounted server of this name");
        let mount = mounts.find(name).ok_or_else(unknown)?;
        self.of(mount.name()).ok_or_else(|| {
            let problem = "this server needs no lease: all use it at the same time";
            SurfaceError::argument("surface", problem)
        })
    }

    /// The lease that has, or had not long ago, this id.
    pub fn of_id(&self, id: LeaseId) -> Option<Arc<MountLease>> {
        self.all().into_iter().find(|lease| lease.knows(id))
    }

    pub fn all(&self) -> Vec<Arc<MountLease>> {
        self.lock().by_name.values().map(|(lease, _)| Arc::clone(lease)).collect()
    }

    /// Notes that a connection closed.
    pub fn on_connection_closed(&self, connection: ConnectionId) {
        self.all().iter().for_each(|lease| lease.on_connection_closed(connection));
    }

    /// Ends all that a principal has of the leases.
    pub fn end_right_of(&self, principal: PrincipalId) {
        self.all().iter().for_each(|lease| lease.end_right_of(principal));
    }

    /// Ends all that these tenants have of the leases, since writing is switched off for them.
    pub fn on_writing_off(&self, is_off: impl Fn(&TenantId) -> bool) {
        let cause = EndCause::WritingSwitchedOff;
        self.all().iter().for_each(|lease| lease.end_rights_of(&is_off, &cause));
    }

    fn lock(&self) -> MutexGuard<'_, KeptLeases> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
