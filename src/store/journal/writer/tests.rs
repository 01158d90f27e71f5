//! Journals in directories of their own, and what can happen to their files.

mod failing;

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::core::caller::{Caller, Kind};
use crate::core::ids::{ConnectionId, Epoch, PrincipalId, SessionId, TenantId};
use crate::core::journal::{ActContent, ActOutcome, Intent};
use crate::core::policy::Door;
use crate::store::journal::chain::ChainError;
use crate::store::journal::line::{RecordHash, UnnumberedLine, split_hash, write_line};
use crate::store::journal::reader::{Checked, JournalTail, check};
use crate::store::journal::segment::files;

const LIMITS: JournalLimits = JournalLimits { bytes_max: 64 << 20, keep_input: true };

fn at(second: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(second)
}

fn agent() -> Caller {
    Caller {
        principal: PrincipalId::Connection(3),
        connection: ConnectionId(3),
        tenant: TenantId::of_uid(1_000),
        kind: Kind::Agent,
        label: Arc::from("claude"),
    }
}

struct Fixture {
    directory: TempDir,
    journal: Journal,
    /// Each act comes a second after the one before.
    second: Cell<u64>,
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::at(directory.path().join("journal"), LIMITS);
        Self { directory, journal, second: Cell::new(9) }
    }

    fn path(&self) -> std::path::PathBuf {
        self.directory.path().join("journal")
    }

    fn intend(&self, bytes: &[u8]) -> Result<RecordNumber, NotRecorded> {
        let by = agent();
        let session = Some(SessionId::from_random(uuid::Uuid::from_u128(7 << 80)));
        let content = ActContent::Bytes(bytes);
        let (door, epoch) = (Some(Door::Gateway), Some(Epoch(4)));
        let intent = Intent { by: &by, door, session, act: "text", epoch, decision: None, content };
        self.second.set(self.second.get() + 1);
        self.journal.append(at(self.second.get()), &JournalEntry::Intent(intent))
    }

    fn conclude(&self, of: RecordNumber, written: usize) {
        let epoch = Some(Epoch(4));
        let outcome = ActOutcome::Written { epoch, written, discarded: 0, queued: 0 };
        self.journal.note(at(11), &JournalEntry::Outcome { of, outcome });
    }

    /// What the next daemon makes of the same files.
    fn restart(&mut self) {
        self.journal = Journal::at(self.path(), LIMITS);
        self.journal.open(at(20)).unwrap();
    }

    fn check(&self) -> Checked {
        check(&self.path(), None).unwrap()
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let read = JournalTail::of(&self.path()).read(|line| -> io::Result<()> {
            lines.push(line.to_owned());
            Ok(())
        });
        read.unwrap();
        lines
    }
}

fn only_file(directory: &Path) -> std::path::PathBuf {
    let files = files(directory).unwrap();
    assert_eq!(files.len(), 1);
    files[0].1.clone()
}

fn errors(checked: &Checked) -> Vec<ChainError> {
    checked.damage.iter().map(|damage| damage.error.clone()).collect()
}

/// A record that somebody else appends.
fn typed_text() -> UnnumberedLine {
    let typed =
        RecordLine { act: Some("text".into()), ..RecordLine::new(at(1), RecordKind::Intent) };
    typed.unnumbered().unwrap()
}

