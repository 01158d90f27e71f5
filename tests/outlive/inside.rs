//! A program inside a session gains nothing when its daemon is another one than the one that started it.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use serde_json::json;
use tokio::process::Command;

use crate::harness::daemon::Daemon;
use crate::harness::processes::lives;
use crate::harness::waiting::until;
use crate::outlive::client::{Client, Started, listed, start};
use crate::outlive::home::{Home, number_in};
use crate::outlive::programs::recorder;

/// A program that tries to be an operator in every way, once it is told to.
struct Intruder {
    session: Started,
    directory: PathBuf,
}

/// What each attempt is called, and the words before a command that make it.
const WAYS: [(&str, &str); 3] = [("plain", ""), ("setsid", "setsid -w"), ("orphan", "orphan")];

impl Intruder {
    /// Starts it beside `victim`, a session that it tries to write to.
    async fn start(home: &Home, client: &mut Client, victim: &Started) -> Self {
        let directory = home.path("intruder");
        fs::create_dir(&directory).unwrap();
        let script = home.path("intruder.sh");
        fs::write(&script, Self::script(home, &directory, &victim.id)).unwrap();
        let session = start(client, &format!("exec sh {}", script.display())).await;
        Self { session, directory }
    }

    /// Every attempt writes what it was told, and then its exit code, into a file of its own.
    fn script(home: &Home, directory: &Path, victim: &str) -> String {
        let clean = home.clean_environment();
        let program = env!("CARGO_BIN_EXE_termgate");
        let door = home.runtime(&format!("s/{victim}.sock"));
        let (door, gateway) = (door.display(), home.gateway().path);
        let gateway = gateway.display();
        let mut script = format!(
            "cd {}; while [ ! -e go ]; do sleep 0.02; done\n\
             # Leaves its parent and its session behind, and is waited for by its last file.\n\
             orphan() {{ (setsid \"$@\" &); }}\n",
            directory.display()
        );
        for (way, words) in WAYS {
            let mut attempt = |name: &str, command: &str| {
                let told = format!("{way}.{name}");
                script.push_str(&format!(
                    "{words} env -i {clean} sh -c '{program} {command} > {told}.told 2>&1; \
                     echo $? > {told}.part; mv {told}.part {told}.code'\n"
                ));
            };
            attempt("ls", "ls");
            attempt("send", &format!("send {victim} intruded"));
            attempt("switch", "allow-write on");
            attempt("door", &format!("--socket {door} ls"));
            attempt("gateway", &format!("--socket {gateway} ls"));
        }
        script.push_str("exec sleep 1000\n");
        script
    }

    /// Tells it to begin, and waits until every attempt has its answer.
    async fn tries(&self) -> Vec<Attempt> {
        fs::write(self.directory.join("go"), "").unwrap();
        let names = ["ls", "send", "switch", "door", "gateway"];
        let mut attempts = Vec::new();
        for (way, _) in WAYS {
            for name in names {
                let told = self.directory.join(format!("{way}.{name}"));
                let code = told.with_extension(format!("{name}.code"));
                until(&format!("{way} {name} to end"), || code.exists()).await;
                let read = |path: PathBuf| fs::read_to_string(path).unwrap();
                attempts.push(Attempt {
                    name,
                    code: read(code).trim().to_owned(),
                    told: read(told.with_extension(format!("{name}.told"))),
                });
            }
        }
        attempts
    }
}

/// What came of one attempt.
struct Attempt {
    name: &'static str,
    code: String,
    told: String,
}

/// Lets a program inside a session try everything after its daemon was replaced by `replace`.
async fn gains_nothing_after(replace: impl AsyncFnOnce(&Home, Daemon) -> Daemon) {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let log = home.path("read");
    let victim = start(&mut client, &recorder(&log)).await;
    let said = json!({"session": victim.id, "text": "recording", "since": 0});
    client.must("wait_for", said).await;
    let intruder = Intruder::start(&home, &mut client, &victim).await;

    let daemon = replace(&home, daemon).await;
    let mut client = home.client().await;
    assert_eq!(listed(&mut client, &intruder.session.id).await["pid"], intruder.session.pid);
    for Attempt { name, code, told } in intruder.tries().await {
        // At the doors of agents it is answered, and finds nothing there.
        assert!(!told.contains(&victim.id) || name == "send", "{name}: {told}");
        let may_succeed = ["door", "gateway"].contains(&name);
        assert!(code != "0" || may_succeed, "{name} succeeded: {told}");
    }
    // Whoever lives outside is as free as ever, so it was the place that was refused.
    home.printed("ls");
    home.printed(&format!("send {} outside", victim.id));
    until("the victim to read", || !fs::read(&log).unwrap().is_empty()).await;
    assert!(!fs::read_to_string(&log).unwrap().contains("intruded"));
    daemon.kill().await;
}

