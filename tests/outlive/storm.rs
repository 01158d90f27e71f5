//! Daemons that give way to one another while everything is used, and what must be true then.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::harness::daemon::Daemon;
use crate::harness::dice::Dice;
use crate::harness::processes::lives;
use crate::harness::waiting::{LOOK, SAFETY, soon, until, within};
use crate::outlive::aside::SetAside;
use crate::outlive::client::{Client, Started, start};
use crate::outlive::descriptors::{Kinds, are_no_more, open_in};
use crate::outlive::home::Home;
use crate::outlive::journal::JournalInputs;
use crate::outlive::observer::Observer;
use crate::outlive::programs::{Asker, Printer, painter, recorder};
use crate::outlive::writer::{Writer, line};

/// A daemon that serves gives way before this.
const SERVES: Duration = Duration::from_millis(300);
/// A daemon that may not serve yet gives way before this.
const STARTS: Duration = Duration::from_millis(150);
/// How soon observers know all again.
const AGREES: Duration = Duration::from_secs(1);
/// How soon nothing is left of what was ended.
const CLEARED: Duration = Duration::from_secs(3);

const WRITERS: usize = 4;

/// How a daemon gives way to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GivesWay {
    Killed,
    /// It stands still until the next one serves, goes on at any moment after that, and then ends.
    StandingStill,
}

/// Everything that goes on while daemons give way.
#[derive(Debug)]
pub(crate) struct Storm<'a> {
    home: &'a Home,
    dice: Dice,
    lines: Arc<Vec<String>>,
    sessions: Vec<Started>,
    watermarks: BTreeMap<String, u64>,
    writers: Vec<(Writer, PathBuf)>,
    printers: Vec<(Printer, String)>,
    asker: Asker,
    observers: Vec<Observer>,
    /// Daemons that stand still.
    aside: Vec<SetAside>,
    /// Daemons that went on after that, and how much they answered until they ended.
    former: JoinSet<usize>,
    /// What each process had open when nobody was connected, the daemon's under 0.
    open: BTreeMap<i32, Kinds>,
}

impl<'a> Storm<'a> {
    /// Starts the sessions and those who use them, and a daemon for all.
    pub(crate) async fn begin(home: &'a Home) -> (Self, Daemon) {
        let mut storm = Self {
            home,
            dice: Dice::told("OUTLIVE_SEED"),
            lines: Arc::new(Printer::lines()),
            sessions: Vec::new(),
            watermarks: BTreeMap::new(),
            writers: Vec::new(),
            printers: Vec::new(),
            asker: Asker::new(home),
            observers: Vec::new(),
            aside: Vec::new(),
            former: JoinSet::new(),
            open: BTreeMap::new(),
        };
        let daemon = home.serve().await;
        storm.start_sessions().await;
        // How much is open is counted for a daemon that found its sessions.
        daemon.kill().await;
        let daemon = home.serve().await;
        storm.count_open(&daemon);
        storm.start_clients().await;
        (storm, daemon)
    }

    async fn start_sessions(&mut self) {
        let mut client = self.home.client().await;
        for number in 0..WRITERS {
            let log = self.home.path(&format!("read{number}"));
            let session = start(&mut client, &recorder(&log)).await;
            let said = json!({"session": session.id, "text": "recording", "since": 0});
            client.must("wait_for", said).await;
            self.sessions.push(session);
        }
        for (name, burst) in [("few", 8), ("many", 100)] {
            let printer = Printer::new(self.home, name, burst);
            let session = start(&mut client, &printer.line()).await;
            self.printers.push((printer, session.id.clone()));
            self.sessions.push(session);
        }
        let painting = painter(&self.home.path("stop"));
        self.sessions.push(start(&mut client, &painting).await);
        self.sessions.push(start(&mut client, &self.asker.line()).await);
    }

    fn count_open(&mut self, daemon: &Daemon) {
        self.open.insert(0, open_in(daemon.pid()));
        for session in &self.sessions {
            let shim = self.home.shim(&session.id);
            self.open.insert(shim, open_in(shim));
        }
    }