#[test]
fn an_act_has_a_record_before_it_and_one_of_its_outcome() {
    let it = Fixture::new();
    let intent = it.intend(b"ls\r").unwrap();
    it.conclude(intent, 3);
    let lines: Vec<serde_json::Value> =
        it.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["segment", "opened", "intent", "outcome"]);
    let numbers: Vec<u64> = lines.iter().map(|line| line["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    let mut intent = lines[2].clone();
    intent.as_object_mut().unwrap().remove("hash");
    let expected = serde_json::json!({
        "seq": 3, "number": 10_000_001, "at_ms": 10_000, "kind": "intent", "act": "text", "session": "000000000007",
        "by": "claude#p3", "by_kind": "agent", "tenant": "uid:1000", "connection": 3,
        "door": "gateway", "epoch": 4, "text": "ls\r",
    });
    assert_eq!(intent, expected);
    assert_eq!((&lines[3]["of"], &lines[3]["written"]), (&3.into(), &3.into()));
    let checked = it.check();
    assert!(checked.damage.is_empty() && checked.chain.open().is_empty());
    assert_eq!(checked.chain.last().map(|(last, _)| last), Some(4));
}

#[test]
fn the_next_daemon_goes_on_and_says_that_it_knows_no_outcome() {
    let mut it = Fixture::new();
    let known = it.intend(b"a").unwrap();
    let unknown = it.intend(b"b").unwrap();
    it.conclude(known, 1);
    it.restart();
    let last: serde_json::Value = serde_json::from_str(it.lines().last().unwrap()).unwrap();
    assert_eq!((&last["of"], &last["result"]), (&unknown.0.into(), &"unknown".into()));
    let checked = it.check();
    assert!(checked.damage.is_empty() && checked.chain.open().is_empty());
}

#[test]
fn a_record_that_was_changed_is_found() {
    let it = Fixture::new();
    for _ in 0..3 {
        it.intend(b"echo fine").unwrap();
    }
    let path = only_file(&it.path());
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("echo fine", "echo evil", 1)).unwrap();
    let checked = it.check();
    assert_eq!(errors(&checked), [ChainError::Hash]);
    assert_eq!(checked.damage[0].line, 3);
}

#[test]
fn a_record_that_was_removed_or_moved_is_found() {
    let it = Fixture::new();
    for _ in 0..4 {
        it.intend(b"x").unwrap();
    }
    let path = only_file(&it.path());
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let without: Vec<&str> = [&lines[..3], &lines[4..]].concat();
    fs::write(&path, without.join("\n") + "\n").unwrap();
    assert_eq!(errors(&it.check()), [ChainError::Number { expected: 4, found: 5 }]);
    let mut moved = lines.clone();
    moved.swap(3, 4);
    fs::write(&path, moved.join("\n") + "\n").unwrap();
    assert!(errors(&it.check()).contains(&ChainError::Number { expected: 4, found: 5 }));
}

#[test]
fn records_after_damage_are_a_chain_of_their_own_with_numbers_above() {
    let mut it = Fixture::new();
    it.intend(b"first").unwrap();
    let path = only_file(&it.path());
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("first", "other")).unwrap();
    it.restart();
    let intent = it.intend(b"second").unwrap();
    it.conclude(intent, 6);
    let checked = it.check();
    assert_eq!(errors(&checked), [ChainError::Hash, ChainError::NewChain]);
    assert!(checked.chain.open().is_empty());
    assert_eq!(checked.files, 2);
}

#[test]
fn half_a_line_is_cut_off_when_the_journal_is_opened() {
    let mut it = Fixture::new();
    it.intend(b"a").unwrap();
    let path = only_file(&it.path());
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text + "{\"seq\":4,\"at_ms\":1,\"ki").unwrap();
    it.restart();
    assert!(it.check().damage.is_empty());
    assert_eq!(it.intend(b"b").unwrap(), RecordNumber(6));
}

#[test]
fn a_file_that_disappears_is_followed_by_one_with_the_next_numbers() {
    let it = Fixture::new();
    let before = it.intend(b"a").unwrap();
    fs::remove_dir_all(it.path()).unwrap();
    let after = it.intend(b"b").unwrap();
    // The file begins with a record of its own.
    assert_eq!(after.0, before.0 + 2);
    it.conclude(before, 1);
    it.conclude(after, 1);
    let checked = it.check();
    assert!(checked.damage.is_empty() && checked.chain.open().is_empty());
    assert_eq!(checked.chain.first(), Some(before.0 + 1));
}

#[test]
fn a_file_that_others_shortened_is_followed_by_a_new_chain() {
    let it = Fixture::new();
    it.intend(b"a").unwrap();
    it.intend(b"b").unwrap();
    let path = only_file(&it.path());
    let text = fs::read_to_string(&path).unwrap();
    let end = text.trim_end().rfind('\n').unwrap() + 1;
    fs::write(&path, &text[..end]).unwrap();
    let next = it.intend(b"c").unwrap();
    assert_eq!(next, RecordNumber(6));
    let expected = ChainError::Number { expected: 4, found: 5 };
    assert_eq!(errors(&it.check()), [expected]);
}

