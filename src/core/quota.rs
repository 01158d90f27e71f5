//! How much of something each tenant may have: the daemon's own user more than any other.
//!
//! It counts nothing; whoever owns what is counted holds one of these. One shape for all of them,
//! so that a tenant's share means the same everywhere.

use crate::core::ids::TenantId;

/// How much of something each tenant may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// For the tenant of the user the daemon runs as.
    pub own: usize,
    /// For each other tenant.
    pub others: usize,
}

impl Quota {
    /// The share of a tenant, where `own` is the daemon's.
    pub fn of(self, tenant: &TenantId, own: &TenantId) -> usize {
        if tenant == own { self.own } else { self.others }
    }
}
