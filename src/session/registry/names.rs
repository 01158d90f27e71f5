//! The names of sessions, unique within a tenant, and how many of them a tenant may have.
//!
//! It knows names and not what runs under them: a name is taken before its session is there.

use std::sync::Arc;

use dashmap::mapref::entry::Entry;

use crate::core::ids::{SessionId, TenantId};
use crate::session::create::{CreateError, check_name};
use crate::session::registry::Registry;

impl Registry {
    /// Checks that a tenant may have one session more; its name was taken already, so that those
    /// who create at the same time count each other.
    pub(super) fn check_room(&self, tenant: &TenantId) -> Result<(), CreateError> {
        let most = self.limits().sessions_max.of(tenant, &self.0.own_tenant);
        let named = self.0.names.iter().filter(|it| it.key().0 == *tenant).count();
        if named > most { Err(CreateError::TooMany(most)) } else { Ok(()) }
    }

    pub(super) fn free_name(&self, tenant: &TenantId, name: Arc<str>, id: SessionId) {
        self.0.names.remove_if(&(tenant.clone(), name), |_, owner| *owner == id);
    }

    pub(super) fn take_name(
        &self,
        tenant: &TenantId,
        name: &str,
        id: SessionId,
    ) -> Result<Arc<str>, CreateError> {
        check_name(name)?;
        self.claim_name(tenant, name, id)
    }

    fn claim_name(
        &self,
        tenant: &TenantId,
        name: &str,
        id: SessionId,
    ) -> Result<Arc<str>, CreateError> {
        let name: Arc<str> = Arc::from(name);
        match self.0.names.entry((tenant.clone(), Arc::clone(&name))) {
            Entry::Occupied(_) => Err(CreateError::NameTaken(name.to_string())),
            Entry::Vacant(free) => {
                free.insert(id);
                Ok(name)
            }
        }
    }

    /// The name that a session had in a daemon before, which is its id where nobody knows another.
    pub(in crate::session) fn keep_name(
        &self,
        tenant: &TenantId,
        name: &str,
        id: SessionId,
    ) -> Arc<str> {
        let kept = self.claim_name(tenant, name, id);
        kept.unwrap_or_else(|_| self.take_free_name(tenant, name, id))
    }

    pub(super) fn take_free_name(&self, tenant: &TenantId, base: &str, id: SessionId) -> Arc<str> {
        let numbered = (2u64..).map(|number| format!("{base}-{number}"));
        let mut names = std::iter::once(base.to_owned()).chain(numbered);
        loop {
            let name = names.next().unwrap_or_else(|| id.to_string());
            if let Ok(name) = self.take_name(tenant, &name, id) {
                return name;
            }
        }
    }
}
