//! Notes as the next daemon reads them, which may be another version.

use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::*;
use uuid::Uuid;

use super::commands::{CommandsRecord, UncoveredCommand};
use super::identity::{Confinement, SessionRecord};
use super::lease::{from_note, to_note};
use super::*;
use crate::core::caller::{Caller, Kind};
use crate::core::frame::Size;
use crate::core::ids::{Epoch, LeaseId, RowNumber, SessionId, TenantId, Watermark};
use crate::core::input::idempotency::earlier_writes::{FormerWrite, WriteStamp};
use crate::core::lease::record::{HoldingRecord, LeaseRecord};
use crate::core::lease::request::OnDisconnect;
use crate::core::shell::commands::record::{CommandId, Here, Position};
use crate::core::shell::commands::{Commands, EndsBy, Submission};
use crate::session::error::{NAME_MAX, TAGS_MAX};
use crate::session::pty::shell::Nonces;

fn id() -> SessionId {
    SessionId::from_random(Uuid::from_u128(7 << 80))
}

fn session() -> SessionRecord {
    SessionRecord {
        id: id(),
        tenant: TenantId::of_uid(1000),
        name: Arc::from("build"),
        command: "make \"all\"".to_owned(),
        cwd: PathBuf::from("/src"),
        tags: vec!["ci".to_owned()],
        is_listed: false,
        nonces: Nonces {
            own: Some("0123456789abcdef0123456789abcdef".parse().unwrap()),
            nested: Some("fedcba9876543210fedcba9876543210".parse().unwrap()),
        },
        confinement: Confinement { user: Some(1000), sandbox: true },
        created_at: moment(86_400_123),
        size: Some(Size { rows: 40, cols: 120 }),
        recording: Some(format!("{}-1700000000123.cast", id()).into()),
    }
}

fn holding() -> HoldingRecord {
    HoldingRecord {
        lease: LeaseId(Uuid::from_u128(9)),
        tenant: TenantId::of_uid(1000),
        kind: Kind::Agent,
        label: Arc::from("claude-code"),
        token: None,
        ttl: Duration::from_secs(45),
        on_disconnect: OnDisconnect::Grace(Duration::from_secs(5)),
        reason: Some("deploying".into()),
        must_look: true,
    }
}

fn lease() -> LeaseRecord {
    LeaseRecord { epoch: Epoch(41), holding: Some(holding()) }
}

#[test]
fn a_session_is_read_back_as_it_was_noted() {
    assert_eq!(SessionRecord::from_note(&session().to_note(), id()).unwrap(), session());
}

#[test]
fn what_lies_where_programs_can_read_it_says_all_but_what_marks_carry() {
    let open = session().without_secret();
    assert!(session().to_note().windows(5).any(|part| part == b"nonce"));
    assert!(!open.to_note().windows(5).any(|part| part == b"nonce"));
    assert_eq!(SessionRecord { nonces: session().nonces, ..open }, session());
}

#[test]
fn a_lease_is_read_back_as_it_was_noted() {
    let every_end =
        [OnDisconnect::Release, OnDisconnect::Grace(Duration::from_millis(1)), OnDisconnect::Keep];
    for on_disconnect in every_end {
        let holding = Some(HoldingRecord { on_disconnect, ..holding() });
        let record = LeaseRecord { holding, ..lease() };
        assert_eq!(from_note(&to_note(&record)).unwrap(), record);
    }
    let of_token =
        LeaseRecord { holding: Some(HoldingRecord { token: Some(3), ..holding() }), ..lease() };
    assert_eq!(from_note(&to_note(&of_token)).unwrap(), of_token);
    let free = LeaseRecord { epoch: Epoch(3), holding: None };
    assert_eq!(from_note(&to_note(&free)).unwrap(), free);
}