    async fn start_clients(&mut self) {
        let gateway = self.home.gateway();
        for (number, session) in self.sessions.iter().take(WRITERS).enumerate() {
            let id = session.id.clone();
            let writer = Writer::start(gateway.clone(), id).await;
            self.writers.push((writer, self.home.path(&format!("read{number}"))));
        }
        let lines = Arc::clone(&self.lines);
        let is_part = move |row: u64, text: &str| {
            let whole = &lines[usize::try_from(row).unwrap()];
            assert!(whole.starts_with(text), "row {row} is {text:?} and not {whole:?}");
        };
        let (_, few) = &self.printers[0];
        self.observers.push(Observer::start(gateway.clone(), few.clone(), is_part));
        let painted = self.sessions[WRITERS + 2].id.clone();
        self.observers.push(Observer::start(gateway, painted, |_, _| {}));
    }

    /// Has `rounds` daemons give way at any moment, and gives back the one that then serves.
    pub(crate) async fn rage(
        &mut self,
        mut daemon: Daemon,
        rounds: usize,
        how: GivesWay,
    ) -> Daemon {
        for _ in 0..rounds {
            let serves = self.dice.below(4) != 0;
            if serves {
                self.on_ready(&mut daemon).await;
                self.check().await;
            }
            sleep(self.dice.moment(if serves { SERVES } else { STARTS })).await;
            match how {
                GivesWay::Killed => daemon.kill().await,
                GivesWay::StandingStill => self.set_aside(daemon, serves).await,
            }
            daemon = self.home.spawn("");
        }
        self.on_ready(&mut daemon).await;
        daemon
    }

    async fn set_aside(&mut self, daemon: Daemon, serves: bool) {
        let client = if serves { Some(self.home.client().await) } else { None };
        let Some(mut aside) = SetAside::of(self.home, daemon).await else { return };
        if let Some(client) = client {
            let leases = self.writers.iter().map(|(writer, _)| (&*writer.name, &writer.lease));
            aside.is_asked(client, leases).await;
        }
        self.aside.push(aside);
    }

    /// Waits until a daemon serves. Those that were set aside for it go on from then on.
    async fn on_ready(&mut self, daemon: &mut Daemon) {
        daemon.is_ready().await;
        if self.aside.is_empty() {
            return;
        }
        self.home.tell_replaced();
        for mut aside in std::mem::take(&mut self.aside) {
            let (begins, ends) = (self.dice.moment(SERVES), self.dice.moment(SERVES));
            let signals = [Signal::SIGKILL, Signal::SIGTERM, Signal::SIGUSR1];
            let signal = signals[usize::try_from(self.dice.below(3)).unwrap()];
            self.former.spawn(async move {
                sleep(begins).await;
                let waited = aside.goes_on().await;
                sleep(ends).await;
                aside.ends_by(signal).await;
                waited
            });
        }
    }

    /// Asks the daemon whether every session is there, with its program, and has not gone back.
    async fn check(&mut self) {
        let mut client = self.home.client().await;
        let all = client.must("list_sessions", json!({})).await;
        let all = all["sessions"].as_array().unwrap();
        assert_eq!(all.len(), self.sessions.len(), "{all:#?}");
        for session in &self.sessions {
            let found = all.iter().find(|one| one["id"] == *session.id);
            let found = found.unwrap_or_else(|| panic!("{} is lost: {all:#?}", session.id));
            assert_eq!((&found["pid"], &found["state"]), (&json!(session.pid), &json!("running")));
            let watermark = found["watermark"].as_u64().unwrap();
            let before = self.watermarks.insert(session.id.clone(), watermark).unwrap_or_default();
            assert!(watermark >= before, "watermark {watermark} after {before}");
        }
        for (writer, _) in &self.writers {
            assert!(writer.is_at_work(), "the writer of {} gave up", writer.name);
        }
    }

    /// Compares what everybody was told with what was written and read, and ends all of it.
    pub(crate) async fn settle(mut self, daemon: Daemon) {
        let former = std::mem::take(&mut self.former);
        if !former.is_empty() {
            let waited = former.join_all().await;
            assert!(waited.into_iter().sum::<usize>() > 0, "nobody asked them for anything");
        }
        let mut reader = self.home.client().await;
        for observer in &self.observers {
            observer.agrees(&mut reader, AGREES).await;
        }
        self.check().await;
        self.settle_writers().await;
        fs::write(self.home.path("stop"), "").unwrap();
        self.settle_asker().await;
        for (printer, session) in &self.printers {
            self.settle_printer(&mut reader, session, printer.total().await).await;
        }
        for observer in std::mem::take(&mut self.observers) {
            observer.agrees(&mut reader, SAFETY).await;
            observer.end().await;
        }
        drop(reader);
        for (pid, before) in &self.open {
            let (pid, sessions) = match pid {
                0 => (daemon.pid(), self.sessions.len()),
                shim => (*shim, 1),
            };
            are_no_more(pid, before, sessions).await;
        }
        self.end(daemon).await;
    }

