//! A task that fails: at each of its calls of a part, and again and again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::core::ids::{Epoch, RowNumber, TenantId};
use crate::core::input::idempotency::IdempotencyKey;
use crate::core::input::idempotency::earlier_writes::WriteStamp;
use crate::core::lease::view::{LeaseChange, LeaseEvent};
use crate::session::actor::restart::{Fallback, SENT_MAX};
use crate::session::command::{Provision, TypedInput};
use crate::session::pty::Note;
use crate::session::records::lease::from_note;
use crate::session::tests::faults;

/// How long the program's last words may take to be kept.
const A_WHILE: Duration = Duration::from_secs(5);

/// What is asked again and again, until it is done.
const ATTEMPTS: usize = 20;

fn person(number: u64) -> Caller {
    Caller { kind: Kind::Human, label: Arc::from("ada"), ..agent(number) }
}

fn key(text: &str) -> Option<IdempotencyKey> {
    IdempotencyKey::new(text, 7)
}

/// Lets so many calls of parts go well and the next ones fail, while this plays; says whether any failed.
fn play<F: Future<Output = ()>>(after: usize, times: usize, story: impl FnOnce() -> F) -> bool {
    let mut paused = tokio::runtime::Builder::new_current_thread();
    let runtime = paused.enable_all().start_paused(true).build().expect("a runtime");
    faults::set(after, times);
    runtime.block_on(story());
    faults::clear()
}

/// Plays it with a failure at each call of a part, one after the other.
fn play_at_every_call<F: Future<Output = ()>>(story: impl Fn() -> F) {
    let calls = (0..).take_while(|after| play(*after, 1, &story)).count();
    assert!(calls > 30, "{calls} calls of parts");
}

/// All rows that can be read, the oldest first, without those that are empty.
fn rows(frame: &Frame) -> Vec<String> {
    let history = frame.history.range(RowNumber(0), frame.history.end());
    let history = history.map(|(_, row)| row.text.to_owned());
    let shown = frame.lines.iter().map(|line| line.value.text.to_string());
    history.chain(shown).filter(|row| !row.trim().is_empty()).collect()
}

impl Desk {
    /// Asks until it is answered by something else than a failure.
    async fn insist<T>(
        &self,
        ask: impl AsyncFn() -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        for _ in 0..ATTEMPTS {
            match ask().await {
                Err(SessionError::Restarted) => {}
                answer => return answer,
            }
        }
        panic!("it fails again and again");
    }

