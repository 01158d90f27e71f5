//! What becomes of a session whose shim is killed, and of programs that will not end.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tokio::time::timeout;

use crate::harness::processes::lives;
use crate::harness::waiting::{LOOK, SAFETY, until, within};
use crate::outlive::client::{listed, start};
use crate::outlive::home::{Home, number_in};
use crate::outlive::storm::text_of;

/// How soon nothing is left of what was ended.
const CLEARED: Duration = Duration::from_secs(3);

/// What lies where the terminal of a session is held.
fn beside(home: &Home, session: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.runtime("h")).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.to_str().unwrap().contains(session)).collect()
}

fn kill_now(pid: i32) {
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
}

/// A shell line that starts a process in a session of its own, whose parent is gone, and ignores
/// requests as that one does; it writes its number into `file`.
fn escaping(file: &std::path::Path) -> String {
    let file = file.display();
    format!(
        "trap '' HUP TERM; (setsid sh -c 'echo $$ > {file}; exec sleep 1001' &); \
         echo last words; while :; do sleep 1000; done"
    )
}

#[tokio::test]
async fn a_session_whose_shim_is_killed_has_ended_and_can_still_be_read() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let session = start(&mut client, &escaping(&home.path("escaped"))).await;
    let escaped = i32::try_from(number_in(&home.path("escaped")).await).unwrap();
    let said = json!({"session": session.id, "text": "last words", "since": 0});
    client.must("wait_for", said).await;
    kill_now(home.shim(&session.id));
    let ends = json!({"session": session.id, "exit": true});
    assert_eq!(client.must("wait_for", ends).await["outcome"], "exited");
    let nothing = || home.sessions_processes().is_empty() && !lives(session.pid) && !lives(escaped);
    within(CLEARED, "its processes to end", nothing).await;
    let there = listed(&mut client, &session.id).await;
    assert_eq!(
        (&there["state"], &there["exit"]),
        (&json!("exited"), &json!({"cause": "shim_lost"}))
    );
    let screen = client.must("read_screen", json!({"session": session.id})).await;
    assert!(text_of(&screen).contains("last words"));
    assert_eq!(screen["exit"], json!({"cause": "shim_lost"}));
    let asked = json!({"session": session.id});
    let refused = client.call("acquire_lease", asked).await.unwrap().unwrap_err();
    assert_eq!(refused["error_code"], "session_exited");
    daemon.kill().await;
}

#[tokio::test]
async fn a_program_that_denies_its_session_ends_with_it_though_its_shim_was_killed() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let escaped = home.path("escaped");
    // The limit is what marks it as of this session, and a shim is called so.
    let line = format!(
        "(setsid bash -c 'trap \"\" HUP TERM; ulimit -x 1; printf termgate-shim >/proc/$$/comm; \
         echo $$ > {}; while :; do sleep 1001; done' &); exec sleep 1000",
        escaped.display()
    );
    let session = start(&mut client, &line).await;
    let escaped = i32::try_from(number_in(&escaped).await).unwrap();
    let other = start(&mut client, "exec sleep 1000").await;
    kill_now(home.shim(&session.id));
    within(CLEARED, "it to end", || !lives(escaped)).await;
    assert!(lives(other.pid), "a session whose shim lives goes on");
    daemon.kill().await;
}

#[tokio::test]
async fn what_a_shim_left_that_was_killed_while_no_daemon_was_there_is_cleared_away() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let escapes = escaping(&home.path("escaped"));
    let lost = start(&mut client, &escapes).await;
    let escaped = i32::try_from(number_in(&home.path("escaped")).await).unwrap();
    let kept = start(&mut client, "echo ready; exec sleep 1000").await;
    let shim = home.shim(&lost.id);
    daemon.kill().await;
    kill_now(shim);
    assert!(lives(lost.pid) && lives(escaped), "they ignore that their terminal went away");
    assert!(!beside(&home, &lost.id).is_empty(), "nobody removed it yet");
    let daemon = timeout(Duration::from_secs(10), home.serve()).await.expect("it does not hang");
    let nothing = || beside(&home, &lost.id).is_empty() && !lives(lost.pid) && !lives(escaped);
    within(CLEARED, "what it left to end", nothing).await;
    let mut client = home.client().await;
    let all = client.must("list_sessions", json!({"state": "running"})).await;
    let running: Vec<_> =
        all["sessions"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
    assert_eq!(running, [json!(kept.id)]);
    assert!(lives(kept.pid));
    daemon.kill().await;
}