#[tokio::test]
async fn a_program_inside_gains_nothing_when_the_daemon_was_killed() {
    gains_nothing_after(async |home, daemon| {
        daemon.kill().await;
        home.serve().await
    })
    .await;
}

#[tokio::test]
async fn a_program_inside_gains_nothing_when_the_daemon_has_left() {
    gains_nothing_after(async |home, daemon| {
        daemon.signal(Signal::SIGUSR1);
        daemon.ends().await;
        home.serve().await
    })
    .await;
}

#[tokio::test]
async fn a_program_inside_gains_nothing_when_the_daemon_was_upgraded() {
    gains_nothing_after(async |home, daemon| {
        home.printed("upgrade");
        daemon
    })
    .await;
}

/// How many clients the daemon says are connected.
fn connected(home: &Home) -> u64 {
    let told = home.envelope("ls --daemon");
    told["data"]["connections"]["open"].as_u64().unwrap_or_else(|| panic!("{told}"))
}

#[tokio::test]
async fn programs_inside_a_session_keep_nobody_out() {
    /// As few as can be set, and more than that inside.
    const MOST: usize = 16;
    const INSIDE: usize = 24;
    let home = Home::new();
    home.configure(&format!("connections.max = {MOST}\n"));
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let (program, gateway) = (env!("CARGO_BIN_EXE_termgate"), home.gateway().path);
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let script = format!(
        "for one in $(seq {INSIDE}); do (printf '%s\\n' '{hello}'; exec sleep 1000) | env -i {} \
         {program} --socket {} mcp --no-spawn >/dev/null 2>&1 & done; exec sleep 1000",
        home.clean_environment(),
        gateway.display()
    );
    start(&mut client, &script).await;
    // With those who ask: this client and the command itself.
    until("those inside to come", || connected(&home) >= 8 + 2).await;
    let mut outside = Vec::new();
    while outside.len() < MOST - 1 {
        outside.push(Client::connect(&gateway).await.expect("there is room outside"));
    }
    assert!(connected(&home) <= 8 + 2 + outside.len() as u64, "more than 8 are inside");
    home.printed("stop");
    daemon.ends().await;
}

/// As many processes as are asked for, each of which connects and hangs up in a loop; the first says so once it
/// is at it.
const STORMER: &str = "
import os, socket, sys
path, ready, processes = sys.argv[1:]
made = 0
for _ in range(int(processes) - 1):
    if os.fork() == 0:
        made = -10 ** 9
        break
while True:
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    client.close()
    made += 1
    if made == 100:
        open(ready, 'w').close()
";

#[tokio::test]
async fn a_storm_at_the_operators_door_keeps_no_operator_out() {
    /// More than the doors once remembered.
    const PROCESSES: usize = 400;
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let (script, door) = (home.path("stormer.py"), home.runtime("operator.sock"));
    fs::write(&script, STORMER).unwrap();
    let [inside, outside] = ["inside", "outside"].map(|name| home.path(name));
    let words = |ready: &Path| [&*script, &*door, ready].map(|word| word.display().to_string());
    let line = format!("exec /usr/bin/python3 {} {PROCESSES}", words(&inside).join(" "));
    start(&mut client, &line).await;
    let mut storming = Command::new("/usr/bin/python3");
    let mut storming = storming.args(words(&outside)).arg("1").kill_on_drop(true).spawn().unwrap();
    until("both storms to rage", || inside.exists() && outside.exists()).await;
    for _ in 0..3 {
        home.printed("ls");
    }
    assert_eq!(storming.try_wait().unwrap(), None, "it still rages");
    home.printed("stop");
    daemon.ends().await;
}

/// Chains of processes, each of which leaves its session, starts the next one and ends. They end by themselves after
/// a while; the first process waits beside them and says when they run.
const CHAINS: &str = "
import os, sys, time
ready, chains = sys.argv[1], int(sys.argv[2])
deadline = time.time() + 30
for _ in range(chains):
    if os.fork() == 0:
        break
else:
    open(ready, 'w').close()
    time.sleep(30)
while time.time() < deadline:
    if os.fork():
        os._exit(0)
    os.setsid()
";

#[tokio::test]
async fn processes_that_start_the_next_one_and_end_are_all_killed_with_their_session() {
    const MANY: usize = 40;
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let (script, ready) = (home.path("chains.py"), home.path("ready"));
    fs::write(&script, CHAINS).unwrap();
    let (path, file) = (script.display(), ready.display());
    start(&mut client, &format!("exec /usr/bin/python3 {path} {file} {MANY}")).await;
    until("all chains to run", || ready.exists()).await;
    home.printed("stop");
    daemon.ends().await;
    let name = script.display().to_string();
    assert_eq!(home.running(&name), [0; 0]);
}

