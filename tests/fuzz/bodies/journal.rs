//! Journals: any file is safe to check, show and follow, and a changed byte of a journal is found.
//!
//! An input that begins with a brace is a file as it is. Any other one says which acts a journal has, and which of its
//! bytes changes.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use tempfile::TempDir;
use termgate::cli::journal::act::in_stream;
use termgate::core::caller::{Caller, Kind};
use termgate::core::ids::{ConnectionId, Epoch, PrincipalId, TenantId};
use termgate::core::journal::{ActContent, ActOutcome, Intent, JournalEntry, RecordNumber};
use termgate::core::policy::Door;
use termgate::store::journal::chain::Chain;
use termgate::store::journal::events::{EventQuery, EventRecord, events};
use termgate::store::journal::line::{NO_HASH, RecordKind, RecordLine, write_line};
use termgate::store::journal::reader::{Checked, JournalTail, check as check_journal};

pub fn check(data: &[u8]) {
    thread_local! {
        static DIRECTORY: TempDir = tempfile::tempdir().expect("a directory can be made");
    }
    DIRECTORY.with(|directory| {
        let directory = directory.path();
        match data {
            [b'{', ..] => check_any(directory, data),
            [at, after, value, acts @ ..] => {
                let place = usize::from(*at) << 8 | usize::from(*after);
                check_changed(directory, &written(acts), place, *value);
            }
            [..] => {}
        }
    });
}

/// Writes the only file of a journal.
fn put(directory: &Path, file: &[u8]) -> Checked {
    let path = directory.join("00000000000000000001.jsonl");
    fs::write(&path, file).expect("the file can be written");
    check_journal(directory, Some(2)).expect("the file can be read")
}

fn check_any(directory: &Path, file: &[u8]) {
    let checked = put(directory, file);
    assert!(checked.files == 1 && checked.damage.len() <= 100);
    let mut shown = 0;
    let mut lines = 0;
    JournalTail::of(directory)
        .read(|line| -> io::Result<()> {
            lines += 1;
            if let Ok(record) = serde_json::from_str::<RecordLine<'_>>(line) {
                let told = in_stream(&record);
                assert!(!told.contains(char::is_control), "{told:?}");
                shown += 1;
            }
            Ok(())
        })
        .expect("the file can be read");
    let ended = file.iter().filter(|byte| **byte == b'\n').count();
    assert!(shown <= lines && lines <= ended);
    // A page ends behind whole records, and the next one goes on there.
    let wants = |_: &EventRecord| true;
    for since in [None, Some(0), Some(1), Some(u64::MAX)] {
        let query = EventQuery { since, limit: 3, wants: &wants };
        let page = events(directory, &query).expect("the file can be read");
        assert!(page.events.len() <= 3);
    }
}

/// The text of a journal with these acts.
fn written(acts: &[u8]) -> Vec<u8> {
    let (mut text, mut chain) = (Vec::new(), Chain::default());
    let mut append = |kind, of, line: RecordLine<'_>| {
        let (seq, before) = chain.next();
        let line = line.unnumbered().expect("a record has a JSON form");
        let hash = write_line(&mut text, (seq, seq), &line, before);
        chain.advance(kind, of, hash);
        seq
    };
    let first = RecordLine {
        after: Some(NO_HASH.to_string().into()),
        ..RecordLine::new(UNIX_EPOCH, RecordKind::Segment)
    };
    append(RecordKind::Segment, None, first);
    for (index, bytes) in acts.chunks(16).enumerate() {
        let by = Caller {
            principal: PrincipalId::Connection(index as u64),
            connection: ConnectionId(index as u64),
            tenant: TenantId::of_uid(1_000),
            kind: Kind::Agent,
            label: Arc::from("agent"),
        };
        let command = String::from_utf8_lossy(bytes);
        let content = match bytes[0] % 4 {
            0 => ActContent::Bytes(bytes),
            1 => ActContent::Command { bytes, command: &command },
            2 => ActContent::Secret,
            _ => ActContent::Nothing,
        };
        let (door, epoch) = (Some(Door::Gateway), Some(Epoch(7)));
        let (by, decision, session) = (&by, None, None);
        let intent = Intent { by, door, session, act: "text", epoch, decision, content };
        let entry = JournalEntry::Intent(intent);
        let of = append(
            RecordKind::Intent,
            None,
            RecordLine::of_entry(UNIX_EPOCH, &entry, bytes[0] & 4 == 0),
        );
        let outcome = JournalEntry::Outcome {
            of: RecordNumber(of),
            outcome: ActOutcome::Failed { code: None, reason: &command },
        };
        append(RecordKind::Outcome, Some(of), RecordLine::of_entry(UNIX_EPOCH, &outcome, true));
    }
    text
}

/// Checks that a journal is sound, and that it is not once a byte is another one.
fn check_changed(directory: &Path, text: &[u8], place: usize, value: u8) {
    let sound = put(directory, text);
    assert!(sound.damage.is_empty(), "{:?}", sound.damage);
    let place = place % text.len();
    if text[place] == value {
        return;
    }
    let mut changed = text.to_vec();
    changed[place] = value;
    let found = put(directory, &changed);
    // Without its line end the last record is not there yet, as if it had never been written. Who knows its hash
    // finds that.
    let is_missing = found.chain.last() != sound.chain.last();
    let [before, after] = [text, &changed].map(|it| it[place].escape_ascii().to_string());
    assert!(!found.damage.is_empty() || is_missing, "byte {place}, {after} for {before}");
}