#[test]
fn the_newest_gaps_are_read_back_and_without_a_note_nothing_was_lost() {
    assert_eq!(Gaps::from_note(b"").unwrap(), Gaps::default());
    let gap = |row| Gap { row: RowNumber(row), bytes: (row % 2 == 0).then_some(row), since: None };
    let mut gaps = Gaps::default();
    (0..40).for_each(|row| gaps.add(gap(row)));
    let read = Gaps::from_note(&gaps.to_note()).unwrap();
    assert_eq!(read, gaps);
    let newest: Vec<Gap> = (40 - read.as_slice().len() as u64..40).map(gap).collect();
    assert!(!newest.is_empty() && newest.len() < 40);
    assert_eq!(read.as_slice(), newest);
}

#[test]
fn the_number_of_a_command_is_read_back_and_without_a_note_there_was_none() {
    let read = CommandsRecord::from_note;
    for number in [0, 1, 1 << 40] {
        let record = CommandsRecord { last: CommandId(number), ..CommandsRecord::default() };
        assert_eq!(read(&record.to_note()).unwrap(), record);
    }
    assert_eq!(read(b"").unwrap().last, CommandId(0));
    assert_eq!(read(br#"{"v":1,"last":41,"mood":"good"}"#).unwrap().last, CommandId(41));
    let error = read(br#"{"v":1,"last":18446744073709551615}"#).unwrap_err();
    assert!(matches!(error, RecordError::Value { member: "last", .. }), "{error}");
}

const HERE: Here = Here {
    position: Position { row: RowNumber(4), col: 2 },
    top: RowNumber(0),
    now: moment(86_400_123),
    mark: Watermark(9),
};

/// A command that was sent to a shell at its prompt.
fn uncovered(number: u64) -> UncoveredCommand {
    let (mut commands, by) = (Commands::default(), Some(Arc::from("builder")));
    commands.number_after(CommandId(number - 1));
    let (text, typed, ends_by) = ("make\nmake test", ". /tmp/x", EndsBy::Marks);
    let submission = Submission { text, typed, by, ends_by, prompt: "é $ ", echoed: true };
    let id = commands.submit(submission, &HERE);
    UncoveredCommand::of(commands.get(id).unwrap(), commands.sent().unwrap(), 1 << 40)
}

#[test]
fn what_was_sent_since_the_last_checkpoint_is_read_back_until_one_covers_it() {
    let mut record = CommandsRecord { last: CommandId(9), ..CommandsRecord::default() };
    assert!((7..=9).all(|number| record.note_uncovered(uncovered(number))));
    let read = CommandsRecord::from_note(&record.to_note()).unwrap();
    assert_eq!(read, record);
    let submission = read.uncovered[2].submission();
    assert_eq!((submission.text, submission.typed), ("make\nmake test", ". /tmp/x"));
    assert_eq!((submission.prompt, submission.by.as_deref()), ("é $ ", Some("builder")));
    assert_eq!((submission.ends_by, submission.echoed), (EndsBy::Marks, true));
    assert_eq!((read.uncovered[2].at(), read.uncovered[2].offset), (moment(86_400_123), 1 << 40));
    record.cover(CommandId(8));
    assert_eq!(record.uncovered, [uncovered(9)]);
    record.last = CommandId(8);
    let error = CommandsRecord::from_note(&record.to_note()).unwrap_err();
    assert!(matches!(error, RecordError::Value { member: "uncovered", .. }), "{error}");
}

#[test]
fn a_long_command_finds_no_room_in_the_note() {
    let mut record = CommandsRecord { last: CommandId(9), ..CommandsRecord::default() };
    let long = "x".repeat(2_000);
    let mut commands = Commands::default();
    let submission = Submission {
        text: &long,
        typed: &long,
        by: None,
        ends_by: EndsBy::Marks,
        prompt: "$ ",
        echoed: true,
    };
    let id = commands.submit(submission, &HERE);
    let command = UncoveredCommand::of(commands.get(id).unwrap(), commands.sent().unwrap(), 0);
    assert!(!record.note_uncovered(command) && record.uncovered.is_empty());
}

/// A write of a daemon before, as the terminal knows it.
fn former(number: u8) -> FormerWrite {
    FormerWrite {
        stamp: WriteStamp([number; 16]),
        taken: 3,
        own: None,
        length: None,
        command: None,
    }
}

#[test]
fn which_call_sent_which_command_is_read_back_of_the_newest() {
    let mut record = CommandsRecord { last: CommandId(1 << 52), ..CommandsRecord::default() };
    for number in 0..100 {
        record.note_call(WriteStamp([number; 16]), CommandId((1 << 52) - u64::from(number)));
    }
    let note = record.to_note();
    assert!(note.len() <= Note::BYTES_MAX, "{}", note.len());
    let mut writes = [former(0), former(36), former(99), former(200)];
    CommandsRecord::from_note(&note).unwrap().tell_of(&mut writes);
    let told = writes.map(|write| write.command.map(|command| (1 << 52) - command.0));
    assert_eq!(told, [None, Some(36), Some(99), None]);
}

#[test]
fn how_long_a_write_was_is_read_back_of_the_newest_with_all_that_a_note_has_room_for() {
    let mut record = CommandsRecord { last: CommandId(1 << 52), ..CommandsRecord::default() };
    for number in 0..100 {
        record.note_call(WriteStamp([100 + number; 16]), CommandId(1 << 52));
        record.note_length(WriteStamp([number; 16]), (1 << 20) - usize::from(number));
    }
    let noted = (0..100).take_while(|_| record.note_uncovered(uncovered((1 << 52) - 1))).count();
    assert!((2..100).contains(&noted), "{noted}");
    let note = record.to_note();
    assert!(note.len() <= Note::BYTES_MAX, "{}", note.len());
    let mut writes = [former(0), former(36), former(99), former(199)];
    CommandsRecord::from_note(&note).unwrap().tell_of(&mut writes);
    let told = writes.map(|write| write.length.map(|length| (1 << 20) - length));
    assert_eq!(told, [None, Some(36), Some(99), None]);
}

#[test]
fn a_call_that_cannot_have_sent_a_command_is_not_believed() {
    for calls in [
        r#"[["00000000000000000000000000000001",0]]"#,
        r#"[["00000000000000000000000000000001",8]]"#,
        r#"[["ab",1]]"#,
    ] {
        let note = format!(r#"{{"v":1,"last":7,"calls":{calls}}}"#);
        let error = CommandsRecord::from_note(note.as_bytes()).unwrap_err();
        assert!(matches!(error, RecordError::Value { member: "calls", .. }), "{error}");
    }
}

#[test]
fn the_first_version_of_the_notes_is_read_by_every_later_one() {
    let note = br#"{"v":1,"id":"000000000007","tenant":"uid:1000","name":"build",
        "command":"make \"all\"","cwd":"/src","tags":["ci"],"created_ms":86400123}"#;
    let expected = SessionRecord {
        nonces: Nonces::default(),
        confinement: Confinement::default(),
        size: None,
        recording: None,
        ..session()
    };
    assert_eq!(SessionRecord::from_note(note, id()).unwrap(), expected);
    let note = br#"{"v":1,"epoch":41,"holding":{"lease":"00000000-0000-0000-0000-000000000009",
        "tenant":"uid:1000","kind":"agent","label":"claude-code","ttl_ms":45000,
        "on_disconnect":{"grace_ms":5000},"reason":"deploying","must_look":true}}"#;
    assert_eq!(from_note(note).unwrap(), lease());
}

#[test]
fn members_that_are_not_known_are_skipped_and_missing_ones_have_defaults() {
    let note = br#"{"v":1,"id":"000000000007","tenant":"uid:1","mood":{"good":[true]}}"#;
    let read = SessionRecord::from_note(note, id()).unwrap();
    let bare = SessionRecord::unknown(id(), TenantId::of_uid(1), Moment::default());
    assert_eq!(read, bare);
    let note = br#"{"v":1,"mood":"good"}"#;
    assert_eq!(from_note(note).unwrap(), LeaseRecord::default());
    let note = br#"{"v":1,"epoch":2,"holding":{"lease":"00000000-0000-0000-0000-000000000009",
        "tenant":"uid:1","kind":"operator","mood":"good"}}"#;
    let read = from_note(note).unwrap().holding.unwrap();
    assert_eq!((read.ttl, read.must_look), (Duration::from_secs(30), false));
    assert_eq!(read.on_disconnect, OnDisconnect::Grace(Duration::from_secs(5)));
}

