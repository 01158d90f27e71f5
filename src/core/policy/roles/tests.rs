//! Roles at sessions of one's own tenant and of others.

use uuid::Uuid;

use super::*;

struct Here {
    id: SessionId,
    tenant: TenantId,
    name: &'static str,
    tag: &'static str,
}

impl RightsSubject for Here {
    fn id(&self) -> SessionId {
        self.id
    }

    fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    fn is_named(&self, name: &str) -> bool {
        self.name == name
    }

    fn has_tag(&self, tag: &str) -> bool {
        self.tag == tag
    }
}

fn tenant(name: &str) -> TenantId {
    name.parse().unwrap()
}

fn here(name: &str) -> Here {
    let id = SessionId::from_random(Uuid::from_u128(7));
    Here { id, tenant: tenant(name), name: "deploy", tag: "prod" }
}

fn grant(role: Role, of: &str) -> RoleGrant {
    RoleGrant { roles: role.into(), tenant: tenant(of), tag: None, session: None }
}

fn rights(base: Roles, grants: impl Into<Arc<[RoleGrant]>>) -> Rights {
    Rights { base, most: Roles::ALL, grants: grants.into() }
}

/// The roles at a session, as one letter each.
fn at(rights: &Rights, session: &Here, own: &str) -> String {
    let own = tenant(own);
    let roles = rights.at(session, &own, Some(&own.private_to(None, 5)));
    let letter = |role: Role| if roles.has(role) { &role.as_str()[..1] } else { "-" };
    Role::ALL.into_iter().map(letter).collect()
}

#[test]
fn a_name_gains_where_a_grant_for_it_has_more_than_the_whole_tenant_gives() {
    let named = |role| RoleGrant { session: Some("x".into()), ..grant(role, "web") };
    let gains = |role, of: &str| {
        rights(Roles::MEMBER, [named(role)]).gain_by_names(&tenant(of), Roles::MEMBER)
    };
    assert!(gains(Role::Approve, "web"));
    assert!(!gains(Role::View, "web") && !gains(Role::Approve, "shop"));
    let whole = rights(Roles::MEMBER, [grant(Role::Approve, "web")]);
    assert!(!whole.gain_by_names(&tenant("web"), Roles::MEMBER));
}

#[test]
fn a_role_has_what_it_includes_and_no_more() {
    let has = |role: Role| Role::ALL.map(|other| Roles::from(role).has(other));
    assert_eq!(has(Role::View), [true, false, false, false]);
    assert_eq!(has(Role::Write), [true, true, false, false]);
    assert_eq!(has(Role::Approve), [true, false, true, false]);
    assert_eq!(has(Role::Operate), [true; 4]);
}

#[test]
fn roles_of_a_tenant_hold_in_that_tenant_alone() {
    let member = rights(Roles::MEMBER, []);
    assert_eq!(at(&member, &here("web"), "web"), "vw--");
    assert_eq!(at(&member, &here("shop"), "web"), "----");
}

#[test]
fn what_is_granted_for_a_tag_or_a_name_holds_where_both_are() {
    let with = |tag: Option<&str>, session: Option<&str>| {
        let (tag, session) = (tag.map(Arc::from), session.map(Arc::from));
        rights(Role::View.into(), [RoleGrant { tag, session, ..grant(Role::Write, "web") }])
    };
    assert_eq!(at(&with(None, None), &here("web"), "web"), "vw--");
    assert_eq!(at(&with(Some("prod"), Some("deploy")), &here("web"), "web"), "vw--");
    assert_eq!(at(&with(Some("prod"), Some("other")), &here("web"), "web"), "v---");
    assert_eq!(at(&with(Some("test"), None), &here("web"), "web"), "v---");
    assert_eq!(at(&with(Some("prod"), None), &here("shop"), "web"), "----");
}

#[test]
fn another_tenants_sessions_are_seen_by_a_grant_and_its_private_ones_by_operators_only() {
    let viewer = rights(Roles::MEMBER, [grant(Role::View, "shop")]);
    assert_eq!(at(&viewer, &here("shop"), "web"), "v---");
    assert_eq!(at(&viewer, &here("shop/u6"), "web"), "----");
    let operator = rights(Roles::MEMBER, [grant(Role::Operate, "shop")]);
    assert_eq!(at(&operator, &here("shop/u6"), "web"), "vwao");
    let by_name = RoleGrant { session: Some("deploy".into()), ..grant(Role::Operate, "shop") };
    assert_eq!(at(&rights(Roles::MEMBER, [by_name]), &here("shop/u6"), "web"), "----");
}

#[test]
fn a_private_session_is_its_creators_and_that_of_who_operates_the_tenant() {
    let member = rights(Roles::MEMBER, []);
    assert_eq!(at(&member, &here("web/u5"), "web"), "vw--");
    assert_eq!(at(&member, &here("web/u6"), "web"), "----");
    assert_eq!(at(&member, &here("web/t5"), "web"), "----");
    assert_eq!(at(&rights(Roles::ALL, []), &here("web/u6"), "web"), "vwao");
}

#[test]
fn who_may_only_watch_is_granted_nothing_else() {
    let grants = Arc::from([grant(Role::Operate, "web")]);
    let watching = Rights { base: Role::View.into(), most: Role::View.into(), grants };
    assert_eq!(at(&watching, &here("web"), "web"), "v---");
    assert!(!watching.ever(Role::Write));
}

#[test]
fn of_a_session_that_is_gone_only_grants_of_a_whole_tenant_count() {
    let (id, own) = (here("shop").id, tenant("web"));
    let gone = GoneSession { id, tenant: &tenant("shop") };
    let by_tag = RoleGrant { tag: Some(Arc::from("prod")), ..grant(Role::View, "shop") };
    assert_eq!(rights(Roles::MEMBER, [by_tag]).at(&gone, &own, None), Roles::NONE);
    let whole = rights(Roles::MEMBER, [grant(Role::View, "shop")]).at(&gone, &own, None);
    assert_eq!(whole, Roles::from(Role::View));
}

#[test]
fn a_role_at_some_sessions_is_no_role_in_the_tenant() {
    let by_tag = RoleGrant { tag: Some(Arc::from("prod")), ..grant(Role::Operate, "web") };
    let own = tenant("web");
    let some = rights(Roles::MEMBER, [by_tag]);
    assert!(!some.in_tenant(&own, &own).has(Role::Operate));
    assert!(some.ever(Role::Operate));
    let whole = rights(Roles::MEMBER, [grant(Role::Operate, "web")]);
    assert!(whole.in_tenant(&own, &own).has(Role::Operate));
}