#[test]
fn an_act_is_refused_while_the_journal_cannot_be_written_and_goes_on_after() {
    let it = Fixture::new();
    let before = it.intend(b"a").unwrap();
    fs::remove_dir_all(it.path()).unwrap();
    fs::write(it.path(), "no directory").unwrap();
    let refused = it.intend(b"b").unwrap_err();
    assert!(refused.to_string().starts_with("the journal cannot be written: "), "{refused}");
    it.conclude(before, 1);
    fs::remove_file(it.path()).unwrap();
    it.intend(b"c").unwrap();
    let checked = it.check();
    assert!(checked.damage.is_empty());
    // The outcome waited; only the last act has none.
    assert_eq!(checked.chain.open().len(), 1);
}

#[test]
fn two_daemons_never_write_one_journal() {
    let mut it = Fixture::new();
    it.intend(b"a").unwrap();
    let other = Journal::at(it.path(), LIMITS);
    let refused = other.open(at(30)).unwrap_err();
    assert!(refused.to_string().ends_with("another daemon writes it"), "{refused}");
    it.journal = Journal::at(it.directory.path().join("elsewhere"), LIMITS);
    other.open(at(31)).unwrap();
}

#[test]
fn a_daemon_takes_the_journal_over_from_one_that_stands_still_and_may_append_once_more() {
    let it = Fixture::new();
    let known = it.intend(b"a").unwrap();
    let path = only_file(&it.path());
    let next = Journal::claimed(it.path(), LIMITS, || true);
    next.open(at(30)).unwrap();
    // What the other was about to append when it was stopped.
    let lines = it.lines();
    let (_, hash) = split_hash(&lines[2]).unwrap();
    let mut line = Vec::new();
    write_line(&mut line, (known.0 + 1, 0), &typed_text(), hash);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text + str::from_utf8(&line).unwrap()).unwrap();
    let refused = it.intend(b"late").unwrap_err();
    assert!(refused.to_string().ends_with("another daemon writes it"), "{refused}");
    let checked = it.check();
    assert_eq!((errors(&checked), checked.chain.void()), (vec![], 1));
    assert_eq!(checked.chain.last().map(|(last, _)| last), Some(known.0 + 3));
    assert!(checked.chain.open().is_empty());
}

#[test]
fn a_record_that_others_append_to_a_file_that_has_ended_is_found() {
    let it = Fixture::new();
    let text = vec![b'x'; 300_000];
    while files(&it.path()).unwrap().len() < 2 {
        it.intend(&text).unwrap();
    }
    let (_, path) = files(&it.path()).unwrap().remove(0);
    let ended = fs::read_to_string(&path).unwrap();
    let (_, hash) = split_hash(ended.lines().last().unwrap()).unwrap();
    let mut line = Vec::new();
    let number = ended.lines().count() as u64 + 1;
    write_line(&mut line, (number, 0), &typed_text(), hash);
    fs::write(&path, ended + str::from_utf8(&line).unwrap()).unwrap();
    let expected = ChainError::Number { expected: number + 1, found: number };
    assert_eq!(errors(&it.check())[0], expected);
}

#[test]
fn old_files_are_removed_beyond_the_limit_and_the_rest_is_a_chain() {
    let mut it = Fixture::new();
    let bytes_max = 1 << 20;
    it.journal.set_limits(JournalLimits { bytes_max, ..LIMITS });
    let text = vec![b'x'; 30_000];
    let open = it.intend(b"waits").unwrap();
    for _ in 0..80 {
        let intent = it.intend(&text).unwrap();
        it.conclude(intent, text.len());
    }
    let bytes: u64 =
        files(&it.path()).unwrap().iter().map(|(_, path)| fs::metadata(path).unwrap().len()).sum();
    assert!((bytes_max / 2..=bytes_max).contains(&bytes), "{bytes} bytes are left");
    let checked = it.check();
    assert!(checked.damage.is_empty() && checked.chain.first() > Some(10));
    assert_eq!(checked.chain.open().iter().copied().collect::<Vec<_>>(), [open.0]);
    it.restart();
    let checked = it.check();
    assert!(checked.damage.is_empty() && checked.chain.open().is_empty());
}