#[test]
fn a_note_of_another_version_is_refused_whatever_its_members_are() {
    let note = br#"{"v":2,"id":["none"],"epoch":"later"}"#;
    let error = SessionRecord::from_note(note, id()).unwrap_err();
    assert!(matches!(error, RecordError::Version(2)), "{error}");
    assert!(matches!(from_note(note).unwrap_err(), RecordError::Version(2)));
}

#[test]
fn a_note_of_another_session_is_refused() {
    let other = SessionId::from_random(Uuid::from_u128(8 << 80));
    let error = SessionRecord::from_note(&session().to_note(), other).unwrap_err();
    assert!(matches!(error, RecordError::Value { member: "id", .. }), "{error}");
}

#[test]
fn a_note_without_a_tenant_that_there_could_be_is_refused() {
    let note = br#"{"v":1,"id":"000000000007","tenant":"ro ot"}"#;
    let error = SessionRecord::from_note(note, id()).unwrap_err();
    assert!(matches!(error, RecordError::Value { member: "tenant", .. }), "{error}");
}

#[test]
fn a_name_that_no_session_may_have_gives_way_to_the_id() {
    let record = SessionRecord { name: Arc::from("../../etc"), ..session() };
    let read = SessionRecord::from_note(&record.to_note(), id()).unwrap();
    assert_eq!(&*read.name, "000000000007");
}

