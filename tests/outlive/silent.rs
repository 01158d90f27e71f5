//! Sessions whose shims stand still while a daemon starts: it knows them by what lies beside their
//! sockets until they answer.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::harness::daemon::Daemon;
use crate::harness::processes::{lives, stands_still};
use crate::harness::waiting::{LOOK, SAFETY, until};
use crate::outlive::client::{Client, listed};
use crate::outlive::home::Home;
use crate::outlive::programs::recorder;

/// A session `build` whose shim stands still, and its lease.
struct Silent {
    id: String,
    pid: i32,
    lease: Value,
    shim: Pid,
    /// What was told of it before.
    before: Value,
}

impl Silent {
    /// Lets the shim of a session that records what it reads stand still, and kills the daemon.
    async fn leave(home: &Home) -> Self {
        let daemon = home.serve().await;
        let mut client = home.client().await;
        let line = recorder(&home.path("read"));
        let asked = json!({"name": "build", "command": "sh", "args": ["-c", line], "tags": ["ci"],
                           "rows": 31, "cols": 97});
        let created = client.must("create_session", asked).await;
        let id = created["session"]["id"].as_str().unwrap().to_owned();
        let lease = created["lease"]["lease_id"].clone();
        let said = json!({"session": id, "text": "recording", "since": 0});
        client.must("wait_for", said).await;
        let before = listed(&mut client, &id).await;
        let shim = home.shim(&id);
        stands_still(shim).await;
        daemon.kill().await;
        let pid = i32::try_from(before["pid"].as_i64().unwrap()).unwrap();
        Self { id, pid, lease, shim: Pid::from_raw(shim), before }
    }

    /// The next daemon, which has found out that it is silent.
    async fn found(home: &Home) -> (Self, Daemon, Client) {
        let silent = Self::leave(home).await;
        let daemon = home.serve().await;
        let client = home.client().await;
        (silent, daemon, client)
    }

    /// What is told of it once it is there again.
    async fn once_back(&self, client: &mut Client) -> Value {
        let looking = async {
            loop {
                let told = listed(client, &self.id).await;
                if told["activity"]["evidence"] != "silent" {
                    return told;
                }
                sleep(LOOK).await;
            }
        };
        timeout(SAFETY, looking).await.expect("it comes back")
    }
}

/// What a call is refused with.
async fn refused(client: &mut Client, tool: &str, arguments: Value) -> Value {
    let answer = client.call(tool, arguments.clone()).await.unwrap();
    answer.expect_err(&format!("{tool} {arguments}"))
}

#[tokio::test]
async fn a_session_whose_shim_stands_still_is_listed_by_the_next_daemon_and_keeps_its_name() {
    let home = Home::new();
    let (silent, daemon, mut client) = Silent::found(&home).await;
    let all = client.must("list_sessions", json!({"tag": "ci", "state": "running"})).await;
    let resource = client.read_facts("termgate://sessions").await;
    for told in [&all["sessions"], &resource["sessions"]] {
        let [told] = told.as_array().unwrap().as_slice() else { panic!("{told}") };
        for member in ["id", "name", "command", "cwd", "tags", "rows", "cols", "state"] {
            assert_eq!(told[member], silent.before[member], "{member} of {told}");
        }
        assert_eq!(told["activity"]["evidence"], "silent", "{told}");
    }
    let ls = home.run("ls");
    assert!(String::from_utf8_lossy(&ls.stdout).contains("silent"), "{ls:?}");

    let taken = refused(&mut client, "create_session", json!({"name": "build"})).await;
    assert_eq!(taken["error_code"], "session_exists", "{taken}");
    let other = client.must("create_session", json!({"name": "other"})).await;
    let renamed = json!({"session": other["session"]["id"], "action": "rename",
                         "new_name": "build"});
    let taken = refused(&mut client, "manage_session", renamed).await;
    assert_eq!(taken["error_code"], "session_exists", "{taken}");

    kill(silent.shim, Signal::SIGCONT).unwrap();
    let back = silent.once_back(&mut client).await;
    for member in ["name", "pid", "tags"] {
        assert_eq!(back[member], silent.before[member], "{member} of {back}");
    }
    client.must("acquire_lease", json!({"session": silent.id, "lease_id": silent.lease})).await;
    let renamed = json!({"session": silent.id, "action": "rename", "new_name": "late"});
    client.must("manage_session", renamed).await;
    client.must("create_session", json!({"name": "build"})).await;
    daemon.kill().await;
}