    /// Writes a text once, with a lease that is taken for the call.
    async fn write_alone(&self, text: &str) -> Result<bool, SessionError> {
        let take = TakeRule::ForThisCall(fresh());
        match self.write(WriteOrder { take, ..typing(&agent(1), text) }).await {
            Ok(written) => Ok(written.outcome.written == text.len()),
            Err(SessionError::Restarted) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn type_once(&self, text: &str) -> Result<bool, SessionError> {
        let typed = TypedInput { bytes: text.into(), key: None, view: None };
        match self.session.permitted_type_in(person(5), typed).await {
            Ok(written) => Ok(written.outcome.written == text.len()),
            Err(SessionError::Restarted) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn resize_to(&self, size: Size) -> Result<Watermark, SessionError> {
        let take = TakeRule::ForThisCall(fresh());
        let order = ResizeOrder { caller: agent(1), presented: None, take, size, dry_run: false };
        self.session.permitted_resize(order, Accepted::nothing()).await
    }

    async fn kill(&self) -> Result<(), SessionError> {
        let (caller, act) = (agent(1), Act::Kill);
        let kill = ManageOrder { caller, act, fresh: fresh(), over_any_lease: false, bound: None };
        let killing = self.session.permitted_manage(kill, Accepted::nothing());
        tokio::time::timeout(Duration::from_secs(60), killing).await.expect("it is answered")
    }

    fn told_of_leases(&self) -> Vec<LeaseEvent> {
        self.facts.take().leases.into_values().collect()
    }

    /// Has the task fail at its next call of a part, and waits until it goes on.
    async fn fail(&self) {
        faults::set(0, 1);
        self.session.set_window(WriteWindow::Open);
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(faults::clear(), "it failed");
    }
}

/// A program that writes and is written to by an agent and a person, with a lease that changes hands.
async fn a_life(outlives_daemon: bool) {
    let desk = Desk::open();
    if !outlives_daemon {
        desk.terminal.belong_to_daemon();
    }
    desk.terminal.ask_for_checkpoints(30);
    let line = |number: usize| format!("line {number}\r\n");
    desk.terminal.push((0..4).map(line).collect::<String>());
    desk.until_shown("line 3").await;
    let mut taken = BTreeMap::new();
    taken.insert("first;", desk.write_alone("first;").await.expect("free"));
    desk.terminal.push("\x1b[5n");
    desk.terminal.push((4..9).map(line).collect::<String>());
    desk.insist(async || desk.acquire(&agent(8)).await).await.expect("free");
    taken.insert("PERSON;", desk.type_once("PERSON;").await.expect("people come first"));
    desk.session.connection_closed(ConnectionId(8));
    desk.session.detached(person(5).principal);
    let preempt = async || desk.session.permitted_preempt(&agent(9)).await;
    desk.insist(preempt).await.expect("alive");
    desk.insist(async || desk.resize_to(Size { rows: 4, cols: 20 }).await).await.expect("free");
    desk.terminal.push((9..14).map(line).collect::<String>());
    desk.until_shown("line 13").await;
    taken.insert("last;", desk.write_alone("last;").await.expect("free"));
    tokio::time::sleep(A_WHILE).await;

    let frame = desk.session.frame();
    let expected: Vec<String> = (0..14).map(|number| format!("line {number}")).collect();
    assert_eq!(rows(&frame), expected, "neither lost nor doubled");
    assert_eq!((frame.size.value, frame.exit.value), (Size { rows: 4, cols: 20 }, None));
    assert!(!desk.terminal.killed() && !desk.terminal.forgotten() && !desk.task.is_finished());
    assert_eq!(desk.session.live().output_bytes.get(), 4 + 14 * 8 + 4);
    let written = String::from_utf8(desk.terminal.written()).expect("text");
    assert_eq!(written.matches("\x1b[0n").count(), 1, "{written:?}");
    for (text, was_taken) in taken {
        let times = written.matches(text).count();
        assert!(times == 1 || times == 0 && !was_taken, "{text} {times} times: {written:?}");
    }
    let epochs: Vec<_> = desk.terminal.stamps().iter().filter_map(|stamp| stamp.epoch).collect();
    assert!(epochs.is_sorted(), "{epochs:?}");
    let view = &frame.lease.value;
    assert_eq!((view.holding.as_ref(), view.suspended.as_ref(), view.waiters), (None, None, 0));
    desk.insist(async || desk.acquire(&agent(2)).await).await.expect("it goes on");
}

#[test]
fn a_task_that_fails_at_any_call_of_a_part_loses_neither_the_session_nor_a_byte() {
    play_at_every_call(|| a_life(true));
}

#[test]
fn a_task_over_a_terminal_of_the_daemons_own_that_fails_loses_nothing_either() {
    play_at_every_call(|| a_life(false));
}

/// A program that ends, and a session that is killed and removed.
async fn an_end() {
    let desk = Desk::open();
    desk.terminal.push("last words");
    desk.terminal.exit(Exit::Code(3));
    let mut frames = desk.session.frames();
    let ended = frames.wait_for(|frame| frame.exit.value.is_some()).await.expect("alive").clone();
    drop(frames);
    assert_eq!(ended.exit.value, Some(Exit::Code(3)));
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(rows(&desk.session.frame()), ["last words"]);
    match desk.insist(async || desk.kill().await).await {
        Ok(()) | Err(SessionError::Closed) => {}
        Err(error) => panic!("{error}"),
    }
    desk.session.closed().await;
    desk.task.await.expect("the task ends");
    assert!(desk.terminal.forgotten());
}

#[test]
fn the_end_of_a_program_is_told_and_its_session_removed_whatever_fails() {
    play_at_every_call(an_end);
}

#[test]
fn who_kills_a_session_whose_task_fails_is_answered_and_it_is_killed() {
    play_at_every_call(|| async {
        let desk = Desk::open();
        desk.insist(async || desk.kill().await).await.expect("killed");
        assert!(desk.terminal.killed());
        assert!(desk.session.frame().exit.value.is_some());
        desk.terminal.push("");
        tokio::time::sleep(A_WHILE).await;
        assert!(!desk.task.is_finished(), "it stays readable");
    });
}

#[test]
fn a_session_that_fails_while_its_daemon_parts_from_it_is_parted_from() {
    for parting in [Parting::Leave, Parting::End] {
        play_at_every_call(|| async move {
            let desk = Desk::open();
            desk.terminal.push("hello");
            desk.until_shown("hello").await;
            desk.session.part(parting);
            desk.task.await.expect("the task ends");
            let ended = parting == Parting::End;
            assert_eq!((desk.terminal.killed(), desk.terminal.forgotten()), (ended, ended));
        });
    }
}

#[test]
fn a_session_that_fails_for_ever_is_parted_from_and_its_program_left_alone() {
    let failed = play(20, usize::MAX, || async {
        let desk = Desk::open();
        desk.terminal.push("hello");
        tokio::time::sleep(A_WHILE).await;
        assert!(!desk.task.is_finished() && !desk.terminal.killed());
        desk.session.part(Parting::Leave);
        desk.task.await.expect("the task ends");
        assert!(!desk.terminal.killed() && !desk.terminal.forgotten());
    });
    assert!(failed);
}

#[test]
fn many_failures_at_once_end_what_was_on_the_screen_and_neither_program_nor_session() {
    for times in 2..8 {
        for after in (0..200).step_by(9) {
            play(after, times, || async {
                let desk = Desk::open();
                desk.terminal.push("one\r\n");
                tokio::time::sleep(A_WHILE).await;
                desk.terminal.push("two\r\n");
                tokio::time::sleep(A_WHILE).await;
                desk.terminal.push("three");
                desk.until_shown("three").await;
                let shown = rows(&desk.session.frame());
                assert!(shown.iter().filter(|row| *row == "two").count() <= 1, "{shown:?}");
                assert!(!desk.terminal.killed() && !desk.task.is_finished());
                desk.insist(async || desk.acquire(&agent(1)).await).await.expect("free");
            });
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_third_failure_within_a_minute_ends_the_state_of_the_emulator_and_is_told_as_a_gap() {
    let desk = Desk::open();
    desk.terminal.push("\x1b[?1049hfull screen");
    desk.until_shown("full screen").await;
    for _ in 0..2 {
        desk.fail().await;
        assert_eq!(rows(&desk.session.frame()), ["full screen"]);
        assert!(desk.session.live().gaps().as_slice().is_empty());
    }
    desk.fail().await;
    assert_eq!(rows(&desk.session.frame()), Vec::<String>::new());
    assert_eq!(desk.session.live().gaps().as_slice().len(), 1);
    // A minute later, it is a failure like any other.
    tokio::time::sleep(Duration::from_secs(61)).await;
    desk.terminal.push("more");
    desk.until_shown("more").await;
    tokio::time::sleep(A_WHILE).await;
    desk.fail().await;
    assert_eq!(rows(&desk.session.frame()), ["more"]);
}

#[tokio::test(start_paused = true)]
async fn the_holder_and_who_is_suspended_are_told_and_every_epoch_is_higher() {
    let desk = Desk::open();
    let lease = desk.acquire(&agent(1)).await.expect("free");
    desk.session.permitted_take_over(person(5), None).await.expect("people come first");
    let before = desk.session.frame();
    let newest = before.lease.value.holding.as_ref().map(|holding| holding.epoch).expect("held");
    desk.told_of_leases();
    desk.fail().await;
    let told = desk.told_of_leases();
    let restarted = LeaseChange::Ended(EndCause::SessionRestarted);
    assert!(told.iter().all(|event| event.change == restarted), "{told:?}");
    let mut holders: Vec<_> = told.iter().map(|event| event.holder.connection.0).collect();
    holders.sort_unstable();
    assert_eq!(holders, [1, 5]);
    let after = desk.session.frame();
    assert!(after.watermark > before.watermark && after.lease.value.holding.is_none());
    let note = desk.terminal.note(Note::Lease).expect("it is kept");
    assert_eq!(from_note(&note).expect("just written").holding, None);
    let order = WriteOrder { presented: Some(lease), ..typing(&agent(1), "x") };
    let refused = lease_error(desk.write(order).await.expect_err("lost"));
    assert_eq!(refused, LeaseError::Lost { cause: EndCause::SessionRestarted });
    desk.acquire(&agent(2)).await.expect("free");
    let holding = desk.session.frame().lease.value.holding.clone();
    assert!(holding.expect("held").epoch > newest);
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_told_that_the_session_was_restarted_and_nobody_is_taken_for_another() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.terminal.limit_writes(Some(0));
    let second = agent(2);
    let waiting = desk.acquire_within(&second, Duration::from_secs(600));
    let writing = desk.write(typing(&agent(1), "x"));
    let failing = async {
        let mut frames = desk.session.frames();
        frames.wait_for(|frame| frame.lease.value.waiters == 1).await.expect("alive");
        drop(frames);
        desk.fail().await;
    };
    let (waited, written, ()) = tokio::join!(waiting, writing, failing);
    assert!(matches!(waited, Err(SessionError::Restarted)), "{waited:?}");
    assert!(matches!(written, Err(SessionError::Restarted)), "{written:?}");
    desk.terminal.limit_writes(None);
    desk.acquire(&agent(3)).await.expect("free");
    assert!(desk.terminal.written().is_empty(), "what was queued is gone");
    // A name of before that is given up late is nobody's now.
    let third = agent(4);
    let waiting = desk.acquire_within(&third, Duration::from_secs(600));
    let giving_up = async {
        let mut frames = desk.session.frames();
        frames.wait_for(|frame| frame.lease.value.waiters == 1).await.expect("alive");
        desk.urgent.post(|entries| entries.cancelled.extend([WaiterId(1)]));
        tokio::time::sleep(A_WHILE).await;
        assert_eq!(desk.session.frame().lease.value.waiters, 1);
        desk.session.permitted_preempt(&agent(9)).await.expect("alive");
    };
    tokio::join!(waiting, giving_up).0.expect("its turn");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_made_is_not_made_again_and_one_that_was_begun_says_how_far_it_came() {
    let desk = Desk::open();
    let lease = desk.acquire(&agent(1)).await.expect("free");
    let order = |text: &str, name: &str| WriteOrder {
        presented: Some(lease),
        key: key(name),
        ..typing(&agent(1), text)
    };
    desk.write(order("made", "a")).await.expect("held");
    desk.terminal.limit_writes(Some(2));
    let begun = desk.write(order("begun", "b"));
    let failing = async {
        desk.terminal.until_written(6).await;
        desk.fail().await;
    };
    let (begun, ()) = tokio::join!(begun, failing);
    assert!(matches!(begun, Err(SessionError::Restarted)), "{begun:?}");
    desk.terminal.limit_writes(None);
    let made = desk.write(order("made", "a")).await.expect("it was made");
    assert_eq!((made.replayed, made.outcome.written), (true, 4));
    let begun = desk.write(order("begun", "b")).await.expect("it was begun");
    assert_eq!((begun.replayed, begun.outcome.written, begun.outcome.discarded), (true, 2, 3));
    assert_eq!(desk.terminal.written(), b"madebe");
}

#[tokio::test(start_paused = true)]
async fn a_line_that_was_judged_before_a_failure_counts_no_more_after_it() {
    let desk = Desk::open();
    desk.write_alone("x").await.expect("written");
    let judged = desk.session.live().typed().turns();
    desk.fail().await;
    // As often as something was typed before.
    while desk.session.live().typed().turns() < judged {
        desk.write_alone("y").await.expect("written");
    }
    desk.acquire(&agent(1)).await.expect("free");
    let mut permit = desk.session.permit(&agent(1), PermittedAct::Type);
    permit.bind(PermitBound::Line(LineMoment { turns: judged, prompts: 0 }));
    let written = desk.session.write(&permit, typing(&agent(1), "z"), Accepted::nothing()).await;
    assert!(matches!(written, Err(SessionError::Stale)), "{written:?}");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_made_is_not_made_again_by_a_caller_that_shows_no_lease() {
    let desk = Desk::open();
    let order = |who: &Caller, text: &str| WriteOrder { key: key("a"), ..typing(who, text) };
    desk.acquire(&agent(1)).await.expect("free");
    desk.write(order(&agent(1), "made")).await.expect("held");
    for _ in 0..2 {
        desk.fail().await;
        desk.acquire(&agent(1)).await.expect("free");
        let made = desk.write(order(&agent(1), "made")).await.expect("it was made");
        assert_eq!((made.replayed, made.outcome.written), (true, 4));
    }
    desk.session.connection_closed(ConnectionId(1));
    desk.session.permitted_preempt(&agent(9)).await.expect("alive");
    desk.acquire(&agent(2)).await.expect("free");
    let others = desk.write(order(&agent(2), "more")).await.expect("a key of its own");
    assert!(!others.replayed);
    assert_eq!(desk.terminal.written(), b"mademore");
}

#[tokio::test(start_paused = true)]
async fn what_was_posted_when_it_failed_is_done_after_it() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    faults::set(0, 1);
    desk.session.set_window(WriteWindow::Closed);
    desk.session.connection_closed(ConnectionId(7));
    desk.session.spare_commands();
    tokio::time::sleep(A_WHILE).await;
    assert!(faults::clear());
    let refused = desk.acquire(&agent(2)).await.expect_err("closed");
    assert!(matches!(refused, SessionError::Write(WriteError::ReadOnly)), "{refused:?}");
    desk.session.set_window(WriteWindow::Open);
    // What comes late of a connection that has ended has no effect.
    let caller = agent(7);
    let late = tokio::time::timeout(A_WHILE, desk.acquire(&caller)).await;
    assert!(!matches!(late, Ok(Ok(_))), "{late:?}");
    assert!(desk.session.frame().lease.value.holding.is_none());
}

/// Notes its own end.
struct Needed(Arc<AtomicBool>);

impl Drop for Needed {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_command_needs_is_kept_over_a_failure_until_it_has_ended() {
    let desk = Desk::open();
    desk.terminal.push("# ");
    desk.until_shown("#").await;
    let dropped = Arc::new(AtomicBool::new(false));
    let command = crate::session::command::CommandOrder {
        text: "make".to_owned(),
        typed: "make".to_owned(),
        ends_by: crate::core::shell::commands::EndsBy::Kernel,
        provision: Some(Provision::of(Needed(Arc::clone(&dropped)))),
        interrupts: false,
    };
    let take = TakeRule::ForThisCall(fresh());
    let order = WriteOrder { command: Some(command), take, ..typing(&agent(1), "make\n") };
    let id = desk.write(order).await.expect("free").command.expect("it is a command").id;
    desk.fail().await;
    let record = desk.session.frame().commands.value.get(id).cloned().expect("it is known");
    assert!(record.finish.is_none() && !dropped.load(Ordering::Relaxed));
    desk.terminal.push("make\r\nout\r\n# ");
    let mut frames = desk.session.frames();
    let ended = |frame: &Arc<Frame>| {
        frame.commands.value.get(id).is_some_and(|record| record.finish.is_some())
    };
    frames.wait_for(ended).await.expect("the session lives");
    tokio::time::sleep(A_WHILE).await;
    assert!(dropped.load(Ordering::Relaxed));
}

#[test]
fn what_people_type_makes_no_write_of_an_agent_forgotten() {
    let agents = Stamp { write: Some(WriteStamp([1; 16])), ..Stamp::default() };
    let persons = |number: u8| {
        let key = IdempotencyKey::new(&number.to_string(), 1).expect("short");
        let write = WriteStamp::of_person(&TenantId::of_uid(1), &key);
        Stamp { write: Some(write), ..Stamp::default() }
    };
    let lease = LeaseManager::new(Epoch(0), LeaseLimits::default());
    let mut reserve = Fallback::begin(&Input::new(lease, WriteWindow::Open), 0, false);
    reserve.on_taken(agents, None, b"abc");
    for number in 0..=100 {
        reserve.on_taken(persons(number), None, b"a");
    }
    let sent: Vec<_> = reserve.sent().map(|write| write.stamp).collect();
    assert_eq!(sent.len(), 1 + SENT_MAX);
    assert_eq!(Some(sent[0]), agents.write);
    assert_eq!(sent.last().copied(), persons(100).write);
    for number in 2..=200 {
        reserve.on_taken(
            Stamp { write: Some(WriteStamp([number % 128; 16])), ..agents },
            None,
            b"a",
        );
    }
    assert_eq!(reserve.sent().filter(|write| !write.stamp.is_persons()).count(), SENT_MAX);
}

#[test]
fn who_lost_its_lease_is_told_so_whatever_fails_at_that_moment() {
    let ended = |event: &LeaseEvent| matches!(event.change, LeaseChange::Ended(_));
    play_at_every_call(|| async {
        let desk = Desk::open();
        let asking = async || desk.be_granted(&agent(1), Duration::ZERO).await;
        let epoch = desk.insist(asking).await.expect("free").epoch;
        let preempt = async || desk.session.permitted_preempt(&agent(9)).await;
        desk.insist(preempt).await.expect("alive");
        desk.until_lease(false).await;
        tokio::time::sleep(A_WHILE).await;
        let told = desk.told_of_leases();
        assert!(told.iter().any(|event| event.epoch == epoch && ended(event)), "{told:?}");
    });
}

#[tokio::test(start_paused = true)]
async fn a_failure_in_the_middle_of_a_paste_closes_it_before_anything_else_goes_out() {
    let desk = Desk::open();
    desk.terminal.push("\x1b[?2004hready");
    desk.until_shown("ready").await;
    desk.acquire(&agent(1)).await.expect("free");
    desk.terminal.limit_writes(Some(8));
    let order = typing(&agent(1), "one\ntwo");
    let writing = desk.write(order);
    let failing = async {
        desk.terminal.until_written(8).await;
        desk.fail().await;
        desk.terminal.limit_writes(None);
    };
    let (written, ()) = tokio::join!(writing, failing);
    assert!(matches!(written, Err(SessionError::Restarted)), "{written:?}");
    desk.acquire(&agent(2)).await.expect("free");
    desk.write(typing(&agent(2), "Z")).await.expect("the holder writes");
    let all = desk.terminal.written();
    assert_eq!(String::from_utf8_lossy(&all), "\x1b[200~on\x1b[201~Z");
}
