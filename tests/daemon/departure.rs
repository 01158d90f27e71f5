//! Calls that wait at a daemon which leaves its sessions to the next one: they are answered, and go on
//! there without anything missing; and those that come while no daemon lets anybody in.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::process::{Child, Command};

use crate::daemon::harness::{Era, Wire, error_code, structured};
use crate::daemon::upgrading::{Installed, Leaving};
use crate::harness::home::Home;
use crate::harness::processes::PROGRAM;
use crate::harness::waiting::soon;

const BOTH: [Leaving; 2] = [Leaving::ByUpgrade, Leaving::ForTheNext];

/// What waits for a file.
fn waiting_for(file: &Path) -> String {
    format!("until [ -e {} ]; do sleep 0.02; done", file.display())
}

/// Sends a call that waits; it does when this returns.
async fn send_waiting(client: &mut Wire, tool: &str, arguments: Value) -> u64 {
    let call = client.send_call(tool, arguments).await;
    // A connection's calls are taken up in order.
    client.structured("list_sessions", json!({})).await;
    call
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_is_answered_with_the_watermark_that_the_next_daemon_goes_on_from() {
    for leaving in BOTH {
        let installed = Installed::serving(&[]).await;
        let go = installed.home.path("go");
        let mut client = installed.client().await;
        let session = client.start(&format!("{}; echo la''ter; exec cat", waiting_for(&go))).await;
        let wanted = json!({"session": session, "text": "later"});
        let waiting = send_waiting(&mut client, "wait_for", wanted.clone()).await;
        let told = async {
            let told = structured(&client.answer(waiting).await);
            fs::write(&go, "").unwrap();
            told
        };
        let (told, installed) = tokio::join!(told, installed.leave(leaving));
        assert_eq!(told["outcome"], "daemon_left", "{told}");
        let mut wanted = wanted;
        wanted["since"] = told["watermark"].clone();
        let met = installed.client().await.wait_for(wanted).await;
        assert_eq!(met["text"], "later", "{met}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_runs_a_command_is_told_that_it_goes_on_and_finds_its_end() {
    for leaving in BOTH {
        let installed = Installed::serving(&[]).await;
        let go = installed.home.path("go");
        let mut client = installed.client().await;
        let bash = json!({"command": "bash", "args": ["-i"]});
        let created = client.structured("create_session", bash).await;
        let session = &created["session"]["id"];
        let line = format!("{}; echo done; (exit 5)", waiting_for(&go));
        let run = json!({"session": session, "command": line});
        let running = client.send_call("run", run).await;
        let mut other = installed.client().await;
        soon("its beginning", async {
            let known = json!({"session": session});
            while other.structured("read_commands", known.clone()).await["commands"] == json!([]) {}
        })
        .await;
        let (told, installed) = tokio::join!(client.answer(running), installed.leave(leaving));
        let told = structured(&told);
        assert_eq!(told["status"], "daemon_left", "{told}");
        assert_eq!(told["exit_code"], Value::Null, "{told}");
        fs::write(&go, "").unwrap();
        let since = &told["watermark"];
        let wanted = json!({"session": session, "command_done": true, "since": since});
        let done = installed.client().await.wait_for(wanted).await;
        let command = &done["command"];
        assert_eq!(
            (&command["command_id"], &command["exit_code"]),
            (&told["command_id"], &json!(5))
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_waits_is_answered_as_written() {
    let installed = Installed::serving(&[]).await;
    let mut client = installed.client().await;
    let session = client.start("exec cat").await;
    client.acquire(&session).await;
    let typing = json!({
        "session": session, "text": "typed", "enter": true,
        "until": {"text": "never there"}, "wait_ms": 60_000,
    });
    let waiting = client.send_call("send_text", typing).await;
    let echoed = json!({"session": session, "text": "typed", "since": 0});
    installed.client().await.wait_for(echoed).await;
    let (told, _installed) =
        tokio::join!(client.answer(waiting), installed.leave(Leaving::ByUpgrade));
    let told = structured(&told);
    assert_eq!((&told["written"], &told["wait"]["outcome"]), (&json!(6), &json!("daemon_left")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_behind_a_bridge_that_waits_is_answered_and_goes_on() {
    let installed = Installed::serving(&[]).await;
    let session = installed.client().await.start("exec cat").await;
    let mut piped = installed.home.client("mcp", Era::Legacy).await;
    let wanted = json!({"session": session, "text": "never there"});
    let waiting = send_waiting(&mut piped.wire, "wait_for", wanted).await;
    let (told, _installed) =
        tokio::join!(piped.wire.answer(waiting), installed.leave(Leaving::ByUpgrade));
    assert_eq!(structured(&told)["outcome"], "daemon_left", "{told}");
    let listed = piped.wire.structured("list_sessions", json!({})).await;
    assert_eq!(listed["sessions"][0]["id"], json!(session), "{listed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_who_waits_notices_nothing() {
    let installed = Installed::serving(&[]).await;
    let go = installed.home.path("go");
    let line = format!("{}; echo la''ter; exec cat", waiting_for(&go));
    let session = installed.client().await.start(&line).await;
    let words = ["wait", &session, "--pattern", "later", "--since", "0", "--timeout", "60s"];
    let wait = waiting_program(&installed, &words).await;
    let installed = installed.leave(Leaving::ByUpgrade).await;
    fs::write(&go, "").unwrap();
    let ended = soon("its end", wait.wait_with_output()).await.unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    drop(installed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_who_waits_for_several_sessions_is_told_that_the_next_daemon_is_not_asked() {
    let installed = Installed::serving(&[]).await;
    let mut client = installed.client().await;
    let sessions = [client.start("exec cat").await, client.start("exec cat").await];
    let words = ["wait", &sessions[0], &sessions[1], "--pattern", "never", "--timeout", "60s"];
    let wait = waiting_program(&installed, &words).await;
    let installed = installed.leave(Leaving::ByUpgrade).await;
    let ended = soon("its end", wait.wait_with_output()).await.unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(7), "{said}");
    assert!(said.contains("wait for each by itself with --since"), "{said}");
    drop(installed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_that_is_over_when_no_daemon_is_there_has_run_out_of_time() {
    let installed = Installed::serving(&[]).await;
    let session = installed.client().await.start("exec cat").await;
    let words = ["wait", &session, "--pattern", "never", "--since", "0", "--timeout", "3s"];
    let wait = hung_up_on(&installed, &[&words[..], &["--json"]].concat()).await;
    let ended = soon("its end", wait.wait_with_output()).await.unwrap();
    let told: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(ended.status.code(), Some(6), "{told}");
    assert_eq!(told["data"]["outcome"], "timeout", "{told}");
    assert!(told["data"]["elapsed_ms"].as_u64().unwrap() >= 3_000, "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_from_nowhere_whose_daemon_dies_says_how_to_go_on() {
    let installed = Installed::serving(&[]).await;
    let session = installed.client().await.start("exec cat").await;
    let words = ["wait", &session, "--pattern", "never", "--timeout", "60s"];
    let wait = hung_up_on(&installed, &words).await;
    let ended = soon("its end", wait.wait_with_output()).await.unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(7), "{said}");
    assert!(said.contains("run it again, with --since"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_is_begun_while_the_daemon_lets_nobody_in_looks_again_until_it_is_gone() {
    let home = Home::new();
    let paths = home.paths();
    fs::create_dir(paths.operator().parent().unwrap()).unwrap();
    let lock = fs::File::create(paths.lock()).unwrap();
    lock.lock().unwrap();
    // No process has the largest number of all.
    fs::write(paths.lock(), i32::MAX.to_string()).unwrap();
    let listener = UnixListener::bind(paths.operator()).unwrap();
    let mut listing = home.termgate("ls");
    listing.stdout(Stdio::piped()).stderr(Stdio::piped());
    let listing = Command::from(listing).spawn().unwrap();
    for _ in 0..3 {
        drop(soon("it", listener.accept()).await.unwrap());
    }
    fs::remove_file(paths.operator()).unwrap();
    drop((listener, lock));
    let ended = soon("its end", listing.wait_with_output()).await.unwrap();
    assert_eq!(ended.status.code(), Some(7), "{}", String::from_utf8_lossy(&ended.stderr));
}

/// Starts the program, whose output can be read once it has ended.
fn waited_for(installed: &Installed, words: &[&str]) -> Child {
    let mut command = installed.home.command(PROGRAM);
    command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
    Command::from(command).spawn().unwrap()
}

/// Starts the program with words that make it wait; it is connected when this returns.
async fn waiting_program(installed: &Installed, words: &[&str]) -> Child {
    let mut operator = Wire::connect(&installed.home.paths().operator(), Era::Legacy).await;
    let before = connections(&mut operator).await;
    let wait = waited_for(installed, words);
    soon("its connection", async { while connections(&mut operator).await == before {} }).await;
    wait
}

/// How many connections there were so far.
async fn connections(operator: &mut Wire) -> Value {
    let uri = json!({"uri": "termgate://daemon"});
    let read = operator.request("resources/read", uri).await.unwrap();
    let told: Value = serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
    told["connections"]["total"].clone()
}

/// Starts the program with words that make it wait, at a socket that goes once it waits, as when the
/// daemon behind it dies.
async fn hung_up_on(installed: &Installed, words: &[&str]) -> Child {
    let socket = installed.home.path("front.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let front = ["--socket", socket.to_str().unwrap()];
    let wait = waited_for(installed, &[&front, words].concat());
    let (asking, mut told) = soon("it", listener.accept()).await.unwrap().0.into_split();
    let daemon = UnixStream::connect(installed.home.paths().operator()).await.unwrap();
    let (mut telling, mut asked) = daemon.into_split();
    let mut asking = BufReader::new(asking).lines();
    let forward = async {
        while let Some(line) = asking.next_line().await.unwrap() {
            if line.contains("wait_for") {
                return;
            }
            asked.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        }
        panic!("it went");
    };
    tokio::select! {
        () = forward => {}
        _ = tokio::io::copy(&mut telling, &mut told) => panic!("the daemon went"),
    }
    fs::remove_file(socket).unwrap();
    wait
}

/// Asserts that a call was answered as one that can be made again, since nothing was done.
fn nothing_was_done(told: &Value) {
    assert_eq!(error_code(told), "upstream_unavailable", "{told}");
    assert!(told["structuredContent"]["retry_after_ms"].is_u64(), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_in_line_for_a_lease_is_told_and_has_its_turn_at_the_next_daemon() {
    for leaving in BOTH {
        let installed = Installed::serving(&[]).await;
        let mut holder = installed.client().await;
        let session = holder.start("exec cat").await;
        let lease = holder.acquire(&session).await;
        let mut client = installed.client().await;
        let asked = json!({"session": session, "wait_ms": 60_000});
        let waiting = send_waiting(&mut client, "acquire_lease", asked.clone()).await;
        let (told, installed) = tokio::join!(client.answer(waiting), installed.leave(leaving));
        nothing_was_done(&told);
        // The one who held it is still the first to have it.
        let mut holder = installed.client().await;
        let back = json!({"session": session, "lease_id": lease["lease_id"]});
        holder.structured("acquire_lease", back).await;
        let mut client = installed.client().await;
        let waiting = send_waiting(&mut client, "acquire_lease", asked).await;
        let back = json!({"lease_id": lease["lease_id"]});
        holder.structured("release_lease", back).await;
        let granted = structured(&client.answer(waiting).await);
        assert!(granted["lease_id"].is_string(), "{granted}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_for_the_prompt_is_told_that_its_command_was_not_sent() {
    for leaving in BOTH {
        let installed = Installed::serving(&[]).await;
        let go = installed.home.path("go");
        let mut client = installed.client().await;
        // A shell that reads its files is waited for.
        let waits = json!({
            "command": "bash", "args": ["-i"], "env": {"PROMPT_COMMAND": waiting_for(&go)},
        });
        let created = client.structured("create_session", waits).await;
        let session = created["session"]["id"].clone();
        let run = json!({"session": session, "command": "echo o''nce"});
        let waiting = send_waiting(&mut client, "run", run.clone()).await;
        let (told, installed) = tokio::join!(client.answer(waiting), installed.leave(leaving));
        nothing_was_done(&told);
        fs::write(&go, "").unwrap();
        let mut client = installed.client().await;
        let mut run = run;
        run["lease_id"] = created["lease"]["lease_id"].clone();
        let ran = client.structured("run", run).await;
        assert_eq!((&ran["output"], &ran["command_id"]), (&json!("once"), &json!(1)), "{ran}");
    }
}
