//! Tokens as clients meet them: one principal on many connections, for as long as its token is good.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use termgate::core::token::{TokenScope, UnixTime};
use termgate::transport::tokens::{NewToken, TokenStore};

use crate::daemon::harness::{Era, TestDaemon, Wire, structured};
use crate::daemon::program::Piped;
use crate::harness::home::Home;
use crate::harness::waiting::{soon, until};

/// The code of a token that is not taken.
const REJECTED: i64 = -32011;
/// The code of what the bridge answers in the daemon's place.
const UPSTREAM: i64 = -32010;
const INVALID_REQUEST: i64 = -32600;
/// A moment that has passed.
const LONG_AGO: UnixTime = UnixTime(1_000);

/// The tokens of a daemon of this process.
pub(crate) struct Tokens {
    store: TokenStore,
    directory: PathBuf,
}

impl Tokens {
    pub(crate) fn of(daemon: &TestDaemon) -> Self {
        let directory = daemon.file("state");
        Self { store: TokenStore::in_state(&directory), directory }
    }

    /// Makes a token and gives back its secret.
    pub(crate) fn make(&self, name: &str, scope: TokenScope, expires: Option<UnixTime>) -> String {
        let new = NewToken { name: name.parse().unwrap(), scope, expires };
        fs::create_dir_all(&self.directory).unwrap();
        let out = self.directory.join(format!("{name}.token"));
        self.store.make(LONG_AGO, new, &out).unwrap();
        secret(&out)
    }

    fn writing(&self, name: &str) -> String {
        self.make(name, TokenScope::Write, None)
    }

    fn revoke(&self, name: &str) {
        self.store.revoke(&name.parse().unwrap()).unwrap();
    }
}

fn secret(file: &Path) -> String {
    fs::read_to_string(file).unwrap().trim().to_owned()
}

/// Shows a token, without waiting for what becomes of it.
async fn show(path: &Path, era: Era, secret: &Value) -> (Wire, u64) {
    let mut wire = Wire::silent(path, era).await;
    let id = wire.send("termgate/authenticate", json!({"token": secret})).await;
    (wire, id)
}

/// Comes in as the owner of a token.
pub(crate) async fn owner(path: &Path, era: Era, secret: &str) -> Wire {
    let (mut wire, id) = show(path, era, &json!(secret)).await;
    wire.receiver.answer(id).await.unwrap();
    wire.greet().await;
    wire
}

/// Shows a token that is not taken, and gives back what is said of it.
async fn rejected(path: &Path, era: Era, secret: &Value) -> Value {
    let (mut wire, id) = show(path, era, secret).await;
    let error = wire.receiver.answer(id).await.unwrap_err();
    assert_eq!(error["code"], REJECTED, "{error}");
    if let Some(secret) = secret.as_str().filter(|secret| !secret.is_empty()) {
        assert!(!error.to_string().contains(secret), "{error}");
    }
    wire.receiver.hears_the_end().await;
    error["data"]["error_code"].clone()
}

async fn lease_of(client: &mut Wire, session: &str) -> Value {
    let listed = client.structured("list_sessions", json!({"session": session})).await;
    listed["sessions"][0]["lease"].clone()
}

async fn write(client: &mut Wire, session: &str, more: Value) -> Value {
    let mut arguments = json!({"session": session, "text": "x"});
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    client.call("send_text", arguments).await
}

/// Waits until the daemon has so many connections, the operator's included.
async fn until_connected(operator: &mut Wire, count: u64) {
    let asking = async {
        loop {
            let uri = json!({"uri": "termgate://daemon"});
            let read = operator.request("resources/read", uri).await.unwrap();
            let status = read["contents"][0]["text"].as_str().unwrap();
            let status: Value = serde_json::from_str(status).unwrap();
            if status["connections"]["open"] == count {
                return;
            }
        }
    };
    soon("connections to come or go", asking).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_connections_of_one_token_share_a_lease_at_every_door() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let secret = Tokens::of(&daemon).writing("ci");
        let mut one = owner(daemon.paths.gateway(), era, &secret).await;
        let session = one.start("exec cat").await;
        let lease = one.acquire(&session).await;
        let at_session = daemon.paths.session(session.parse().unwrap());
        for door in [daemon.paths.gateway(), &at_session] {
            let mut other = owner(door, era, &secret).await;
            let by_id = write(&mut other, &session, json!({"lease_id": lease["lease_id"]})).await;
            assert_eq!(structured(&by_id)["lease"]["lease_id"], lease["lease_id"]);
            structured(&write(&mut other, &session, json!({})).await);
            assert_eq!(other.acquire(&session).await["epoch"], lease["epoch"]);
        }
        let mut stranger = daemon.client(era).await;
        let held = write(&mut stranger, &session, json!({"lease_id": lease["lease_id"]})).await;
        assert_eq!(held["structuredContent"]["error_code"], "lease_held");
        assert_eq!(held["structuredContent"]["details"]["held_by"], "ci#t1");
        daemon.stop().await;
    }
}

