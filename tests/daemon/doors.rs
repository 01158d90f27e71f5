//! The front doors: where they are, who comes in, what each shows, and what is left of them.

use std::collections::BTreeMap;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::Path;

use serde_json::{Value, json};
use termgate::config::Config;
use termgate::config::paths::RuntimePaths;
use termgate::config::sources::Sources;
use termgate::transport::daemon::{DaemonError, DaemonSettings, serve};
use termgate::transport::unix::handed::Handed;

use crate::daemon::harness::{Era, TestDaemon, Wire, error_code, program};
use crate::harness::home::Home;
use crate::harness::waiting::{soon, until};

/// The revisions of clients that begin with `initialize`.
const LEGACY_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

async fn initialize(wire: &mut Wire, version: &str) -> Value {
    let hello = json!({
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "tester", "version": "1"},
    });
    let welcome = wire.request("initialize", hello).await.unwrap();
    wire.sender.notify("notifications/initialized", json!({})).await;
    welcome
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn is_socket(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

/// Waits until a file is there no more.
async fn vanishes(path: &Path) {
    until(&format!("{} to vanish", path.display()), || !path.exists()).await;
}

fn settings(paths: &RuntimePaths) -> DaemonSettings {
    DaemonSettings {
        config: Config::built_in(),
        sources: Sources::default(),
        read_only: false,
        paths: paths.clone(),
        environment: BTreeMap::new(),
        default_cwd: "/".into(),
        shim: "/nowhere".into(),
        state: None,
        handed: Handed::default(),
        linger: None,
        program: program(),
    }
}

fn ids(listed: &Value) -> Vec<&str> {
    let sessions = listed["sessions"].as_array().unwrap();
    sessions.iter().map(|session| session["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn clients_of_every_revision_are_welcome_at_every_door() {
    let daemon = TestDaemon::writable().await;
    let mut creator = daemon.client(Era::Legacy).await;
    let session = creator.start("cat").await;
    let id = session.parse().unwrap();
    let doors = [
        daemon.paths.gateway().to_owned(),
        daemon.paths.gateway_read_only(),
        daemon.paths.operator(),
        daemon.paths.session(id),
        daemon.paths.session_read_only(id),
    ];
    for door in &doors {
        for version in LEGACY_VERSIONS {
            let mut wire = Wire::silent(door, Era::Legacy).await;
            let welcome = initialize(&mut wire, version).await;
            assert_eq!(welcome["protocolVersion"], version);
            assert_eq!(welcome["serverInfo"]["name"], "termgate");
            let capabilities = &welcome["capabilities"];
            assert_eq!(capabilities["experimental"]["dev.termgate/observe"], json!({}));
            let listed = wire.structured("list_sessions", json!({})).await;
            assert_eq!(ids(&listed), [session.as_str()], "{version} at {}", door.display());
        }
        let mut wire = Wire::silent(door, Era::Modern).await;
        let found = wire.request("server/discover", json!({})).await.unwrap();
        assert!(found["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")));
        assert_eq!(found["capabilities"]["extensions"]["dev.termgate/observe"], json!({}));
        let listed = wire.structured("list_sessions", json!({})).await;
        assert_eq!(ids(&listed), [session.as_str()], "at {}", door.display());
    }
    daemon.stop().await;
}

#[tokio::test]
async fn a_bare_request_of_the_newer_era_needs_no_greeting() {
    let daemon = TestDaemon::read_only().await;
    let mut wire = Wire::silent(daemon.paths.gateway(), Era::Modern).await;
    assert_eq!(wire.structured("list_sessions", json!({})).await["sessions"], json!([]));
    daemon.stop().await;
}

#[tokio::test]
async fn a_revision_nobody_knows_is_answered_with_one_we_know() {
    let daemon = TestDaemon::read_only().await;
    let mut wire = Wire::silent(daemon.paths.gateway(), Era::Legacy).await;
    assert_eq!(initialize(&mut wire, "1999-01-01").await["protocolVersion"], "2025-11-25");
    daemon.stop().await;
}

#[tokio::test]
async fn sockets_and_directories_are_private() {
    let daemon = TestDaemon::writable().await;
    let session = daemon.client(Era::Legacy).await.start("cat").await;
    let id = session.parse().unwrap();
    let paths = daemon.paths.clone();
    for directory in [paths.root().to_owned(), paths.sessions()] {
        assert_eq!(mode(&directory), 0o700, "{}", directory.display());
    }
    let sockets = [
        paths.gateway().to_owned(),
        paths.gateway_read_only(),
        paths.operator(),
        paths.session(id),
        paths.session_read_only(id),
    ];
    for socket in sockets {
        assert!(is_socket(&socket), "{}", socket.display());
        assert_eq!(mode(&socket), 0o600, "{}", socket.display());
    }
    assert_eq!(mode(&paths.lock()), 0o600);
    daemon.stop().await;
}

#[tokio::test]
async fn at_a_sessions_door_the_session_may_be_left_out() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let session = daemon.client(era).await.start("stty -echo; echo up; exec cat").await;
        let mut wire = daemon.at_session(&session, era).await;
        wire.wait_for(json!({"text": "up", "since": 0})).await;
        wire.structured("acquire_lease", json!({})).await;
        let sent = json!({"text": "hello", "enter": true, "until": {"text": "hello"}});
        let sent = wire.structured("send_text", sent).await;
        assert_eq!(
            (&sent["session"], &sent["wait"]["outcome"]),
            (&json!(session), &json!("matched"))
        );
        wire.structured("resize", json!({"cols": 40, "rows": 10})).await;
        let screen = wire.structured("read_screen", json!({})).await;
        assert_eq!((&screen["session"], &screen["cols"]), (&json!(session), &json!(40)));
        let rows = wire.structured("read_history", json!({})).await;
        assert_eq!(rows["session"], session);
        let mut observer = daemon.at_session(&session, era).await;
        observer.send("termgate/observe", json!({})).await;
        let delta = observer.receiver.notification("termgate/delta").await;
        assert_eq!(delta["session"], session);
        let killed = wire.structured("manage_session", json!({"action": "kill"})).await;
        assert_eq!(killed["session"], session);
        daemon.stop().await;
    }
}

