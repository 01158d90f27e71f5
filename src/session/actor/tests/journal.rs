//! What a session has recorded, before it takes effect and after.

use super::*;
use crate::core::event::Event;
use crate::core::keys::Key;
use crate::core::shell::commands::EndsBy;
use crate::session::command::CommandOrder;
use crate::session::command::TypedInput;
use crate::session::pty::TerminalEvidence;

fn person(number: u64) -> Caller {
    Caller { kind: Kind::Human, label: Arc::from("ada"), ..agent(number) }
}

impl Desk {
    async fn type_as(&self, who: u64, bytes: &[u8]) -> Result<(), SessionError> {
        let typed = TypedInput { bytes: bytes.to_vec(), key: None, view: None };
        self.session.permitted_type_in(person(who), typed).await.map(drop)
    }

    fn records(&self) -> Vec<String> {
        self.journal.lines()
    }

    fn ask_for_a_secret(&self) {
        let evidence = self.terminal.evidence();
        self.terminal.set_evidence(TerminalEvidence { echo: false, canonical: true, ..evidence });
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_is_recorded_with_its_bytes_its_lease_and_its_outcome() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.write(typing(&agent(1), "ls\n")).await.expect("the holder writes");
    let enter = Content::Keys(vec![Key::ENTER]);
    desk.write(WriteOrder { content: enter, ..typing(&agent(1), "") }).await.expect("it holds on");
    let expected = [
        r"1 text by agent#p1 in 1: ls\r",
        "2 outcome of 1: Written { epoch: Some(Epoch(1)), written: 3, discarded: 0, queued: 0 }",
        r"3 keys by agent#p1 in 1: \r",
        "4 outcome of 3: Written { epoch: Some(Epoch(1)), written: 1, discarded: 0, queued: 0 }",
    ];
    assert_eq!(desk.records(), expected);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_that_cannot_be_recorded_and_reading_goes_on() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.journal.fill(true);
    let refused = desk.write(typing(&agent(1), "rm")).await.unwrap_err();
    assert!(matches!(refused, SessionError::NotRecorded(_)), "{refused}");
    let refused = desk.type_as(5, b"x").await.unwrap_err();
    assert!(matches!(refused, SessionError::NotRecorded(_)), "{refused}");
    desk.terminal.push(b"still read");
    desk.until_shown("still read").await;
    assert_eq!(desk.terminal.written(), b"");
    desk.journal.fill(false);
    desk.write(typing(&agent(1), "ls")).await.expect("the journal is back");
    assert_eq!(desk.terminal.written(), b"ls");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_refused_or_rehearsed_or_repeated_has_no_second_record() {
    let desk = Desk::open();
    desk.write(typing(&agent(1), "x")).await.unwrap_err();
    desk.acquire(&agent(1)).await.expect("free");
    desk.write(WriteOrder { dry_run: true, ..typing(&agent(1), "x") }).await.expect("it could");
    assert_eq!(desk.records(), [""; 0]);
    let key = crate::core::input::idempotency::IdempotencyKey::new("once", 1);
    let order = WriteOrder { key, ..typing(&agent(1), "x") };
    desk.write(order.clone()).await.expect("the holder writes");
    desk.write(order).await.expect("it was written");
    assert_eq!(desk.records().len(), 2, "{:?}", desk.records());
}

#[tokio::test(start_paused = true)]
async fn nothing_of_what_is_typed_at_a_prompt_for_a_secret_is_recorded() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.ask_for_a_secret();
    desk.write(typing(&agent(1), "hunter2\n")).await.expect("the holder writes");
    for key in [b"s", b"3", b"\r"] {
        desk.type_as(5, key).await.expect("people come first");
    }
    let records = desk.records().join("\n");
    assert!(!records.contains("hunter"), "{records}");
    assert!(records.contains("1 text by agent#p1 in 1: (secret)"), "{records}");
    assert!(records.contains("typing by ada#p5 in -: (secret)"), "{records}");
    // Nor how long it is.
    assert!(!records.contains("written") && !records.contains("more of"), "{records}");
}

#[tokio::test(start_paused = true)]
async fn of_a_command_its_text_is_recorded_wherever_it_is() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    let command = CommandOrder {
        text: "rm -r all".to_owned(),
        typed: ". 'file'".to_owned(),
        ends_by: EndsBy::Kernel,
        provision: None,
        interrupts: false,
    };
    let order = WriteOrder { command: Some(command), ..typing(&agent(1), ". 'file'") };
    desk.write(order).await.expect("the holder writes");
    assert_eq!(desk.records()[0], "1 command by agent#p1 in 1: command rm -r all");
}