#[tokio::test]
async fn a_session_whose_shim_was_killed_while_no_daemon_was_there_is_told_by_its_name() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let made = json!({"command": "sh", "args": ["-c", "exec sleep 1000"], "tags": ["ci"],
                      "cwd": home.ground(), "name": "first"});
    let created = client.must("create_session", made).await;
    let id = created["session"]["id"].as_str().unwrap();
    let lease = &created["lease"]["lease_id"];
    let resized = json!({"session": id, "rows": 31, "cols": 97, "lease_id": lease});
    client.must("resize", resized).await;
    let renamed = json!({"session": id, "action": "rename", "new_name": "build"});
    client.must("manage_session", renamed).await;
    let before = listed(&mut client, id).await;
    let shim = home.shim(id);
    daemon.kill().await;
    kill_now(shim);

    // Whoever looks for it is told what became of it, as long as this daemon runs.
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let there = listed(&mut client, "build").await;
    for member in ["id", "name", "command", "cwd", "tags", "rows", "cols"] {
        assert_eq!(there[member], before[member], "{member} of {there}");
    }
    assert_eq!(
        (&there["name"], &there["state"], &there["exit"]),
        (&json!("build"), &json!("exited"), &json!({"cause": "shim_lost"}))
    );
    daemon.kill().await;
}

#[tokio::test]
async fn what_its_screen_showed_is_told_with_when_that_was() {
    // Screens are kept where files are in memory.
    let memory = tempfile::Builder::new().prefix("tgo").tempdir_in("/dev/shm").unwrap();
    let home = Home::with_root(|_| memory.path().join("user"));
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let lines = "seq 1 100; echo last words; exec sleep 1000";
    let session = start(&mut client, lines).await;
    let said = json!({"session": session.id, "text": "last words", "since": 0});
    client.must("wait_for", said).await;
    let before = client.must("read_screen", json!({"session": session.id})).await;
    let kept = home.runtime(&format!("h/{}.screen", session.id));
    let shows = |text: &str| {
        let screen = fs::read(&kept).unwrap_or_default();
        screen.windows(text.len()).any(|part| part == text.as_bytes())
    };
    until("the screen to be kept once it is still", || shows("last words")).await;
    let shim = home.shim(&session.id);
    daemon.kill().await;
    kill_now(shim);

    let daemon = home.serve().await;
    let mut client = home.client().await;
    let ends = json!({"session": session.id, "exit": true});
    client.must("wait_for", ends).await;
    let screen = client.must("read_screen", json!({"session": session.id})).await;
    for member in ["text", "base_row", "cols", "rows", "cursor"] {
        assert_eq!(screen[member], before[member], "{member} of {screen}");
    }
    assert_eq!(screen["exit"], json!({"cause": "shim_lost"}));
    let [lost] = screen["lost_output"].as_array().unwrap().as_slice() else { panic!("{screen}") };
    assert_eq!(lost["row"], before["cursor"]["row"]);
    assert!(lost["since"].as_str().unwrap().ends_with('Z') && lost["bytes"].is_null(), "{lost}");
    let history = json!({"session": session.id, "start_row": 0});
    let history = client.must("read_history", history).await;
    assert_eq!(history["dropped_rows"], before["base_row"], "rows above are gone");
    within(CLEARED, "what was kept to be removed", || beside(&home, &session.id).is_empty()).await;
    daemon.kill().await;
}

#[tokio::test]
async fn a_session_whose_shim_was_killed_is_told_as_it_was_last_seen_by_the_next_daemon() {
    let memory = tempfile::Builder::new().prefix("tgo").tempdir_in("/dev/shm").unwrap();
    let home = Home::with_root(|_| memory.path().join("user"));
    let daemon = home.serve().await;
    let mut client = home.client().await;
    // It is never still, so that nothing has kept its screen since it began.
    let lines = "echo last words; while :; do printf .; sleep 0.2; done";
    let session = start(&mut client, lines).await;
    let said = json!({"session": session.id, "text": "last words", "since": 0});
    client.must("wait_for", said).await;
    kill_now(home.shim(&session.id));
    let ends = json!({"session": session.id, "exit": true});
    client.must("wait_for", ends).await;
    let before = client.must("read_screen", json!({"session": session.id})).await;
    assert!(text_of(&before).contains("last words"), "{before}");
    daemon.kill().await;

    let daemon = home.serve().await;
    let mut client = home.client().await;
    let screen = client.must("read_screen", json!({"session": session.id})).await;
    assert_eq!(screen["text"], before["text"], "{screen}");
    assert_eq!(screen["exit"], json!({"cause": "shim_lost"}));
    daemon.kill().await;
}