#[test]
fn bytes_can_be_counted_and_hashed_instead_of_kept() {
    let it = Fixture::new();
    it.journal.set_limits(JournalLimits { keep_input: false, ..LIMITS });
    // Of FIPS 180-2, appendix B.2.
    it.intend(b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq").unwrap();
    let last: serde_json::Value = serde_json::from_str(it.lines().last().unwrap()).unwrap();
    let sha256 = "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";
    assert_eq!((&last["bytes"], &last["sha256"]), (&56.into(), &sha256.into()));
    assert!(last["text"].is_null());
    // What is short could be guessed.
    it.intend(b"y").unwrap();
    let last: serde_json::Value = serde_json::from_str(it.lines().last().unwrap()).unwrap();
    assert_eq!((&last["bytes"], &last["sha256"]), (&1.into(), &serde_json::Value::Null));
}

#[test]
fn of_a_secret_nothing_is_recorded() {
    let it = Fixture::new();
    let by = agent();
    let content = ActContent::Secret;
    let intent = Intent {
        by: &by,
        door: None,
        session: None,
        act: "text",
        epoch: None,
        decision: None,
        content,
    };
    it.journal.append(at(1), &JournalEntry::Intent(intent)).unwrap();
    let last: serde_json::Value = serde_json::from_str(it.lines().last().unwrap()).unwrap();
    assert_eq!(last["secret"], true);
    for member in ["text", "base64", "bytes", "sha256"] {
        assert!(last[member].is_null(), "{member}");
    }
}

#[test]
fn whoever_follows_sees_each_record_once_over_all_files() {
    let it = Fixture::new();
    let mut tail = JournalTail::of(&it.path());
    let mut seen = Vec::new();
    let text = vec![b'x'; 200_000];
    for _ in 0..40 {
        it.intend(&text).unwrap();
        let read = tail.read(|line| -> io::Result<()> {
            seen.push(serde_json::from_str::<RecordLine<'_>>(line)?.seq);
            Ok(())
        });
        read.unwrap();
    }
    let last = it.check().chain.last().map(|(last, _)| last).unwrap();
    assert_eq!(seen, (1..=last).collect::<Vec<_>>());
    assert!(files(&it.path()).unwrap().len() > 1);
}

#[test]
fn a_hash_that_was_noted_earlier_can_be_compared() {
    let it = Fixture::new();
    let intent = it.intend(b"a").unwrap();
    let line = it.lines().pop().unwrap();
    it.intend(b"b").unwrap();
    let checked = check(&it.path(), Some(intent.0)).unwrap();
    let hash = checked.asked.unwrap().to_string();
    assert!(line.ends_with(&format!(",\"hash\":\"{hash}\"}}")), "{line}");
    assert_eq!(RecordHash::parse(&hash), checked.asked);
}

#[test]
fn a_hash_has_one_spelling_only() {
    let hash = RecordHash([0xab; 32]);
    assert_eq!(RecordHash::parse(&hash.to_string()), Some(hash));
    for other in ["AB", "aB", "+b", " b", "ä", "g0"] {
        let text = hash.to_string().replacen("ab", other, 1);
        assert_eq!(RecordHash::parse(&text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn bytes_come_out_as_they_went_in(
        inputs in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..8),
    ) {
        let it = Fixture::new();
        for input in &inputs {
            it.intend(input).unwrap();
        }
        let lines = it.lines();
        let records = lines.iter().map(|line| serde_json::from_str::<RecordLine<'_>>(line).unwrap());
        let read: Vec<Vec<u8>> =
            records.filter_map(|record| Some(record.input()?.into_owned())).collect();
        prop_assert_eq!(read, inputs);
        prop_assert!(it.check().damage.is_empty());
    }
}