#[tokio::test]
async fn at_the_gateway_a_session_must_be_named() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    wire.start("cat").await;
    for (tool, arguments) in [
        ("read_screen", json!({})),
        ("wait_for", json!({"change": true})),
        ("send_text", json!({"text": "x"})),
        ("acquire_lease", json!({})),
    ] {
        let result = wire.call(tool, arguments).await;
        assert_eq!(error_code(&result), "invalid_argument", "{tool}");
        let details = &result["structuredContent"]["details"];
        assert_eq!(details["parameter"], "session", "{tool}");
    }
    daemon.stop().await;
}

/// An answer with every name of a session taken out, so that answers can be compared.
fn without_name(answer: &Value, name: &str) -> String {
    let mut answer = answer.clone();
    if let Some(meta) = answer.as_object_mut() {
        meta.remove("_meta");
    }
    answer.to_string().replace(name, "NAME")
}

#[tokio::test]
async fn another_session_answers_like_one_that_does_not_exist() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut gateway = daemon.client(era).await;
        let own = gateway.start("cat").await;
        let other = gateway.start("cat").await;
        let grant = gateway.acquire(&other).await;
        let nobody = "0123456789ab";
        for mut wire in [daemon.at_session(&own, era).await, daemon.at_read_only(&own, era).await] {
            for (tool, rest) in [
                ("list_sessions", json!({})),
                ("read_screen", json!({})),
                ("read_history", json!({})),
                ("wait_for", json!({"change": true})),
                ("send_text", json!({"text": "x"})),
                ("send_keys", json!({"keys": "x"})),
                ("resize", json!({"cols": 9, "rows": 9})),
                ("acquire_lease", json!({})),
                ("manage_session", json!({"action": "kill"})),
            ] {
                let mut answers = Vec::new();
                for name in [other.as_str(), nobody] {
                    let mut arguments = rest.clone();
                    arguments["session"] = json!(name);
                    let answer = wire.call(tool, arguments).await;
                    error_code(&answer);
                    answers.push(without_name(&answer, name));
                }
                assert_eq!(answers[0], answers[1], "{tool}");
            }
            for method in ["resources/read", "termgate/observe"] {
                let mut answers = Vec::new();
                for name in [other.as_str(), nobody] {
                    let uri = format!("termgate://session/{name}/grid");
                    let params = match method {
                        "resources/read" => json!({"uri": uri}),
                        _ => json!({"session": name}),
                    };
                    let error = wire.request(method, params).await.unwrap_err();
                    answers.push(without_name(&error, name));
                }
                assert_eq!(answers[0], answers[1], "{method}");
            }
            let listed = wire.structured("list_sessions", json!({})).await;
            assert_eq!(ids(&listed), [own.as_str()]);
            let resources = wire.request("resources/list", json!({})).await.unwrap();
            assert!(!resources.to_string().contains(&other));
            for list in ["termgate://sessions", "termgate://leases"] {
                let read = wire.request("resources/read", json!({"uri": list})).await.unwrap();
                assert!(!read.to_string().contains(&other), "{list}");
            }
            // The key of a lease behind another door is worth as much as one that nobody has.
            let mut answers = Vec::new();
            let key = grant["lease_id"].as_str().unwrap();
            for key in [key, "00000000-0000-4000-8000-000000000000"] {
                let answer = wire.call("renew_lease", json!({"lease_id": key})).await;
                error_code(&answer);
                answers.push(without_name(&answer, key));
            }
            assert_eq!(answers[0], answers[1]);
        }
        daemon.stop().await;
    }
}

