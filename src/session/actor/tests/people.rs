//! People at the keyboard of a session over a terminal in memory.

use tokio::task::JoinSet;

use super::*;
use crate::core::input::idempotency::IdempotencyKey;
use crate::session::command::{TypedInput, Written};

const VIEW: Size = Size { rows: 30, cols: 90 };

fn person(number: u64) -> Caller {
    Caller { kind: Kind::Human, label: Arc::from("person"), ..agent(number) }
}

fn keyboard(bytes: &[u8]) -> TypedInput {
    TypedInput { bytes: bytes.to_vec(), key: None, view: None }
}

impl Desk {
    async fn type_in(&self, who: u64, bytes: &[u8]) -> Result<Written, SessionError> {
        self.session.permitted_type_in(person(who), keyboard(bytes)).await
    }

    async fn take_over(&self, who: u64) -> Result<(), SessionError> {
        self.session.permitted_take_over(person(who), Some(VIEW)).await
    }

    fn holder(&self) -> Option<u64> {
        let frame = self.session.frame();
        frame.lease.value.holding.as_ref().map(|holding| holding.by.principal.number())
    }

    fn suspended(&self) -> Option<u64> {
        let frame = self.session.frame();
        frame.lease.value.suspended.as_ref().map(|holding| holding.by.principal.number())
    }

    async fn until_holder(&self, who: u64) -> Arc<Frame> {
        let mut frames = self.session.frames();
        let holds = |frame: &Arc<Frame>| {
            let holding = frame.lease.value.holding.as_ref();
            holding.is_some_and(|holding| holding.by.principal == PrincipalId::Connection(who))
        };
        Arc::clone(&frames.wait_for(holds).await.expect("the session lives"))
    }
}

fn looking(caller: &Caller, text: &str, seen: Watermark) -> WriteOrder {
    let expect = Expectation { watermark: Some(seen), text: None };
    WriteOrder { expect, ..typing(caller, text) }
}

#[tokio::test(start_paused = true)]
async fn a_person_types_while_an_agent_holds_and_the_agent_is_suspended() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    let written = desk.type_in(5, b"ls\r\x1b[A").await.expect("people come first");
    assert_eq!(desk.terminal.written(), b"ls\r\x1b[A");
    assert_eq!((written.outcome.written, written.outcome.queued), (6, 0));
    assert_eq!((desk.holder(), desk.suspended()), (Some(5), Some(1)));
    let refused = desk.write(typing(&agent(1), "x")).await.expect_err("suspended");
    assert!(matches!(lease_error(refused), LeaseError::Suspended { .. }));
    let refused = desk.acquire(&agent(2)).await.expect_err("a person holds");
    let error = lease_error(refused);
    assert!(matches!(error, LeaseError::Held { kind: Kind::Human, .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn ten_seconds_after_the_last_key_the_agent_goes_on_with_a_look_at_the_screen() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    let before = desk.session.frame().watermark;
    desk.type_in(5, b"x").await.expect("typed");
    let start = desk.clock.now();
    let back = desk.until_holder(1).await;
    let waited = desk.clock.now().since(start);
    assert!(waited >= Duration::from_secs(10), "{waited:?}");
    assert!(waited <= Duration::from_millis(10_100), "{waited:?}");
    for order in [typing(&agent(1), "a"), looking(&agent(1), "a", before)] {
        let refused = desk.write(order).await.expect_err("blind");
        assert!(
            matches!(
                refused,
                SessionError::Write(WriteError::NotSeen { .. }) | SessionError::ScreenChanged(_)
            ),
            "{refused:?}"
        );
    }
    desk.write(looking(&agent(1), "b", back.watermark)).await.expect("it has looked");
    desk.write(typing(&agent(1), "c")).await.expect("once is enough");
    assert_eq!(desk.terminal.written(), b"xbc");
}

#[tokio::test(start_paused = true)]
async fn a_look_that_no_longer_matches_is_no_look() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.type_in(5, b"x").await.expect("typed");
    desk.session.hand_back(person(5)).await.expect("alive");
    let back = desk.until_holder(1).await;
    desk.terminal.push("something else");
    desk.until_shown("something").await;
    let refused = desk.write(looking(&agent(1), "a", back.watermark)).await.expect_err("changed");
    assert!(matches!(refused, SessionError::ScreenChanged(_)), "{refused:?}");
    let seen = desk.session.frame().watermark;
    desk.write(looking(&agent(1), "b", seen)).await.expect("it has looked again");
}

#[tokio::test(start_paused = true)]
async fn handing_back_and_leaving_let_the_agent_go_on_at_once() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.type_in(5, b"x").await.expect("typed");
    assert!(desk.session.hand_back(person(5)).await.expect("alive"));
    assert_eq!(desk.holder(), Some(1));
    assert!(!desk.session.hand_back(person(5)).await.expect("alive"), "it has nothing left");
    desk.take_over(5).await.expect("a person may");
    let start = desk.clock.now();
    desk.session.connection_closed(ConnectionId(5));
    desk.until_holder(1).await;
    desk.take_over(6).await.expect("a person may");
    desk.session.detached(PrincipalId::Connection(6));
    desk.until_holder(1).await;
    assert_eq!(desk.clock.now(), start);
}

