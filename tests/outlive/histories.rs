//! What clients of sessions are answered has an order that the rules of a lease allow, also over a daemon that is
//! killed, and the programs read the very bytes of that order.

mod wrong;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;
use uuid::Uuid;

use crate::harness::dice::Dice;
use crate::harness::linearizability::{Action, History, Outcome, Refusal};
use crate::harness::waiting::{LOOK, until};
use crate::outlive::client::{Client, Gateway, Gone, start};
use crate::outlive::home::Home;
use crate::outlive::programs::recorder;

const SESSIONS: usize = 6;
const CLIENTS: u64 = 5;
/// What each client does.
const STEPS: usize = 24;
/// The shortest there is, so that leases expire.
const TTL: Duration = Duration::from_secs(1);
/// Longer than a lease lasts, so that one may.
const PAUSE: Duration = Duration::from_millis(1_300);
const GRACE: Duration = Duration::from_millis(200);
/// How long a lease is kept after a restart.
const RECLAIM: Duration = Duration::from_secs(10);
/// By how much the clocks of a test and a daemon may differ.
const SLACK: Duration = Duration::from_millis(5);
/// What is typed last.
const END: &str = "end";

/// One session, and what those who use it note.
struct Stage {
    id: String,
    log: PathBuf,
    began: Instant,
    history: History,
    /// All ids that were ever granted: somebody who should not may show one.
    leases: Mutex<Vec<String>>,
    /// How much was done, over all sessions.
    steps: Arc<AtomicUsize>,
}

impl Stage {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// A client's call, from before it is sent until after its answer, if there is one.
    async fn note(
        &self,
        client: u64,
        action: Action,
        call: impl Future<Output = Result<Outcome, Gone>>,
    ) -> Result<(), Gone> {
        let number = self.history.begin(self.now(), client, action);
        let outcome = call.await?;
        self.history.end(self.now(), number, outcome);
        Ok(())
    }

    fn granted(&self, answer: &Value) -> Outcome {
        let id = answer["lease_id"].as_str().unwrap();
        self.leases.lock().unwrap().push(id.to_owned());
        let epoch = answer["epoch"].as_u64().unwrap();
        Outcome::Granted { lease: number_of(id), epoch, revived: answer["revived"] == true }
    }
}

fn number_of(lease: &str) -> u128 {
    Uuid::parse_str(lease).unwrap().as_u128()
}

fn refused(error: &Value) -> Outcome {
    Outcome::Refused(match error["error_code"].as_str().unwrap() {
        "lease_required" => Refusal::Required,
        "lease_held" => Refusal::Held,
        "lease_lost" => Refusal::Lost,
        "lease_superseded" => Refusal::Superseded,
        _ => panic!("nobody asked for that: {error}"),
    })
}

/// One who uses a session, over all its connections.
struct Player {
    stage: Arc<Stage>,
    dice: Dice,
    gateway: Gateway,
    operators: PathBuf,
    client: Client,
    /// Which connection this is, of all that there were.
    number: u64,
    typed: u64,
}

impl Player {
    async fn play(mut self) {
        for _ in 0..STEPS {
            if self.step().await == Err(Gone) {
                self.come_back().await;
            }
            self.stage.steps.fetch_add(1, Ordering::Relaxed);
        }
        self.note_leaving();
    }

    fn note_leaving(&self) {
        self.stage.history.begin(self.stage.now(), self.number, Action::Leave { grace: GRACE });
    }

    async fn come_back(&mut self) {
        self.client = self.gateway.find().await;
        self.number += CLIENTS;
    }

    async fn step(&mut self) -> Result<(), Gone> {
        match self.dice.below(40) {
            0..9 => self.acquire().await,
            9..25 => self.write().await,
            25..29 => self.renew().await,
            29..33 => self.release().await,
            33..35 => self.preempt().await,
            35..37 => self.leave_in_the_middle().await,
            _ => self.read_for_a_while().await,
        }
    }

    /// Any id that was granted, more often one of the newest.
    fn any_lease(&mut self) -> Option<String> {
        let leases = self.stage.leases.lock().unwrap();
        leases.iter().rev().nth(self.dice.below(3) as usize).cloned()
    }

