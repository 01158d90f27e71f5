//! What a sandboxed program cannot do, with the real daemon, shims and bubblewrap; and what it still can.
//!
//! Each attempt is made without a sandbox as well, where it succeeds, so that a test that tries nothing fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::unistd::Uid;
use serde_json::{Value, json};

use crate::harness::daemon::Daemon;
use crate::harness::processes::{dies, lives, named};
use crate::harness::waiting::until;
use crate::outlive::client::{Client, listed};
use crate::outlive::home::Home;

/// Tries all in a list, and says of each whether it succeeded.
const ATTEMPTS: &str = r#"
import ctypes, json, os, socket, sys
asked = json.load(open(sys.argv[1]))
libc = ctypes.CDLL(None, use_errno=True)

def connects(path):
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        try:
            socket.socket(socket.AF_UNIX, kind).connect(path)
            return True
        except OSError:
            pass
    return False

def lists(path):
    return len(os.listdir(path)) > 0

def reads(path):
    return len(open(path, "rb").read(1)) > 0

def writes(path):
    open(path, "a").close()
    return True

def renames(path):
    os.rename(path, path + ".away")
    os.rename(path + ".away", path)
    return True

def signals(pid):
    os.kill(pid, 0)
    return True

def limits(pid):
    import resource
    resource.prlimit(pid, resource.RLIMIT_CORE)
    return True

class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]

def peeks(pid):
    at = next(line for line in open(f"/proc/{pid}/maps") if "r-xp" in line)
    room = ctypes.create_string_buffer(8)
    ours = Piece(ctypes.addressof(room), 8)
    theirs = Piece(int(at.split("-")[0], 16), 8)
    return libc.process_vm_readv(pid, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0) == 8

def opens_memory(pid):
    open(f"/proc/{pid}/mem", "rb").close()
    return True

def traces(pid):
    PTRACE_SEIZE, PTRACE_DETACH = 0x4206, 17
    done = libc.ptrace(PTRACE_SEIZE, pid, None, None) == 0
    return done

def tries(name, on):
    try:
        return globals()[name](on)
    except OSError:
        return False

def all_of_them(file):
    told = {f"{name} {on}": tries(name, on) for name, on in asked}
    with open(file + ".part", "w") as out:
        json.dump(told, out)
    os.rename(file + ".part", file)

all_of_them(sys.argv[2] + ".plain")
# Leaves its session and its parents behind.
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        all_of_them(sys.argv[2] + ".apart")
    os._exit(0)
os.wait()
"#;

/// Whether this machine can make sandboxes; `tests/run` names what is missing.
fn can_sandbox() -> bool {
    let words = ["--unshare-user", "--unshare-pid", "--bind", "/", "/", "--proc", "/proc", "true"];
    let tried = Command::new("bwrap").args(words).stderr(Stdio::null()).status();
    let works = tried.is_ok_and(|status| status.success());
    if !works {
        eprintln!("bubblewrap makes no sandbox here, so none was tried");
    }
    works
}

/// A home with a daemon whose only configuration is its own, so that no directory of the machine is made.
struct Ground {
    home: Home,
    daemon: Daemon,
}

impl Ground {
    async fn new(configuration: &str) -> Self {
        let home = Home::new();
        fs::create_dir(home.path("cfg")).unwrap();
        fs::write(home.path("cfg/termgate.toml"), configuration).unwrap();
        let daemon = Self::serve(&home).await;
        Self { home, daemon }
    }

    async fn serve(home: &Home) -> Daemon {
        let file = home.path("cfg/termgate.toml");
        let mut daemon = home.spawn(&format!("--config {}", file.display()));
        daemon.is_ready().await;
        daemon
    }

    async fn create(&self, client: &mut Client, sandbox: bool, more: Value) -> String {
        let mut asked = json!({"sandbox": sandbox, "cwd": self.home.path("home"), "lease": false});
        for (name, value) in more.as_object().unwrap() {
            asked[name] = value.clone();
        }
        let created = client.must("create_session", asked).await;
        created["session"]["id"].as_str().unwrap().to_owned()
    }