#[test]
fn a_nonce_is_shown_to_nobody_and_one_that_cannot_be_is_none() {
    assert!(!format!("{:?}", session()).contains("0123456789abcdef"));
    let note = br#"{"v":1,"id":"000000000007","tenant":"uid:1","nonce":"guess"}"#;
    assert_eq!(SessionRecord::from_note(note, id()).unwrap().nonces, Nonces::default());
}

#[test]
fn an_epoch_that_leaves_no_higher_one_is_refused() {
    let record = LeaseRecord { epoch: Epoch(u64::MAX), holding: None };
    let error = from_note(&to_note(&record)).unwrap_err();
    assert!(matches!(error, RecordError::Value { member: "epoch", .. }), "{error}");
}

#[test]
fn the_longest_texts_fit_a_note_whatever_they_are_made_of() {
    for sign in ["\u{1}", "\"", "\u{10348}", "a"] {
        let long = sign.repeat(100_000);
        let record = SessionRecord {
            tenant: TenantId::of_uid(u32::MAX),
            name: Arc::from("n".repeat(NAME_MAX)),
            command: long.clone(),
            cwd: PathBuf::from(&long),
            tags: vec![long.clone(); 10 * TAGS_MAX],
            is_listed: false,
            created_at: Moment::from_boot(Duration::MAX),
            ..session()
        };
        let note = record.to_note();
        assert!(note.len() <= Note::BYTES_MAX, "{} bytes of {sign:?}", note.len());
        let read = SessionRecord::from_note(&note, id()).unwrap();
        assert!(read.command.starts_with(sign) && read.command.ends_with('\u{2026}'));
        assert_eq!(read.tags.len(), TAGS_MAX);
        let holding = HoldingRecord {
            tenant: TenantId::of_uid(u32::MAX),
            label: Arc::from(long.as_str()),
            reason: Some(long.into_boxed_str()),
            ttl: Duration::MAX,
            token: Some(u64::MAX),
            ..holding()
        };
        let note = to_note(&LeaseRecord { epoch: Epoch::MAX, holding: Some(holding) });
        assert!(note.len() <= Note::BYTES_MAX, "{} bytes of {sign:?}", note.len());
        let label = from_note(&note).unwrap().holding.unwrap().label;
        assert!(label.len() <= Caller::LABEL_MAX);
    }
}

