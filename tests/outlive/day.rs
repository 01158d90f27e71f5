//! A day of work: agents and people at many sessions, a daemon that is killed three times, a disk that is full once.
//!
//! In the evening the journal explains every byte that programs read, what was on screens is found,
//! recordings end with the screens as they are, and the secrets of the day are nowhere.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::daemon::Daemon;
use crate::harness::dice::Dice;
use crate::harness::disk::Disk;
use crate::harness::waiting::{SAFETY, soon, until};
use crate::outlive::client::{Client, start};
use crate::outlive::day::agent::{Act, Agent};
use crate::outlive::day::journal::InputRecords;
use crate::outlive::day::person::Person;
use crate::outlive::home::Home;
use crate::outlive::programs::{Printer, painter, recorder};
use crate::outlive::writer::line;

mod agent;
mod journal;
mod person;

/// Room for what a day leaves, in KiB.
const ROOM: u64 = 64 * 1024;
const SETTINGS: &str = "[recording]\nalways = true\n";

const WRITERS: usize = 4;
const SHELLS: usize = 2;
/// How much each of them does between two mishaps.
const WORK: u64 = 12;
/// Somewhere after that, the mishap comes.
const MOMENT: std::time::Duration = std::time::Duration::from_millis(200);
/// A word of all secrets, and one of what may be kept.
const SECRET: &str = "xyzzy-plugh";
const SHOWN: &str = "flamingo";

struct Day<'a> {
    home: &'a Home,
    daemon: Daemon,
    dice: Dice,
    sessions: Vec<String>,
    /// Sessions whose programs write down what they read, and where.
    readers: Vec<(String, PathBuf)>,
    agents: Vec<Agent>,
    people: Vec<Person>,
}

impl<'a> Day<'a> {
    async fn begin(home: &'a Home) -> Self {
        let daemon = home.serve().await;
        let mut day = Self {
            home,
            daemon,
            dice: Dice::told("OUTLIVE_SEED"),
            sessions: Vec::new(),
            readers: Vec::new(),
            agents: Vec::new(),
            people: Vec::new(),
        };
        day.start_sessions().await;
        let (gateway, operator) = (home.gateway(), home.runtime("operator.sock"));
        for session in &day.sessions[..WRITERS] {
            day.agents.push(Agent::start(gateway.clone(), session, write));
        }
        for session in &day.sessions[WRITERS..WRITERS + SHELLS] {
            day.agents.push(Agent::start(gateway.clone(), session, run));
        }
        // One types where an agent writes, the other answers a program that asks for secrets.
        let shared = Person::start(operator.clone(), &day.sessions[WRITERS - 1], |number| {
            format!("(person {number})\r")
        });
        let asked = Person::start(operator, &day.sessions[WRITERS + SHELLS], |number| {
            format!("{SECRET}-{number}\r")
        });
        day.people.extend([shared, asked]);
        day
    }

    async fn start_sessions(&mut self) {
        let home = self.home;
        let mut client = home.client().await;
        for number in 0..WRITERS {
            let log = home.path(&format!("read{number}"));
            let session = start(&mut client, &recorder(&log)).await.id;
            shows(&mut client, &session, "recording").await;
            self.readers.push((session.clone(), log));
            self.sessions.push(session);
        }
        let secrets = home.path("secrets");
        let asks = format!(
            "stty -echo; n=0; while printf 'Password %s: ' $n; read -r secret; do \
                 echo \"$secret\" >> {}; echo; n=$((n+1)); done",
            secrets.display()
        );
        let ends = format!("echo {SHOWN}-that-ends; exit 3");
        let printer = Printer::new(home, "printed", 4).line();
        let painted = painter(&home.path("stop"));
        for line in ["exec bash --norc", "exec bash --norc", &asks, &printer, &painted, &ends] {
            self.sessions.push(start(&mut client, line).await.id);
        }
        shows(&mut client, &self.sessions[WRITERS + SHELLS], "Password 0: ").await;
        assert_eq!(self.sessions.len(), 10);
    }

    /// Has everybody work for a while.
    async fn work(&mut self) {
        let agents: Vec<_> = self.agents.iter().map(|agent| agent.done() + WORK).collect();
        let people: Vec<_> = self.people.iter().map(|person| person.done() + WORK).collect();
        until("everybody to have worked", || {
            let mut agents = self.agents.iter().zip(&agents);
            let mut people = self.people.iter().zip(&people);
            agents.all(|(agent, goal)| agent.done() >= *goal)
                && people.all(|(person, goal)| person.done() >= *goal)
        })
        .await;
        tokio::time::sleep(self.dice.moment(MOMENT)).await;
    }

    /// Kills the daemon, and starts the next one.
    async fn kill(self) -> Self {
        self.daemon.kill().await;
        let daemon = self.home.serve().await;
        Self { daemon, ..self }
    }

    /// Keeps the disk full until everybody was refused for it.
    async fn fill(&self, disk: &Disk) {
        let filling = disk.fill();
        until("everybody to be refused", || {
            self.agents.iter().all(|agent| agent.refusals() > 0)
                && self.people.iter().all(|person| person.refusals() > 0)
        })
        .await;
        filling.abort();
        assert!(filling.await.unwrap_err().is_cancelled());
        fs::remove_file(disk.filling()).unwrap();
    }

    async fn end_work(&mut self) -> Vec<u64> {
        let mut done = Vec::new();
        for agent in self.agents.drain(..) {
            done.push(agent.end().await);
        }
        for person in self.people.drain(..) {
            person.end().await;
        }
        fs::write(self.home.path("stop"), "").unwrap();
        done
    }