    /// Has a session try all, from its program and from one that has left it.
    async fn attempts(&self, client: &mut Client, sandbox: bool, asked: &Value) -> [Value; 2] {
        let name = if sandbox { "inside" } else { "outside" };
        let (script, list) = (self.home.path("attempts.py"), self.home.path("asked"));
        fs::write(&script, ATTEMPTS).unwrap();
        fs::write(&list, asked.to_string()).unwrap();
        let told = self.home.path(&format!("home/{name}"));
        let args = [&script, &list, &told].map(|path| path.display().to_string());
        self.create(client, sandbox, json!({"command": "python3", "args": args})).await;
        let mut found = Vec::new();
        for way in ["plain", "apart"] {
            let file = told.with_extension(way);
            until(&format!("{name}.{way}"), || file.exists()).await;
            found.push(serde_json::from_slice(&fs::read(file).unwrap()).unwrap());
        }
        found.try_into().unwrap()
    }
}

/// A process outside of every session.
struct Bystander(Child);

impl Bystander {
    fn start() -> Self {
        Self(Command::new("sleep").arg("1000").spawn().unwrap())
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn paths(name: &str, all: &[PathBuf]) -> Vec<Value> {
    all.iter().map(|path| json!([name, path.display().to_string()])).collect()
}

#[tokio::test]
async fn a_sandboxed_program_reaches_nothing_of_the_daemon_and_no_process_outside() {
    if !can_sandbox() {
        return;
    }
    let ground = Ground::new("").await;
    let home = &ground.home;
    let mut client = home.client().await;
    let victim = ground.create(&mut client, false, json!({"command": "sleep 1000"})).await;
    let leader = listed(&mut client, &victim).await["pid"].as_i64().unwrap();
    let bystander = Bystander::start();
    let state =
        home.environment().iter().find(|(name, _)| *name == "XDG_STATE_HOME").unwrap().1.clone();
    let state = Path::new(&state).join("termgate");
    let sockets =
        ["gateway.sock", "gateway.ro.sock", "operator.sock"].map(|name| home.runtime(name));
    let own =
        [format!("s/{victim}.sock"), format!("h/{victim}.sock")].map(|name| home.runtime(&name));
    let cfg = home.path("cfg");
    fs::write(home.path("cfg/policy.toml"), "").unwrap();
    let others = [leader, i64::from(bystander.0.id())];
    let theirs = |name: &str| others.map(|pid| json!([name, pid]));
    // The daemon and its shims are hidden from each other program as well, but can be signalled.
    let daemon = i64::from(ground.daemon.pid());
    let shim = i64::from(home.shim(&victim));
    let asked: Vec<Value> = [
        paths("connects", &sockets[..]),
        paths("connects", &own[..1]),
        paths(
            "lists",
            &[home.runtime("s"), home.runtime("h"), state.clone(), state.join("journal")],
        ),
        paths("writes", &[state.join("x"), cfg.join("termgate.toml")]),
        paths("writes", &[cfg.join("policy.toml"), cfg.join("other")]),
        paths("renames", &[cfg.clone(), state.clone(), state.parent().unwrap().to_owned()]),
        theirs("peeks").to_vec(),
        theirs("opens_memory").to_vec(),
        theirs("limits").to_vec(),
        theirs("signals").to_vec(),
        vec![json!(["signals", daemon]), json!(["signals", shim]), json!(["limits", daemon])],
        theirs("traces").to_vec(),
    ]
    .concat();

    let inside = ground.attempts(&mut client, true, &json!(asked)).await;
    for told in &inside {
        let done: Vec<_> =
            told.as_object().unwrap().iter().filter(|(_, did)| **did == true).collect();
        assert!(done.is_empty(), "{done:?}");
        assert_eq!(told.as_object().unwrap().len(), asked.len());
    }
    // The same succeeds outside, where the machine lets users trace their processes.
    let [outside, _] = ground.attempts(&mut client, false, &json!(asked)).await;
    let may_fail = |name: &str| {
        let traces = ["peeks", "opens_memory", "traces"].iter().any(|it| name.starts_with(it));
        traces && !Uid::effective().is_root()
    };
    let failed = outside.as_object().unwrap().iter().filter(|(_, did)| **did == false);
    let failed: Vec<_> = failed.filter(|(name, _)| !may_fail(name)).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert!(lives(i32::try_from(leader).unwrap()));
    // Nothing was left of what the sandbox tried, and nothing was made where it was not seen.
    assert_eq!(fs::read_to_string(cfg.join("termgate.toml")).unwrap(), "");
    drop(bystander);
    ground.daemon.kill().await;
}

#[tokio::test]
async fn commands_jobs_and_codes_are_in_a_sandbox_as_they_are_outside_also_at_the_next_daemon() {
    if !can_sandbox() {
        return;
    }
    let Ground { home, daemon } = Ground::new("").await;
    let ground = Ground { home, daemon };
    let mut client = ground.home.client().await;
    let shell = json!({"command": "bash", "args": ["-i"], "env": {"HISTFILE": ""}});
    let session = ground.create(&mut client, true, shell).await;
    runs_everything(&mut client, &session).await;
    let before = listed(&mut client, &session).await;
    assert_eq!(before["activity"]["evidence"], "osc133", "{before}");
    assert_eq!(before["activity"]["foreground"]["program"], "bash", "{before}");
    // Asks for input, as the kernel says, and gets it from the next daemon.
    let asks =
        json!({"session": session, "command": "read answer; (exit $answer)", "timeout_ms": 20_000});
    let asked = held(&mut client, "run", asks).await;
    assert_eq!(asked["status"], "needs_input", "{asked}");
    ground.daemon.kill().await;

    let daemon = Ground::serve(&ground.home).await;
    let mut client = ground.home.client().await;
    let after = listed(&mut client, &session).await;
    assert_eq!(after["pid"], before["pid"], "{after}");
    let answer = json!({
        "session": session, "text": "9", "enter": true, "until": {"command_done": true},
        "wait_ms": 20_000,
    });
    let answered = held(&mut client, "send_text", answer).await;
    assert_eq!(answered["wait"]["command"]["exit_code"], 9, "{answered}");
    runs_everything(&mut client, &session).await;
    daemon.kill().await;
}

/// Calls a tool under a lease of its own.
async fn held(client: &mut Client, tool: &str, mut arguments: Value) -> Value {
    let lease = client.must("acquire_lease", json!({"session": arguments["session"]})).await;
    arguments["lease_id"] = lease["lease_id"].clone();
    let told = client.must(tool, arguments).await;
    client.must("release_lease", json!({"lease_id": lease["lease_id"]})).await;
    told
}

/// Commands with their codes, jobs that are stopped and resumed, a size, and a command that comes in a file.
async fn runs_everything(client: &mut Client, session: &str) {
    let resized = json!({"session": session, "rows": 33, "cols": 101});
    held(client, "resize", resized).await;
    let long = "a".repeat(5_000);
    let filed = format!("printf %s {long} | wc -c");
    for (command, code, output) in [
        ("(exit 7)", 7, ""),
        ("bash -c 'kill -9 $$' 2>/dev/null", 137, ""),
        ("bash -c 'kill -STOP $$; exit 5' 2>/dev/null", 147, ""),
        ("fg >/dev/null", 5, ""),
        ("sleep 1000 & kill %1; wait %1 2>/dev/null", 143, ""),
        ("stty size", 0, "33 101"),
        (&filed, 0, "5000"),
    ] {
        let run = json!({"session": session, "command": command, "timeout_ms": 20_000});
        let ran = held(client, "run", run).await;
        assert_eq!(ran["exit_code"], code, "{command}: {ran}");
        assert!(ran["output"].as_str().unwrap().contains(output), "{command}: {ran}");
    }
}

#[tokio::test]
async fn how_a_sandboxed_program_ends_is_told_and_nothing_of_its_session_is_left() {
    if !can_sandbox() {
        return;
    }
    let ground = Ground::new("").await;
    let mut client = ground.home.client().await;
    for (line, exit) in [
        ("exit 3", json!({"code": 3})),
        ("kill -9 $$", json!({"signal": 9})),
        ("kill -TERM $$", json!({"signal": 15})),
    ] {
        let session = ground.create(&mut client, true, json!({"command": line})).await;
        client
            .must("wait_for", json!({"session": session, "exit": true, "timeout_ms": 20_000}))
            .await;
        assert_eq!(listed(&mut client, &session).await["exit"], exit, "{line}");
    }
    ground.daemon.kill().await;
}

#[tokio::test]
async fn nothing_is_left_of_a_sandboxed_session_that_is_killed() {
    if !can_sandbox() {
        return;
    }
    let ground = Ground::new("[sessions]\nkeep_ended_ms = 0\n").await;
    let mut client = ground.home.client().await;
    // A program that outlives its leader, ignores what it is sent, and has left its session.
    let word = format!("{}1", std::process::id());
    let script = format!("trap '' HUP TERM; (setsid sleep {word} &); exec sleep {word}");
    let session = ground.create(&mut client, true, json!({"command": script})).await;
    let sleepers = || named(&[word.as_bytes()]);
    until("both to run", || sleepers().len() >= 2).await;
    let shim = ground.home.shim(&session);
    client.must("manage_session", json!({"session": session, "action": "kill"})).await;
    until("none to be left", || sleepers().is_empty()).await;
    dies(shim).await;
    let scratch = ground.home.runtime(&format!("shell/{session}"));
    until("its directory to be removed", || !scratch.exists()).await;
    ground.daemon.kill().await;
}

#[tokio::test]
async fn a_program_that_cannot_start_in_its_sandbox_leaves_nothing() {
    if !can_sandbox() {
        return;
    }
    let ground = Ground::new("").await;
    let mut client = ground.home.client().await;
    let cwd = ground.home.runtime("shell");
    let asked = json!({"sandbox": true, "command": "true", "args": [], "cwd": cwd.join("zsh")});
    client.must("create_session", asked).await;
    // The directory of the locks is there outside alone.
    let asked =
        json!({"sandbox": true, "command": "true", "args": [], "cwd": ground.home.runtime("h")});
    let refused = client.call("create_session", asked).await.unwrap();
    assert!(format!("{refused:?}").contains("invalid_argument"), "{refused:?}");
    let insides = || ground.home.running("inside").len();
    until("nothing to be left", || insides() <= 1).await;
    ground.daemon.kill().await;
}

#[tokio::test]
async fn where_the_configuration_says_so_each_session_is_sandboxed_whatever_is_asked_for() {
    if !can_sandbox() {
        return;
    }
    let ground = Ground::new("sessions.sandbox = true\n").await;
    let mut client = ground.home.client().await;
    let line = "test $(cat /proc/1/comm) = termgate-inside";
    for sandbox in [true, false] {
        let session = ground.create(&mut client, sandbox, json!({"command": line})).await;
        client
            .must("wait_for", json!({"session": session, "exit": true, "timeout_ms": 20_000}))
            .await;
        assert_eq!(listed(&mut client, &session).await["exit"], json!({"code": 0}));
    }
    let session = ground.home.printed("new --sandbox");
    assert_eq!(listed(&mut client, session.trim()).await["state"], "running");
    ground.daemon.kill().await;
}

/// Asks a daemon which sessions it lists, and keeps the answer in a file.
const ASKS: &str = r#"
import json, os, socket, sys
door = socket.socket(socket.AF_UNIX)
door.connect(sys.argv[1])
lines = door.makefile("rw")
def says(**message):
    lines.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    lines.flush()
about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
says(id=1, method="initialize", params=about)
lines.readline()
says(method="notifications/initialized")
says(id=2, method="tools/call", params={"name": "list_sessions", "arguments": {}})
told = next(line for line in lines if json.loads(line).get("id") == 2)
with open(sys.argv[2] + ".part", "w") as out:
    out.write(told)
os.rename(sys.argv[2] + ".part", sys.argv[2])
"#;

#[tokio::test]
async fn a_sandboxed_program_that_reaches_a_socket_elsewhere_is_inside_its_session() {
    if !can_sandbox() {
        return;
    }
    let home = Home::new();
    fs::create_dir(home.path("cfg")).unwrap();
    let (door, script) = (home.path("home/gateway.sock"), home.path("asks.py"));
    fs::write(&script, ASKS).unwrap();
    let file = home.path("cfg/termgate.toml");
    fs::write(&file, "").unwrap();
    let mut daemon =
        home.spawn(&format!("--config {} --socket {}", file.display(), door.display()));
    daemon.is_ready().await;
    let mut client = Client::find(&door).await;
    let ground = Ground { home, daemon };
    let mut told = Vec::new();
    for sandbox in [true, false] {
        let file = ground.home.path(&format!("home/told{sandbox}"));
        let args = [&script, &door, &file].map(|path| path.display().to_string());
        ground.create(&mut client, sandbox, json!({"command": "python3", "args": args})).await;
        until("an answer", || file.exists()).await;
        told.push(fs::read_to_string(file).unwrap());
    }
    // As every program in a session, it sees none.
    let listed = |told: &String| {
        let answer: Value = serde_json::from_str(told).unwrap();
        answer["result"]["structuredContent"]["sessions"].as_array().map(Vec::len)
    };
    assert_eq!(told.iter().map(listed).collect::<Vec<_>>(), [Some(0), Some(0)], "{told:?}");
    ground.daemon.kill().await;
}
