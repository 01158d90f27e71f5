//! Events in journals of several files, read from every place.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::*;
use crate::core::caller::{Caller, Kind};
use crate::core::event::{EVENT_KINDS, Event, EventScope};
use crate::core::frame::Exit;
use crate::core::ids::{ConnectionId, Epoch, PrincipalId, TenantId};
use crate::core::journal::JournalEntry;
use crate::core::policy::decision::DecisionId;
use crate::store::journal::event::kind_of;
use crate::store::journal::writer::{Journal, JournalLimits};

const LIMITS: JournalLimits = JournalLimits { bytes_max: 64 << 20, keep_input: true };

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(9)
}

fn session(number: u128) -> SessionId {
    SessionId::from_random(uuid::Uuid::from_u128(number << 80))
}

fn tell(journal: &Journal, of: u128, event: Event) {
    let tenant = TenantId::of_uid(1_000);
    let scope = EventScope { tenant: &tenant, session: Some(session(of)) };
    journal.note(now(), &JournalEntry::Event { scope, event });
}

/// A journal of some files with bells that count from 1 on.
fn belfry(bells: u64) -> (tempfile::TempDir, Journal) {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::at(directory.path().to_owned(), LIMITS);
    for count in 1..=bells {
        tell(&journal, 1, Event::Bell { count });
        // Something else, of very different lengths.
        let body = "x".repeat(if count % 100 == 0 { 300_000 } else { 10 });
        tell(&journal, 2, Event::Notification { title: None, body, offset: count });
    }
    (directory, journal)
}

fn is_bell(event: &EventRecord) -> bool {
    event.kind == "bell"
}

fn counts(page: &EventPage) -> Vec<u64> {
    page.events.iter().map(|event| event.details["count"].as_u64().unwrap()).collect()
}

#[test]
fn the_newest_events_are_read_over_several_files() {
    let (directory, _journal) = belfry(3_000);
    assert!(files(directory.path()).unwrap().len() > 2);
    let query = EventQuery { since: None, limit: 2_500, wants: &is_bell };
    let page = events(directory.path(), &query).unwrap();
    assert_eq!(counts(&page), (501..=3_000).collect::<Vec<_>>());
    assert_eq!(page.events[0].session, Some(session(1).to_string()));
}

#[test]
fn reading_on_after_each_page_finds_each_event_once() {
    let (directory, journal) = belfry(2_000);
    let (mut since, mut found) = (0, Vec::new());
    loop {
        let query = EventQuery { since: Some(since), limit: 300, wants: &is_bell };
        let page = events(directory.path(), &query).unwrap();
        found.extend(counts(&page));
        if page.looked_to == since {
            break;
        }
        since = page.looked_to;
    }
    assert_eq!(found, (1..=2_000).collect::<Vec<_>>());
    tell(&journal, 1, Event::Bell { count: 2_001 });
    let query = EventQuery { since: Some(since), limit: 300, wants: &is_bell };
    assert_eq!(counts(&events(directory.path(), &query).unwrap()), [2_001]);
}

#[test]
fn reading_begins_close_to_each_number_and_never_after_it() {
    let (directory, _journal) = belfry(2_000);
    for (_, path) in files(directory.path()).unwrap() {
        let text = std::fs::read_to_string(&path).unwrap();
        let longest = text.lines().map(str::len).max().unwrap() as u64 + 1;
        let mut begins = 0;
        for line in text.lines() {
            let number = event_number_of(line).unwrap();
            let from = start_of(&path, number.saturating_sub(1)).unwrap();
            assert!(from <= begins && begins - from <= NEAR + 2 * longest, "{number}: {from}");
            begins += line.len() as u64 + 1;
        }
    }
}

#[test]
fn who_continues_after_a_number_of_another_journal_begins_again_and_learns_it() {
    let (directory, _journal) = belfry(10);
    let wants = |_: &EventRecord| true;
    let query = EventQuery { since: Some(1 << 52), limit: 500, wants: &wants };
    let page = events(directory.path(), &query).unwrap();
    assert!(page.is_broken && page.events.len() >= 20);
    let query = EventQuery { since: Some(page.looked_to), ..query };
    let page = events(directory.path(), &query).unwrap();
    assert!(!page.is_broken && page.events.is_empty());
}