#[tokio::test(start_paused = true)]
async fn what_was_typed_before_leaving_still_goes_out() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    let first = desk.type_in(5, b"a");
    let second = async {
        let typing_on = desk.type_in(5, b"b");
        tokio::pin!(typing_on);
        // Once polled, it is on its way; the person leaves before it is answered.
        let early = std::future::poll_fn(|context| {
            std::task::Poll::Ready(typing_on.as_mut().poll(context).is_ready())
        });
        assert!(!early.await);
        desk.session.detached(PrincipalId::Connection(5));
        typing_on.await
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first.expect("typed").outcome.written, 1);
    assert_eq!(second.expect("typed").outcome.written, 1);
    assert_eq!(desk.terminal.written(), b"ab");
    desk.until_holder(1).await;
}

#[tokio::test(start_paused = true)]
async fn who_took_over_keeps_other_people_out_until_they_take_over_too() {
    let desk = Desk::open();
    desk.take_over(5).await.expect("free");
    let refused = desk.type_in(6, b"x").await.expect_err("taken over");
    assert!(matches!(lease_error(refused), LeaseError::Held { kind: Kind::Human, .. }));
    desk.take_over(6).await.expect("a person may");
    desk.type_in(6, b"y").await.expect("now it may");
    assert_eq!(desk.terminal.written(), b"y");
}