#[tokio::test]
async fn nothing_beside_a_socket_outlives_its_session_or_tells_what_marks_carry() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let shell = json!({"command": "bash", "args": [], "lease": false});
    let marked = client.must("create_session", shell).await["session"]["id"].clone();
    let marked = marked.as_str().unwrap();
    let ends = start(&mut client, "exec sleep 1000").await;
    let said = fs::read_to_string(home.runtime(&format!("h/{marked}.session"))).unwrap();
    assert!(said.contains(marked) && !said.contains("nonce"), "{said}");
    // One whose shim ended by itself, which removes no more than its socket.
    let stale = home.runtime("h/0123456789ab.session");
    fs::copy(home.runtime(&format!("h/{}.session", ends.id)), &stale).unwrap();
    for _ in 0..2 {
        // It ends first, and then is forgotten.
        let kill = json!({"session": ends.id, "action": "kill"});
        client.must("manage_session", kill).await;
    }
    within(CLEARED, "it to be forgotten", || beside(&home, &ends.id).is_empty()).await;
    assert!(stale.exists());
    daemon.kill().await;
    let daemon = home.serve().await;
    assert!(!stale.exists());
    assert_eq!(listed(&mut home.client().await, marked).await["state"], "running");
    daemon.kill().await;
}

#[tokio::test]
async fn nothing_is_left_of_a_program_that_ignores_requests_and_left_the_session() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let session = start(&mut client, &escaping(&home.path("escaped"))).await;
    let escaped = i32::try_from(number_in(&home.path("escaped")).await).unwrap();
    // Also for a daemon that did not start it.
    daemon.kill().await;
    let daemon = home.serve().await;
    assert!(lives(escaped) && lives(session.pid));
    home.printed(&format!("kill {}", session.id));
    let programs = || {
        let holds = |line: &String| line.contains(" shim ");
        home.sessions_processes().into_iter().filter(|line| !holds(line)).count()
    };
    let nothing = || programs() == 0 && !lives(session.pid) && !lives(escaped);
    within(CLEARED, "its processes to end", nothing).await;
    daemon.kill().await;
}

#[tokio::test]
async fn a_shim_whose_socket_was_removed_is_found_by_the_next_daemon_as_any_other() {
    let home = Home::new();
    let daemon = home.serve().await;
    let session = start(&mut home.client().await, "exec sleep 1000").await;
    let socket = home.runtime(&format!("h/{}.sock", session.id));
    fs::remove_file(&socket).unwrap();
    daemon.kill().await;
    until("the shim to listen again", || socket.exists()).await;
    let daemon = home.serve().await;
    let there = listed(&mut home.client().await, &session.id).await;
    assert_eq!((&there["state"], &there["pid"]), (&json!("running"), &json!(session.pid)));
    daemon.kill().await;
}

#[tokio::test]
async fn a_shim_whose_directory_is_gone_ends_with_its_program() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let go = home.path("go");
    let waits = format!("while [ ! -e {} ]; do sleep 0.02; done", go.display());
    let session = start(&mut client, &waits).await;
    let shim = home.shim(&session.id);
    daemon.kill().await;
    fs::remove_dir_all(home.runtime("")).unwrap();
    assert!(lives(shim) && lives(session.pid), "its program runs, and a daemon may come");
    fs::write(&go, "").unwrap();
    until("the shim to end", || !lives(shim)).await;
}

#[tokio::test]
async fn a_session_whose_directory_was_removed_is_found_again_once_a_daemon_makes_it_anew() {
    let home = Home::new();
    let daemon = home.serve().await;
    let session = start(&mut home.client().await, "exec sleep 1000").await;
    fs::remove_dir_all(home.runtime("")).unwrap();
    daemon.kill().await;
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let socket = home.runtime(&format!("h/{}.sock", session.id));
    // Nobody else knows what it is called.
    until("the shim to listen again", || socket.exists()).await;
    let asked = json!({"session": session.id, "exit": true, "timeout_ms": 1});
    let found = async {
        while client.call("wait_for", asked.clone()).await.unwrap().is_err() {
            tokio::time::sleep(LOOK).await;
        }
    };
    timeout(SAFETY, found).await.expect("it is found");
    assert_eq!(listed(&mut client, &session.id).await["pid"], session.pid);
    daemon.kill().await;
}
