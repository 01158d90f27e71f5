//! Where a connection belongs: its tenant and rights, for as long as the configuration says the same.

use std::sync::{Arc, Mutex, PoisonError};

use crate::core::ids::TenantId;
use crate::core::policy::Standing;
use crate::core::policy::tenants::{Identity, Placement, Tenants};
use crate::session::registry::Registry;

/// The place of a connection, as it was given when the connection was made.
#[derive(Debug)]
pub struct Membership {
    /// They know the configuration that holds now.
    sessions: Registry,
    who: Identity,
    placement: Placement,
    /// How many sessions had been renamed when the place was given.
    renames: u64,
    /// The configuration that last said so.
    seen: Mutex<Arc<Tenants>>,
}

impl Membership {
    pub fn new(sessions: Registry, who: Identity) -> Self {
        let seen = Arc::clone(&sessions.limits().tenants);
        let placement = seen.place(&who, sessions.own_tenant());
        let contested = seen.contested(&who);
        if !contested.is_empty() {
            tracing::warn!(
                uid = who.uid,
                ?contested,
                "a user is in groups of several tenants, and so in none"
            );
        }
        let renames = *sessions.renames().borrow();
        Self { sessions, who, placement, renames, seen: Mutex::new(seen) }
    }

    /// The standing with the tenant and the rights of this place.
    pub fn standing(&self, mut standing: Standing) -> Standing {
        let Placement { tenant, rights, tools } = self.placement.clone();
        standing.caller.tenant = tenant;
        (standing.rights, standing.tools) = (rights, tools);
        standing
    }

    /// The tenant, if the configuration names it.
    pub fn named_tenant(&self) -> Option<&TenantId> {
        let named = self.seen().find(&self.placement.tenant).is_some();
        named.then_some(&self.placement.tenant)
    }

    /// Whether the configuration still says so. Where it gives rights by names of sessions, no session may have another
    /// name by now: what began with such a right would go on without.
    pub fn holds(&self) -> bool {
        if self.placement.rights.depend_on_names()
            && *self.sessions.renames().borrow() != self.renames
        {
            return false;
        }
        let now = Arc::clone(&self.sessions.limits().tenants);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&now, &seen) {
            return true;
        }
        let holds = now.place(&self.who, self.sessions.own_tenant()) == self.placement;
        if holds {
            *seen = now;
        }
        holds
    }

    /// Completes when the configuration says something else.
    pub async fn ended(&self) {
        let (mut changes, mut renames) = (self.sessions.limit_changes(), self.sessions.renames());
        while self.holds() {
            let changed = tokio::select! {
                changed = changes.changed() => changed,
                changed = renames.changed() => changed,
            };
            if changed.is_err() {
                // The daemon ends, and this connection with it.
                std::future::pending::<()>().await;
            }
        }
    }

    fn seen(&self) -> Arc<Tenants> {
        Arc::clone(&self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
