//! The names of sessions, unique within a tenant, and how many of them a tenant may have.
//!
//! It knows names and not what runs under them: a name is taken before its session is there.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use crate::core::event::Event;
use crate::core::ids::{SessionId, TenantId};
use crate::session::error::{CreateError, NAME_MAX, SessionError, check_name};
use crate::session::handle::Session;
use crate::session::registry::Registry;

/// What stands behind the name of a session that has ended and gave its name to another one.
const ASIDE: &str = "-ended";

/// How many characters the number behind a name may take.
const NUMBER_MAX: usize = 8;

impl Registry {
    /// Checks that a tenant may have one session more; its name was taken already, so that those
    /// who create at the same time count each other.
    pub(super) fn check_room(&self, tenant: &TenantId) -> Result<(), CreateError> {
        let most = self.limits().sessions_max.of(&tenant.of_all(), &self.0.own_tenant);
        // Those that are private count as well.
        let whole = tenant.of_all();
        let index = self.index();
        let named = index.names.iter().filter(|(tenant, _)| tenant.is_of(&whole));
        let named: usize = named.map(|(_, names)| names.len()).sum();
        drop(index);
        if named > most { Err(CreateError::TooMany(most)) } else { Ok(()) }
    }

    pub(super) fn free_name(&self, tenant: &TenantId, name: &str, id: SessionId) {
        let mut index = self.index();
        let Some(names) = index.names.get_mut(tenant) else { return };
        if names.get(name) == Some(&id) {
            names.remove(name);
        }
        if names.is_empty() {
            index.names.remove(tenant);
        }
    }

    /// Takes a name that no session has, or only one that has ended: that one is found by another.
    pub(super) async fn take_name_of_ended(
        &self,
        tenant: &TenantId,
        name: &str,
        id: SessionId,
    ) -> Result<Arc<str>, CreateError> {
        let taken = self.take_name(tenant, name, id);
        let Err(CreateError::NameTaken(_)) = &taken else { return taken };
        let owner = self.owner_of(tenant, name);
        let ended = |session: &Session| session.frame().exit.value.is_some();
        match owner.and_then(|owner| self.get(owner)).filter(ended) {
            Some(ended) => self.set_aside(&ended, name).await,
            None => return taken,
        }
        self.take_name(tenant, name, id)
    }

    /// Has a session that has ended give up its name.
    async fn set_aside(&self, ended: &Session, name: &str) {
        let (tenant, id) = (ended.tenant(), ended.id());
        let stem = name.get(..NAME_MAX - NUMBER_MAX - ASIDE.len()).unwrap_or(name);
        let aside = self.take_free_name(tenant, &format!("{stem}{ASIDE}"), id);
        if self.rename_to(ended, aside).await.is_err() {
            // It is being forgotten, and its name with it.
            self.forgotten(id).await;
        }
    }

    /// Gives a session a name that was taken for it, whether or not anybody still waits for that.
    pub(super) async fn rename_to(
        &self,
        session: &Session,
        name: Arc<str>,
    ) -> Result<(), SessionError> {
        let (registry, session) = (self.clone(), session.clone());
        let renaming = tokio::spawn(async move {
            let renamed = session.rename(Arc::clone(&name)).await;
            // Of a session that is gone, nothing has the new name.
            let unused = renamed.as_ref().unwrap_or(&name);
            registry.free_name(session.tenant(), unused, session.id());
            renamed?;
            registry.0.renames.send_modify(|count| *count += 1);
            registry.tell_event(Some(&session), Event::SessionRenamed { name });
            registry.tell_listed(&session);
            Ok(())
        });
        // It ends early only together with the daemon.
        renaming.await.unwrap_or(Err(SessionError::Closed))
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

    pub(super) fn owner_of(&self, tenant: &TenantId, name: &str) -> Option<SessionId> {
        self.index().names.get(tenant)?.get(name).copied()
    }

    pub(super) fn owner_among(
        &self,
        is_meant: impl Fn(&TenantId) -> bool,
        name: &str,
    ) -> Option<SessionId> {
        let index = self.index();
        let mut named = index.names.iter().filter(|(tenant, _)| is_meant(tenant));
        named.find_map(|(_, names)| names.get(name).copied())
    }

    fn claim_name(
        &self,
        tenant: &TenantId,
        name: &str,
        id: SessionId,
    ) -> Result<Arc<str>, CreateError> {
        let name: Arc<str> = Arc::from(name);
        let mut index = self.index();
        let names = index.names.entry(tenant.clone()).or_default();
        match names.entry(Arc::clone(&name)) {
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
        if self.owner_of(tenant, name) == Some(id) {
            // It was taken while nobody answered for the terminal.
            return Arc::from(name);
        }
        let kept = self.claim_name(tenant, name, id);
        kept.unwrap_or_else(|_| self.take_free_name(tenant, name, id))
    }

    pub(super) fn take_free_name(&self, tenant: &TenantId, base: &str, id: SessionId) -> Arc<str> {
        let room = NAME_MAX - NUMBER_MAX;
        let stem = base.get(..room).unwrap_or(base);
        let numbered = (2u64..).map(|number| format!("{stem}-{number}"));
        let mut names = std::iter::once(base.to_owned()).chain(numbered);
        loop {
            let name = names.next().unwrap_or_else(|| id.to_string());
            if let Ok(name) = self.take_name(tenant, &name, id) {
                return name;
            }
        }
    }
}
