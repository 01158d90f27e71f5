//! A session over a terminal in memory, on paused time.

mod checkpoints;
mod ending;
mod flood;
mod histories;
mod journal;
mod long_steps;
mod looking;
mod people;
mod records;
mod restart;
mod running_commands;
mod silence;
mod uncovered;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::*;
use crate::core::caller::{Caller, Kind};
use crate::core::frame::{Exit, Size};
use crate::core::ids::{ConnectionId, Epoch, LeaseId, PrincipalId, SessionId, TenantId, Watermark};
use crate::core::input::WriteWindow;
use crate::core::input::idempotency::IdempotencyKey;
use crate::core::input::request::WriteError;
use crate::core::keys::paste::PasteRule;
use crate::core::lease::LeaseManager;
use crate::core::lease::error::{EndCause, LeaseError};
use crate::core::lease::limits::LeaseLimits;
use crate::core::lease::request::{AcquireRequest, Grant, ReleaseRequest, TakeRule, WaiterId};
use crate::core::policy::approvals::Witness;
use crate::core::policy::bound::{LineMoment, PermitBound};
use crate::core::policy::denial::Denial;
use crate::core::policy::{Door, PermittedAct};
use crate::core::shell::commands::record::CommandId;
use crate::session::command::{
    Accepted, Act, Content, Expectation, ManageOrder, PEOPLE_COMMANDS_MAX, ResizeOrder, WriteOrder,
};
use crate::session::control::Parting;
use crate::session::facts::Board;
use crate::session::handle::{About, Session, SessionEnds};
use crate::session::pty::shell::Nonces;
use crate::session::pty::tests::fake::{FakeTerminal, pair};
use crate::session::recorder::tests::TestJournal;
use crate::session::records::identity::Confinement;
use crate::session::tests::permitted::permit;

const SIZE: Size = Size { rows: 5, cols: 20 };

/// A session over a terminal in memory, on paused time.
struct Desk {
    session: Session,
    terminal: FakeTerminal,
    urgent: Arc<Urgent>,
    clock: Clock,
    facts: Board,
    journal: TestJournal,
    task: JoinHandle<()>,
}

