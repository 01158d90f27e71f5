//! Who belongs where, and with which rights.

use super::*;
use crate::core::policy::roles::Role;

fn tenant(name: &str) -> TenantId {
    name.parse().unwrap()
}

fn named(members: Members) -> NamedTenant {
    let limits = TenantLimits::default();
    let (visibility, run_as, sandbox) = (Visibility::Tenant, None, false);
    NamedTenant { members, roles: None, visibility, run_as, sandbox, tools: None, limits }
}

fn users(users: &[u32]) -> Members {
    Members { users: users.to_vec(), ..Members::default() }
}

fn groups(groups: &[u32]) -> Members {
    Members { groups: groups.to_vec(), ..Members::default() }
}

fn tokens(name: &str) -> Members {
    Members { tokens: vec![Arc::from(name)], ..Members::default() }
}

fn user(uid: u32, groups: &[u32]) -> Identity {
    Identity { uid, groups: Arc::from(groups), token: None }
}

fn owner(name: &str, scope: TokenScope) -> Identity {
    Identity { uid: 1, groups: Arc::default(), token: Some((Arc::from(name), scope)) }
}

fn all(of: impl IntoIterator<Item = (&'static str, NamedTenant)>) -> Tenants {
    let named = of.into_iter().map(|(name, it)| (tenant(name), it)).collect();
    Tenants { named, grants: Vec::new() }
}

fn placed(tenants: &Tenants, who: &Identity) -> String {
    tenants.place(who, &tenant("uid:1")).tenant.to_string()
}

#[test]
fn whom_no_tenant_names_belongs_to_its_user_and_a_token_to_the_daemons() {
    let none = Tenants::default();
    assert_eq!(placed(&none, &user(7, &[])), "uid:7");
    assert_eq!(placed(&none, &owner("ci", TokenScope::Write)), "uid:1");
    assert_eq!(none.place(&user(7, &[]), &tenant("uid:1")).rights, Rights::default());
}

#[test]
fn a_user_a_group_and_a_token_are_placed_where_they_are_named() {
    let tenants = all([
        ("web", named(users(&[7]))),
        ("shop", named(groups(&[70]))),
        ("bots", named(tokens("ci"))),
    ]);
    assert_eq!(placed(&tenants, &user(7, &[70])), "web", "the user comes before its groups");
    assert_eq!(placed(&tenants, &user(8, &[1, 70])), "shop");
    assert_eq!(placed(&tenants, &user(8, &[1])), "uid:8");
    assert_eq!(placed(&tenants, &owner("ci", TokenScope::Write)), "bots");
    assert_eq!(placed(&tenants, &owner("other", TokenScope::Write)), "uid:1");
}

#[test]
fn who_shows_a_token_is_not_placed_by_its_user() {
    let tenants = all([("web", named(users(&[1])))]);
    assert_eq!(placed(&tenants, &owner("ci", TokenScope::Write)), "uid:1");
}

#[test]
fn groups_of_two_tenants_place_nobody() {
    let tenants = all([("web", named(groups(&[70]))), ("shop", named(groups(&[71])))]);
    assert_eq!(placed(&tenants, &user(8, &[70, 71])), "uid:8");
    assert_eq!(tenants.contested(&user(8, &[70, 71])), [&tenant("shop"), &tenant("web")]);
    assert_eq!(tenants.contested(&user(8, &[70])), [] as [&TenantId; 0]);
}

#[test]
fn the_daemons_user_is_in_no_other_tenant_whatever_its_groups() {
    let tenants = all([("web", named(groups(&[70])))]);
    assert_eq!(placed(&tenants, &user(1, &[70])), "uid:1");
}

#[test]
fn a_token_has_the_roles_of_its_scope_within_those_of_its_tenant() {
    let base = |roles: Option<Roles>, scope| {
        let tenants = all([("bots", NamedTenant { roles, ..named(tokens("ci")) })]);
        tenants.place(&owner("ci", scope), &tenant("uid:1")).rights.base
    };
    assert_eq!(base(None, TokenScope::ReadOnly), Roles::from(Role::View));
    assert_eq!(base(None, TokenScope::Write), Roles::MEMBER);
    assert_eq!(base(None, TokenScope::Approve), Roles::from(Role::Approve));
    assert_eq!(base(None, TokenScope::Operate), Roles::ALL);
    let viewing = Some(Roles::from(Role::View));
    for scope in TokenScope::ALL {
        assert_eq!(base(viewing, scope), Roles::from(Role::View), "{scope:?}");
    }
}

#[test]
fn a_user_has_what_its_tenant_says() {
    let base = |roles: Option<Roles>| {
        let tenants = all([("web", NamedTenant { roles, ..named(users(&[7])) })]);
        tenants.place(&user(7, &[]), &tenant("uid:1")).rights.base
    };
    assert_eq!(base(None), Roles::MEMBER);
    assert_eq!(base(Some(Roles::NONE)), Roles::NONE);
    assert_eq!(base(Some(Roles::ALL)), Roles::ALL);
}

#[test]
fn a_grant_is_for_whom_it_names_and_of_the_own_tenant_where_it_names_none() {
    let mut tenants = all([("web", named(users(&[7, 8])))]);
    let (roles, tag, session) = (Role::Approve.into(), None, None);
    tenants.grants.push(NamedGrant { to: users(&[7]), tenant: None, roles, tag, session });
    let approves = |who: &Identity| {
        let Placement { rights, tenant, .. } = tenants.place(who, &tenant("uid:1"));
        rights.in_tenant(&tenant, &tenant).has(Role::Approve)
    };
    assert!(approves(&user(7, &[])));
    assert!(!approves(&user(8, &[])));
}

#[test]
fn a_token_for_watching_is_granted_nothing_else() {
    let mut tenants = Tenants::default();
    let (roles, tag, session) = (Role::Operate.into(), None, None);
    tenants.grants.push(NamedGrant { to: tokens("eye"), tenant: None, roles, tag, session });
    let own = tenant("uid:1");
    let roles = |scope| tenants.place(&owner("eye", scope), &own).rights.in_tenant(&own, &own);
    assert_eq!(roles(TokenScope::ReadOnly), Roles::from(Role::View));
    assert_eq!(roles(TokenScope::Write), Roles::ALL);
}