#[tokio::test]
async fn a_program_inside_a_session_does_not_make_the_log_grow_at_its_will() {
    /// Each asks again for a second.
    const ATTEMPTS: usize = 2;
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let (program, done) = (env!("CARGO_BIN_EXE_termgate"), home.path("done"));
    let script = format!(
        "for one in $(seq {ATTEMPTS}); do env -i {} {program} ls >/dev/null 2>&1; done; \
         : > {}; exec sleep 1000",
        home.clean_environment(),
        done.display()
    );
    start(&mut client, &script).await;
    until("all attempts to be made", || done.exists()).await;
    home.printed("stop");
    let (_, log) = daemon.ends().await;
    let said = log.lines().filter(|line| line.contains("the operator socket"));
    let (about, said): (Vec<&str>, Vec<&str>) = said.partition(|line| line.contains("left out"));
    // That it begins, and at the end how much it was.
    assert_eq!((said.len(), about.len()), (10, 2), "{log}");
    assert!(about.iter().any(|line| line.contains("more like this were left out")), "{log}");
}

/// A program that leaves its session, waits for a file `go`, kills the process that held it and then asks to be
/// an operator. With `lowers` it does what it can about the mark that it carries.
async fn leaver(home: &Home, client: &mut Client, name: &str, lowers: bool) -> (Started, u64) {
    let (program, clean) = (env!("CARGO_BIN_EXE_termgate"), home.clean_environment());
    let told = home.path(name);
    let told = told.display();
    let lower = if lowers { "ulimit -x 5" } else { ":" };
    let script = home.path(&format!("{name}.sh"));
    let text = format!(
        "echo $$ > {told}.pid; {lower}\n\
         while [ ! -e {told}.go ]; do sleep 0.02; done\n\
         kill -9 $(cat {told}.go)\n\
         while [ ! -e {told}.come ]; do sleep 0.02; done\n\
         {program} allow-write off > {told}.told 2>&1; echo $? > {told}.code\n"
    );
    fs::write(&script, text).unwrap();
    let line = format!("(env -i {clean} setsid bash {} &); exec sleep 1000", script.display());
    let session = start(client, &line).await;
    let pid = number_in(&home.path(&format!("{name}.pid"))).await;
    (session, pid)
}

/// Has a leaver kill the process that holds its session.
async fn kills_its_shim(home: &Home, name: &str, session: &Started) {
    let shim = home.shim(&session.id);
    let go = home.path(&format!("{name}.go"));
    fs::write(go.with_extension("part"), format!("{shim}\n")).unwrap();
    fs::rename(go.with_extension("part"), go).unwrap();
    until("its shim to be gone", || !lives(shim)).await;
}

/// Has a leaver ask to be an operator, in vain.
async fn is_no_operator(home: &Home, name: &str) {
    fs::write(home.path(&format!("{name}.come")), "").unwrap();
    let code = number_in(&home.path(&format!("{name}.code"))).await;
    let told = fs::read_to_string(home.path(&format!("{name}.told"))).unwrap();
    assert_ne!(code, 0, "it is an operator: {told}");
}

#[tokio::test]
async fn a_program_that_killed_its_shim_ends_with_its_session_or_still_lives_inside_one() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let (stays, stays_pid) = leaver(&home, &mut client, "stays", false).await;
    let (lowers, lowers_pid) = leaver(&home, &mut client, "lowers", true).await;
    daemon.kill().await;
    for (name, session) in [("stays", &stays), ("lowers", &lowers)] {
        kills_its_shim(&home, name, session).await;
    }
    let daemon = home.serve().await;
    let ended = || !lives(i32::try_from(stays_pid).unwrap());
    until("what carries the mark to end", ended).await;
    assert!(lives(i32::try_from(lowers_pid).unwrap()), "it tells of no session any more");
    is_no_operator(&home, "lowers").await;
    // The same words from outside are obeyed.
    home.printed("allow-write off");
    daemon.kill().await;
}

#[tokio::test]
async fn a_program_gains_nothing_by_the_limit_of_the_shell_that_the_next_daemon_is_started_from() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let (lowers, _) = leaver(&home, &mut client, "lowers", true).await;
    daemon.kill().await;
    kills_its_shim(&home, "lowers", &lowers).await;
    // As low as its own: any process of the user can have set it, by `prlimit`.
    let daemon = home.serve_with_limit("-x 5").await;
    is_no_operator(&home, "lowers").await;
    // Who asks from outside is told what is wrong with that daemon.
    let refused = home.run("ls");
    let told = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(7), "{told}");
    assert!(told.contains("ulimit -Hx"), "{told}");
    daemon.kill().await;
}