#[test]
fn a_text_that_just_fits_is_not_cut() {
    assert_eq!(cut("ab\"", 4), "ab\"");
    assert_eq!(cut("ab\"\"", 5), "ab\u{2026}");
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_fail_otherwise_than_by_an_error(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        at in 0..400usize,
        byte: u8,
    ) {
        let _ = SessionRecord::from_note(&bytes, id());
        let _ = from_note(&bytes);
        let _ = (CommandsRecord::from_note(&bytes), Gaps::from_note(&bytes));
        let notes =
            [session().to_note(), to_note(&lease()), FIRST_COMMANDS.into(), FIRST_GAPS.into()];
        for mut note in notes {
            let at = at % note.len();
            note[at] = byte;
            let _ = SessionRecord::from_note(&note, id());
            let _ = from_note(&note);
            let _ = from_note(&note[..at]);
            for note in [&note, &note[..at]] {
                let _ = (CommandsRecord::from_note(note), Gaps::from_note(note));
            }
        }
    }
}

#[test]
fn since_when_a_screen_is_still_is_read_back_and_without_a_note_nobody_knows() {
    let still = Stillness { offset: 1 << 40, at: moment(86_400_123) };
    assert_eq!(Stillness::from_note(&still.to_note()).unwrap(), Some(still));
    assert_eq!(Stillness::from_note(b"").unwrap(), None);
    let first = br#"{"v":1,"offset":1099511627776,"changed_ms":86400123}"#;
    assert_eq!(still.to_note(), first);
    assert!(Stillness::from_note(br#"{"v":2}"#).is_err());
}

#[test]
fn a_size_that_no_terminal_can_have_is_not_known() {
    let note = br#"{"v":1,"id":"000000000007","tenant":"uid:1","size":[9000,1]}"#;
    assert_eq!(SessionRecord::from_note(note, id()).unwrap().size, None);
}

#[test]
fn a_gap_that_is_found_again_is_told_once() {
    let gap = |row, bytes| Gap { row: RowNumber(row), bytes: Some(bytes), since: None };
    let mut gaps = Gaps::default();
    for (row, bytes) in [(1, 40), (7, 5), (7, 9), (8, 1)] {
        gaps.add(gap(row, bytes));
        gaps = Gaps::from_note(&gaps.to_note()).unwrap();
    }
    assert_eq!(gaps.as_slice(), [gap(1, 40), gap(7, 9), gap(8, 1)]);
}

/// The notes of commands and of gaps as the first version wrote them, which hold as long as there are
/// sessions that it began.
const FIRST_COMMANDS: &[u8] =
    br#"{"v":1,"last":7,"calls":[["a0a1a2a3a4a5a6a7a8a9aaabacadaeaf",7]]}"#;
const FIRST_GAPS: &[u8] = br#"{"v":1,"gaps":[{"row":12,"bytes":4096},{"row":40,"bytes":null}]}"#;

#[test]
fn the_first_notes_of_commands_and_gaps_are_read_by_every_later_version() {
    let stamp = WriteStamp(std::array::from_fn(|index| 0xa0 + index as u8));
    let mut commands = CommandsRecord { last: CommandId(7), ..CommandsRecord::default() };
    commands.note_call(stamp, CommandId(7));
    assert_eq!(CommandsRecord::from_note(FIRST_COMMANDS).unwrap(), commands);
    let mut gaps = Gaps::default();
    for (row, bytes) in [(12, Some(4_096)), (40, None)] {
        gaps.add(Gap { row: RowNumber(row), bytes, since: None });
    }
    assert_eq!(Gaps::from_note(FIRST_GAPS).unwrap(), gaps);
    // Nor does a daemon of the first version find anything else in those of today.
    assert_eq!((commands.to_note(), gaps.to_note()), (FIRST_COMMANDS.into(), FIRST_GAPS.into()));
}
