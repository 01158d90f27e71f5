//! The walls between tenants hold for mounts too: for each principal at each door, each of their tools, resources, prompts
//! and leases is there or is not, as the filters say.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::json;
use termgate::core::mount::{MountMode, MountTrust};

use crate::daemon::harness::{TestDaemon, Wire, error_code};
use crate::daemon::mounts::Fake;
use crate::daemon::tenants::{House, outcome};
use crate::harness::waiting::{LOOK, soon};

/// `web` has one mount, `shop` none, and the owner of the daemon, who has no filter, both.
const TENANTS: &str = r#"
    [tenant.web]
    tokens = ["ci", "eye", "boss", "lead"]
    tools = ["*_lease", "list_sessions", "aa__**"]

    [tenant.shop]
    tokens = ["clerk"]
"#;

const MOUNTS: [&str; 2] = ["aa", "bb"];

/// Who sees which mounts, and whether they may write.
const SEEN: [(&str, &[&str], bool); 5] = [
    ("self", &MOUNTS, true),
    ("ci", &["aa"], true),
    ("eye", &["aa"], false),
    ("boss", &["aa"], false),
    ("clerk", &[], true),
];

/// What is listed to an operator: the tools, and the addresses and prompts, each with its mount.
struct Listed {
    tools: Vec<String>,
    resources: Vec<String>,
    prompts: Vec<String>,
}

impl Listed {
    async fn to(wire: &mut Wire) -> Self {
        let list = async |wire: &mut Wire, method: &str, list: &str, key: &str| {
            let listed = wire.request(method, json!({})).await.unwrap();
            let texts = listed[list].as_array().unwrap().iter().filter_map(|it| it[key].as_str());
            texts.filter(|it| mount_in(it).is_some()).map(str::to_owned).collect::<Vec<_>>()
        };
        Self {
            tools: list(wire, "tools/list", "tools", "name").await,
            resources: list(wire, "resources/list", "resources", "uri").await,
            prompts: list(wire, "prompts/list", "prompts", "name").await,
        }
    }

    /// All names of mounts that are to be found anywhere.
    fn all(&self) -> impl Iterator<Item = &String> {
        self.tools.iter().chain(&self.resources).chain(&self.prompts)
    }
}

/// The mount that a name or an address names.
fn mount_in(name: &str) -> Option<&'static str> {
    let is_of = |it: &&str| {
        name.starts_with(&format!("{it}__")) || name.starts_with(&format!("termgate://mount/{it}/"))
    };
    MOUNTS.into_iter().find(is_of)
}

