//! Tenants, roles and visibility: who sees and does what.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use nix::sys::signal::Signal;
use nix::unistd::getuid;
use serde_json::{Value, json};
use termgate::config::accounts::Accounts;
use termgate::config::tenants::read;
use termgate::core::mount::MountTable;
use termgate::core::policy::tenants::Tenants as Configured;
use termgate::core::quota::Quota;
use termgate::core::token::TokenScope;

use crate::daemon::harness::{Era, TestDaemon, Wire, error_code};
use crate::daemon::policy::rules_of;
use crate::daemon::tokens::{Tokens, owner};
use crate::harness::home::Home;
use crate::harness::line_client::hello;
use crate::harness::waiting::{soon, until};

/// `ci` and `eye` and the others of `web`, `clerk` of `shop`; `ci` may also look at the till.
pub(crate) const TENANTS: &str = r#"
    [tenant.web]
    tokens = ["ci", "eye", "boss", "lead"]

    [tenant.shop]
    tokens = ["clerk"]

    [[role]]
    role = "view"
    tokens = ["ci"]
    tenant = "shop"
    session = "till"
"#;

pub(crate) const SCOPES: [(&str, TokenScope); 5] = [
    ("ci", TokenScope::Write),
    ("eye", TokenScope::ReadOnly),
    ("boss", TokenScope::Approve),
    ("lead", TokenScope::Operate),
    ("clerk", TokenScope::Write),
];

fn tenants_of(text: &str) -> Arc<Configured> {
    let mut tenants = Configured::default();
    let problems = read(text, "tenants.toml".as_ref(), Accounts::of_system(), &mut tenants);
    assert!(problems.is_empty(), "{problems:?}");
    Arc::new(tenants)
}

/// A daemon with tenants, and a secret for each token.
pub(crate) struct House {
    pub(crate) daemon: TestDaemon,
    pub(crate) secrets: BTreeMap<&'static str, String>,
}

impl House {
    pub(crate) async fn new(tenants: &str) -> Self {
        Self::with_rules(tenants, "").await
    }

    async fn with_rules(tenants: &str, rules: &str) -> Self {
        Self::with_mounts(tenants, rules, BTreeMap::new()).await
    }

    pub(crate) async fn with_mounts(tenants: &str, rules: &str, mounts: MountTable) -> Self {
        let (tenants, policy) = (tenants_of(tenants), rules_of(rules));
        let daemon = TestDaemon::configured(|config| {
            config.allow_write = true;
            config.calls = Quota::new(0, 0);
            config.adopt(tenants);
            config.policy = Arc::new(policy);
            config.mounts = Arc::new(mounts);
        })
        .await;
        let tokens = Tokens::of(&daemon);
        let secret = |(name, scope)| (name, tokens.make(name, scope, None));
        let secrets = SCOPES.into_iter().map(secret).collect();
        Self { daemon, secrets }
    }

    /// Comes in as somebody: the owner of a token, `self` without one, or `operator`.
    pub(crate) async fn enter(&self, who: &str) -> Wire {
        match who {
            "operator" => self.daemon.operator().await,
            other => self.enter_at(self.daemon.paths.gateway(), other).await,
        }
    }

    /// Comes in at this socket: the owner of a token, or `self` without one.
    pub(crate) async fn enter_at(&self, door: &Path, who: &str) -> Wire {
        match who {
            "self" => Wire::connect(door, Era::Legacy).await,
            token => owner(door, Era::Legacy, &self.secrets[token]).await,
        }
    }

    /// Makes a session named `name` by somebody, of this visibility.
    pub(crate) async fn session(&self, who: &str, name: &str, visibility: &str) -> String {
        named_session(&mut self.enter(who).await, name, visibility).await
    }
}

/// Makes a session named `name`, of this visibility.
pub(crate) async fn named_session(wire: &mut Wire, name: &str, visibility: &str) -> String {
    let arguments = json!({
        "command": "cat", "args": [], "lease": false, "name": name, "visibility": visibility,
    });
    let created = wire.structured("create_session", arguments).await;
    created["session"]["id"].as_str().unwrap().to_owned()
}

