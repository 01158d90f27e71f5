//! What clients of a session are answered has an order that the rules of a lease allow: many short histories of
//! chance, on paused time.
//!
//! `HISTORIES` is how many, `HISTORIES_SEED` the first one.

// Each test uses a part of it.
#[allow(dead_code)]
#[path = "../../../../tests/harness/dice.rs"]
mod dice;
#[allow(dead_code)]
#[path = "../../../../tests/harness/linearizability.rs"]
mod linearizability;

use std::sync::Mutex;

use tokio::task::JoinSet;

use super::*;
use crate::core::lease::request::{Released, RenewRequest};
use crate::session::actor::tests::histories::dice::Dice;
use crate::session::actor::tests::histories::linearizability::{Action, History, Outcome, Refusal};

const CLIENTS: u64 = 5;
/// What each client does.
const STEPS: u64 = 24;
/// Short, so that leases expire.
const TTL: Duration = Duration::from_secs(1);
/// Longer than a lease lasts, so that one may.
const PAUSE: Duration = Duration::from_millis(1_400);
const WAIT: Duration = Duration::from_millis(800);

/// A session, and what those who use it note.
struct Stage {
    desk: Desk,
    history: History,
    /// All ids that were ever granted: somebody who should not may show one.
    leases: Mutex<Vec<LeaseId>>,
}

impl Stage {
    fn now(&self) -> Duration {
        self.desk.clock.now().since(Moment::default())
    }

    /// A client's call, from before it is sent until after its answer.
    async fn note(&self, client: u64, action: Action, call: impl Future<Output = Outcome>) {
        let number = self.history.begin(self.now(), client, action);
        let outcome = call.await;
        self.history.end(self.now(), number, outcome);
    }

    /// Takes no byte now and then, so that writes wait in the session and are cut.
    async fn block(&self, mut dice: Dice) {
        loop {
            tokio::time::sleep(dice.moment(Duration::from_millis(80))).await;
            let room = usize::try_from(dice.below(20)).expect("small");
            self.desk.terminal.limit_writes(Some(room));
            tokio::time::sleep(dice.moment(Duration::from_millis(40))).await;
            self.desk.terminal.limit_writes(None);
        }
    }

    fn granted(&self, answer: Result<Grant, SessionError>) -> Outcome {
        match answer {
            Ok(Grant { lease, epoch, revived, .. }) => {
                self.leases.lock().expect("whole").push(lease);
                Outcome::Granted { lease: lease.0.as_u128(), epoch: epoch.0, revived }
            }
            Err(error) => refused(error),
        }
    }
}

fn refused(error: SessionError) -> Outcome {
    Outcome::Refused(match lease_error(error) {
        LeaseError::Required => Refusal::Required,
        LeaseError::Held { .. } => Refusal::Held,
        LeaseError::Lost { .. } => Refusal::Lost,
        LeaseError::Superseded => Refusal::Superseded,
        LeaseError::QueueFull { .. } => Refusal::QueueFull,
        other @ (LeaseError::Suspended { .. }
        | LeaseError::Offered { .. }
        | LeaseError::OtherTenant
        | LeaseError::TtlOutOfBounds { .. }
        | LeaseError::HeldByOtherTenant { .. }
        | LeaseError::WaitGivenUp) => panic!("nobody asked for that: {other}"),
    })
}

/// One who uses the session.
struct Player {
    stage: Arc<Stage>,
    dice: Dice,
    /// Which connection this is, of all that there were.
    number: u64,
    typed: u64,
    /// Whether it was granted the lease and not refused since, and so writes more.
    holds: bool,
}

impl Player {
    async fn play(mut self) {
        for _ in 0..STEPS {
            let pause = if self.dice.below(8) == 0 { PAUSE } else { Duration::from_millis(4) };
            tokio::time::sleep(self.dice.moment(pause)).await;
            let most = if self.holds { 60 } else { 40 };
            match self.dice.below(most) {
                0..9 => self.acquire().await,
                9..13 => self.renew().await,
                13..18 => self.release().await,
                18..20 => self.preempt().await,
                20..22 => self.leave_in_the_middle().await,
                22 => self.be_revoked(),
                _ => self.write().await,
            }
        }
    }