    /// What programs read is what was recorded before, byte by byte.
    async fn settle_input(&self) {
        let records = InputRecords::read(self.home);
        for (session, log) in &self.readers {
            let explained = || records.explain(session, &fs::read(log).unwrap());
            // The program may not have written down the last yet.
            let mut found = explained();
            let explaining = async {
                while found.is_err() {
                    tokio::time::sleep(crate::harness::waiting::LOOK).await;
                    found = explained();
                }
            };
            let _ = tokio::time::timeout(SAFETY / 6, explaining).await;
            found.unwrap_or_else(|why| panic!("{session}: {why}"));
        }
        let secrets = &self.sessions[WRITERS + SHELLS];
        assert!(records.count(secrets, "secret") > 0, "no record of a secret");
        assert_eq!(records.count(secrets, "text"), 0, "a secret has a text");
    }

    /// What was on screens is found, also of the session that is gone.
    async fn settle_search(&self, client: &mut Client, done: &[u64]) {
        let ended = &self.sessions[9];
        finds(client, &format!("{SHOWN}-that-ends"), ended).await;
        for (shell, done) in done[WRITERS..].iter().enumerate() {
            for number in 0..*done {
                let session = &self.sessions[WRITERS + shell];
                finds(client, &told(session, number), session).await;
            }
        }
    }

    async fn settle_recordings(&self, client: &mut Client) {
        for session in &self.sessions[..9] {
            let exported = || self.home.printed(&format!("record export {session}"));
            let mut shown = String::new();
            let comparing = async {
                loop {
                    let screen = client.must("read_screen", json!({"session": session})).await;
                    shown = screen["text"].as_str().unwrap().trim_end().to_owned();
                    if exported().trim_end().ends_with(&shown) {
                        return;
                    }
                }
            };
            let compared = tokio::time::timeout(SAFETY, comparing).await;
            assert!(compared.is_ok(), "{shown:?} of {session} is recorded as {:?}", exported());
        }
    }
}

/// A line for a program that reads lines.
fn write(session: &str, number: u64) -> Act {
    ("send_text", json!({"text": line(session, number)}))
}

/// A command whose output is not in its text.
fn run(session: &str, number: u64) -> Act {
    let (name, rest) = session.split_at(4);
    ("run", json!({"command": format!("printf '{SHOWN}-%s%s-{number}\\n' {name} {rest}")}))
}

/// What [`run`] shows.
fn told(session: &str, number: u64) -> String {
    format!("{SHOWN}-{session}-{number}")
}

async fn shows(client: &mut Client, session: &str, text: &str) {
    client.must("wait_for", json!({"session": session, "text": text, "since": 0})).await;
}

/// Waits until a line is found in a session.
async fn finds(client: &mut Client, line: &str, session: &str) {
    let asked = json!({"query": line, "session": session});
    let searching = async {
        loop {
            let Ok(found) = client.call("search", asked.clone()).await.unwrap() else { continue };
            let hits = found["hits"].as_array().unwrap();
            if hits.iter().any(|hit| hit["snippet"] == line) {
                return;
            }
        }
    };
    soon(&format!("{line} to be found in {session}"), searching).await;
}

/// How often a text stands in the files below a directory.
fn count_in_files(directory: &Path, text: &str) -> usize {
    let mut count = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            count += count_in_files(&path, text);
        } else {
            let bytes = fs::read(&path).unwrap_or_default();
            count += bytes.windows(text.len()).filter(|it| *it == text.as_bytes()).count();
        }
    }
    count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_day_of_work_is_in_the_record_and_its_secrets_are_not() {
    let ground = tempfile::Builder::new().prefix("tgd").tempdir().unwrap();
    let Some(disk) = Disk::mount(ground.path(), ROOM).await else {
        eprintln!("not tested: nobody may mount anything here");
        return;
    };
    let home = Home::new();
    let [.., (_, state), _, _, _] = home.environment();
    let state = Path::new(&state).join("termgate");
    DirBuilder::new().mode(0o700).create(&state).unwrap();
    // SQLite does not follow the path through another process by which this disk is reached.
    for place in ["journal", "recordings"] {
        let on_disk = disk.path.join(place);
        DirBuilder::new().mode(0o700).create(&on_disk).unwrap();
        std::os::unix::fs::symlink(on_disk, state.join(place)).unwrap();
    }
    home.configure(SETTINGS);
    let mut day = Day::begin(&home).await;
    day.work().await;
    day = day.kill().await;
    day.work().await;
    day.fill(&disk).await;
    day.work().await;
    day = day.kill().await;
    day.work().await;
    day = day.kill().await;
    day.work().await;
    let done = day.end_work().await;
    let verified = home.printed("journal verify");
    assert!(verified.contains("all hashes match"), "{verified}");
    day.settle_input().await;
    let mut client = home.client().await;
    day.settle_search(&mut client, &done).await;
    day.settle_recordings(&mut client).await;
    let typed = fs::read_to_string(home.path("secrets")).unwrap();
    assert!(typed.lines().count() > 3 && typed.lines().all(|it| it.starts_with(SECRET)), "{typed}");
    let hits = client.must("search", json!({"query": SECRET})).await;
    assert_eq!(hits["hits"], Value::Array(Vec::new()));
    home.printed("stop");
    assert_eq!(day.daemon.ends().await.0, Some(0));
    for place in ["journal", "index", "recordings"] {
        let place = state.join(place);
        assert_eq!(count_in_files(&place, SECRET), 0, "{}", place.display());
        assert!(count_in_files(&place, SHOWN) > 0, "{}", place.display());
    }
    for daemon in 0..4 {
        let log = fs::read_to_string(home.path(&format!("daemon{daemon}.log"))).unwrap();
        assert!(!log.contains(SECRET), "{log}");
    }
}