/// What each may do at each session: view, write, approve, operate.
pub(crate) const RIGHTS: [(&str, [(&str, &str); 5]); 7] = [
    ("self", [("desk", ""), ("diary", ""), ("till", ""), ("window", ""), ("own", "vw")]),
    ("ci", [("desk", "vw"), ("diary", "vw"), ("till", "v"), ("window", ""), ("own", "")]),
    ("eye", [("desk", "v"), ("diary", ""), ("till", ""), ("window", ""), ("own", "")]),
    ("boss", [("desk", "va"), ("diary", ""), ("till", ""), ("window", ""), ("own", "")]),
    ("lead", [("desk", "vwao"), ("diary", "vwao"), ("till", ""), ("window", ""), ("own", "")]),
    ("clerk", [("desk", ""), ("diary", ""), ("till", "vw"), ("window", "vw"), ("own", "")]),
    (
        "operator",
        [
            ("desk", "vwaoD"),
            ("diary", "vwaoD"),
            ("till", "vwaoD"),
            ("window", "vwaoD"),
            ("own", "vwaoD"),
        ],
    ),
];

/// What a tool asks for: one letter as in [`RIGHTS`], `D` for the daemon's operators, a dash for nothing that is about
/// a session; and a call about a session.
pub(crate) fn needs(tool: &str) -> Option<(char, Value)> {
    let nowhere = "00000000-0000-4000-8000-000000000000";
    Some(match tool {
        "list_sessions" | "read_screen" | "read_history" | "read_commands" => ('v', json!({})),
        "wait_for" => ('v', json!({"text": "x", "timeout_ms": 0})),
        "search" => ('v', json!({"query": "x"})),
        // Of a session that nobody knows there are no events.
        "list_events" => ('-', json!({})),
        "why" => ('-', json!({"code": "busy"})),
        "create_session" => ('-', json!({"command": "/nowhere/x", "args": []})),
        "resize" => ('w', json!({"cols": 80, "rows": 24})),
        "send_text" => ('w', json!({"text": "x"})),
        "send_keys" => ('w', json!({"keys": "x"})),
        "send_mouse" => ('w', json!({"action": "click", "row": 1, "col": 1})),
        "run" => ('w', json!({"command": "true", "timeout_ms": 0})),
        "acquire_lease" => ('w', json!({"ttl_ms": 1})),
        "manage_session" => ('w', json!({"action": "signal", "signal": "NONE"})),
        "renew_lease" | "release_lease" => ('-', json!({"lease_id": nowhere})),
        "preempt_lease" => ('o', json!({})),
        "set_write" => ('o', json!({"state": "status"})),
        "list_approvals" => ('A', json!({})),
        "approve" | "deny" => ('A', json!({"approval_id": "00000000"})),
        "explain_decision" => ('D', json!({"decision_id": "00000000"})),
        "follow_command" => ('D', json!({"id": 1, "timeout_ms": 0})),
        "find_lease" => ('D', json!({})),
        "manage_mounts" => ('D', json!({"action": "list"})),
        "record_session" => ('D', json!({"action": "status"})),
        _ => return None,
    })
}

/// What became of a call, as far as rights matter.
pub(crate) fn outcome(answer: Result<Value, Value>) -> &'static str {
    let Ok(answer) = answer else { return "no such tool" };
    if answer["isError"] != true {
        return "may";
    }
    match &*error_code(&answer) {
        "session_not_found" => "unseen",
        "policy_denied" | "read_only" => "denied",
        _ => "may",
    }
}

/// The sessions of [`RIGHTS`], by name.
pub(crate) async fn sessions_of(house: &House) -> BTreeMap<&'static str, String> {
    let mut sessions = BTreeMap::new();
    for (who, name, visibility) in SESSIONS {
        sessions.insert(name, house.session(who, name, visibility).await);
    }
    sessions
}