#[tokio::test(start_paused = true)]
async fn the_session_takes_the_size_of_whoever_has_the_keyboard() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    let resized = desk.session.permitted_resize_for_person(person(5), VIEW).await;
    assert!(!resized.expect("alive"), "it has no keyboard yet");
    assert_eq!(desk.terminal.sizes(), []);
    let typed = TypedInput { view: Some(VIEW), ..keyboard(b"x") };
    desk.session.permitted_type_in(person(5), typed).await.expect("typed");
    assert_eq!(desk.session.frame().size.value, VIEW);
    let smaller = Size { rows: 10, cols: 40 };
    let resized = desk.session.permitted_resize_for_person(person(5), smaller).await;
    assert!(resized.expect("alive"));
    assert_eq!(desk.terminal.sizes(), [VIEW, smaller]);
    let order = ResizeOrder {
        caller: agent(1),
        presented: None,
        take: TakeRule::HeldOnly,
        size: SIZE,
        dry_run: false,
    };
    let refused = desk.session.permitted_resize(order, Accepted::nothing()).await;
    let error = lease_error(refused.expect_err("suspended"));
    assert!(matches!(error, LeaseError::Suspended { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_again_under_its_key_is_typed_once() {
    let desk = Desk::open();
    let typed = || TypedInput { key: IdempotencyKey::new("one", 1), ..keyboard(b"ls") };
    // As by somebody whose connection broke.
    for (who, replayed) in [(5, false), (6, true)] {
        let written = desk.session.permitted_type_in(person(who), typed()).await.expect("typed");
        assert_eq!((written.outcome.written, written.replayed), (2, replayed));
    }
    let other =
        TypedInput { bytes: b"rm".to_vec(), key: IdempotencyKey::new("two", 2), view: None };
    desk.session.permitted_type_in(person(6), other).await.expect("typed");
    assert_eq!(desk.terminal.written(), b"lsrm");
}

#[tokio::test(start_paused = true)]
async fn a_persons_lone_interrupt_goes_past_what_is_stuck() {
    let desk = Desk::open();
    desk.terminal.limit_writes(Some(1));
    let stuck = desk.type_in(5, b"abc");
    let interrupt = async {
        desk.terminal.until_written(1).await;
        let interrupting = desk.type_in(5, b"\x03");
        let freeing = async { desk.terminal.limit_writes(None) };
        tokio::join!(interrupting, freeing).0
    };
    let (stuck, interrupt) = tokio::join!(stuck, interrupt);
    let outcome = stuck.expect("answered").outcome;
    assert_eq!((outcome.written, outcome.discarded), (1, 2));
    assert_eq!(interrupt.expect("typed").outcome.written, 1);
    assert_eq!(desk.terminal.written(), b"a\x03");
}

#[tokio::test(start_paused = true)]
async fn a_persons_paste_that_is_cut_short_is_closed() {
    let desk = Desk::open();
    desk.type_in(5, b"\x1b[200~one\rtw").await.expect("typed");
    desk.type_in(5, b"o\r").await.expect("typed");
    desk.session.hand_back(person(5)).await.expect("alive");
    assert_eq!(desk.terminal.written(), b"\x1b[200~one\rtwo\r\x1b[201~");
}

#[tokio::test(start_paused = true)]
async fn the_rest_of_a_paste_that_another_person_cut_short_is_no_line_of_keys() {
    let desk = Desk::open();
    desk.type_in(5, b"\x1b[200~one\r").await.expect("typed");
    desk.type_in(6, b"x").await.expect("another person");
    desk.type_in(5, b"two\r\x1b[201~").await.expect("typed");
    desk.type_in(5, b"\r").await.expect("typed");
    let expected = b"\x1b[200~one\r\x1b[201~x\x1b[200~two\r\x1b[201~\r";
    assert_eq!(
        desk.terminal.written().escape_ascii().to_string(),
        expected.escape_ascii().to_string()
    );
}

/// A paste of which one part was too much, and what the program is given of it all.
async fn refused_in_between(parts: [&[u8]; 3]) -> String {
    let desk = Desk::open();
    desk.type_in(5, parts[0]).await.expect("typed");
    let much = [b"x".repeat(Input::QUEUE_BYTES_MAX).as_slice(), parts[1]].concat();
    let much = if parts[0].is_empty() { [parts[1], much.as_slice()].concat() } else { much };
    let refused = desk.type_in(5, &much).await.expect_err("too much");
    assert!(
        matches!(refused, SessionError::Write(WriteError::TooMuchQueued { .. })),
        "{refused:?}"
    );
    desk.type_in(5, parts[2]).await.expect("typed");
    desk.terminal.written().escape_ascii().to_string()
}

#[tokio::test(start_paused = true)]
async fn a_paste_goes_on_as_one_when_a_part_of_it_was_refused() {
    for (parts, expected) in [
        ([&b"\x1b[200~one\r"[..], b"-", b"two\r\x1b[201~"], &b"\x1b[200~one\rtwo\r\x1b[201~"[..]),
        // Its end, or its beginning, was among what was refused.
        ([b"\x1b[200~one\r", b"\x1b[201~", b"two\r"], b"\x1b[200~one\r\x1b[201~two\r"),
        ([b"", b"\x1b[200~", b"two\r\x1b[201~"], b"\x1b[200~two\r\x1b[201~"),
    ] {
        let given = refused_in_between(parts).await;
        assert_eq!(given, expected.escape_ascii().to_string(), "{parts:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_person_types_comes_before_a_line_full_of_agents_commands() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    let mut agents = JoinSet::new();
    for _ in 0..=COMMANDS_MAX {
        let session = desk.session.clone();
        let order = typing(&agent(1), "a");
        agents.spawn(async move { session.permitted_write(order, Accepted::nothing()).await });
    }
    // Spawned last, it asks last, when there is no place in the line any more.
    let session = desk.session.clone();
    let typing_in = tokio::spawn(async move {
        session.permitted_type_in(person(5), keyboard(b"P")).await.map(|written| written.outcome)
    });
    let outcome = typing_in.await.expect("no panic").expect("people come first");
    assert_eq!(outcome.written, 1);
    let answers = agents.join_all().await;
    assert!(answers.iter().any(|answer| matches!(answer, Err(SessionError::Busy))));
    assert_eq!(desk.terminal.written(), b"P");
}

#[tokio::test(start_paused = true)]
async fn a_person_is_refused_where_the_program_has_ended_or_writing_is_off() {
    let desk = Desk::open();
    desk.session.set_window(WriteWindow::Closed);
    let refused = desk.type_in(5, b"x").await.expect_err("off");
    assert!(matches!(refused, SessionError::Write(WriteError::ReadOnly)), "{refused:?}");
    desk.session.set_window(WriteWindow::Open);
    desk.terminal.exit(Exit::Code(0));
    let mut frames = desk.session.frames();
    frames.wait_for(|frame| frame.exit.value.is_some()).await.expect("kept");
    let refused = desk.type_in(5, b"x").await.expect_err("ended");
    assert!(matches!(refused, SessionError::Exited(Exit::Code(0))), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn all_who_are_attached_can_be_told_to_leave() {
    let desk = Desk::open();
    let mut detaches = desk.session.live().detaches();
    desk.session.live().detach_all();
    detaches.changed().await.expect("the session lives");
}

/// Rounds in which an agent and a person type at once, while the terminal takes little.
#[tokio::test(start_paused = true)]
async fn in_a_thousand_races_no_byte_is_mixed_and_no_epoch_decreases() {
    const RACES: u64 = 1_000;
    let desk = Desk::open();
    let mut expected = Vec::new();
    let mut both = 0;
    for round in 0..RACES {
        // Too long ago, or lost in the round before: taken anew.
        let _ = desk.acquire(&agent(1)).await;
        let (agents, persons) = race(&desk, round).await;
        both += usize::from(agents.is_some() && persons.is_some());
        let mut written: Vec<_> = [agents, persons].into_iter().flatten().collect();
        written.sort_by_key(|(epoch, _)| *epoch);
        expected.extend(written);
        desk.session.hand_back(person(5)).await.expect("alive");
    }
    assert!(both > 100, "{both} races in which both wrote");
    assert!(expected.is_sorted_by_key(|(epoch, _)| *epoch), "an epoch decreases");
    let expected: Vec<u8> = expected.into_iter().flat_map(|(_, bytes)| bytes).collect();
    let log = desk.terminal.written();
    assert!(log == expected, "{}\n{}", log.escape_ascii(), expected.escape_ascii());
}

/// What each wrote in the end, and under which epoch.
type Raced = Option<(Epoch, Vec<u8>)>;

async fn race(desk: &Desk, round: u64) -> (Raced, Raced) {
    // Any sequence that visits many combinations will do.
    let luck = round.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let pause = |shift: u32| luck >> shift & 3;
    desk.terminal.limit_writes(Some((luck % 12) as usize));
    let (of_agent, of_person) = (format!("a{round:04}."), format!("P{round:04},"));
    let agents = async {
        wait_turns(pause(8)).await;
        let seen = desk.session.frame().watermark;
        desk.write(looking(&agent(1), &of_agent, seen)).await.ok()
    };
    let persons = async {
        wait_turns(pause(10)).await;
        desk.type_in(5, of_person.as_bytes()).await.ok()
    };
    let giving_room = async {
        wait_turns(4 + pause(12)).await;
        desk.terminal.limit_writes(None);
    };
    let (agents, persons, ()) = tokio::join!(agents, persons, giving_room);
    let raced = |written: Option<Written>, text: &str| {
        let Written { outcome, epoch, .. } = written?;
        assert_eq!(outcome.queued, 0);
        assert_eq!(outcome.written + outcome.discarded, text.len());
        Some((epoch.expect("written"), text.as_bytes()[..outcome.written].to_vec()))
    };
    (raced(agents, &of_agent), raced(persons, &of_person))
}

/// Lets the other tasks have as many turns.
async fn wait_turns(count: u64) {
    for _ in 0..count {
        tokio::task::yield_now().await;
    }
}