    fn caller(&self) -> Caller {
        agent(self.number)
    }

    /// Any id that was granted, more often one of the newest.
    fn any_lease(&mut self) -> Option<LeaseId> {
        let leases = self.stage.leases.lock().expect("whole");
        let newest = usize::try_from(self.dice.below(3)).expect("small");
        leases.iter().rev().nth(newest).copied()
    }

    async fn acquire(&mut self) {
        let shown = if self.dice.below(4) == 0 { self.any_lease() } else { None };
        let waits = shown.is_none() && self.dice.below(2) == 0;
        let request = AcquireRequest {
            fresh: fresh(),
            presented: shown,
            ttl: Some(TTL),
            on_disconnect: None,
            reason: None,
            wait_until: waits.then(|| self.stage.desk.clock.now() + self.dice.moment(WAIT)),
            waiters_max: None,
        };
        let (stage, caller) = (Arc::clone(&self.stage), self.caller());
        let session = &stage.desk.session;
        let call = session.permitted_acquire(caller, request, None, Accepted::nothing());
        let action = Action::Acquire { shown: shown.map(|id| id.0.as_u128()), ttl: TTL };
        let mut holds = false;
        let call = async {
            let answer = call.await;
            holds = answer.is_ok();
            stage.granted(answer)
        };
        stage.note(self.number, action, call).await;
        self.holds = holds;
    }

    async fn write(&mut self) {
        let shown = if self.dice.below(3) == 0 { self.any_lease() } else { None };
        self.typed += 1;
        let letter = char::from(b'A' + u8::try_from(self.number % CLIENTS).expect("small"));
        let text = format!("{letter}{}.{};", self.number / CLIENTS, self.typed);
        let order = WriteOrder { presented: shown, ..typing(&self.caller(), &text) };
        let action = Action::Write { shown: shown.map(|id| id.0.as_u128()), text };
        let (stage, holds) = (Arc::clone(&self.stage), &mut self.holds);
        let call = async {
            let answer = stage.desk.write(order).await;
            *holds = answer.is_ok();
            match answer {
                Ok(written) => Outcome::Wrote {
                    bytes: written.outcome.written,
                    queued: written.outcome.queued,
                    epoch: written.epoch.map(|epoch| epoch.0),
                },
                Err(error) => refused(error),
            }
        };
        stage.note(self.number, action, call).await;
    }

    async fn renew(&mut self) {
        let Some(shown) = self.any_lease() else { return };
        let (stage, caller) = (Arc::clone(&self.stage), self.caller());
        let request = RenewRequest { presented: Some(shown), ttl: None };
        let session = &stage.desk.session;
        let permit = session.permit(&caller, PermittedAct::Lease);
        let call = session.renew(&permit, caller, request, None, Accepted::nothing());
        let action = Action::Renew { shown: shown.0.as_u128() };
        stage.note(self.number, action, async { stage.granted(call.await) }).await;
    }

    async fn release(&mut self) {
        let Some(shown) = self.any_lease() else { return };
        let (stage, caller) = (Arc::clone(&self.stage), self.caller());
        let request = ReleaseRequest { presented: Some(shown), hand_to: None };
        let session = &stage.desk.session;
        let call = async {
            match session.permitted_release(caller, request, None, Accepted::nothing()).await {
                Ok(Released::Freed) => Outcome::Released,
                Ok(Released::AlreadyGone(_)) => Outcome::AlreadyGone,
                Ok(other) => panic!("nothing was handed on: {other:?}"),
                Err(error) => refused(error),
            }
        };
        stage.note(self.number, Action::Release { shown: shown.0.as_u128() }, call).await;
    }