async fn house() -> (Vec<Fake>, House) {
    let mut fakes = Vec::new();
    let mut mounts = BTreeMap::new();
    for name in MOUNTS {
        let mut fake = Fake::new(MountTrust::Trusted).with_mode("content");
        fake.settings.mode = MountMode::Leased;
        mounts.insert(name.parse().unwrap(), fake.settings.clone());
        fakes.push(fake);
    }
    let house = House::with_mounts(TENANTS, "", mounts).await;
    let mut operator = house.enter("operator").await;
    let known = async {
        loop {
            let listed = operator.structured("manage_mounts", json!({"action": "list"})).await;
            if listed["mounts"].as_array().unwrap().iter().all(|it| it["accepted"].is_u64()) {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    soon("the tools of all mounts", known).await;
    (fakes, house)
}

/// The doors, and whether nobody writes there.
fn doors(daemon: &TestDaemon) -> [(PathBuf, bool); 2] {
    [(daemon.paths.gateway().to_owned(), false), (daemon.paths.gateway_read_only(), true)]
}

/// All that is otherwise than it should be for somebody who sees these mounts.
async fn wrong(wire: &mut Wire, all: &Listed, seen: &[&str], writes: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    let sees = |name: &str| mount_in(name).is_some_and(|mount| seen.contains(&mount));
    let listed = Listed::to(wire).await;
    wrong.extend(listed.all().filter(|name| !sees(name)).map(|name| format!("lists {name}")));
    let is_missing = |name: &&String| sees(name) && !listed.all().any(|it| it == *name);
    let contents = all.resources.iter().chain(&all.prompts);
    wrong.extend(contents.filter(is_missing).map(|name| format!("does not list {name}")));
    for tool in &all.tools {
        let is_read = tool.ends_with("look");
        if !is_read && !tool.ends_with("echo") {
            // What the others do takes long, or ends the server.
            continue;
        }
        let params = json!({"name": tool, "arguments": {}});
        let became = outcome(wire.request("tools/call", params).await);
        let meant = match (sees(tool), is_read || writes) {
            (false, _) => "no such tool",
            (true, true) => "may",
            (true, false) => "denied",
        };
        if became != meant {
            wrong.push(format!("{tool}: {became}, not {meant}"));
        }
    }
    let requests = all.resources.iter().map(|it| ("resources/read", "uri", it));
    let prompts = all.prompts.iter().map(|it| ("prompts/get", "name", it));
    for (method, key, name) in requests.chain(prompts) {
        let mut params = json!({});
        params[key] = json!(name);
        let answer = wire.request(method, params).await;
        if answer.is_ok() != sees(name) {
            wrong.push(format!("{method} {name}: {answer:?}"));
        }
    }
    let of_mounts = wire.request("resources/read", json!({"uri": "termgate://mounts"})).await;
    let told = format!("{of_mounts:?}");
    for mount in MOUNTS {
        if told.contains(&format!("\\\"{mount}\\\"")) != seen.contains(&mount) {
            wrong.push(format!("termgate://mounts and {mount}: {told}"));
        }
        let lease = wire.call("acquire_lease", json!({"surface": mount, "ttl_ms": 1_000})).await;
        let became = match lease["isError"] == false {
            true => "may",
            false => match error_code(&lease).as_str() {
                "read_only" | "policy_denied" => "denied",
                _ => "unseen",
            },
        };
        let meant = match (seen.contains(&mount), writes) {
            (false, _) => "unseen",
            (true, true) => "may",
            (true, false) => "denied",
        };
        if became != meant {
            wrong.push(format!("the lease of {mount}: {became}, not {meant}: {lease}"));
        }
        if became == "may" {
            let id = &lease["structuredContent"]["lease_id"];
            wire.structured("release_lease", json!({"lease_id": id})).await;
        }
    }
    wrong
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_holds_the_lease_of_a_mount_is_told_to_no_other_tenant() {
    let (_fakes, house) = house().await;
    let (mut own, mut other) = (house.enter("self").await, house.enter("ci").await);
    let asked = json!({"surface": "aa", "reason": "a secret of ours"});
    own.structured("acquire_lease", asked).await;
    let uri = json!({"uri": "termgate://mounts"});
    for (tool, arguments) in [("acquire_lease", json!({"surface": "aa"})), ("aa__echo", json!({}))]
    {
        let refused = other.call(tool, arguments).await;
        let error = &refused["structuredContent"];
        assert_eq!(error["error_code"], "lease_held", "{tool}: {refused}");
        assert_eq!(error["message"], "the lease is held by another tenant", "{tool}");
        let details = &error["details"];
        assert!(details["expires_in_ms"].is_u64(), "{refused}");
        assert!(["held_by", "kind", "reason"].iter().all(|it| details.get(it).is_none()));
    }
    let lease_in = |read: serde_json::Value| {
        let text = read["contents"][0]["text"].as_str().unwrap().to_owned();
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        read["mounts"].as_array().unwrap().iter().find(|it| it["name"] == "aa").unwrap()["lease"]
            .clone()
    };
    let told = lease_in(other.request("resources/read", uri.clone()).await.unwrap());
    let known = ["held", "by", "waiters", "expires_in_ms"];
    assert_eq!((&told["held"], &told["by"]), (&json!(true), &json!("another tenant")));
    assert!(told.as_object().unwrap().keys().all(|it| known.contains(&it.as_str())), "{told}");
    let told = lease_in(own.request("resources/read", uri).await.unwrap());
    assert_eq!(told["reason"], "a secret of ours");
    house.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_mount_is_there_for_those_alone_whose_filter_names_it() {
    let (_fakes, house) = house().await;
    let all = Listed::to(&mut house.enter("operator").await).await;
    for mount in MOUNTS {
        let has = |names: &[String]| names.iter().any(|name| mount_in(name) == Some(mount));
        assert!(has(&all.tools) && has(&all.resources) && has(&all.prompts), "{mount}");
    }
    for (door, watches) in doors(&house.daemon) {
        for (who, seen, writes) in SEEN {
            let mut wire = house.enter_at(&door, who).await;
            let wrong = wrong(&mut wire, &all, seen, writes && !watches).await;
            assert!(wrong.is_empty(), "{who} at {}: {wrong:#?}", door.display());
        }
    }
    house.daemon.stop().await;
}