/// Who makes each session of [`RIGHTS`], its name and its visibility.
pub(crate) const SESSIONS: [(&str, &str, &str); 5] = [
    ("ci", "desk", "tenant"),
    ("ci", "diary", "private"),
    ("clerk", "till", "tenant"),
    ("clerk", "window", "listed"),
    ("self", "own", "tenant"),
];

fn names(list: &Value, of: &str) -> Vec<String> {
    let names = list[of].as_array().into_iter().flatten();
    names.map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn lists_events_and_search_tell_of_no_session_that_may_not_be_viewed() {
    let house = House::new(TENANTS).await;
    let sessions = sessions_of(&house).await;
    for (who, rights) in RIGHTS {
        let mut wire = house.enter(who).await;
        let list = wire.structured("list_sessions", json!({})).await;
        let mut seen: Vec<_> = rights
            .iter()
            .filter(|(_, letters)| !letters.is_empty())
            .map(|(name, _)| *name)
            .collect();
        seen.sort_unstable();
        assert_eq!(names(&list, "sessions"), seen, "{who}");
        let is_listed = !seen.contains(&"window");
        let listed: &[&str] = if is_listed { &["window"] } else { &[] };
        assert_eq!(names(&list, "listed"), listed, "{who}");
        let events = wire.structured("list_events", json!({"limit": 500})).await.to_string();
        let resource = json!({"uri": "termgate://sessions"});
        let resource = wire.request("resources/read", resource).await.unwrap().to_string();
        for (name, letters) in rights {
            let is_told = |text: &str| text.contains(&*sessions[name]);
            assert_eq!(is_told(&events), !letters.is_empty(), "{who} {name}");
            assert_eq!(is_told(&resource), !letters.is_empty(), "{who} {name}");
        }
        // Of other tenants nothing is said, but what is listed.
        let told = format!("{list}{events}{resource}");
        let own = if who == "clerk" { "web" } else { "shop" };
        let may = matches!(who, "operator" | "ci") || is_listed;
        assert_eq!(told.contains(&format!("\"{own}\"")), may, "{who}: {told}");
    }
    house.daemon.stop().await;
}

#[tokio::test]
async fn a_private_name_may_be_given_twice_and_is_found_by_each_as_its_own() {
    let house = House::new(TENANTS).await;
    let mine = house.session("ci", "notes", "private").await;
    let theirs = house.session("lead", "notes", "private").await;
    for (who, own) in [("ci", &mine), ("lead", &theirs)] {
        let list = json!({"session": "notes"});
        let found = house.enter(who).await.structured("list_sessions", list).await;
        assert_eq!(found["sessions"][0]["id"], **own, "{who}");
    }
    let both = house.enter("operator").await;
    let mut both = both;
    assert_eq!(
        both.error_code("read_screen", json!({"session": "notes"})).await,
        "invalid_argument"
    );
    house.daemon.stop().await;
}

#[tokio::test]
async fn a_tenant_has_its_own_limits_and_is_told_when_to_come_again() {
    let limited = "
        [tenant.web]
        tokens = [\"ci\"]
        limits = { sessions = 1, connections = 2 }

        [tenant.shop]
        tokens = [\"clerk\"]
    ";
    let house = House::new(limited).await;
    let mut ci = house.enter("ci").await;
    let wanted = json!({"command": "cat", "args": [], "lease": false});
    let mut private = wanted.clone();
    private["visibility"] = json!("private");
    ci.structured("create_session", private).await;
    let full = ci.call("create_session", wanted.clone()).await;
    assert_eq!(error_code(&full), "quota_exceeded");
    assert_eq!(full["structuredContent"]["retry_after_ms"], 1_000);
    for _ in 0..3 {
        house.enter("clerk").await.structured("create_session", wanted.clone()).await;
    }
    let _second = house.enter("ci").await;
    let mut third = Wire::silent(house.daemon.paths.gateway(), Era::Legacy).await;
    let id = third.send("termgate/authenticate", json!({"token": house.secrets["ci"]})).await;
    third.receiver.answer(id).await.unwrap();
    // It is answered, since clients show nothing else.
    let refused = third.request("initialize", hello("tester")).await.unwrap_err();
    assert_eq!(refused["data"]["error_code"], "quota_exceeded");
    assert_eq!(refused["data"]["retry_after_ms"], 1_000);
    third.receiver.hears_the_end().await;
    house.enter("clerk").await.structured("list_sessions", json!({})).await;
    house.daemon.stop().await;
}

#[tokio::test]
async fn no_more_of_a_tenant_wait_for_a_lease_than_its_limit() {
    let configured = "
        [tenant.web]
        tokens = [\"ci\", \"clerk\"]
        limits = { waiters = 1 }
    ";
    let house = House::new(configured).await;
    let session = house.session("ci", "shared", "tenant").await;
    let mut operator = house.enter("operator").await;
    operator.structured("acquire_lease", json!({"session": session})).await;
    let asked = json!({"session": session, "wait_ms": 60_000});
    let mut first = house.enter("ci").await;
    first.send_call("acquire_lease", asked.clone()).await;
    let waits = async {
        loop {
            let listed = operator.structured("list_sessions", json!({"session": session})).await;
            if listed["sessions"][0]["lease"]["waiters"] == 1 {
                return;
            }
        }
    };
    soon("the first to wait", waits).await;
    let mut second = house.enter("clerk").await;
    assert_eq!(second.error_code("acquire_lease", asked).await, "quota_exceeded");
    house.daemon.stop().await;
}

#[tokio::test]
async fn a_tenants_sessions_are_as_the_configuration_says() {
    // Only a daemon of root runs programs as others.
    let user = if getuid().is_root() { 1 } else { getuid().as_raw() };
    let configured = format!(
        "
        [tenant.web]
        tokens = [\"ci\", \"eye\"]
        visibility = \"private\"
        run_as = {user}
        sandbox = true
        limits = {{ subscriptions = 1, history_rows = 100 }}

        [tenant.shop]
        tokens = [\"clerk\"]
        limits = {{ calls_per_second = 1 }}
    "
    );
    let house = House::new(&configured).await;
    let mut ci = house.enter("ci").await;
    let line = "seq 1000; exec cat";
    let wanted = json!({"command": "sh", "args": ["-c", line], "lease": false, "rows": 10});
    let created = ci.structured("create_session", wanted).await;
    let session = created["session"]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        names(&house.enter("eye").await.structured("list_sessions", json!({})).await, "sessions"),
        [""; 0]
    );
    ci.wait_for(json!({"session": session, "text": "1000", "since": 0})).await;
    let page = ci.structured("read_history", json!({"session": session, "tail": 1})).await;
    let kept = page["end_row"].as_u64().unwrap() - page["dropped_rows"].as_u64().unwrap();
    // With the screen.
    assert!((100..=110).contains(&kept), "{page}");
    let line = "id -u; readlink /proc/self/ns/pid; exec cat";
    let wanted = json!({"command": "sh", "args": ["-c", line], "lease": false});
    let created = ci.structured("create_session", wanted).await;
    assert_eq!(created["session"]["sandbox"], true);
    let id = created["session"]["id"].clone();
    let listed = ci.structured("list_sessions", json!({"session": id})).await;
    assert_eq!(listed["sessions"][0]["sandbox"], true);
    let other_user = if user == getuid().as_raw() { Value::Null } else { json!(user) };
    assert_eq!(listed["sessions"][0]["user"], other_user);
    ci.wait_for(json!({"session": id, "text": "pid:[", "since": 0})).await;
    let screen = ci.structured("read_screen", json!({"session": id})).await.to_string();
    let own = fs::read_link("/proc/self/ns/pid").unwrap();
    assert!(!screen.contains(own.to_str().unwrap()), "{screen}");
    assert!(screen.contains(&format!("\"text\":\"{user}\\npid:[")), "{screen}");

    let observe = json!({"session": id});
    ci.send("termgate/observe", observe.clone()).await;
    ci.receiver.notification("termgate/delta").await;
    let more = ci.request("termgate/observe", observe).await.unwrap_err();
    assert_eq!(more["data"]["error_code"], "quota_exceeded");
    let mut clerk = house.enter("clerk").await;
    clerk.structured("list_sessions", json!({})).await;
    assert_eq!(clerk.error_code("list_sessions", json!({})).await, "rate_limited");
    house.daemon.stop().await;
}

#[tokio::test]
async fn a_tenant_has_the_tools_that_the_configuration_names_and_no_others() {
    let reading = "
        [tenant.web]
        tokens = [\"ci\"]
        tools = [\"read_*\", \"list_sessions\", \"create_session\"]
    ";
    let house = House::new(reading).await;
    let session = house.session("ci", "one", "tenant").await;
    let mut ci = house.enter("ci").await;
    let tools = ci.tools().await;
    let expected =
        ["list_sessions", "read_screen", "read_history", "read_commands", "create_session"];
    let mut sorted: Vec<_> = tools.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    let mut expected = expected;
    expected.sort_unstable();
    assert_eq!(sorted, expected);
    let params = json!({"name": "send_text", "arguments": {"session": session, "text": "x"}});
    assert_eq!(outcome(ci.request("tools/call", params).await), "no such tool");
    house.daemon.stop().await;
}

#[tokio::test]
async fn who_operates_a_tenant_switches_its_sessions_and_learns_of_no_other_switch() {
    let house = House::new(TENANTS).await;
    let sessions = sessions_of(&house).await;
    let mut operator = house.enter("operator").await;
    let on = json!({"state": "on", "session": sessions["till"]});
    operator.structured("set_write", on).await;
    let mut lead = house.enter("lead").await;
    let off = json!({"state": "off", "session": sessions["desk"]});
    let told = lead.structured("set_write", off).await;
    assert_eq!(told["protected"], json!([sessions["desk"]]));
    assert_eq!(told["on"], json!([]));
    let mut ci = house.enter("ci").await;
    let write = json!({"session": sessions["desk"], "text": "x"});
    assert_eq!(ci.error_code("send_text", write).await, "read_only");
    for refused in [
        json!({"state": "off"}),
        json!({"state": "off", "tenant": "web"}),
        json!({"state": "on", "session": sessions["till"]}),
    ] {
        let became = outcome(Ok(lead.call("set_write", refused.clone()).await));
        let expected = if refused["session"].is_null() { "denied" } else { "unseen" };
        assert_eq!(became, expected, "{refused}");
    }
    let unknown = json!({"state": "on", "tenant": "wbe"});
    let unknown = operator.call("set_write", unknown).await;
    assert_eq!(error_code(&unknown), "invalid_argument");
    house.daemon.stop().await;
}

/// Waits until one call waits for who approves, and gives back its id.
async fn one_waits(approver: &mut Wire) -> String {
    loop {
        let list = approver.structured("list_approvals", json!({})).await;
        if let [call] = list["approvals"].as_array().unwrap().as_slice() {
            return call["approval_id"].as_str().unwrap().to_owned();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_token_with_the_role_approves_for_its_tenant_and_nobody_approves_its_own_call() {
    let house = House::with_rules(
        TENANTS,
        "unknown = \"allow\"\n[[rule]]\nname = \"ask\"\neffect = \"ask\"\ntool = \"send_text\"",
    )
    .await;
    let mut maker = house.enter("ci").await;
    // What is typed changes nothing on the screen.
    let session = maker.start("stty -echo; echo up; exec cat > /dev/null").await;
    maker.wait_for(json!({"session": session, "text": "up", "since": 0})).await;
    let write =
        json!({"session": session, "text": "x", "until": {"idle_ms": 1}, "wait_ms": 60_000});
    let mut boss = house.enter("boss").await;
    let mut lead = house.enter("lead").await;
    for (who, approver) in [("ci", "boss"), ("ci", "lead"), ("lead", "boss")] {
        let mut caller = house.enter(who).await;
        caller.acquire(&session).await;
        let call = caller.send_call("send_text", write.clone()).await;
        let approver = if approver == "boss" { &mut boss } else { &mut lead };
        let id = one_waits(approver).await;
        let arguments = json!({"approval_id": id});
        let params = json!({"name": "approve", "arguments": arguments});
        let unseen = if who == "lead" { "invalid_argument" } else { "no such tool" };
        let mut own = house.enter(who).await;
        let became = match own.request("tools/call", params.clone()).await {
            Ok(answer) => error_code(&answer),
            Err(_) => "no such tool".to_owned(),
        };
        assert_eq!(became, unseen, "{who}");
        let mut clerk = house.enter("clerk").await;
        assert_eq!(outcome(clerk.request("tools/call", params).await), "no such tool");
        let decided = approver.structured("approve", arguments).await;
        assert_eq!(decided["granted"], true);
        let written = caller.answer(call).await;
        assert_ne!(written["isError"], true, "{written}");
        let release = json!({"lease_id": written["structuredContent"]["lease"]["lease_id"]});
        caller.structured("release_lease", release).await;
    }
    house.daemon.stop().await;
}

#[tokio::test]
async fn nobody_gets_a_role_by_giving_a_name_and_a_new_name_ends_what_the_old_one_allowed() {
    let by_name = "
        [tenant.web]
        tokens = [\"ci\", \"eye\"]

        [tenant.shop]
        tokens = [\"clerk\"]

        [[role]]
        role = \"operate\"
        tokens = [\"ci\"]
        session = \"mine\"

        [[role]]
        role = \"write\"
        tokens = [\"clerk\"]
        tenant = \"web\"
        session = \"till\"
    ";
    let house = House::new(by_name).await;
    let (desk, till) =
        (house.session("ci", "desk", "tenant").await, house.session("ci", "till", "tenant").await);
    let rename = |session: &str, name: &str| json!({"session": session, "action": "rename", "new_name": name});
    let mut ci = house.enter("ci").await;
    assert_eq!(ci.error_code("manage_session", rename(&desk, "mine")).await, "policy_denied");
    let mut clerk = house.enter("clerk").await;
    // Which names are taken is not told.
    assert_eq!(clerk.error_code("manage_session", rename(&till, "desk")).await, "policy_denied");
    clerk.acquire(&till).await;
    house.enter("operator").await.structured("manage_session", rename(&till, "safe")).await;
    soon("the end of who had a right by the name", clerk.receiver.hears_the_end()).await;
    let read = json!({"session": till});
    let mut again = house.enter("clerk").await;
    assert_eq!(again.error_code("read_screen", read).await, "session_not_found");
    let mut eye = house.enter("eye").await;
    let list = eye.structured("list_sessions", json!({"session": till})).await;
    assert_eq!(list["sessions"][0]["lease"]["held"], false);
    house.daemon.stop().await;
}

#[tokio::test]
async fn nobody_gets_a_role_by_the_tag_or_the_name_of_a_session_that_it_creates() {
    let by_choice = "
        [tenant.web]
        tokens = [\"ci\", \"lead\"]

        [[role]]
        role = \"operate\"
        tokens = [\"ci\"]
        tag = \"prod\"

        [[role]]
        role = \"operate\"
        tokens = [\"ci\"]
        session = \"cat\"

        [[role]]
        role = \"view\"
        tokens = [\"ci\"]
        tag = \"seen\"
    ";
    let house = House::new(by_choice).await;
    let mut ci = house.enter("ci").await;
    let with = |more: Value| {
        let mut arguments = json!({"command": "cat", "args": [], "lease": false});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    for more in [json!({"tags": ["x", "prod"]}), json!({"name": "cat"})] {
        let refused = ci.error_code("create_session", with(more.clone())).await;
        assert_eq!(refused, "policy_denied", "{more}");
    }
    // No role comes of a tag for what it has anyway, nor at a private session.
    for more in [json!({"tags": ["seen"]}), json!({"tags": ["prod"], "visibility": "private"})] {
        ci.structured("create_session", with(more)).await;
    }
    // Where a name gives roles, that of a program names nothing.
    let unnamed = ci.structured("create_session", with(json!({}))).await["session"].clone();
    let id = unnamed["id"].as_str().unwrap();
    assert_eq!(unnamed["name"], format!("session-{id}"));
    let off = json!({"state": "off", "session": id});
    assert_eq!(ci.error_code("set_write", off).await, "policy_denied");
    // Who has the role in the whole tenant gives it.
    let mut lead = house.enter("lead").await;
    let tagged = lead.structured("create_session", with(json!({"tags": ["prod"]}))).await;
    let off = json!({"state": "off", "session": tagged["session"]["id"]});
    ci.structured("set_write", off).await;
    house.daemon.stop().await;
}

#[tokio::test]
async fn who_only_watches_at_a_door_neither_approves_nor_operates_there() {
    let house = House::new(TENANTS).await;
    let door = house.daemon.paths.gateway_read_only();
    for who in ["boss", "lead"] {
        let mut wire = owner(&door, Era::Legacy, &house.secrets[who]).await;
        let tools = wire.tools().await;
        for tool in ["approve", "deny", "list_approvals", "set_write", "preempt_lease"] {
            assert!(!tools.contains(&tool.to_owned()), "{who} {tool}");
        }
    }
    house.daemon.stop().await;
}

#[tokio::test]
async fn what_was_asked_for_in_private_is_told_to_nobody_else() {
    let rules =
        "[[rule]]\nname = \"ask\"\neffect = \"ask\"\ntool = [\"create_session\", \"send_text\"]";
    let house = House::with_rules(TENANTS, rules).await;
    let mut ci = house.enter("ci").await;
    let private = json!({"command": "secret-program", "args": [], "visibility": "private"});
    let refused = ci.call("create_session", private).await;
    assert_eq!(error_code(&refused), "approval_required");
    let decision = refused["structuredContent"]["details"]["decision_id"].clone();
    assert_ne!(decision, Value::Null, "{refused}");
    let told = async |who: &str| {
        let mut wire = house.enter(who).await;
        let events = wire.structured("list_events", json!({"limit": 500})).await.to_string();
        let why = wire.call("why", json!({"decision_id": decision})).await;
        (events.contains("secret-program"), events.contains("refused"), why["isError"] != true)
    };
    for who in ["ci", "lead", "operator"] {
        assert_eq!(told(who).await, (true, true, true), "{who}");
    }
    for who in ["eye", "boss", "clerk", "self"] {
        assert_eq!(told(who).await, (false, false, false), "{who}");
    }
    house.daemon.stop().await;
}

#[tokio::test]
async fn a_user_does_not_approve_its_own_call_over_another_connection() {
    let house = House::with_rules(
        "[[role]]\nrole = \"approve\"\nusers = [0]\n",
        "[[rule]]\nname = \"ask\"\neffect = \"ask\"\ntool = \"send_text\"",
    )
    .await;
    let session = house.session("self", "own", "tenant").await;
    let (mut one, mut two) = (house.enter("self").await, house.enter("self").await);
    let write = json!({"session": session, "text": "x"});
    one.structured("acquire_lease", json!({"session": session})).await;
    let refused = one.call("send_text", write).await;
    let id = refused["structuredContent"]["details"]["approval_id"].clone();
    assert_eq!(two.structured("list_approvals", json!({})).await["approvals"], json!([]));
    let approve = json!({"approval_id": id});
    assert_eq!(two.error_code("approve", approve.clone()).await, "invalid_argument");
    let decided = house.enter("operator").await.structured("approve", approve).await;
    assert_eq!(decided["granted"], true);
    house.daemon.stop().await;
}

/// Comes in as the owner of a token at a daemon of a process of its own.
pub(crate) async fn owner_at(home: &Home, name: &str) -> Wire {
    let secret = fs::read_to_string(home.path(&format!("{name}.token"))).unwrap();
    owner(&home.runtime("gateway.sock"), Era::Modern, secret.trim()).await
}

#[tokio::test]
async fn other_rights_end_a_connection_at_once_and_sessions_keep_their_tenant_over_restarts() {
    let home = Home::new();
    let tenants = home.configure("").with_file_name("tenants.toml");
    fs::write(&tenants, "[tenant.web]\ntokens = [\"ci\", \"eye\"]\n").unwrap();
    for (name, scope) in [("ci", "write"), ("eye", "write"), ("clerk", "write")] {
        let file = home.path(&format!("{name}.token"));
        home.printed(&format!("token new {name} --scope {scope} --out {}", file.display()));
    }
    let daemon = home.serve().await;
    let create = |visibility: &str| {
        json!({"command": "cat", "args": [], "lease": false, "visibility": visibility,
               "name": visibility})
    };
    let mut ci = owner_at(&home, "ci").await;
    for visibility in ["private", "tenant", "listed"] {
        ci.structured("create_session", create(visibility)).await;
    }
    let seen = async |who: &str| {
        let list = owner_at(&home, who).await.structured("list_sessions", json!({})).await;
        (names(&list, "sessions"), names(&list, "listed"))
    };
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let before = [
        ("ci", (owned(&["listed", "private", "tenant"]), owned(&[]))),
        ("eye", (owned(&["listed", "tenant"]), owned(&[]))),
        ("clerk", (owned(&[]), owned(&["listed"]))),
    ];
    for (who, expected) in &before {
        assert_eq!(&seen(who).await, expected, "{who}");
    }
    daemon.kill().await;
    let daemon = home.serve().await;
    for (who, expected) in &before {
        assert_eq!(&seen(who).await, expected, "{who} after a restart");
    }

    let mut eye = owner_at(&home, "eye").await;
    let mut clerk = owner_at(&home, "clerk").await;
    let moved = "[tenant.web]\ntokens = [\"ci\"]\n[tenant.shop]\ntokens = [\"eye\"]\n";
    fs::write(&tenants, moved).unwrap();
    daemon.signal(Signal::SIGHUP);
    soon("the end of who has other rights", eye.receiver.hears_the_end()).await;
    assert_eq!(seen("eye").await, (owned(&[]), owned(&["listed"])));
    // Who has the same rights stays.
    clerk.structured("list_sessions", json!({})).await;
    // What cannot be meant changes nothing.
    fs::write(&tenants, "[tenant.web]\nusers = [\"nobody-has-this-name\"]\n").unwrap();
    daemon.signal(Signal::SIGHUP);
    until("the daemon to say what is wrong", || daemon.said().contains("there is no user")).await;
    assert_eq!(seen("eye").await, (owned(&[]), owned(&["listed"])));
    let check = home.run("config check");
    assert_eq!(check.status.code(), Some(2), "{check:?}");
}

#[tokio::test]
async fn others_of_a_tenant_keep_no_approver_out() {
    let limited = "
        [tenant.web]
        tokens = [\"ci\", \"boss\"]
        limits = { connections = 2, calls_per_second = 1 }
    ";
    let house = House::new(limited).await;
    let (mut one, _two) = (house.enter("ci").await, house.enter("ci").await);
    let mut boss = house.enter("boss").await;
    while one.call("list_sessions", json!({})).await["isError"] == false {}
    for _ in 0..3 {
        boss.structured("list_approvals", json!({})).await;
    }
    house.daemon.stop().await;
}
