//! `run` where something comes between it and the daemon: an older daemon's refusal, or an approval just before a signal.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::commands::blocking::until;
use crate::commands::run::text;
use crate::commands::run_asked::{asked, careful_home};
use crate::commands::seat::start;
use crate::harness::home::Home;
use crate::harness::waiting::SAFETY;

/// A socket beside that of the daemon. `ask` may answer a message of the client in the daemon's place, and `tell` passes
/// on what the daemon says.
fn between(
    home: &Home,
    ask: impl Fn(&Value) -> Option<Value> + Send + Sync + 'static,
    tell: impl Fn(Value) -> Value + Send + Sync + 'static,
) -> PathBuf {
    let (socket, daemon) =
        (home.path("run/termgate/proxy.sock"), home.path("run/termgate/operator.sock"));
    let listener = UnixListener::bind(&socket).unwrap();
    let (ask, tell) = (Arc::new(ask), Arc::new(tell));
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(daemon) = UnixStream::connect(&daemon) else { return };
            let (mut to_client, mut to_daemon) =
                (client.try_clone().unwrap(), daemon.try_clone().unwrap());
            let mut answered = client.try_clone().unwrap();
            let (ask, tell) = (Arc::clone(&ask), Arc::clone(&tell));
            std::thread::spawn(move || {
                for line in BufReader::new(client).lines().map_while(Result::ok) {
                    match ask(&serde_json::from_str(&line).unwrap()) {
                        Some(answer) => pass(&mut answered, &answer.to_string()),
                        None => pass(&mut to_daemon, &line),
                    }
                }
                let _ = to_daemon.shutdown(Shutdown::Both);
            });
            std::thread::spawn(move || {
                for line in BufReader::new(daemon).lines().map_while(Result::ok) {
                    pass(&mut to_client, &tell(serde_json::from_str(&line).unwrap()).to_string());
                }
            });
        }
    });
    socket
}

/// Passes a line on; the other side may have gone.
fn pass(to: &mut UnixStream, line: &str) {
    let _ = to.write_all(format!("{line}\n").as_bytes());
}

fn approve(home: &Home) {
    let waiting = home.envelope("approve");
    let id = waiting["data"]["approvals"][0]["approval_id"].as_str().unwrap().to_owned();
    home.printed(&format!("approve {id}"));
}

/// Interrupts it, and returns its exit code and what it said since.
fn interrupted(mut child: Child, mut stderr: impl Read) -> (Option<i32>, String) {
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    (child.wait().unwrap().code(), said)
}

#[test]
fn a_daemon_from_before_one_command_runs_it_too() {
    let home = Home::new();
    let _daemon = home.daemon();
    let refuse = |message: &Value| {
        let error = json!({
            "error_code": "invalid_argument", "hint": "h",
            "message": "one_command: no such parameter; there are: name",
            "details": {"parameter": "one_command"},
        });
        let result = json!({"isError": true, "content": [], "structuredContent": error});
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        message["params"]["arguments"].get("one_command").is_some().then_some(answer)
    };
    let socket = between(&home, refuse, |message| message);
    let ended = home.run(&format!("--socket {} run -- echo ran", socket.display()));
    assert_eq!((ended.status.code(), text(&ended.stdout)), (Some(0), "ran\n"), "{ended:?}");
    assert_eq!(home.envelope("ls")["data"]["sessions"], json!([]));
}

#[test]
fn a_session_that_is_approved_just_before_a_signal_is_removed() {
    let home = careful_home();
    let _daemon = home.daemon();
    let (created, is_created) = mpsc::channel();
    let (looks, has_looked) = mpsc::channel();
    let (has_looked, is_held) = (Mutex::new(has_looked), AtomicBool::new(false));
    // What is created is told once `run` looks, by another connection, what became of its approval.
    let socket = between(
        &home,
        |_| None,
        move |message| {
            let is_it = message["result"]["structuredContent"]["session"]["name"].is_string();
            if is_it && !is_held.swap(true, Ordering::SeqCst) {
                created.send(()).unwrap();
                has_looked.lock().unwrap().recv_timeout(SAFETY).unwrap();
            } else if is_held.load(Ordering::SeqCst) {
                looks.send(()).unwrap();
            }
            message
        },
    );
    let line = format!("--socket {} run --env BASH_ENV=/nowhere -- touch ran", socket.display());
    let (child, stderr) = asked(home.termgate(&line));
    approve(&home);
    is_created.recv_timeout(SAFETY).unwrap();
    let expected = "interrupted while it waited for an approval; nothing ran\n";
    assert_eq!(interrupted(child, stderr), (Some(130), expected.to_owned()));
    assert_eq!(home.envelope("ls")["data"]["sessions"], json!([]));
    assert!(!home.path("home/ran").exists());
}

#[test]
fn a_command_that_is_approved_just_before_a_signal_may_have_run() {
    let home = careful_home();
    let _daemon = home.daemon();
    start(&home, "exec bash --norc");
    until("the prompt", || home.printed("read build").contains("bash-"));
    let removed = home.path("home/removed");
    std::fs::create_dir(&removed).unwrap();
    // The command is not listed yet.
    let socket = between(
        &home,
        |_| None,
        |mut message| {
            if let Some(text) = message.pointer_mut("/result/contents/0/text") {
                let listed =
                    text.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
                if let Some(mut listed) = listed.filter(|it| it.get("commands").is_some()) {
                    listed["commands"] = json!([]);
                    *text = listed.to_string().into();
                }
            }
            message
        },
    );
    let mut command = home.termgate(&format!("--socket {} run build", socket.display()));
    command.arg("rm -rf removed; sleep 1000");
    let (child, stderr) = asked(command);
    approve(&home);
    until("the command to run", || !removed.exists());
    let expected = "interrupted; it may have run: `termgate read build` shows it\n";
    assert_eq!(interrupted(child, stderr), (Some(130), expected.to_owned()));
}