    fn any_lease_or_none(&mut self) -> Option<String> {
        if self.dice.below(3) == 0 { self.any_lease() } else { None }
    }

    fn acquisition(&mut self) -> (Action, Value) {
        let shown = self.any_lease_or_none();
        let wait_ms = if shown.is_none() { self.dice.below(2) * 900 } else { 0 };
        let asked = json!({
            "session": self.stage.id, "ttl_ms": 1_000, "wait_ms": wait_ms, "lease_id": shown,
        });
        (Action::Acquire { shown: shown.as_deref().map(number_of), ttl: TTL }, without_null(asked))
    }

    async fn acquire(&mut self) -> Result<(), Gone> {
        let (action, asked) = self.acquisition();
        let Self { stage, client, .. } = self;
        let call = async {
            let answer = client.call("acquire_lease", asked).await?;
            Ok(answer.map_or_else(|error| refused(&error), |granted| stage.granted(&granted)))
        };
        stage.note(self.number, action, call).await
    }

    fn writing(&mut self) -> (Action, Value) {
        let shown = self.any_lease_or_none();
        self.typed += 1;
        let letter = char::from(b'A' + u8::try_from(self.number % CLIENTS).unwrap());
        let text = format!("{letter}{}.{};", self.number / CLIENTS, self.typed);
        let asked = json!({"session": self.stage.id, "text": text, "lease_id": shown});
        let shown = shown.as_deref().map(number_of);
        (Action::Write { shown, text }, without_null(asked))
    }

    async fn write(&mut self) -> Result<(), Gone> {
        let (action, asked) = self.writing();
        let Self { stage, client, .. } = self;
        let call = async {
            let answer = client.call("send_text", asked).await?;
            Ok(answer.map_or_else(|error| refused(&error), |written| wrote(&written)))
        };
        stage.note(self.number, action, call).await
    }

    async fn renew(&mut self) -> Result<(), Gone> {
        let Some(shown) = self.any_lease() else { return Ok(()) };
        let action = Action::Renew { shown: number_of(&shown) };
        let Self { stage, client, .. } = self;
        let call = async {
            let answer = client.call("renew_lease", json!({"lease_id": shown})).await?;
            Ok(answer.map_or_else(|error| refused(&error), |granted| stage.granted(&granted)))
        };
        stage.note(self.number, action, call).await
    }

    async fn release(&mut self) -> Result<(), Gone> {
        let Some(shown) = self.any_lease() else { return Ok(()) };
        let action = Action::Release { shown: number_of(&shown) };
        let Self { stage, client, .. } = self;
        let call = async {
            let answer = client.call("release_lease", json!({"lease_id": shown})).await?;
            Ok(answer.map_or_else(
                |error| refused(&error),
                |released| match released["outcome"].as_str().unwrap() {
                    "freed" => Outcome::Released,
                    "already_gone" => Outcome::AlreadyGone,
                    _ => panic!("nothing was handed on: {released}"),
                },
            ))
        };
        stage.note(self.number, action, call).await
    }

    async fn preempt(&mut self) -> Result<(), Gone> {
        let Ok(mut operator) = Client::connect(&self.operators).await else { return Err(Gone) };
        let asked = json!({"session": self.stage.id});
        let call = async {
            let ended = operator.call("preempt_lease", asked).await?.unwrap();
            Ok(Outcome::Preempted { ended: ended["ended"] == true, typed: None })
        };
        self.stage.note(self.number, Action::Preempt, call).await
    }

    /// Hangs up, perhaps without waiting for an answer, and comes back as somebody else.
    async fn leave_in_the_middle(&mut self) -> Result<(), Gone> {
        let unanswered = match self.dice.below(3) {
            0 => Some(("acquire_lease", self.acquisition())),
            1 => Some(("send_text", self.writing())),
            _ => None,
        };
        if let Some((tool, (action, asked))) = unanswered {
            self.stage.history.begin(self.stage.now(), self.number, action);
            self.client.send_call(tool, asked).await?;
        }
        self.note_leaving();
        self.come_back().await;
        Ok(())
    }