#[tokio::test]
async fn the_owner_of_a_token_is_told_who_it_is_and_has_its_name_whatever_the_client_says() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let tokens = Tokens::of(&daemon);
        tokens.writing("first");
        let secret = tokens.make("second", TokenScope::ReadOnly, None);
        let (mut wire, id) = show(daemon.paths.gateway(), era, &json!(secret)).await;
        let welcome = wire.receiver.answer(id).await.unwrap();
        assert_eq!(welcome, json!({"principal": "second#t2", "scope": "read_only"}));

        let mut writer = owner(daemon.paths.gateway(), era, &tokens.writing("third")).await;
        let session = writer.start("exec cat").await;
        writer.acquire(&session).await;
        assert_eq!(lease_of(&mut writer, &session).await["by"], "third#t3");
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_outlives_a_connection_of_its_holder_as_long_as_another_used_it() {
    for era in Era::BOTH {
        let daemon = TestDaemon::configured(|config| {
            config.allow_write = true;
            config.lease.ttl = Duration::from_secs(600);
            config.lease.grace = Duration::ZERO;
        })
        .await;
        let secret = Tokens::of(&daemon).writing("ci");
        let mut operator = daemon.operator().await;
        let mut one = owner(daemon.paths.gateway(), era, &secret).await;
        let session = one.start("exec cat").await;
        let lease = one.acquire(&session).await;
        let mut other = owner(daemon.paths.gateway(), era, &secret).await;
        structured(&write(&mut other, &session, json!({})).await);
        // It never used the lease, which does not hang on it.
        let idle = owner(daemon.paths.gateway(), era, &secret).await;
        until_connected(&mut operator, 4).await;
        drop((one, idle));
        until_connected(&mut operator, 2).await;
        let written = structured(&write(&mut other, &session, json!({})).await);
        assert_eq!(written["lease"]["lease_id"], lease["lease_id"]);
        let _idle = owner(daemon.paths.gateway(), era, &secret).await;
        drop(other);
        let freed = async { while lease_of(&mut operator, &session).await["held"] == true {} };
        soon("the lease to end", freed).await;
        daemon.stop_by(operator).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_reconnects_with_its_token_keeps_its_lease() {
    for era in Era::BOTH {
        let daemon = TestDaemon::configured(|config| {
            config.allow_write = true;
            config.lease.ttl = Duration::from_secs(600);
            config.lease.grace = Duration::from_secs(600);
        })
        .await;
        let secret = Tokens::of(&daemon).writing("ci");
        let mut operator = daemon.operator().await;
        let mut before = owner(daemon.paths.gateway(), era, &secret).await;
        let session = before.start("exec cat").await;
        let lease = before.acquire(&session).await;
        drop(before);
        until_connected(&mut operator, 1).await;
        let mut after = owner(daemon.paths.gateway(), era, &secret).await;
        // It need not even remember the id.
        let written = structured(&write(&mut after, &session, json!({})).await);
        assert_eq!(written["lease"]["lease_id"], lease["lease_id"]);
        assert_eq!(lease_of(&mut after, &session).await["epoch"], lease["epoch"]);
        daemon.stop_by(operator).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_that_is_asked_for_again_after_a_reconnect_goes_on() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let secret = Tokens::of(&daemon).writing("ci");
        let mut holder = daemon.client(era).await;
        let session = holder.start("exec cat").await;
        let lease = holder.acquire(&session).await;
        let ask = json!({"session": session, "wait_ms": 600_000, "idempotency_key": "k"});
        let mut before = owner(daemon.paths.gateway(), era, &secret).await;
        before.send_call("acquire_lease", ask.clone()).await;
        let waits = async { while lease_of(&mut holder, &session).await["waiters"] != 1 {} };
        soon("the wait to begin", waits).await;
        let mut after = owner(daemon.paths.gateway(), era, &secret).await;
        let asked = after.send_call("acquire_lease", ask).await;
        // In its turn behind the wait, so that this is under way as well.
        after.structured("list_sessions", json!({})).await;
        drop(before);
        let mut operator = daemon.operator().await;
        until_connected(&mut operator, 3).await;
        let release = json!({"lease_id": lease["lease_id"]});
        holder.structured("release_lease", release).await;
        structured(&after.answer(asked).await);
        assert_eq!(lease_of(&mut holder, &session).await["by"], "ci#t1");
        daemon.stop_by(operator).await;
    }
}

#[tokio::test]
async fn a_token_that_is_not_good_is_told_so_and_hung_up_on() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let gateway = daemon.paths.gateway();
        let never = json!(format!("tgt_{}", "0".repeat(64)));
        // Before the first token was made there is not even a file.
        assert_eq!(rejected(gateway, era, &never).await, "token_unknown");
        let tokens = Tokens::of(&daemon);
        let good = tokens.writing("ci");
        let expired = tokens.make("old", TokenScope::Write, Some(LONG_AGO));
        let revoked = tokens.writing("gone");
        tokens.revoke("gone");
        assert_eq!(rejected(gateway, era, &never).await, "token_unknown");
        assert_eq!(rejected(gateway, era, &json!(expired)).await, "token_expired");
        assert_eq!(rejected(gateway, era, &json!(revoked)).await, "token_unknown");
        let malformed =
            [json!(""), json!(7), json!(null), json!(good[1..]), json!(format!("{good} "))];
        for secret in malformed {
            assert_eq!(rejected(gateway, era, &secret).await, "invalid_argument", "{secret}");
        }
        let operator = daemon.paths.operator();
        assert_eq!(rejected(&operator, era, &json!(good)).await, "policy_denied");
        daemon.stop().await;
    }
}