    async fn settle_writers(&mut self) {
        let mut ended = Vec::new();
        for (writer, log) in std::mem::take(&mut self.writers) {
            ended.push((writer.name.clone(), log, writer.end().await));
        }
        let inputs = JournalInputs::read(self.home);
        for (name, log, count) in ended {
            for number in 0..count {
                inputs.has(&name, &line(&name, number).replace('\n', "\r"));
            }
            let mut lines = (0..count).map(|number| line(&name, number).replace('\n', "\r"));
            let mut expected = String::new();
            expected.extend(&mut lines);
            assert!(count > 0, "nothing was written");
            // The program may not have written down the last yet.
            let whole = || fs::read(&log).unwrap().len() >= expected.len();
            until("the program to read all", whole).await;
            let read = fs::read_to_string(&log).unwrap();
            assert_eq!(first_difference(&read, &expected), None, "{count} lines of {name}");
        }
    }

    async fn settle_asker(&self) {
        let asked = self.asker.total().await;
        let answers = fs::read_to_string(&self.asker.log).unwrap();
        let expected = Asker::ANSWER.repeat(usize::try_from(asked).unwrap());
        assert_eq!(first_difference(&answers, &expected), None, "{asked} questions");
        assert!(asked > 0, "nothing was asked");
    }

    /// Reads all that is kept of a printer's lines, which must reach to the last and have no gap.
    async fn settle_printer(&self, reader: &mut Client, session: &str, total: u64) {
        assert!(total > 0, "nothing was printed");
        let last = &self.lines[usize::try_from(total - 1).unwrap()];
        let shown = async {
            loop {
                let screen = reader.must("read_screen", json!({"session": session})).await;
                if screen["text"].as_str().unwrap().lines().any(|line| line == last) {
                    return;
                }
                sleep(LOOK).await;
            }
        };
        soon("the last line to be shown", shown).await;
        let mut next = json!(0);
        let mut read = 0;
        loop {
            let asked = json!({"session": session, "start_row": next, "count": 500,
                               "format": "cells"});
            let part = reader.must("read_history", asked).await;
            for one in part["lines"].as_array().unwrap() {
                let row = one["row"].as_u64().unwrap();
                assert!(row == read || (read == 0 && one["row"] == part["dropped_rows"]), "{one}");
                let expected = self.lines.get(usize::try_from(row).unwrap());
                let expected = expected.filter(|_| row < total).map_or("", String::as_str);
                assert_eq!(one["text"], expected, "row {row} of {total}");
                read = row + 1;
            }
            next = part["next_row"].clone();
            if part["next_row"] == part["end_row"] {
                break;
            }
        }
        assert!(read >= total, "rows end at {read} of {total}");
    }

    /// Ends the daemon as an operator does; nothing is left.
    async fn end(self, daemon: Daemon) {
        self.home.printed("stop");
        assert_eq!(daemon.ends().await.0, Some(0));
        let nothing = || self.home.sessions_processes().is_empty();
        within(CLEARED, "every process to end", nothing).await;
        assert!(self.sessions.iter().all(|session| !lives(session.pid)));
        for place in ["", "s", "h"] {
            for entry in fs::read_dir(self.home.runtime(place)).unwrap() {
                let entry = entry.unwrap();
                let stays = entry.file_name() == "daemon.lock" || entry.path().is_dir();
                assert!(stays, "{} was left behind", entry.path().display());
            }
        }
    }
}

/// Where two long texts part, with what is there; none when they are the same.
fn first_difference(read: &str, expected: &str) -> Option<String> {
    if read == expected {
        return None;
    }
    let at = read.bytes().zip(expected.bytes()).take_while(|(one, other)| one == other).count();
    let around = |text: &str| {
        let bytes = &text.as_bytes()[at.saturating_sub(80).min(text.len())..];
        String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned()
    };
    Some(format!("at {at}: {:?}, not {:?}", around(read), around(expected)))
}

/// What is read of a session's screen as one text.
pub(crate) fn text_of(screen: &Value) -> &str {
    screen["text"].as_str().unwrap()
}
