//! The tenants of the configuration: who belongs to which, and what each may do and have.
//!
//! Whoever none of them names belongs to the tenant of its user.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::core::ids::TenantId;
use crate::core::policy::roles::{Rights, Role, RoleGrant, Roles};
use crate::core::policy::rules::patterns::Patterns;
use crate::core::token::TokenScope;

/// Who connects, as the kernel and the token file say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub uid: u32,
    /// The groups of the process, its main one included.
    pub groups: Arc<[u32]>,
    /// The name and scope of the token that was shown.
    pub token: Option<(Arc<str>, TokenScope)>,
}

/// Principals as the configuration names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    pub users: Vec<u32>,
    pub groups: Vec<u32>,
    pub tokens: Vec<Arc<str>>,
}

impl Members {
    /// Whether somebody is named. The owner of a token is named by that alone, whoever shows it.
    pub fn include(&self, who: &Identity) -> bool {
        match &who.token {
            Some((name, _)) => self.tokens.contains(name),
            None => self.names_user(who) || self.names_group(who),
        }
    }

    fn names_user(&self, who: &Identity) -> bool {
        self.users.contains(&who.uid)
    }

    fn names_group(&self, who: &Identity) -> bool {
        who.groups.iter().any(|group| self.groups.contains(group))
    }
}

/// Who may know of a session that is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Visibility {
    /// Its creator: the owner of the token, or without one the user.
    Private,
    /// Everybody who may view the sessions of the tenant.
    #[default]
    Tenant,
    /// Also other tenants, which learn its name and nothing else.
    Listed,
}

impl Visibility {
    pub const ALL: [Self; 3] = [Self::Private, Self::Tenant, Self::Listed];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Tenant => "tenant",
            Self::Listed => "listed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == text)
    }
}

/// How much a tenant may have, where this differs from the limits of others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TenantLimits {
    pub sessions: Option<usize>,
    pub connections: Option<usize>,
    pub subscriptions: Option<usize>,
    /// 0 sets no limit.
    pub calls_per_second: Option<usize>,
    /// Callers that wait for one lease.
    pub waiters: Option<usize>,
    /// Of each session.
    pub history_rows: Option<usize>,
    pub history_bytes: Option<usize>,
}

/// A tenant of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTenant {
    pub members: Members,
    /// The most that members have without a grant; for the owner of a token, within its scope.
    pub roles: Option<Roles>,
    /// Of sessions that say nothing else.
    pub visibility: Visibility,
    /// The user whom its programs run as; without, whoever creates the session.
    pub run_as: Option<u32>,
    /// Whether each of its sessions is sandboxed.
    pub sandbox: bool,
    /// The names of the tools that exist for it; all without.
    pub tools: Option<Arc<Patterns>>,
    pub limits: TenantLimits,
}

/// Roles for principals who are named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedGrant {
    pub to: Members,
    /// `None` for the tenant of each who is named.
    pub tenant: Option<TenantId>,
    pub roles: Roles,
    pub tag: Option<Arc<str>>,
    pub session: Option<Arc<str>>,
}

/// All tenants and grants of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tenants {
    pub named: BTreeMap<TenantId, NamedTenant>,
    pub grants: Vec<NamedGrant>,
}

/// Where somebody belongs, and with which rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    pub tenant: TenantId,
    pub rights: Rights,
    /// The names of the tools that exist for it; all without.
    pub tools: Option<Arc<Patterns>>,
}

impl Tenants {
    /// Where somebody belongs; `own` is the tenant of the daemon's user, to which tokens belong that no tenant names.
    ///
    /// A user who is named belongs to that tenant, whatever its groups; one whose groups belong to several tenants
    /// belongs to none of them.
    pub fn place(&self, who: &Identity, own: &TenantId) -> Placement {
        let of_user = || match who.token {
            Some(_) => own.clone(),
            None => TenantId::of_uid(who.uid),
        };
        // Whoever shares a tenant with the daemon's user could run programs as that user.
        let is_daemons = who.token.is_none() && TenantId::of_uid(who.uid) == *own;
        let (tenant, roles, tools) = match self.tenant_of(who).filter(|_| !is_daemons) {
            Some((tenant, named)) => (tenant.clone(), named.roles, named.tools.clone()),
            None => (of_user(), None, None),
        };
        let (scope, most) = match who.token.as_ref().map(|(_, scope)| *scope) {
            // Whoever is only to watch is granted nothing else.
            Some(TokenScope::ReadOnly) => (Role::View, Role::View.into()),
            Some(TokenScope::Approve) => (Role::Approve, Roles::ALL),
            Some(TokenScope::Operate) => (Role::Operate, Roles::ALL),
            Some(TokenScope::Write) => (Role::Write, Roles::ALL),
            None => (Role::Operate, Roles::ALL),
        };
        let default = if who.token.is_some() { Roles::ALL } else { Roles::MEMBER };
        let base = Roles::from(scope).within(roles.unwrap_or(default));
        let granted = self.grants.iter().filter(|grant| grant.to.include(who));
        let grants = granted.map(|grant| RoleGrant {
            roles: grant.roles,
            tenant: grant.tenant.clone().unwrap_or_else(|| tenant.clone()),
            tag: grant.tag.clone(),
            session: grant.session.clone(),
        });
        let grants = grants.collect();
        Placement { rights: Rights { base, most, grants }, tenant, tools }
    }

    /// Whether there can be such a tenant.
    pub fn knows(&self, tenant: &TenantId) -> bool {
        tenant.is_user() || self.named.contains_key(tenant)
    }

    /// What the configuration says of a tenant.
    pub fn find(&self, tenant: &TenantId) -> Option<&NamedTenant> {
        self.named.get(tenant)
    }

    /// The tenants of somebody's groups if there are several, so that none of them is meant.
    pub fn contested(&self, who: &Identity) -> Vec<&TenantId> {
        let named = self.named.iter().filter(|(_, it)| it.members.include(who));
        let found: Vec<&TenantId> = named.map(|(id, _)| id).collect();
        let by_user = self.named.values().any(|it| it.members.names_user(who));
        if found.len() > 1 && !by_user { found } else { Vec::new() }
    }

    fn tenant_of(&self, who: &Identity) -> Option<(&TenantId, &NamedTenant)> {
        if who.token.is_none() {
            let by_user = self.named.iter().find(|(_, it)| it.members.names_user(who));
            if by_user.is_some() {
                return by_user;
            }
        }
        let mut including = self.named.iter().filter(|(_, it)| it.members.include(who));
        let found = including.next();
        // Which of several is meant, nobody said.
        found.filter(|_| including.next().is_none())
    }
}

#[cfg(test)]
mod tests;