#[tokio::test]
async fn the_read_only_doors_never_write_whatever_the_daemon_allows() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let session = daemon.client(era).await.start("cat").await;
        let of_all = Wire::connect(&daemon.paths.gateway_read_only(), era).await;
        never_writes(of_all, &session).await;
        never_writes(daemon.at_read_only(&session, era).await, &session).await;
        daemon.stop().await;
    }
}

async fn never_writes(mut wire: Wire, session: &str) {
    let reading = [
        "list_sessions",
        "read_screen",
        "read_history",
        "read_commands",
        "search",
        "wait_for",
        "list_events",
        "why",
    ];
    assert_eq!(wire.tools().await, reading);
    for (tool, arguments) in [
        ("create_session", json!({})),
        ("acquire_lease", json!({"session": session})),
        ("run", json!({"session": session, "command": "true"})),
        ("send_text", json!({"session": session, "text": "x"})),
        ("send_keys", json!({"session": session, "keys": "Enter"})),
        ("send_mouse", json!({"session": session, "action": "click", "row": 0, "col": 0})),
        ("resize", json!({"session": session, "cols": 9, "rows": 9})),
        ("manage_session", json!({"session": session, "action": "kill"})),
    ] {
        assert_eq!(wire.error_code(tool, arguments).await, "read_only", "{tool}");
    }
    let screen = wire.structured("read_screen", json!({"session": session})).await;
    assert_eq!(screen["cols"], 120);
    let listed = wire.structured("list_sessions", json!({})).await;
    assert_eq!(listed["write_allowed"], false);
    assert_eq!(listed["sessions"][0]["write_allowed"], false);
}

#[tokio::test]
async fn operators_tools_exist_at_the_operators_door_alone() {
    let daemon = TestDaemon::writable().await;
    let session = daemon.client(Era::Legacy).await.start("cat").await;
    let mut operator = daemon.operator().await;
    let tools = operator.tools().await;
    for tool in ["find_lease", "follow_command", "preempt_lease", "set_write"] {
        assert!(tools.iter().any(|listed| listed == tool), "{tool}");
    }
    let others = [
        daemon.client(Era::Modern).await,
        daemon.at_session(&session, Era::Legacy).await,
        daemon.at_read_only(&session, Era::Modern).await,
    ];
    for mut wire in others {
        for tool in ["find_lease", "follow_command", "preempt_lease", "set_write"] {
            assert!(!wire.tools().await.iter().any(|listed| listed == tool), "{tool}");
            let call = json!({"name": tool, "arguments": {"state": "on", "session": session}});
            let error = wire.request("tools/call", call).await.unwrap_err();
            let unknown = json!({"name": "no_such_tool", "arguments": {}});
            let unknown = wire.request("tools/call", unknown).await.unwrap_err();
            assert_eq!(
                without_name(&error, tool),
                without_name(&unknown, "no_such_tool"),
                "{tool}"
            );
        }
        let error = wire.request("termgate/stop", json!({})).await.unwrap_err();
        assert_eq!(error["code"], -32601);
    }
    daemon.stop().await;
}

