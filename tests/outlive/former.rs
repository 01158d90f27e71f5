//! A daemon that stood still while another took its place changes nothing any more, however much is
//! asked of it, while the other one is busy.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::daemon::Daemon;
use crate::harness::line_client::Answer;
use crate::harness::processes::{is_stopped, lives};
use crate::harness::waiting::{SAFETY, until};
use crate::outlive::client::{Client, Gone, Started, listed, start};
use crate::outlive::home::Home;
use crate::outlive::observer::Observer;
use crate::outlive::programs::recorder;
use crate::outlive::writer::{Writer, line};

const ROUNDS: usize = 20;

/// What clients of the former daemon type.
const FORMER: &str = "former.";
/// What the client of the new one types, and what is shown of it.
const LATTER: &str = "latter.";

/// A session that the former daemon started, and what its program has read.
struct Victim {
    session: Started,
    lease: Value,
}

impl Victim {
    /// Starts it, and takes its lease.
    async fn start(home: &Home, client: &mut Client) -> Self {
        let log = Self::log(home);
        // It shows what it reads.
        let shows =
            format!("stty raw -echo; : > {0}; printf recording; exec tee {0}", log.display());
        let session = start(client, &shows).await;
        let said = json!({"session": session.id, "text": "recording", "since": 0});
        client.must("wait_for", said).await;
        let asked = json!({"session": session.id, "ttl_ms": 120_000});
        let lease = client.must("acquire_lease", asked).await["lease_id"].clone();
        Self { session, lease }
    }

    fn log(home: &Home) -> std::path::PathBuf {
        home.path("victim")
    }

    /// All that changes a session, as calls; each may be the first that is heard.
    fn attacks(&self, round: usize) -> Vec<(&'static str, Value)> {
        let id = &self.session.id;
        let manage = |action: &str| json!({"session": id, "action": action});
        let mut renamed = manage("rename");
        renamed["new_name"] = json!(format!("former-{round}"));
        let signal = |name: &str| {
            let mut signal = manage("signal");
            signal["signal"] = json!(name);
            signal
        };
        let write = json!({"session": id, "text": FORMER, "lease_id": self.lease});
        let resize = json!({"session": id, "rows": 5, "cols": 20, "lease_id": self.lease});
        let run = json!({"session": id, "command": FORMER, "lease_id": self.lease,
                         "timeout_ms": 100});
        let lease = json!({"session": id, "lease_id": self.lease});
        let mut attacks = vec![
            ("send_text", write.clone()),
            ("resize", resize.clone()),
            ("manage_session", signal("KILL")),
            ("manage_session", manage("clear_history")),
            ("manage_session", renamed),
            ("run", run),
            ("acquire_lease", lease),
            ("send_text", write),
            ("resize", resize),
            ("manage_session", signal("STOP")),
            ("manage_session", manage("kill")),
            // What has ended is forgotten by this.
            ("manage_session", manage("kill")),
        ];
        let count = attacks.len();
        attacks.rotate_left(round % count);
        attacks
    }
}

/// Every file that the new daemon answers for and that changes only when it says so.
fn files(home: &Home, session: &str) -> BTreeMap<String, (u64, Vec<u8>)> {
    let of_session = ["h/ID.session", "h/ID.screen", "h/ID.sock", "s/ID.sock", "s/ID.ro.sock"];
    let of_daemon = ["gateway.sock", "gateway.ro.sock", "operator.sock", "daemon.lock"];
    let names = of_session.iter().chain(&of_daemon).chain(&["switches.json"]);
    let found = names.map(|name| {
        let path = home.runtime(&name.replace("ID", session));
        let there = path.symlink_metadata();
        let there = there.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let text = if there.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        ((*name).to_owned(), (there.ino(), text))
    });
    found.collect()
}

fn shows(path: &Path, text: &str) -> bool {
    let kept = fs::read(path).unwrap_or_default();
    kept.windows(text.len()).any(|part| part == text.as_bytes())
}

/// Somebody who writes at the new daemon, and somebody who watches, in a session of its own.
struct Load {
    session: Started,
    writer: Writer,
    observer: Observer,
    log: std::path::PathBuf,
}

impl Load {
    async fn start(home: &Home, client: &mut Client, session: Started) -> Self {
        let said = json!({"session": session.id, "text": "recording", "since": 0});
        client.must("wait_for", said).await;
        let writer = Writer::start(home.gateway(), session.id.clone()).await;
        let observer = Observer::start(home.gateway(), session.id.clone(), |_, _| {});
        Self { session, writer, observer, log: home.path("busy") }
    }

    /// Ends both; everything arrived once, and nothing else.
    async fn settle(self, client: &mut Client) {
        assert!(self.writer.is_at_work());
        self.observer.agrees(client, SAFETY).await;
        self.observer.end().await;
        let count = self.writer.end().await;
        assert!(count > 0, "nothing was written");
        let lines = (0..count).map(|number| line(&self.session.id, number).replace('\n', "\r"));
        let expected: String = lines.collect();
        let whole = || fs::read(&self.log).unwrap().len() >= expected.len();
        until("the program to read all", whole).await;
        assert!(fs::read_to_string(&self.log).unwrap() == expected, "not what was written");
    }
}