#[test]
fn numbers_of_events_grow_with_time_and_not_with_other_records() {
    let directory = tempfile::tempdir().unwrap();
    let tenant = TenantId::of_uid(1_000);
    let mut journal = Journal::at(directory.path().to_owned(), LIMITS);
    let ring = |journal: &Journal, of: u128, at: SystemTime| {
        let scope = EventScope { tenant: &tenant, session: Some(session(of)) };
        journal.note(at, &JournalEntry::Event { scope, event: Event::Bell { count: 1 } });
    };
    let after = |millis| now() + Duration::from_millis(millis);
    ring(&journal, 1, now());
    (1..=50).for_each(|millis| ring(&journal, 2, after(millis)));
    ring(&journal, 1, after(1_000));
    // The clock is set back, and another daemon begins.
    ring(&journal, 1, now());
    drop(journal);
    journal = Journal::at(directory.path().to_owned(), LIMITS);
    journal.open(after(1)).unwrap();
    (1..=50).for_each(|millis| ring(&journal, 2, after(1 + millis)));
    ring(&journal, 1, after(2_000));
    let wants = |event: &EventRecord| event.session == Some(session(1).to_string());
    let query = EventQuery { since: Some(0), limit: 9, wants: &wants };
    let page = events(directory.path(), &query).unwrap();
    assert!(!page.is_broken);
    let seen: Vec<u64> = page.events.iter().map(|event| event.seq).collect();
    let [first, .., back, last] = seen.as_slice() else { panic!("{seen:?}") };
    assert_eq!(seen, [*first, first + 1_000_000, *back, *last]);
    assert_eq!((back - first, last - back), (1_000_001, 2_000_000));
    for at in 0..seen.len() {
        let query = EventQuery { since: Some(seen[at]), ..query };
        let page = events(directory.path(), &query).unwrap();
        let found: Vec<u64> = page.events.iter().map(|event| event.seq).collect();
        assert_eq!((found.as_slice(), page.is_broken), (&seen[at + 1..], false));
    }
}

