//! Limits per tenant, with a separate value for the daemon's own user.

use std::collections::BTreeMap;

use crate::core::ids::TenantId;

/// The limit on one resource for each tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// The limit for the tenant of the daemon's user.
    pub own: usize,
    /// The limit for each other tenant.
    pub others: usize,
    /// The limits of tenants that have one of their own.
    pub named: BTreeMap<TenantId, usize>,
}

impl Quota {
    /// Limits without exceptions.
    pub const fn new(own: usize, others: usize) -> Self {
        Self { own, others, named: BTreeMap::new() }
    }

    /// The limit of a tenant, where `own` is the daemon's.
    pub fn of(&self, tenant: &TenantId, own: &TenantId) -> usize {
        let general = if tenant == own { self.own } else { self.others };
        self.named.get(tenant).copied().unwrap_or(general)
    }
}
