//! Roles: what a principal may do at the sessions of its tenant, or at some sessions of any tenant.
//!
//! Roles come from the configuration and from the scope of a token. Grants add roles; a token for watching takes all but
//! one away.

use std::sync::Arc;

use crate::core::ids::{SessionId, TenantId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Read and watch.
    View,
    /// Also write, under a lease; in a whole tenant also create sessions.
    Write,
    /// View, and approve what rules ask about, but for calls of one's own.
    Approve,
    /// All of these, and switch writing and end leases.
    Operate,
}

impl Role {
    pub const ALL: [Self; 4] = [Self::View, Self::Write, Self::Approve, Self::Operate];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Write => "write",
            Self::Approve => "approve",
            Self::Operate => "operate",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }

    /// The roles that it consists of, one bit each.
    const fn bits(self) -> u8 {
        match self {
            Self::View => 0b0001,
            Self::Write => 0b0011,
            Self::Approve => 0b0101,
            Self::Operate => 0b1111,
        }
    }
}

/// A set of roles, with all that they include.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roles(u8);

impl Roles {
    pub const NONE: Self = Self(0);
    pub const ALL: Self = Self(Role::Operate.bits());
    /// What a member of a tenant has where nothing else is said.
    pub const MEMBER: Self = Self(Role::Write.bits());

    pub fn has(self, role: Role) -> bool {
        self.0 & role.bits() == role.bits()
    }

    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those that both have.
    #[must_use]
    pub fn within(self, most: Self) -> Self {
        Self(self.0 & most.0)
    }
}

impl From<Role> for Roles {
    fn from(role: Role) -> Self {
        Self(role.bits())
    }
}

impl FromIterator<Role> for Roles {
    fn from_iter<T: IntoIterator<Item = Role>>(roles: T) -> Self {
        roles.into_iter().fold(Self::NONE, |all, role| all.and(role.into()))
    }
}

/// A session as rights depend on it.
pub trait RightsSubject {
    fn id(&self) -> SessionId;
    fn tenant(&self) -> &TenantId;
    fn is_named(&self, name: &str) -> bool;
    fn has_tag(&self, tag: &str) -> bool;
}

/// A session of which only records are left. No right depends on its name or tags any more.
#[derive(Clone, Copy, Debug)]
pub struct GoneSession<'a> {
    pub id: SessionId,
    pub tenant: &'a TenantId,
}

impl RightsSubject for GoneSession<'_> {
    fn id(&self) -> SessionId {
        self.id
    }

    fn tenant(&self) -> &TenantId {
        self.tenant
    }

    fn is_named(&self, _: &str) -> bool {
        false
    }

    fn has_tag(&self, _: &str) -> bool {
        false
    }
}

/// A session that is to be created.
#[derive(Clone, Copy, Debug)]
pub struct NewSession<'a> {
    pub id: SessionId,
    pub tenant: &'a TenantId,
    pub name: Option<&'a str>,
    pub tags: &'a [String],
}

impl RightsSubject for NewSession<'_> {
    fn id(&self) -> SessionId {
        self.id
    }

    fn tenant(&self) -> &TenantId {
        self.tenant
    }

    fn is_named(&self, name: &str) -> bool {
        self.name == Some(name)
    }

    fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|it| it == tag)
    }
}

/// Roles at the sessions that fulfil each given condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleGrant {
    pub roles: Roles,
    pub tenant: TenantId,
    pub tag: Option<Arc<str>>,
    pub session: Option<Arc<str>>,
}

impl RoleGrant {
    /// Whether it is about a whole tenant.
    pub fn is_whole(&self) -> bool {
        self.tag.is_none() && self.session.is_none()
    }

    fn covers(&self, subject: &impl RightsSubject) -> bool {
        // What is private stays so: only who operates the tenant sees it.
        let opens =
            !subject.tenant().is_private() || (self.is_whole() && self.roles.has(Role::Operate));
        opens
            && subject.tenant().is_of(&self.tenant)
            && self.tag.as_ref().is_none_or(|tag| subject.has_tag(tag))
            && self.session.as_ref().is_none_or(|name| subject.is_named(name))
    }
}

/// All that the configuration and a token give to a principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    /// In its own tenant.
    pub base: Roles,
    /// The most that any grant can give.
    pub most: Roles,
    pub grants: Arc<[RoleGrant]>,
}

impl Default for Rights {
    fn default() -> Self {
        Self { base: Roles::MEMBER, most: Roles::ALL, grants: Arc::default() }
    }
}

impl Rights {
    /// The roles in a whole tenant; `own` is the principal's.
    pub fn in_tenant(&self, tenant: &TenantId, own: &TenantId) -> Roles {
        let base = if tenant == own { self.base } else { Roles::NONE };
        let whole = self.grants.iter().filter(|it| it.is_whole() && it.tenant == *tenant);
        whole.fold(base, |all, grant| all.and(grant.roles)).within(self.most)
    }

    /// The roles at a session. `own` is the principal's tenant, and `private` the one of its private sessions.
    pub fn at(
        &self,
        subject: &impl RightsSubject,
        own: &TenantId,
        private: Option<&TenantId>,
    ) -> Roles {
        let tenant = subject.tenant();
        let is_own = tenant == own || Some(tenant) == private;
        let operates = tenant.is_of(own) && self.base.has(Role::Operate);
        let base = if is_own || operates { self.base } else { Roles::NONE };
        let granted = self.grants.iter().filter(|grant| grant.covers(subject));
        granted.fold(base, |all, grant| all.and(grant.roles)).within(self.most)
    }

    /// Whether the name of a session gives rights to it.
    pub fn depend_on_names(&self) -> bool {
        self.grants.iter().any(|grant| grant.session.is_some())
    }

    /// Whether some name gives a session of this tenant roles that are none of these.
    pub fn gain_by_names(&self, tenant: &TenantId, roles: Roles) -> bool {
        let gains = |grant: &RoleGrant| grant.roles.within(self.most).and(roles) != roles;
        let here = |grant: &&RoleGrant| !tenant.is_private() && tenant.is_of(&grant.tenant);
        self.grants.iter().filter(here).any(|grant| grant.session.is_some() && gains(grant))
    }

    /// Whether there is a session, existing or not, at which it gives this role.
    pub fn ever(&self, role: Role) -> bool {
        let granted = self.grants.iter().map(|grant| grant.roles);
        granted.chain([self.base]).any(|roles| roles.within(self.most).has(role))
    }
}

#[cfg(test)]
mod tests;