impl Desk {
    /// Waits until the terminal is as it should be, on paused time.
    async fn wait_until(&self, holds: impl Fn(&FakeTerminal) -> bool) {
        let looking = async {
            while !holds(&self.terminal) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), looking).await.expect("it becomes so");
    }

    fn open() -> Self {
        Self::open_at(OpeningState::empty(SIZE, ScreenLimits::default()))
    }

    fn open_at(opening: OpeningState) -> Self {
        Self::open_marked(opening, None)
    }

    /// Over a terminal whose shell marks what it does with this nonce, if with any.
    fn open_marked(opening: OpeningState, nonce: Option<&str>) -> Self {
        Self::open_noted(opening, nonce, CommandsRecord::default())
    }

    /// Over a terminal beside which this was noted of its commands.
    fn open_noted(opening: OpeningState, nonce: Option<&str>, commands: CommandsRecord) -> Self {
        let (pty, terminal) = pair();
        let clock = Clock::paused();
        let (facts, journal) = (Board::default(), TestJournal::default());
        let live = Arc::new(Live::new(Arc::from("fake")));
        let urgent = Arc::new(Urgent::default());
        let id = SessionId::from_random(Uuid::from_u128(1 << 80));
        let tenant = TenantId::of_uid(1000);
        let screen = ScreenLimits::default();
        let unknown = SessionRecord::unknown(id, tenant.clone(), clock.now());
        let record = SessionRecord {
            nonces: Nonces { own: nonce.and_then(|nonce| nonce.parse().ok()), nested: None },
            ..unknown
        };
        let lease = LeaseManager::new(Epoch::default(), LeaseLimits::default());
        let input = Input::new(lease, WriteWindow::Open);
        let rules = Rules {
            screen,
            frame_interval: Duration::from_millis(8),
            keep_ended: Duration::from_secs(3_600),
        };
        let outlets = Outlets {
            facts: facts.clone(),
            changes: watch::Sender::new(0),
            live: Arc::clone(&live),
            counters: Arc::default(),
            urgent: Arc::clone(&urgent),
            recorder: journal.recorder(),
        };
        let setup = Setup { record, commands, opening, told: None, recording: None, input, pty };
        let (actor, frames) = Actor::new(setup, rules, clock.clone(), outlets);
        let (commands, queue) = mpsc::channel(COMMANDS_MAX);
        let about = About {
            id_text: "".into(),
            id,
            tenant,
            command: "fake".to_owned(),
            pid: 1,
            cwd: "/".into(),
            tags: Vec::new(),
            is_listed: false,
            marks: false,
            confinement: Confinement::default(),
            created_at: Moment::default(),
        };
        let (people, asked) = mpsc::channel(PEOPLE_COMMANDS_MAX);
        let (urgent_end, clock_end) = (Arc::clone(&urgent), clock.clone());
        let session = Session::new(SessionEnds {
            about,
            commands,
            people,
            urgent: urgent_end,
            frames,
            live,
            clock: clock_end,
        });
        let task = tokio::spawn(actor.run(queue, asked));
        Self { session, terminal, urgent, clock, facts, journal, task }
    }

    async fn acquire(&self, caller: &Caller) -> Result<LeaseId, SessionError> {
        self.acquire_within(caller, Duration::ZERO).await
    }

    async fn acquire_within(
        &self,
        caller: &Caller,
        wait: Duration,
    ) -> Result<LeaseId, SessionError> {
        self.be_granted(caller, wait).await.map(|grant| grant.lease)
    }

    async fn be_granted(&self, caller: &Caller, wait: Duration) -> Result<Grant, SessionError> {
        let request = AcquireRequest {
            fresh: fresh(),
            presented: None,
            ttl: Some(Duration::from_secs(30)),
            on_disconnect: None,
            reason: None,
            wait_until: (!wait.is_zero()).then(|| self.clock.now() + wait),
            waiters_max: None,
        };
        self.session.permitted_acquire(caller.clone(), request, None, Accepted::nothing()).await
    }

    async fn write(
        &self,
        order: WriteOrder,
    ) -> Result<crate::session::command::Written, SessionError> {
        self.session.permitted_write(order, Accepted::nothing()).await
    }

    /// Waits until a frame shows this text somewhere.
    async fn until_shown(&self, text: &str) -> Arc<Frame> {
        let shows =
            |frame: &Arc<Frame>| frame.lines.iter().any(|line| line.value.text.contains(text));
        let mut frames = self.session.frames();
        Arc::clone(&frames.wait_for(shows).await.expect("the session lives"))
    }

    async fn until_lease(&self, held: bool) -> Arc<Frame> {
        let mut frames = self.session.frames();
        let is = |frame: &Arc<Frame>| frame.lease.value.holding.is_some() == held;
        Arc::clone(&frames.wait_for(is).await.expect("the session lives"))
    }
}

fn fresh() -> LeaseId {
    LeaseId(Uuid::new_v4())
}

fn agent(number: u64) -> Caller {
    Caller {
        principal: PrincipalId::Connection(number),
        connection: ConnectionId(number),
        tenant: TenantId::of_uid(1000),
        kind: Kind::Agent,
        label: Arc::from("agent"),
    }
}

fn typing(caller: &Caller, text: &str) -> WriteOrder {
    WriteOrder {
        caller: caller.clone(),
        door: Door::Gateway,
        content: Content::Text { text: text.to_owned(), paste: PasteRule::Auto, enter: false },
        presented: None,
        take: TakeRule::HeldOnly,
        expect: Expectation::default(),
        key: None,
        dry_run: false,
        keep_alive: false,
        command: None,
        decision: None,
        bound: None,
    }
}