#[tokio::test]
async fn calls_for_a_session_whose_shim_stands_still_are_told_so_and_its_lease_waits() {
    let home = Home::new();
    let (silent, daemon, mut client) = Silent::found(&home).await;
    for session in [silent.id.as_str(), &silent.id[..6], "build"] {
        let named = json!({"session": session});
        let written = json!({"session": session, "text": "x", "lease_id": silent.lease});
        let killed = json!({"session": session, "action": "kill"});
        let waits = json!({"sessions": [session], "exit": true});
        for (tool, arguments) in [
            ("read_screen", named.clone()),
            ("read_history", named.clone()),
            ("read_commands", named.clone()),
            ("acquire_lease", named),
            ("wait_for", waits),
            ("send_text", written),
            ("manage_session", killed),
            ("renew_lease", json!({"lease_id": silent.lease})),
        ] {
            let told = refused(&mut client, tool, arguments).await;
            assert_eq!(told["error_code"], "terminal_silent", "{tool}: {told}");
            assert!(told["retry_after_ms"].is_u64(), "{told}");
            assert!(told["hint"].as_str().unwrap().contains("termgate doctor"), "{told}");
        }
    }
    for (method, params) in [
        ("resources/read", json!({"uri": "termgate://session/build/grid"})),
        ("termgate/observe", json!({"session": "build"})),
    ] {
        let id = client.send(method, params).await.unwrap();
        let told = client.answer(id).await.unwrap().unwrap_err();
        assert_eq!(told["data"]["error_code"], "terminal_silent", "{told}");
    }
    let bridge = home.run("mcp --session build");
    assert!(String::from_utf8_lossy(&bridge.stderr).contains("terminal_silent"), "{bridge:?}");
    let doctor = home.run("doctor");
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(doctor.contains(&format!("process {}", silent.shim)), "{doctor}");

    let before = Instant::now();
    kill(silent.shim, Signal::SIGCONT).unwrap();
    let back = silent.once_back(&mut client).await;
    let (lease, passed) = (&back["lease"], before.elapsed().as_millis());
    assert_eq!(lease["reclaimable"], true, "{back}");
    // The ten seconds began when it was found, not when the daemon did.
    let left = u128::from(lease["expires_in_ms"].as_u64().unwrap());
    assert!(left + passed >= 10_000, "{left} ms are left after {passed} ms");
    client.must("renew_lease", json!({"lease_id": silent.lease})).await;
    let written = json!({"session": "build", "text": "after.", "lease_id": silent.lease});
    client.must("send_text", written).await;
    let log = home.path("read");
    until("the program to read", || !fs::read(&log).unwrap().is_empty()).await;
    assert_eq!(fs::read_to_string(&log).unwrap(), "after.");
    daemon.kill().await;
}

#[tokio::test]
async fn a_silent_session_of_another_tenant_is_not_there_for_anybody_else() {
    let home = Home::new();
    let silent = Silent::leave(&home).await;
    let record = home.runtime(&format!("h/{}.session", silent.id));
    let mut kept: Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    kept["tenant"] = json!("uid:4242");
    fs::write(&record, kept.to_string()).unwrap();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    assert_eq!(client.must("list_sessions", json!({})).await["sessions"], json!([]));
    for session in [silent.id.as_str(), "build"] {
        let told = refused(&mut client, "read_screen", json!({"session": session})).await;
        assert_eq!(told["error_code"], "session_not_found", "{told}");
    }
    let told = refused(&mut client, "renew_lease", json!({"lease_id": silent.lease})).await;
    assert_eq!(told["error_code"], "lease_superseded", "{told}");
    client.must("create_session", json!({"name": "build"})).await;
    daemon.kill().await;
}

#[tokio::test]
async fn a_shim_that_is_killed_while_it_is_silent_is_told_as_any_that_died() {
    let home = Home::new();
    let (silent, daemon, mut client) = Silent::found(&home).await;
    kill(silent.shim, Signal::SIGKILL).unwrap();
    silent.once_back(&mut client).await;
    client.must("wait_for", json!({"session": silent.id, "exit": true})).await;
    let ended = listed(&mut client, &silent.id).await;
    assert_eq!(
        (&ended["name"], &ended["state"], &ended["exit"]),
        (&json!("build"), &json!("exited"), &json!({"cause": "shim_lost"}))
    );
    until("its program to end", || !lives(silent.pid)).await;
    // It has ended, and gives its name up as any that has.
    client.must("create_session", json!({"name": "build"})).await;
    daemon.kill().await;
}

#[tokio::test]
async fn who_subscribed_to_a_session_is_told_of_it_once_it_is_there_again() {
    let home = Home::new();
    let (silent, daemon, mut client) = Silent::found(&home).await;
    let uri = format!("termgate://session/{}/grid", silent.id);
    let id = client.send("resources/subscribe", json!({"uri": uri})).await.unwrap();
    client.answer(id).await.unwrap().unwrap();
    kill(silent.shim, Signal::SIGCONT).unwrap();
    loop {
        let told = client.next().await.unwrap();
        if told["method"] == "notifications/resources/updated" {
            assert_eq!(told["params"]["uri"], uri);
            break;
        }
    }
    let shows = json!({"session": silent.id, "text": "recording", "since": 0});
    assert_eq!(client.must("wait_for", shows).await["outcome"], "matched");
    daemon.kill().await;
}