#[test]
fn records_of_before_have_the_number_of_their_place() {
    assert_eq!(event_number_of(r#"{"seq":7,"at_ms":1,"kind":"opened""#), Some(7));
    assert_eq!(event_number_of(r#"{"seq":7,"number":90,"at_ms":1"#), Some(90));
    assert_eq!(event_number_of(r#"{"seq":7,"number":90"#), None);
    assert_eq!(event_number_of("{}"), None);
}

#[test]
fn what_was_told_of_a_session_is_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::at(directory.path().to_owned(), LIMITS);
    let evidence = crate::core::shell::activity::Evidence::Kernel;
    let (one, two) = (CommandId(1), CommandId(2));
    tell(&journal, 1, Event::CommandStarted { id: one, text: "a".into(), by: None });
    tell(&journal, 1, Event::CommandEnded { id: one, code: None, evidence });
    tell(&journal, 1, Event::CommandStarted { id: two, text: "b".into(), by: None });
    tell(&journal, 1, Event::Bell { count: 7 });
    tell(&journal, 1, Event::Notification { title: None, body: "n".to_owned(), offset: 90 });
    tell(&journal, 1, Event::NeedsInput { is_secret: false, program: None });
    tell(&journal, 2, Event::SessionEnded { exit: Exit::Unknown });
    drop(journal);
    let journal = Journal::at(directory.path().to_owned(), LIMITS);
    journal.open(now()).unwrap();
    let expected = ToldEvents {
        started: [one, two].into(),
        ended: [one].into(),
        bell: Some(7),
        offset: 90,
        waits: true,
        is_over: false,
        tenant: Some(TenantId::of_uid(1_000)),
    };
    assert_eq!(journal.take_told(session(1)), Some(expected));
    assert!(journal.take_told(session(2)).unwrap().is_over);
    assert_eq!((journal.take_told(session(2)), journal.take_told(session(3))), (None, None));
}

#[test]
fn sessions_that_are_not_there_and_were_not_removed_are_lost() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::at(directory.path().to_owned(), LIMITS);
    let created = || Event::SessionCreated { name: "build".into(), command: "sh".to_owned() };
    (1..=3).for_each(|number| tell(&journal, number, created()));
    tell(&journal, 2, Event::SessionRemoved);
    drop(journal);
    let journal = Journal::at(directory.path().to_owned(), LIMITS);
    journal.open(now()).unwrap();
    let is_there = |id| id == session(1);
    assert_eq!(journal.take_lost(is_there), [(session(3), TenantId::of_uid(1_000))]);
    assert!(journal.take_lost(is_there).is_empty() && journal.take_told(session(1)).is_some());
}

#[test]
fn whoever_sees_none_of_the_new_events_does_not_hear_of_them() {
    let (_directory, journal) = belfry(1);
    let newest = *journal.newest_event().borrow();
    let of =
        |number| move |it: &super::super::writer::Audience| it.session == Some(session(number));
    assert!(journal.any_event_after(0, of(1)) && !journal.any_event_after(0, of(3)));
    assert!(!journal.any_event_after(newest, of(1)));
    tell(&journal, 3, Event::SessionRemoved);
    assert!(journal.any_event_after(newest, of(3)) && !journal.any_event_after(newest, of(1)));
}

#[test]
fn a_command_is_recorded_without_its_text_where_input_is_not_kept() {
    for keep_input in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let limits = JournalLimits { keep_input, ..LIMITS };
        let journal = Journal::at(directory.path().to_owned(), limits);
        let id = CommandId(1);
        tell(&journal, 1, Event::CommandStarted { id, text: "rm -r secrets".into(), by: None });
        let wants = |event: &EventRecord| event.kind == "command_started";
        let query = EventQuery { since: None, limit: 1, wants: &wants };
        let page = events(directory.path(), &query).unwrap();
        assert_eq!(page.events[0].details.contains_key("command"), keep_input);
    }
}

#[test]
fn each_kind_is_in_the_list_of_kinds() {
    let decision = DecisionId::from_random(uuid::Uuid::nil());
    use crate::core::lease::error::EndCause;
    use crate::core::lease::view::LeaseChange;

    let holder = Caller {
        principal: PrincipalId::Connection(1),
        connection: ConnectionId(1),
        tenant: TenantId::of_uid(1_000),
        kind: Kind::Agent,
        label: "agent".into(),
    };
    let other = holder.name();
    let lease =
        |change| Event::Lease { mount: None, holder: holder.clone(), epoch: Epoch(1), change };
    let (person, id) = (holder.clone(), CommandId(1));
    let evidence = crate::core::shell::activity::Evidence::Kernel;
    let progress = crate::core::screen::sequence::TaskProgress::Removed;
    let events = [
        Event::DaemonStopped { cause: "signal" },
        Event::ConfigurationRead { changed: Vec::new() },
        Event::SessionCreated { name: "a".into(), command: String::new() },
        Event::SessionRenamed { name: "b".into() },
        Event::SessionEnded { exit: Exit::Code(1) },
        Event::SessionRemoved,
        lease(LeaseChange::Granted),
        lease(LeaseChange::Renewed),
        lease(LeaseChange::Suspended { by: other.clone() }),
        lease(LeaseChange::Resumed),
        lease(LeaseChange::Ended(EndCause::Released)),
        lease(LeaseChange::Ended(EndCause::Expired)),
        lease(LeaseChange::Ended(EndCause::Preempted { by: other.clone() })),
        lease(LeaseChange::Ended(EndCause::HandedOver { to: other })),
        lease(LeaseChange::Ended(EndCause::SessionEnded)),
        Event::CommandStarted { id, text: "a".into(), by: None },
        Event::CommandEnded { id, code: None, evidence },
        Event::NeedsInput { is_secret: true, program: None },
        Event::Bell { count: 1 },
        Event::Notification { title: None, body: String::new(), offset: 1 },
        Event::Progress { progress, offset: 1 },
        Event::LeftOut { count: 1, offset: 1 },
        Event::Attached { person: person.clone() },
        Event::Detached { person: person.clone() },
        Event::ApprovalAsked { id: decision, what: "x".into(), by: person.clone() },
        Event::ApprovalDecided { id: decision, granted: true, by: person.clone() },
        Event::ApprovalDecided { id: decision, granted: false, by: person },
        Event::WritingSwitched { is_on: true, for_ms: None, by: None },
        Event::Fault { what: "x" },
    ];
    // These two are records of their own.
    let others = ["daemon_started", "refused"];
    let kinds: BTreeSet<_> = events.iter().map(kind_of).chain(others).collect();
    assert_eq!(kinds, BTreeSet::from(EVENT_KINDS));
    assert!(EVENT_KINDS.is_sorted());
}

#[test]
fn events_that_a_full_disk_did_not_take_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("journal");
    // No directory can be made below a file.
    std::fs::write(&place, "").unwrap();
    let journal = Journal::at(place.clone(), LIMITS);
    for count in 1..=1_500 {
        tell(&journal, 1, Event::Bell { count });
    }
    std::fs::remove_file(&place).unwrap();
    let later = now() + Duration::from_secs(1);
    assert!(!journal.sync(later));
    let wants = |event: &EventRecord| is_bell(event) || event.kind == "fault";
    let query = EventQuery { since: Some(0), limit: 2_000, wants: &wants };
    let page = events(&place, &query).unwrap();
    let (fault, bells) = page.events.split_last().unwrap();
    assert_eq!(bells.len(), 1_024);
    assert_eq!(fault.details["what"], "476 records were lost: the disk took none");
}