#[tokio::test]
async fn tokens_that_others_could_read_let_nobody_in() {
    use std::os::unix::fs::PermissionsExt;
    let daemon = TestDaemon::writable().await;
    let tokens = Tokens::of(&daemon);
    let secret = json!(tokens.writing("ci"));
    let file = tokens.store.path();
    fs::set_permissions(file, PermissionsExt::from_mode(0o640)).unwrap();
    assert_eq!(rejected(daemon.paths.gateway(), Era::Modern, &secret).await, "storage_error");
    fs::write(file, "last_number = ").unwrap();
    fs::set_permissions(file, PermissionsExt::from_mode(0o600)).unwrap();
    assert_eq!(rejected(daemon.paths.gateway(), Era::Modern, &secret).await, "storage_error");
    daemon.stop().await;
}

#[tokio::test]
async fn a_token_is_taken_in_the_first_line_only() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let secret = Tokens::of(&daemon).writing("ci");
        let mut wire = daemon.client(era).await;
        let token = json!({"token": secret});
        let late = wire.request("termgate/authenticate", token.clone()).await.unwrap_err();
        assert_eq!(late["code"], INVALID_REQUEST, "{late}");
        assert!(!late.to_string().contains(&secret), "{late}");
        wire.sender.notify("termgate/authenticate", token.clone()).await;
        // The connection goes on as whoever it was.
        let session = wire.start("exec cat").await;
        wire.acquire(&session).await;
        assert_ne!(lease_of(&mut wire, &session).await["by"], "ci#t1");
        let mut twice = owner(daemon.paths.gateway(), era, &secret).await;
        twice.request("termgate/authenticate", token).await.unwrap_err();
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_token_ends_the_connections_of_its_owner_and_no_others() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let tokens = Tokens::of(&daemon);
        let (bad, good) = (tokens.writing("bad"), tokens.writing("good"));
        let gateway = daemon.paths.gateway();
        let mut staying = owner(gateway, era, &good).await;
        let mut nobody = daemon.client(era).await;
        let mut leaving = [owner(gateway, era, &bad).await, owner(gateway, era, &bad).await];
        let session = leaving[0].start("exec cat").await;
        leaving[0].acquire(&session).await;
        tokens.revoke("bad");
        for wire in &mut leaving {
            wire.receiver.hears_the_end().await;
        }
        staying.structured("list_sessions", json!({})).await;
        nobody.structured("list_sessions", json!({})).await;
        assert_eq!(rejected(gateway, era, &json!(bad)).await, "token_unknown");
        // Also when the whole file goes, and with it its directory.
        fs::remove_dir_all(&tokens.directory).unwrap();
        staying.receiver.hears_the_end().await;
        nobody.structured("list_sessions", json!({})).await;
        // And a directory that is there again is looked after again.
        let again = tokens.writing("again");
        let mut wire = owner(gateway, era, &again).await;
        tokens.revoke("again");
        wire.receiver.hears_the_end().await;
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_is_sent_after_the_end_of_a_token_is_typed() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let tokens = Tokens::of(&daemon);
        let mut ci = owner(daemon.paths.gateway(), era, &tokens.writing("ci")).await;
        let mut agent = daemon.client(era).await;
        let log = daemon.file("log");
        let session = agent.start_recorder(&log, 3).await;
        ci.acquire(&session).await;
        write(&mut ci, &session, json!({})).await;
        let late = json!({"session": session, "text": "late"});
        let call = json!({"name": "send_text", "arguments": late});
        let (_, line) = ci.sender.line("tools/call", call);
        tokens.revoke("ci");
        // Sent at once, so that the daemon may not have heard of it.
        ci.sender.raw_unless_over(line.as_bytes()).await;
        ci.receiver.hears_the_end().await;
        soon("the lease", async {
            while agent.call("acquire_lease", json!({"session": session})).await["isError"] == true
            {
            }
        })
        .await;
        agent.structured("send_text", json!({"session": session, "text": "ok"})).await;
        agent.wait_for_exit(&session).await;
        assert_eq!(fs::read_to_string(&log).unwrap(), "xok");
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_token_holds_in_any_session_ends_with_it_also_while_its_owner_is_away() {
    for era in Era::BOTH {
        let daemon = TestDaemon::configured(|config| {
            config.allow_write = true;
            config.lease.grace = Duration::from_secs(600);
            config.lease.ttl = Duration::from_secs(600);
        })
        .await;
        let tokens = Tokens::of(&daemon);
        let mut ci = owner(daemon.paths.gateway(), era, &tokens.writing("ci")).await;
        let mut agent = daemon.client(era).await;
        let sessions = [agent.start("exec cat").await, agent.start("exec cat").await];
        for session in &sessions {
            ci.acquire(session).await;
        }
        drop(ci);
        tokens.revoke("ci");
        for session in &sessions {
            let acquire = json!({"session": session, "wait_ms": 60_000});
            soon("the lease", agent.structured("acquire_lease", acquire)).await;
        }
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_token_for_watching_only_watches_whatever_the_switches_say() {
    for era in Era::BOTH {
        let daemon = TestDaemon::writable().await;
        let secret = Tokens::of(&daemon).make("eye", TokenScope::ReadOnly, None);
        let mut writer = daemon.client(era).await;
        let session = writer.start("exec cat").await;
        let lease = writer.acquire(&session).await["lease_id"].clone();
        let at_session = daemon.paths.session(session.parse().unwrap());
        for door in [daemon.paths.gateway(), &at_session] {
            let mut eye = owner(door, era, &secret).await;
            let listed = eye.structured("list_sessions", json!({})).await;
            assert_eq!(listed["write_allowed"], false);
            assert_eq!(listed["sessions"][0]["write_allowed"], false);
            eye.structured("read_screen", json!({"session": session})).await;
            let tools = eye.tools().await;
            assert!(!tools.iter().any(|tool| tool == "send_text"), "{tools:?}");
            for (tool, arguments) in [
                ("send_text", json!({"session": session, "text": "x", "lease_id": lease})),
                ("acquire_lease", json!({"session": session})),
                ("release_lease", json!({"lease_id": lease})),
                ("resize", json!({"session": session, "rows": 9, "cols": 9})),
                ("manage_session", json!({"session": session, "action": "kill"})),
                ("create_session", json!({"command": "true"})),
            ] {
                assert_eq!(eye.error_code(tool, arguments).await, "read_only", "{tool}");
            }
        }
        daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_handed_to_the_owner_of_a_token_by_its_name() {
    let daemon = TestDaemon::writable().await;
    let tokens = Tokens::of(&daemon);
    let secret = tokens.writing("ci");
    let mut giver = daemon.client(Era::Modern).await;
    let session = giver.start("exec cat").await;
    let lease = giver.acquire(&session).await["lease_id"].clone();
    let hand = json!({"lease_id": lease, "hand_to": "ci#t1"});
    assert_eq!(giver.error_code("release_lease", hand.clone()).await, "invalid_argument");
    let one = owner(daemon.paths.gateway(), Era::Modern, &secret).await;
    let mut other = owner(daemon.paths.gateway(), Era::Modern, &secret).await;
    drop(one);
    let given = giver.structured("release_lease", hand).await;
    assert_eq!(given["outcome"], "offered");
    structured(&write(&mut other, &session, json!({})).await);
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_inside_a_session_has_no_rights_with_a_token_either() {
    let daemon = TestDaemon::writable().await;
    let tokens = Tokens::of(&daemon);
    tokens.writing("ci");
    let file = tokens.directory.join("ci.token");
    let mut client = daemon.client(Era::Modern).await;
    let run = daemon.paths.root().display();
    let (termgate, file) = (env!("CARGO_BIN_EXE_termgate"), file.display());
    let line = format!(
        "env -i TERMGATE_RUNTIME_DIR={run} {termgate} mcp --no-spawn --token-file {file} \
         </dev/null; echo ended $?; exec cat"
    );
    let session = client.start(&line).await;
    let wanted = json!({"session": session, "pattern": "ended \\d", "since": 0});
    client.wait_for(wanted).await;
    let screen = client.structured("read_screen", json!({"session": session})).await;
    let text = screen["text"].as_str().unwrap().replace('\n', "");
    assert!(text.contains("policy_denied") && text.contains("ended 5"), "{text}");
    daemon.stop().await;
}

/// Makes a token with the program, and gives back the file that holds it.
fn made(home: &Home, words: &str) -> PathBuf {
    let file = home.path("ci.token");
    home.printed(&format!("token new ci --out {} {words}", file.display()));
    file
}

async fn bridge(home: &Home, file: &Path, era: Era) -> Piped {
    home.client(&format!("mcp --allow-write --token-file {}", file.display()), era).await
}

/// Who holds the lease of a new session of this client.
async fn holder_of_a_session(wire: &mut Wire) -> Value {
    let session = wire.start("exec cat").await;
    wire.acquire(&session).await;
    lease_of(wire, &session).await["by"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bridge_with_a_token_is_the_same_principal_over_a_restart_of_the_daemon() {
    for era in Era::BOTH {
        let home = Home::new();
        let file = made(&home, "");
        let mut one = bridge(&home, &file, era).await;
        assert_eq!(holder_of_a_session(&mut one.wire).await, "ci#t1");
        home.kill_daemon().await;
        assert_eq!(holder_of_a_session(&mut one.wire).await, "ci#t1");
        let mut other = bridge(&home, &file, era).await;
        assert_eq!(holder_of_a_session(&mut other.wire).await, "ci#t1");
        for piped in [one, other] {
            assert_eq!(piped.end().await.0.code(), Some(0));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bridge_whose_token_is_revoked_says_so_and_goes_on_with_another() {
    for era in Era::BOTH {
        let home = Home::new();
        let file = made(&home, "");
        let mut client = bridge(&home, &file, era).await;
        // Keeps the daemon, so that it is the same one all the time.
        let session = client.wire.start("exec cat").await;
        assert_eq!(home.outcome("token revoke ci").0, 0);
        let refused = async {
            loop {
                match client.wire.request("tools/list", json!({})).await {
                    // What was under way when the connection was closed.
                    Err(error) if error["data"]["error_code"] == "upstream_restarted" => {}
                    Err(error) => return error,
                    Ok(_) => {}
                }
            }
        };
        let error = soon("a refusal", refused).await;
        assert_eq!(
            (&error["code"], &error["data"]["error_code"]),
            (&json!(UPSTREAM), &json!("token_unknown"))
        );
        fs::remove_file(&file).unwrap();
        let error = client.wire.request("tools/list", json!({})).await.unwrap_err();
        assert_eq!(error["data"]["error_code"], "token_file", "{error}");
        made(&home, "");
        client.wire.acquire(&session).await;
        assert_eq!(lease_of(&mut client.wire, &session).await["by"], "ci#t2");
        assert_eq!(client.end().await.0.code(), Some(0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bridge_with_a_file_that_is_not_good_does_not_begin() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let file = made(&home, "--expires 1s");
    let has_expired = || home.outcome("token ls --json").1.contains("\"expired\":true");
    until("the token to expire", has_expired).await;
    let text = fs::read_to_string(&file).unwrap();
    let ends = |code: i32, word: &str| {
        let words = format!("mcp --json --token-file {}", file.display());
        let (found, told, _) = home.outcome(&words);
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!((found, told["error_code"].as_str()), (code, Some(word)), "{told}");
        assert!(!told.to_string().contains(text.trim()), "{told}");
    };
    ends(5, "token_expired");
    fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    ends(1, "token_file");
    fs::write(&file, "secret\n").unwrap();
    fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    ends(1, "token_file");
    fs::remove_file(&file).unwrap();
    ends(1, "token_file");
    fs::write(&file, text.replace("tgt_", "tgt_0").replacen(char::is_whitespace, "", 1)).unwrap();
    ends(1, "token_file");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_make_show_and_revoke_tokens_and_never_print_a_secret() {
    let home = Home::new();
    let directory = home.path("kept");
    let file = directory.join("tokens/ci.token");
    let out = file.to_str().unwrap();
    let new = format!("token new ci --out {out} --read-only --expires 30d --json");
    let (code, told, _) = home.outcome(&new);
    assert_eq!(code, 0, "{told}");
    let secret = secret(&file);
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&directory).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o700, "a directory that others can read");
    let told: Value = serde_json::from_str(&told).unwrap();
    let data = &told["data"];
    assert_eq!((&data["principal"], &data["scope"]), (&json!("ci#t1"), &json!("read_only")));
    assert_eq!((&data["file"], &data["expired"]), (&json!(file), &json!(false)));
    assert!(data["expires_at"].is_string() && data["created_at"].is_string(), "{data}");

    let refused = |line: &str, code: i32, word: &str| {
        let (found, told, _) = home.outcome(line);
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!((found, told["error_code"].as_str()), (code, Some(word)), "{told}");
        assert!(told["hint"].is_string(), "{told}");
    };
    refused(&new, 1, "token_exists");
    refused(&format!("token new other --out {out} --json"), 1, "token_file");
    refused("token revoke other --json", 3, "token_not_found");
    let elsewhere = directory.join("more");
    refused(&format!("token new ci --out {}/f --json", elsewhere.display()), 1, "token_exists");
    assert!(!elsewhere.exists(), "no directory is made for a token that is refused");
    refused(&format!("token new other --out {out}/x/y --json"), 1, "token_file");
    let (code, _, told) = home.outcome(&format!("token new other --out {out}2 --expires 0s"));
    assert_eq!(code, 2);
    assert!(told.contains("--expires: at least 1s"), "{told}");

    let (code, listed, _) = home.outcome("token ls");
    assert_eq!(code, 0);
    assert!(listed.contains("ci#t1") && listed.contains("read_only"), "{listed}");
    let (_, told, _) = home.outcome("token ls --json");
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["data"]["tokens"].as_array().unwrap().len(), 1);
    let store = fs::read_to_string(home.path("state/termgate/tokens.toml")).unwrap();
    for text in [listed, told.to_string(), data.to_string(), store] {
        assert!(!text.contains(&secret["tgt_".len()..]), "{text}");
    }
    assert_eq!(home.outcome("token revoke ci").0, 0);
    let (_, told, _) = home.outcome("token ls --json");
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["data"]["tokens"], json!([]));
    // The file with the secret is its owner's.
    assert!(file.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_in_no_log_no_environment_and_no_words_of_a_command() {
    let home = Home::new();
    let file = made(&home, "");
    let secret = secret(&file);
    let mut command = home.termgate("serve --allow-write -vv");
    // The library logs whole messages when it is told to.
    command.env("RUST_LOG", "trace,rmcp=trace");
    command.stdout(fs::File::create(home.path("out")).unwrap());
    let mut daemon = home.start(command);
    daemon.is_ready().await;
    for era in Era::BOTH {
        let mut client = bridge(&home, &file, era).await;
        // Shown again and too late, in both forms, and where it does not belong.
        let token = json!({"token": secret});
        client.wire.request("termgate/authenticate", token.clone()).await.unwrap_err();
        client.wire.sender.notify("termgate/authenticate", token.clone()).await;
        let created = json!({"command": "cat", "args": [], "lease": false});
        let created = client.wire.structured("create_session", created).await;
        let child = created["session"]["pid"].as_i64().unwrap();
        let bridge = client.child.id().unwrap();
        for pid in [child, bridge.into(), home.daemon().unwrap().into()] {
            for part in ["environ", "cmdline"] {
                let bytes = fs::read(format!("/proc/{pid}/{part}")).unwrap();
                let text = String::from_utf8_lossy(&bytes).into_owned();
                assert!(!text.contains(&secret["tgt_".len()..]), "{part} of {pid}: {text}");
            }
        }
        assert_eq!(client.end().await.0.code(), Some(0));
    }
    assert_eq!(home.outcome("stop").0, 0);
    let (_, log) = daemon.ends().await;
    assert!(log.contains("ci#t1"), "who came in is logged: {log}");
    assert!(!log.contains(&secret["tgt_".len()..]), "{log}");
}