#[tokio::test(start_paused = true)]
async fn what_a_person_types_without_a_pause_is_one_act() {
    let desk = Desk::open();
    for key in [b"l", b"s", b"\r"] {
        desk.type_as(5, key).await.expect("people type");
    }
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    desk.type_as(5, b"w").await.expect("people type");
    let expected = [
        "1 typing by ada#p5 in -: l",
        "2 more of 1: s",
        r"3 more of 1: \r",
        "4 outcome of 1: Done { epoch: Some(Epoch(1)) }",
        "5 typing by ada#p5 in 1: w",
    ];
    assert_eq!(desk.records(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_person_who_types_suspends_an_agent_and_the_end_of_both_is_recorded() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.type_as(5, b"l").await.expect("people come first");
    tokio::time::sleep(Duration::from_secs(11)).await;
    let expected = ["1 typing by ada#p5 in -: l", "2 outcome of 1: Done { epoch: Some(Epoch(2)) }"];
    assert_eq!(desk.records(), expected);
    let ada = person(5);
    let lease = |holder: &Caller, epoch, change| {
        let (holder, epoch) = (holder.clone(), Epoch(epoch));
        Event::Lease { mount: None, holder, epoch, change }
    };
    let expected = [
        lease(&agent(1), 1, LeaseChange::Granted),
        lease(&agent(1), 1, LeaseChange::Suspended { by: ada.name() }),
        lease(&ada, 2, LeaseChange::Granted),
        lease(&ada, 2, LeaseChange::Ended(EndCause::Expired)),
        lease(&agent(1), 3, LeaseChange::Resumed),
    ];
    assert_eq!(desk.journal.events(), expected);
}

#[tokio::test(start_paused = true)]
async fn taking_over_and_handing_back_are_acts() {
    let desk = Desk::open();
    let size = Some(Size { rows: 30, cols: 90 });
    desk.session.permitted_take_over(person(5), size).await.expect("it is free");
    assert!(desk.session.hand_back(person(5)).await.expect("the session lives"));
    let expected = [
        "1 take_over by ada#p5 in -: ()",
        "2 outcome of 1: Done { epoch: Some(Epoch(1)) }",
        r#"3 resize by ada#p5 in 1: {"rows":30,"cols":90}"#,
        "4 outcome of 3: Done { epoch: Some(Epoch(1)) }",
        "5 hand_back by ada#p5 in 1: ()",
        "6 outcome of 5: Done { epoch: None }",
    ];
    assert_eq!(desk.records(), expected);
}

#[tokio::test(start_paused = true)]
async fn bytes_that_never_reach_the_terminal_are_recorded_as_discarded() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.terminal.limit_writes(Some(0));
    let written = desk.write(typing(&agent(1), "stuck")).await.expect("it is queued");
    assert_eq!(written.outcome.queued, 5);
    desk.type_as(5, b"x").await.expect("people come first");
    let records = desk.records();
    assert!(
        records.contains(
            &"2 outcome of 1: Written { epoch: Some(Epoch(1)), written: 0, discarded: 0, queued: 5 }"
                .to_owned()
        ),
        "{records:?}"
    );
    let discarded = |record: &String| record.ends_with("5 discarded: a person took the keyboard");
    assert!(records.iter().any(discarded), "{records:?}");
}