/// Has a daemon stand still, and puts a new one in its place.
async fn replace(home: &Home, old: &Daemon) -> Daemon {
    assert!(home.set_aside(old).await);
    home.serve().await
}

/// Makes the session known by the new daemon another one than the old daemon knows.
async fn take_over(home: &Home, latter: &mut Client, victim: &Victim, round: usize) {
    let id = &victim.session.id;
    let lease = json!({"session": id, "lease_id": victim.lease, "ttl_ms": 120_000});
    latter.must("acquire_lease", lease).await;
    let renamed = json!({"session": id, "action": "rename", "new_name": format!("latter-{round}")});
    latter.must("manage_session", renamed).await;
    let resize = json!({"session": id, "rows": 30, "cols": 100, "lease_id": victim.lease});
    latter.must("resize", resize).await;
    let write = json!({"session": id, "text": LATTER, "lease_id": victim.lease});
    latter.must("send_text", write).await;
    home.printed("allow-write on");
    let screen = home.runtime(&format!("h/{id}.screen"));
    until("the new daemon to keep the screen", || shows(&screen, LATTER)).await;
    // Longer than it takes until what was still is kept for good.
    latter.must("wait_for", json!({"session": id, "idle_ms": 1_500})).await;
}

/// Asks everything of the old daemon: what waited for it to go on, and then all of it again.
async fn attack(old: &Daemon, victim: &Victim, round: usize, former: (&mut Client, &mut Client)) {
    let (former, operator) = former;
    let mut asked = Vec::new();
    for (tool, arguments) in victim.attacks(round) {
        asked.push(former.send_call(tool, arguments).await.unwrap());
    }
    let switched = operator.send_call("set_write", json!({"state": "off"})).await.unwrap();
    old.signal(Signal::SIGCONT);
    for id in asked {
        drop(former.answer(id).await);
    }
    drop(operator.answer(switched).await);
    for (tool, arguments) in victim.attacks(round + 1) {
        drop(ask(former, tool, arguments).await);
    }
    drop(ask(operator, "set_write", json!({"state": "on"})).await);
}

/// Waits for whatever is answered; that it is hung up on is as good.
async fn ask(client: &mut Client, tool: &str, arguments: Value) -> Result<Answer, Gone> {
    let id = client.send_call(tool, arguments).await?;
    client.answer(id).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_is_asked_of_a_former_daemon_changes_a_session_or_a_file_of_the_new_one() {
    // Screens are kept where files are in memory.
    let memory = tempfile::Builder::new().prefix("tgo").tempdir_in("/dev/shm").unwrap();
    let home = Home::with_root(|_| memory.path().join("user"));
    let mut old = home.serve().await;
    for round in 0..ROUNDS {
        let (mut former, mut operator) = (home.client().await, operator_of(&home).await);
        let victim = Victim::start(&home, &mut former).await;
        let busy = start(&mut former, &recorder(&home.path("busy"))).await;
        let new = replace(&home, &old).await;
        let mut latter = home.client().await;
        take_over(&home, &mut latter, &victim, round).await;
        let load = Load::start(&home, &mut latter, busy).await;
        let id = &victim.session.id;
        let before = (files(&home, id), listed(&mut latter, id).await);

        attack(&old, &victim, round, (&mut former, &mut operator)).await;
        // Also when it ends, with its sessions or without.
        old.signal(if round % 2 == 0 { Signal::SIGTERM } else { Signal::SIGUSR1 });
        old.ends().await;
        assert_eq!(files(&home, id), before.0, "round {round}");
        let after = listed(&mut latter, id).await;
        for member in ["pid", "state", "name", "rows", "cols", "watermark"] {
            assert_eq!(after[member], before.1[member], "{member} in round {round}: {after}");
        }
        assert!(lives(victim.session.pid) && !is_stopped(victim.session.pid), "round {round}");
        let last = json!({"session": id, "text": "last.", "lease_id": victim.lease});
        latter.must("send_text", last).await;
        let read = || fs::read_to_string(Victim::log(&home)).unwrap();
        until("the program to read it", || read().ends_with("last.")).await;
        assert_eq!(read(), format!("{LATTER}last."), "round {round}");
        let busy = load.session.clone();
        load.settle(&mut latter).await;
        end_all(&mut operator_of(&home).await, &[&victim.session, &busy]).await;
        old = new;
    }
    old.kill().await;
}

async fn operator_of(home: &Home) -> Client {
    Client::connect(&home.runtime("operator.sock")).await.expect("it lets people in")
}

async fn end_all(client: &mut Client, sessions: &[&Started]) {
    for session in sessions {
        for _ in 0..2 {
            // It ends first, and then is forgotten.
            let kill = json!({"session": session.id, "action": "kill"});
            client.must("manage_session", kill).await;
        }
    }
}