    async fn preempt(&mut self) {
        let stage = Arc::clone(&self.stage);
        let operator = self.caller();
        let call = async {
            let ended = stage.desk.session.permitted_preempt(&operator).await.expect("alive");
            Outcome::Preempted { ended, typed: Some(stage.desk.terminal.written().len()) }
        };
        stage.note(self.number, Action::Preempt, call).await;
    }

    /// Hangs up while a call is under way, and comes back as somebody else.
    async fn leave_in_the_middle(&mut self) {
        let patience = match self.dice.below(2) {
            0 => Duration::ZERO,
            _ => self.dice.moment(Duration::from_millis(30)),
        };
        let asks = self.dice.below(3);
        let call = async {
            match asks {
                0 => {}
                1 => self.acquire().await,
                _ => self.write().await,
            }
        };
        // Who is not answered by then never hears of it.
        let _ = tokio::time::timeout(patience, call).await;
        let grace = LeaseLimits::default().grace_default;
        self.stage.history.begin(self.stage.now(), self.number, Action::Leave { grace });
        self.stage.desk.session.connection_closed(ConnectionId(self.number));
        self.number += CLIENTS;
    }

    /// Its right to write ends, and it comes back as somebody else.
    fn be_revoked(&mut self) {
        self.stage.history.begin(self.stage.now(), self.number, Action::Revoke);
        self.stage.desk.session.end_right_of(PrincipalId::Connection(self.number));
        self.number += CLIENTS;
    }
}

/// What became of one history: its answers of the kinds that a history is about.
#[derive(Debug, Default)]
struct Seen {
    wrote: usize,
    cut: usize,
    refused: usize,
    revived: usize,
}

async fn play(seed: u64, seen: &mut Seen) {
    let (desk, history, leases) = (Desk::open(), History::default(), Mutex::default());
    let stage = Arc::new(Stage { desk, history, leases });
    let mut dice = Dice::seeded(seed);
    let mut own = || Dice::seeded(dice.below(u64::MAX));
    let blocking = stage.block(own());
    let mut players = JoinSet::new();
    for number in 0..CLIENTS {
        let (stage, dice) = (Arc::clone(&stage), own());
        players.spawn(Player { stage, dice, number, typed: 0, holds: false }.play());
    }
    tokio::select! {
        () = blocking => {}
        _ = players.join_all() => {}
    }
    stage.desk.terminal.limit_writes(None);
    // What is queued of a lease in force is typed still.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let typed = String::from_utf8(stage.desk.terminal.written()).expect("letters");
    if let Err(complaint) = stage.history.check(&typed, Duration::ZERO) {
        panic!("HISTORIES_SEED={seed}: {complaint}");
    }
    seen.wrote += stage.history.count(|it| matches!(it, Outcome::Wrote { .. }));
    seen.cut += stage.history.count(|it| matches!(it, Outcome::Wrote { bytes: 0..4, .. }));
    seen.refused += stage.history.count(|it| matches!(it, Outcome::Refused(_)));
    seen.revived += stage.history.count(|it| matches!(it, Outcome::Granted { revived: true, .. }));
}

#[tokio::test(start_paused = true)]
async fn what_clients_are_answered_has_an_order_that_the_rules_of_a_lease_allow() {
    let given = std::env::var("HISTORIES").ok();
    let count: u64 = given.map_or(150, |count| count.parse().expect("a number of histories"));
    let first = Dice::told("HISTORIES_SEED").seed();
    let mut seen = Seen::default();
    let has_all = |Seen { wrote, cut, refused, revived }: &Seen| {
        [wrote, cut, refused, revived].iter().all(|it| **it > 0)
    };
    for number in 0..10 * count {
        // What happens seldom may need more of them.
        if number >= count && (count < 100 || has_all(&seen)) {
            break;
        }
        play(first.wrapping_add(number), &mut seen).await;
    }
    eprintln!("{count} histories: {seen:?}");
    assert!(count < 100 || has_all(&seen), "{seen:?}");
}