    /// Waits for what does not come; that keeps no lease alive.
    async fn read_for_a_while(&mut self) -> Result<(), Gone> {
        let pause = u64::try_from(self.dice.moment(PAUSE).as_millis()).unwrap() + 1;
        let asked = json!({"session": self.stage.id, "exit": true, "timeout_ms": pause});
        self.client.call("wait_for", asked).await?.unwrap();
        Ok(())
    }
}

fn wrote(answer: &Value) -> Outcome {
    let count = |name: &str| usize::try_from(answer[name].as_u64().unwrap()).unwrap();
    Outcome::Wrote { bytes: count("written"), queued: count("queued_bytes"), epoch: None }
}

fn without_null(mut asked: Value) -> Value {
    asked.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    asked
}

async fn open_stages(home: &Home) -> Vec<Arc<Stage>> {
    let mut client = home.client().await;
    let (began, steps) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let mut stages = Vec::new();
    for number in 0..SESSIONS {
        let log = home.path(&format!("read{number}"));
        let session = start(&mut client, &recorder(&log)).await;
        let said = json!({"session": session.id, "text": "recording", "since": 0});
        client.must("wait_for", said).await;
        let (history, leases, steps) = (History::default(), Mutex::default(), Arc::clone(&steps));
        stages.push(Arc::new(Stage { id: session.id, log, began, history, leases, steps }));
    }
    stages
}

/// Types the end, waits until the program has read it, and looks for an order.
async fn settle(home: &Home, stage: &Stage) {
    let mut client = home.client().await;
    let asked = json!({"session": stage.id, "wait_ms": 20_000, "ttl_ms": 1_000});
    let last = u64::MAX;
    let acquired = async {
        let granted = client.call("acquire_lease", asked).await?.unwrap();
        Ok(stage.granted(&granted))
    };
    let action = Action::Acquire { shown: None, ttl: TTL };
    stage.note(last, action, acquired).await.unwrap();
    let typed = async {
        let asked = json!({"session": stage.id, "text": END});
        Ok(wrote(&client.call("send_text", asked).await?.unwrap()))
    };
    let action = Action::Write { shown: None, text: END.to_owned() };
    stage.note(last, action, typed).await.unwrap();
    let read = || std::fs::read_to_string(&stage.log).unwrap();
    until("the program to read all", || read().ends_with(END)).await;
    let checked = stage.history.check(&read(), SLACK);
    checked.unwrap_or_else(|complaint| panic!("{}: {complaint}", stage.id));
}

async fn play(kills: bool) {
    let home = Home::new();
    home.configure(&format!("[lease]\ngrace_ms = {}\n", GRACE.as_millis()));
    let mut daemon = home.serve().await;
    let mut dice = Dice::told("OUTLIVE_SEED");
    let stages = open_stages(&home).await;
    let mut players = JoinSet::new();
    for stage in &stages {
        for number in 0..CLIENTS {
            let player = Player {
                stage: Arc::clone(stage),
                dice: Dice::seeded(dice.below(u64::MAX)),
                gateway: home.gateway(),
                operators: home.runtime("operator.sock"),
                client: home.client().await,
                number,
                typed: 0,
            };
            players.spawn(player.play());
        }
    }
    if kills {
        let half = SESSIONS * STEPS * usize::try_from(CLIENTS).unwrap() / 2;
        while stages[0].steps.load(Ordering::Relaxed) < half {
            tokio::time::sleep(LOOK).await;
        }
        let restart = |stage: &Arc<Stage>| {
            stage.history.begin(stage.now(), u64::MAX, Action::Restart { grace: RECLAIM })
        };
        let numbers: Vec<usize> = stages.iter().map(restart).collect();
        daemon.kill().await;
        daemon = home.serve().await;
        for (stage, number) in stages.iter().zip(numbers) {
            stage.history.end(stage.now(), number, Outcome::Restarted);
        }
    }
    players.join_all().await;
    for stage in &stages {
        settle(&home, stage).await;
    }
    let wrote = |stage: &Arc<Stage>| stage.history.count(|it| matches!(it, Outcome::Wrote { .. }));
    assert!(stages.iter().map(wrote).sum::<usize>() > SESSIONS * 5, "hardly anything was written");
    daemon.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_clients_are_answered_has_an_order_that_the_rules_of_a_lease_allow() {
    play(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_has_such_an_order_over_a_daemon_that_is_killed_in_the_middle() {
    play(true).await;
}