fn lease_error(error: SessionError) -> LeaseError {
    match error {
        SessionError::Write(WriteError::Lease(error)) => error,
        SessionError::Write(_)
        | SessionError::Denied(_)
        | SessionError::Exited(_)
        | SessionError::Silent
        | SessionError::Stale
        | SessionError::ScreenChanged(_)
        | SessionError::TextNotShown(_)
        | SessionError::Mouse(_)
        | SessionError::LineTooLong { .. }
        | SessionError::CommandRunning
        | SessionError::Asks(_)
        | SessionError::NoPromptYet
        | SessionError::Busy
        | SessionError::Restarted
        | SessionError::Closed
        | SessionError::Terminal(_)
        | SessionError::Recording(_)
        | SessionError::NotRecorded(_) => panic!("not about the lease"),
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_holder_types_reaches_the_terminal_and_is_counted() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    let written = desk.write(typing(&agent(1), "ls\n")).await.expect("the holder writes");
    assert_eq!(desk.terminal.written(), b"ls\r");
    assert_eq!((written.outcome.written, written.outcome.queued), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn a_permit_for_another_act_session_or_caller_changes_nothing() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    let permits = [
        desk.session.permit(&agent(1), PermittedAct::Resize),
        desk.session.permit(&agent(2), PermittedAct::Type),
        permit(&agent(1), PermittedAct::Type, Some(SessionId::from_random(Uuid::max()))),
        permit(&agent(1), PermittedAct::Create, None),
    ];
    for permit in permits {
        let order = typing(&agent(1), "x");
        let refused = desk.session.write(&permit, order, Accepted::nothing()).await;
        assert!(matches!(refused, Err(SessionError::Denied(Denial::OtherPermit))), "{permit:?}");
    }
    assert!(desk.terminal.written().is_empty());
}

#[tokio::test(start_paused = true)]
async fn nobody_else_types_while_the_lease_is_held() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    let refused = desk.write(typing(&agent(2), "x")).await.expect_err("held");
    assert!(matches!(lease_error(refused), LeaseError::Held { .. }));
    assert!(desk.terminal.written().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_free_session_needs_a_lease_unless_the_call_may_take_one() {
    let desk = Desk::open();
    let refused = desk.write(typing(&agent(1), "x")).await.expect_err("free");
    assert_eq!(lease_error(refused), LeaseError::Required);
    let order = WriteOrder { take: TakeRule::ForThisCall(fresh()), ..typing(&agent(1), "y") };
    desk.write(order).await.expect("taken for the call");
    assert_eq!(desk.terminal.written(), b"y");
    desk.acquire(&agent(2)).await.expect("given back");
}

#[tokio::test(start_paused = true)]
async fn output_shows_at_once_after_quiet_and_then_at_most_once_per_interval() {
    let desk = Desk::open();
    let mut frames = desk.session.frames();
    frames.mark_unchanged();
    let mut seen = 0;
    let start = desk.clock.now();
    for number in 0..100 {
        desk.terminal.push(format!("{number}\r\n"));
        while tokio::time::timeout(Duration::from_millis(1), frames.changed()).await.is_ok() {
            frames.mark_unchanged();
            seen += 1;
        }
    }
    let elapsed = desk.clock.now().since(start);
    let most = elapsed.as_millis() as usize / 8 + 2;
    assert!(seen > 1 && seen <= most, "{seen} frames in {elapsed:?}");
    desk.until_shown("99").await;
}

#[tokio::test(start_paused = true)]
async fn a_write_that_the_program_does_not_read_is_answered_after_a_second() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.terminal.limit_writes(Some(2));
    let start = desk.clock.now();
    let written = desk.write(typing(&agent(1), "abcdef")).await.expect("queued");
    assert_eq!(desk.clock.now().since(start), Duration::from_secs(1));
    assert_eq!((written.outcome.written, written.outcome.queued), (2, 4));
    desk.terminal.limit_writes(None);
    assert_eq!(desk.terminal.until_written(6).await, b"abcdef");
}

#[tokio::test(start_paused = true)]
async fn a_preempted_holder_is_told_what_was_discarded_and_nothing_follows() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.terminal.limit_writes(Some(1));
    let typing_on = desk.write(typing(&agent(1), "abcdef"));
    let ending = async {
        desk.terminal.until_written(1).await;
        desk.session.permitted_preempt(&agent(9)).await.expect("alive")
    };
    let (written, ended) = tokio::join!(typing_on, ending);
    let outcome = written.expect("answered").outcome;
    assert!(ended);
    assert_eq!((outcome.written, outcome.discarded, outcome.queued), (1, 5, 0));
    desk.terminal.limit_writes(None);
    desk.acquire(&agent(2)).await.expect("free again");
    desk.write(typing(&agent(2), "Z")).await.expect("the new holder");
    assert_eq!(desk.terminal.written(), b"aZ");
    let refused = desk.write(typing(&agent(1), "x")).await.expect_err("preempted");
    let error = lease_error(refused);
    assert!(matches!(error, LeaseError::Lost { .. } | LeaseError::Held { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_paste_cut_short_is_closed_by_the_daemon() {
    let desk = Desk::open();
    desk.terminal.push("\x1b[?2004hready");
    desk.until_shown("ready").await;
    desk.acquire(&agent(1)).await.expect("free");
    desk.terminal.limit_writes(Some(8));
    let typing_on = desk.write(typing(&agent(1), "one\ntwo\nthree"));
    let ending = async {
        desk.terminal.until_written(8).await;
        desk.session.permitted_preempt(&agent(9)).await.expect("alive");
        desk.terminal.limit_writes(None);
    };
    let (written, ()) = tokio::join!(typing_on, ending);
    written.expect("answered");
    let all = desk.terminal.until_written(8 + 6).await;
    assert_eq!(String::from_utf8_lossy(&all), "\x1b[200~on\x1b[201~");
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_are_served_in_order_and_within_the_time_to_live() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    let start = desk.clock.now();
    let long = Duration::from_secs(300);
    let second = async {
        let lease = desk.acquire_within(&agent(2), long).await.expect("its turn");
        let waited = desk.clock.now().since(start);
        (lease, waited)
    };
    let third = async {
        desk.until_lease(true).await;
        let mut frames = desk.session.frames();
        let waiting = |frame: &Arc<Frame>| frame.lease.value.waiters == 1;
        frames.wait_for(waiting).await.expect("alive");
        drop(frames);
        desk.acquire_within(&agent(3), long).await.expect("its turn");
        desk.clock.now().since(start)
    };
    let ((_, second), third) = tokio::join!(second, third);
    let ttl = Duration::from_secs(30);
    let slack = Duration::from_millis(100);
    assert!(second >= ttl && second <= ttl + slack, "{second:?}");
    assert!(third >= ttl * 2 && third <= ttl * 2 + slack * 2, "{third:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_waiter_leaves_the_line() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    let impatient = agent(2);
    let waiting = desk.acquire_within(&impatient, Duration::from_secs(60));
    let given_up = tokio::time::timeout(Duration::from_millis(10), waiting).await;
    assert!(given_up.is_err());
    let start = desk.clock.now();
    let mut frames = desk.session.frames();
    frames.wait_for(|frame| frame.lease.value.waiters == 0).await.expect("alive");
    assert!(desk.clock.now().since(start) <= Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_closes_keeps_its_lease_for_the_grace_and_no_longer() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.session.connection_closed(ConnectionId(7));
    desk.session.connection_closed(ConnectionId(1));
    let start = desk.clock.now();
    desk.until_lease(false).await;
    let held = desk.clock.now().since(start);
    assert!(held >= Duration::from_secs(5) && held < Duration::from_secs(6), "{held:?}");
}

#[tokio::test(start_paused = true)]
async fn closing_the_window_ends_the_lease_and_every_way_in() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.session.set_window(WriteWindow::Closed);
    desk.until_lease(false).await;
    let refused = desk.write(typing(&agent(1), "x")).await.expect_err("closed");
    assert!(matches!(refused, SessionError::Write(WriteError::ReadOnly)));
    let order = ResizeOrder {
        caller: agent(1),
        presented: None,
        take: TakeRule::ForThisCall(fresh()),
        size: Size { rows: 9, cols: 9 },
        dry_run: false,
    };
    let refused = desk.session.permitted_resize(order, Accepted::nothing()).await;
    assert!(matches!(refused, Err(SessionError::Write(WriteError::ReadOnly))));
    assert!(desk.terminal.written().is_empty() && desk.terminal.sizes().is_empty());
    let causes: Vec<_> = desk.facts.take().leases.into_values().map(|event| event.change).collect();
    let ended = crate::core::lease::view::LeaseChange::Ended(EndCause::WritingSwitchedOff);
    assert!(causes.contains(&ended), "{causes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_window_for_a_time_closes_by_itself() {
    let desk = Desk::open();
    let until = desk.clock.now() + Duration::from_secs(10);
    desk.session.set_window(WriteWindow::Until(until));
    desk.acquire(&agent(1)).await.expect("open");
    desk.until_lease(false).await;
    assert_eq!(desk.clock.now(), until);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_expects_another_screen_sends_nothing_and_tells_what_changed() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    let seen = desk.session.frame().watermark;
    desk.terminal.push("new prompt");
    desk.until_shown("new prompt").await;
    let order = WriteOrder {
        expect: Expectation { watermark: Some(seen), text: None },
        ..typing(&agent(1), "y")
    };
    let refused = desk.write(order).await.expect_err("changed");
    let SessionError::ScreenChanged(delta) = refused else { panic!("{refused:?}") };
    assert_eq!(delta.from, seen);
    assert!(desk.terminal.written().is_empty());
    let seen = desk.session.frame().watermark;
    let order = WriteOrder {
        expect: Expectation { watermark: Some(seen), text: Some("prompt".to_owned()) },
        ..typing(&agent(1), "y")
    };
    desk.write(order).await.expect("as it was");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_checks_everything_and_sends_nothing() {
    let desk = Desk::open();
    let order = WriteOrder { dry_run: true, ..typing(&agent(1), "x") };
    let refused = desk.write(order.clone()).await.expect_err("free");
    assert_eq!(lease_error(refused), LeaseError::Required);
    desk.acquire(&agent(1)).await.expect("free");
    desk.write(order).await.expect("would be sent");
    assert!(desk.terminal.written().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_may_only_repeat_a_write_is_answered_as_before_and_writes_nothing_new() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    let keyed =
        |key: &str| WriteOrder { key: IdempotencyKey::new(key, 7), ..typing(&agent(1), "x") };
    desk.write(keyed("a")).await.expect("written");
    let repeat = async |order: WriteOrder| {
        let mut permit = desk.session.permit(&agent(1), PermittedAct::Type);
        permit.bind(PermitBound::Repetition);
        desk.session.write(&permit, order, Accepted::nothing()).await
    };
    assert!(repeat(keyed("a")).await.expect("it was made before").replayed);
    for new in [keyed("b"), typing(&agent(1), "x")] {
        let refused = repeat(new).await.expect_err("it was never made");
        assert!(matches!(refused, SessionError::Stale), "{refused}");
    }
    assert_eq!(desk.terminal.written(), b"x");
}

#[tokio::test(start_paused = true)]
async fn what_was_approved_for_another_state_of_the_terminal_is_not_written() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    let write = async |witness: Witness| {
        let mut permit = desk.session.permit(&agent(1), PermittedAct::Type);
        permit.bind(PermitBound::Terminal(witness));
        desk.session.write(&permit, typing(&agent(1), "x"), Accepted::nothing()).await
    };
    let (frame, own) = (desk.session.frame(), agent(1).principal);
    let turns = || desk.session.live().typed().turns();
    for stale in [
        Witness { command: CommandId(7), ..Witness::of(&frame, own, None, None) },
        Witness { directory: Some("/".into()), ..Witness::of(&frame, own, None, None) },
        Witness::of(&frame, agent(2).principal, None, None),
    ] {
        let refused = write(stale.clone()).await.expect_err("it has changed");
        assert!(matches!(refused, SessionError::Stale), "{stale:?}");
    }
    assert!(desk.terminal.written().is_empty());
    write(Witness::of(&frame, own, None, Some(turns()))).await.expect("as it was");
    desk.terminal.push(b"more");
    desk.until_shown("more").await;
    let refused =
        write(Witness::of(&frame, own, None, Some(turns()))).await.expect_err("other screen");
    assert!(matches!(refused, SessionError::Stale));
    write(Witness::of(&frame, own, None, None)).await.expect("what is shown does not matter");
}

#[tokio::test(start_paused = true)]
async fn what_was_judged_before_something_else_was_typed_is_not_written_though_nothing_shows_it() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    let (frame, own) = (desk.session.frame(), agent(1).principal);
    let turns = || desk.session.live().typed().turns();
    let moment = || LineMoment { turns: turns(), prompts: frame.commands.value.prompts() };
    let judged = [
        PermitBound::Terminal(Witness::of(&frame, own, None, Some(turns()))),
        PermitBound::Line(moment()),
    ];
    desk.session.permitted_write(typing(&agent(1), "x"), Accepted::nothing()).await.expect("typed");
    let bound = async |bound: PermitBound| {
        let mut permit = desk.session.permit(&agent(1), PermittedAct::Type);
        permit.bind(bound);
        desk.session.write(&permit, typing(&agent(1), "y"), Accepted::nothing()).await
    };
    for before in judged {
        let refused = bound(before).await.expect_err("x was typed before");
        assert!(matches!(refused, SessionError::Stale), "{refused}");
    }
    let other_prompt = LineMoment { prompts: moment().prompts + 1, ..moment() };
    let refused = bound(PermitBound::Line(other_prompt)).await.expect_err("who reads is another");
    assert!(matches!(refused, SessionError::Stale), "{refused}");
    bound(PermitBound::Line(moment())).await.expect("as it is");
    assert_eq!(desk.terminal.written(), b"xy");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_write_keeps_its_lease_alive_until_it_is_let_go() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    let order = WriteOrder { keep_alive: true, ..typing(&agent(1), "x") };
    let written = desk.session.permitted_write(order, Accepted::nothing()).await;
    let kept = written.expect("the holder writes").kept;
    tokio::time::advance(Duration::from_secs(45)).await;
    let refused = desk.acquire(&agent(2)).await.expect_err("kept alive");
    assert!(matches!(lease_error(refused), LeaseError::Held { .. }));
    drop(kept);
    let start = desk.clock.now();
    desk.until_lease(false).await;
    let lasted = desk.clock.now().since(start);
    assert!(lasted >= Duration::from_secs(29) && lasted <= Duration::from_secs(31), "{lasted:?}");
}

#[tokio::test(start_paused = true)]
async fn an_ended_session_stays_readable_and_takes_no_more_input() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.terminal.push("last words");
    desk.terminal.exit(Exit::Code(3));
    let mut frames = desk.session.frames();
    let ended = frames.wait_for(|frame| frame.exit.value.is_some()).await.expect("alive").clone();
    assert_eq!(ended.exit.value, Some(Exit::Code(3)));
    assert_eq!(&*ended.lines[0].value.text, "last words");
    assert!(ended.lease.value.holding.is_none());
    let refused = desk.write(typing(&agent(1), "x")).await.expect_err("ended");
    assert!(matches!(refused, SessionError::Exited(Exit::Code(3))), "{refused:?}");
    let released = ReleaseRequest::default();
    desk.session
        .permitted_release(agent(1), released, None, Accepted::nothing())
        .await
        .expect("no error for its former holder");
    drop(frames);
    desk.task.await.expect("it is forgotten after an hour");
}

#[tokio::test(start_paused = true)]
async fn killing_an_ended_session_removes_it() {
    let desk = Desk::open();
    let kill = || ManageOrder {
        caller: agent(1),
        act: Act::Kill,
        fresh: fresh(),
        over_any_lease: false,
        bound: None,
    };
    desk.session.permitted_manage(kill(), Accepted::nothing()).await.expect("killed");
    assert!(desk.terminal.killed());
    let mut frames = desk.session.frames();
    frames.wait_for(|frame| frame.exit.value.is_some()).await.expect("alive");
    desk.session.permitted_manage(kill(), Accepted::nothing()).await.expect("removed");
    desk.task.await.expect("the task ends");
    assert!(desk.terminal.forgotten());
}

#[tokio::test(start_paused = true)]
async fn what_a_lost_terminal_left_behind_is_ended() {
    let desk = Desk::open();
    desk.terminal.exit(Exit::Unknown);
    let mut frames = desk.session.frames();
    frames.wait_for(|frame| frame.exit.value == Some(Exit::Unknown)).await.expect("alive");
    desk.wait_until(FakeTerminal::killed).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_is_not_managed_while_somebody_else_holds_it() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    let order = ManageOrder {
        caller: agent(2),
        act: Act::Kill,
        fresh: fresh(),
        over_any_lease: false,
        bound: None,
    };
    let refused = desk.session.permitted_manage(order, Accepted::nothing()).await;
    let error = lease_error(refused.expect_err("held"));
    assert!(matches!(error, LeaseError::Held { .. }));
    assert!(!desk.terminal.killed());
}

#[tokio::test(start_paused = true)]
async fn a_session_is_not_ended_as_its_creators_alone_once_another_had_its_lease() {
    let kill = async |desk: &Desk| {
        let (caller, act, over_any_lease) = (agent(1), Act::Kill, true);
        let order = ManageOrder { caller, act, fresh: fresh(), over_any_lease, bound: None };
        let mut permit = desk.session.permit(&agent(1), PermittedAct::Manage);
        permit.bind(PermitBound::Unshared);
        desk.session.manage(&permit, order, Accepted::nothing()).await
    };
    let release = async |desk: &Desk, holder: u64| {
        let (holder, released) = (agent(holder), ReleaseRequest::default());
        desk.session.permitted_release(holder, released, None, Accepted::nothing()).await
    };
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    release(&desk, 1).await.expect("its own");
    desk.acquire(&agent(2)).await.expect("free");
    let refused = kill(&desk).await.expect_err("another has it");
    assert!(matches!(refused, SessionError::Stale), "{refused}");
    release(&desk, 2).await.expect("its own");
    let refused = kill(&desk).await.expect_err("another had it");
    assert!(matches!(refused, SessionError::Stale) && !desk.terminal.killed(), "{refused}");
    let own = Desk::open();
    own.acquire(&agent(1)).await.expect("free");
    kill(&own).await.expect("its creator's alone");
    assert!(own.terminal.killed());
}

#[tokio::test(start_paused = true)]
async fn a_resize_changes_grid_and_terminal_together_and_only_when_it_differs() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    let size = Size { rows: 7, cols: 30 };
    let order = || ResizeOrder {
        caller: agent(1),
        presented: None,
        take: TakeRule::HeldOnly,
        size,
        dry_run: false,
    };
    let watermark =
        desk.session.permitted_resize(order(), Accepted::nothing()).await.expect("resized");
    let frame = desk.session.frame();
    assert_eq!((frame.size.value, frame.watermark), (size, watermark));
    desk.session.permitted_resize(order(), Accepted::nothing()).await.expect("same size");
    assert_eq!(desk.terminal.sizes(), [size]);
}

#[tokio::test(start_paused = true)]
async fn a_size_that_the_terminal_does_not_take_is_on_no_screen_and_kept_nowhere() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.terminal.refuse_sizes(true);
    let (notes, checkpoints) = (desk.terminal.notes().len(), desk.terminal.checkpoints().len());
    let size = Size { rows: 7, cols: 30 };
    let order = || ResizeOrder {
        caller: agent(1),
        presented: None,
        take: TakeRule::HeldOnly,
        size,
        dry_run: false,
    };
    let expires = desk.session.live().lease_expires_at();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let refused = desk.session.permitted_resize(order(), Accepted::nothing()).await;
    assert!(matches!(refused, Err(SessionError::Terminal(_))), "{refused:?}");
    assert_eq!(desk.session.live().lease_expires_at(), expires, "it renews nothing");
    desk.terminal.push("shown");
    assert_eq!(desk.until_shown("shown").await.size.value, SIZE);
    let kept = (desk.terminal.notes().len(), desk.terminal.checkpoints().len());
    assert_eq!(kept, (notes, checkpoints));
    desk.terminal.refuse_sizes(false);
    desk.session.permitted_resize(order(), Accepted::nothing()).await.expect("taken");
    assert_eq!((desk.session.frame().size.value, desk.terminal.sizes()), (size, vec![size]));
}

#[tokio::test(start_paused = true)]
async fn a_terminal_that_took_a_size_and_failed_then_gets_the_size_of_the_screen_back() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.terminal.deny_sizes();
    let size = Size { rows: 7, cols: 30 };
    let order = ResizeOrder {
        caller: agent(1),
        presented: None,
        take: TakeRule::HeldOnly,
        size,
        dry_run: false,
    };
    let refused = desk.session.permitted_resize(order, Accepted::nothing()).await;
    assert!(matches!(refused, Err(SessionError::Terminal(_))), "{refused:?}");
    assert_eq!((desk.session.frame().size.value, desk.terminal.sizes()), (SIZE, vec![size, SIZE]));
}

#[tokio::test(start_paused = true)]
async fn queries_of_the_program_are_answered_without_a_lease() {
    let desk = Desk::open();
    desk.terminal.push("\x1b[5n");
    assert_eq!(desk.terminal.until_written(4).await, b"\x1b[0n");
}

#[tokio::test(start_paused = true)]
async fn a_line_the_kernel_would_cut_is_refused() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    let refused = desk.write(typing(&agent(1), &"x".repeat(4_096))).await.expect_err("too long");
    assert!(matches!(refused, SessionError::LineTooLong { bytes: 4_096, .. }), "{refused:?}");
    desk.write(typing(&agent(1), &"x".repeat(4_095))).await.expect("as long as may be");
}

#[tokio::test(start_paused = true)]
async fn frames_hold_still_during_a_synchronized_update() {
    let desk = Desk::open();
    desk.terminal.push("\x1b[?2026hhalf");
    let start = desk.clock.now();
    desk.until_shown("half").await;
    let held = desk.clock.now().since(start);
    assert!(held >= Duration::from_millis(140) && held <= Duration::from_millis(160), "{held:?}");
    desk.terminal.push("\x1b[?2026h then\x1b[?2026l");
    let start = desk.clock.now();
    desk.until_shown("half then").await;
    assert!(desk.clock.now().since(start) <= Duration::from_millis(8));
}

#[tokio::test(start_paused = true)]
async fn watermarks_only_ever_grow() {
    let desk = Desk::open();
    let mut newest = Watermark::default();
    for step in 0..20 {
        desk.terminal.push(format!("step {step}\r\n"));
        let frame = desk.until_shown(&format!("step {step}")).await;
        assert!(frame.watermark > newest);
        newest = frame.watermark;
    }
}

#[tokio::test(start_paused = true)]
async fn the_directory_a_program_reports_is_shown_as_its_own() {
    let desk = Desk::open();
    desk.terminal.push("\x1b]7;file:///srv/my%20files\x07there");
    desk.until_shown("there").await;
    assert_eq!(desk.session.live().directory().as_deref(), Some("/srv/my files"));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_takes_the_lease_finds_it_in_the_frame_when_it_is_answered() {
    let desk = Desk::open();
    let order = WriteOrder {
        take: TakeRule::AndKeep(fresh(), Duration::from_secs(30)),
        keep_alive: true,
        ..typing(&agent(1), "x")
    };
    let written = desk.write(order).await.expect("taken and kept");
    let holding = desk.session.frame().lease.value.holding.clone();
    assert_eq!(holding.map(|holding| holding.epoch), written.epoch);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_vanishes_lets_its_lease_expire() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.terminal.limit_writes(Some(0));
    let order = WriteOrder { keep_alive: true, ..typing(&agent(1), "x") };
    let given_up = tokio::time::timeout(Duration::from_millis(500), desk.write(order)).await;
    assert!(given_up.is_err());
    let start = desk.clock.now();
    desk.until_lease(false).await;
    let lasted = desk.clock.now().since(start);
    assert!(lasted <= Duration::from_secs(32), "{lasted:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_write_brings_about_shows_at_once() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.terminal.push("busy");
    desk.until_shown("busy").await;
    let start = desk.clock.now();
    desk.write(typing(&agent(1), "x")).await.expect("the holder writes");
    desk.terminal.push(" echo");
    desk.until_shown("busy echo").await;
    assert_eq!(desk.clock.now(), start);
}

#[tokio::test(start_paused = true)]
async fn output_that_was_read_is_on_the_screen_before_a_write_is_judged() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    // More than is fed at once, and less than is read at once.
    let output = format!("{}new prompt", "busy\r\n".repeat(4_000));
    desk.terminal.push(&output);
    while desk.session.live().output_bytes.get() < output.len() as u64 {
        tokio::task::yield_now().await;
    }
    assert!(desk.session.frame().lines.iter().all(|line| line.value.text.is_empty()));
    let expect = Expectation { watermark: None, text: Some("new prompt".to_owned()) };
    desk.write(WriteOrder { expect, ..typing(&agent(1), "y") }).await.expect("it was read");
}
