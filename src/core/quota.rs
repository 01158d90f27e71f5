//! Limits per tenant, with a separate value for the daemon's own user.

use crate::core::ids::TenantId;

/// The limit on one resource for each tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// The limit for the tenant of the daemon's user.
    pub own: usize,
    /// The limit for each other tenant.
    pub others: usize,
}

impl Quota {
    /// The limit of a tenant, where `own` is the daemon's.
    pub fn of(self, tenant: &TenantId, own: &TenantId) -> usize {
        if tenant == own { self.own } else { self.others }
    }
}
