//! Tenants files: what is read, and each complaint.

use super::*;

const ACCOUNTS: Accounts = Accounts {
    own: 1_000,
    uid: |name| match name {
        "alice" => Some(1_001),
        "me" => Some(1_000),
        _ => None,
    },
    gid: |name| (name == "dev").then_some(2_001),
};

fn reading(text: &str) -> (Tenants, Vec<String>) {
    let mut tenants = Tenants::default();
    let problems = read(text, Path::new("tenants.toml"), ACCOUNTS, &mut tenants);
    (tenants, problems.iter().map(ToString::to_string).collect())
}

fn problem_of(text: &str) -> String {
    let (_, problems) = reading(text);
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems.into_iter().next().unwrap()
}

#[test]
fn a_file_is_read_as_it_is_written() {
    let (tenants, problems) = reading(
        r#"
        [tenant.web]
        users = ["alice", 1005]
        groups = ["dev"]
        tokens = ["ci"]
        roles = ["view", "approve"]
        visibility = "private"
        run_as = "me"
        sandbox = true
        tools = ["read_*", "run"]
        limits = { sessions = 3, calls_per_second = 0 }

        [[role]]
        role = "operate"
        tokens = ["boss"]
        tenant = "web"
        tag = "prod"
        session = "deploy"
        "#,
    );
    assert_eq!(problems, [] as [&str; 0]);
    let web = &tenants.named[&"web".parse().unwrap()];
    assert_eq!(web.members.users, [1_001, 1_005]);
    assert_eq!(web.members.groups, [2_001]);
    assert_eq!(web.members.tokens, [Arc::from("ci")]);
    assert_eq!(web.roles, Some(Roles::from(Role::Approve)));
    assert_eq!(web.visibility, Visibility::Private);
    assert_eq!((web.run_as, web.sandbox), (Some(1_000), true));
    let tools = web.tools.as_ref().unwrap();
    assert!(tools.matches("read_screen") && tools.matches("run") && !tools.matches("send_text"));
    let limits =
        TenantLimits { sessions: Some(3), calls_per_second: Some(0), ..TenantLimits::default() };
    assert_eq!(web.limits, limits);
    let [grant] = &*tenants.grants else { panic!("{:?}", tenants.grants) };
    assert_eq!(grant.to.tokens, [Arc::from("boss")]);
    assert_eq!(grant.roles, Roles::ALL);
    assert_eq!(grant.tenant, Some("web".parse().unwrap()));
    assert_eq!((grant.tag.as_deref(), grant.session.as_deref()), (Some("prod"), Some("deploy")));
}

#[test]
fn what_cannot_be_meant_is_a_problem_that_says_where_and_what() {
    let cases = [
        ("[tenant.web]\nusers = [\"bob\"]", "tenants.toml:1:1: tenant.web: there is no user bob"),
        ("[tenant.web]\ngroups = [\"x\"]", "tenants.toml:1:1: tenant.web: there is no group x"),
        (
            "[tenant.web]\nusers = [\"me\"]",
            "tenants.toml:1:1: tenant.web: the daemon's own user belongs to no other tenant; name \
             its tokens",
        ),
        (
            "[tenant.web]\ntokens = [\"a b\"]",
            "tenants.toml:1:1: tenant.web: `a b` is not the name of a token",
        ),
        (
            "[tenant.\"uid:7\"]",
            "tenants.toml:1:1: tenant.uid:7: a tenant's name has 1 to 40 of A-Z a-z 0-9 . _ - and \
             begins with a letter",
        ),
        (
            "[tenant.web]\nlimits = { sessions = 0 }",
            "tenants.toml:1:1: tenant.web: limits.sessions: 0 is not within 1 to 4096",
        ),
        (
            "[tenant.web]\nrun_as = \"alice\"",
            "tenants.toml:1:1: tenant.web: run_as: only a daemon of root runs programs as others",
        ),
        (
            "[tenant.web]\nroles = [\"own\"]",
            "tenants.toml:1:1: tenant.web: role: `own` is not one of view, write, approve, operate",
        ),
        (
            "[[role]]\nrole = \"own\"\nusers = [7]",
            "tenants.toml:1:1: role: role: `own` is not one of view, write, approve, operate",
        ),
        (
            "[tenant.web]\nvisibility = \"all\"",
            "tenants.toml:1:1: tenant.web: visibility: `all` is not one of private, tenant, listed",
        ),
        ("[tenant.web]\ntools = []", "tenants.toml:1:1: tenant.web: tools: no pattern is given"),
        (
            "[[role]]\nrole = \"view\"",
            "tenants.toml:1:1: role: name who has it: users, groups or tokens",
        ),
        (
            "[tenant.web]\nusers = [7]\ntokens = [\"ci\"]",
            "tenants.toml:1:1: tenant.web: say with run_as as whom its programs run: with users and tokens in \
             one tenant, the users could type into programs of the daemon's user",
        ),
        (
            "[[role]]\nrole = \"view\"\nusers = [7]\ntenant = \"web\"",
            "tenants.toml:1:1: role: there is no tenant web",
        ),
        (
            "[[role]]\nrole = \"view\"\nusers = [7]\nsession = \"\"",
            "tenants.toml:1:1: role: session: is empty",
        ),
        (
            "[[role]]\nrole = \"view\"\nusers = [7]\ntenant = \"web/u7\"",
            "tenants.toml:1:1: role: tenant: what is private is granted to nobody",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(problem_of(text), expected, "{text}");
    }
    for text in ["[tenant.web]\nuser = [7]", "[[role]]\nusers = [7]", "a = 1"] {
        assert!(problem_of(text).starts_with("tenants.toml:"), "{text}");
    }
}

#[test]
fn the_daemons_user_may_have_a_role() {
    let (tenants, problems) = reading("[[role]]\nrole = \"approve\"\nusers = [\"me\"]");
    assert_eq!(problems, [] as [&str; 0]);
    assert_eq!(tenants.grants[0].to.users, [1_000]);
}

#[test]
fn nobody_is_in_two_tenants_and_no_tenant_in_two_files() {
    let user = problem_of("[tenant.a]\nusers = [7]\n[tenant.b]\nusers = [7]");
    assert!(user.ends_with("the user 7 belongs to the tenant a already"), "{user}");
    let group = problem_of("[tenant.a]\ngroups = [7]\n[tenant.b]\ngroups = [7]");
    assert!(group.ends_with("the group 7 belongs to the tenant a already"), "{group}");
    let token = problem_of("[tenant.a]\ntokens = [\"ci\"]\n[tenant.b]\ntokens = [\"ci\"]");
    assert!(token.ends_with("the token ci belongs to the tenant a already"), "{token}");
    let (mut tenants, _) = reading("[tenant.a]");
    let again = read("[tenant.a]", Path::new("other.toml"), ACCOUNTS, &mut tenants);
    assert_eq!(again[0].to_string(), "other.toml:1:1: tenant.a: another tenant has this name");
}