#[tokio::test]
async fn the_doors_of_a_session_vanish_when_it_is_removed() {
    let daemon = TestDaemon::writable().await;
    let mut wire = daemon.client(Era::Legacy).await;
    let session = wire.start("cat").await;
    let id = session.parse().unwrap();
    let (door, watching) = (daemon.paths.session(id), daemon.paths.session_read_only(id));
    let kill = json!({"session": session, "action": "kill"});
    wire.structured("manage_session", kill.clone()).await;
    wire.wait_for_exit(&session).await;
    // What it left can still be read through them.
    assert!(is_socket(&door) && is_socket(&watching));
    wire.structured("manage_session", kill).await;
    vanishes(&door).await;
    vanishes(&watching).await;
    assert_eq!(
        wire.error_code("read_screen", json!({"session": session})).await,
        "session_not_found"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn every_socket_vanishes_when_the_daemon_stops() {
    let daemon = TestDaemon::writable().await;
    let paths = daemon.paths.clone();
    let mut wire = daemon.client(Era::Modern).await;
    let id = wire.start("cat").await.parse().unwrap();
    let sockets = [
        paths.gateway().to_owned(),
        paths.gateway_read_only(),
        paths.operator(),
        paths.session(id),
        paths.session_read_only(id),
    ];
    assert!(sockets.iter().all(|socket| is_socket(socket)));
    let kept = paths.root().parent().unwrap().to_owned();
    daemon.stop().await;
    for socket in sockets {
        assert!(!socket.exists(), "{} in {}", socket.display(), kept.display());
    }
    // Whoever is still there is hung up on.
    wire.receiver.hears_the_end().await;
}

#[tokio::test]
async fn a_stale_socket_is_replaced() {
    let home = Home::new();
    let paths = home.paths();
    std::fs::DirBuilder::new().mode(0o700).create(paths.root()).unwrap();
    for stale in [paths.gateway().to_owned(), paths.operator()] {
        drop(std::os::unix::net::UnixListener::bind(&stale).unwrap());
        assert!(is_socket(&stale));
    }
    let (tell, ready) = tokio::sync::oneshot::channel();
    let serving = tokio::spawn(serve(settings(&paths), move |_| tell.send(()).unwrap()));
    soon("the daemon to start", ready).await.unwrap();
    let mut operator = Wire::connect(&paths.operator(), Era::Legacy).await;
    let mut wire = Wire::connect(paths.gateway(), Era::Legacy).await;
    assert_eq!(wire.structured("list_sessions", json!({})).await["sessions"], json!([]));
    operator.send("termgate/stop", json!({})).await;
    soon("the daemon to end", serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_second_daemon_in_the_same_directory_is_refused() {
    let daemon = TestDaemon::read_only().await;
    let second = serve(settings(&daemon.paths), |_| panic!("a second daemon is ready"));
    let refused = soon("the second daemon to end", second).await.unwrap_err();
    assert!(matches!(refused, DaemonError::Lock(_)), "{refused}");
    // The first one does not notice.
    let mut wire = daemon.client(Era::Modern).await;
    assert_eq!(wire.structured("list_sessions", json!({})).await["sessions"], json!([]));
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_door_of_a_session_creates_and_renames_nothing() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let mut client = daemon.client(era).await;
        let session = client.start("exec cat").await;
        let mut bound = daemon.at_session(&session, era).await;
        assert!(!bound.tools().await.iter().any(|name| name == "create_session"));
        assert_eq!(bound.error_code("create_session", json!({})).await, "policy_denied");
        let rename = json!({"action": "rename", "new_name": "other"});
        assert_eq!(bound.error_code("manage_session", rename).await, "policy_denied");
        daemon.stop().await;
    }
}
