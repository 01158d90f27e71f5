//! The index as its users see it: stored, found, kept within its limits, and whole after damage.

mod failing;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::core::ids::{SessionId, TenantId};
use crate::core::wait::line_matcher::LineMatcher;
use crate::core::wait::pattern::Pattern;
use crate::store::index::content::{IndexedCommand, IndexedSession};
use crate::store::index::hits::IndexHits;
use crate::store::index::query::{IndexQuery, IndexView};

const DAY_MS: u64 = 86_400_000;
const NOW_MS: u64 = 1_000 * DAY_MS;

fn limits(bytes_max: u64) -> IndexLimits {
    IndexLimits { bytes_max, age_max: Duration::from_millis(30 * DAY_MS) }
}

fn index_in(directory: &Path) -> SearchIndex {
    SearchIndex::start(directory.to_owned(), limits(1 << 30))
}

fn session(number: u64) -> IndexedSession {
    let id = format!("{number:012x}").parse().unwrap();
    IndexedSession { id, tenant: TenantId::of_uid(1_000), name: format!("s{number}").into() }
}

/// A batch of one-row lines from this row on.
fn batch(session: &IndexedSession, from_row: u64, texts: &[&str]) -> RowBatch {
    let line = |(at, text): (usize, &&str)| IndexedLine {
        row: from_row + at as u64,
        text: (*text).to_owned(),
    };
    RowBatch {
        session: session.clone(),
        from_row,
        next_row: from_row + texts.len() as u64,
        skipped: 0,
        lines: texts.iter().enumerate().map(line).collect(),
        commands: Vec::new(),
        at_ms: NOW_MS,
        ended: false,
    }
}

fn command(number: u64, text: &str) -> IndexedCommand {
    IndexedCommand {
        number,
        text: text.into(),
        directory: Some("/src".into()),
        by: None,
        started_ms: NOW_MS,
        duration_ms: 1_500,
        exit_code: Some(2),
        row: 7,
    }
}

fn store(index: &SearchIndex, batch: RowBatch) -> BatchOutcome {
    let one = tokio::runtime::Builder::new_current_thread().build().unwrap();
    one.block_on(index.store(batch))
}

fn all_of(matcher: &mut LineMatcher) -> IndexQuery<'_> {
    IndexQuery { matcher, sessions: None, sees: &|_, _| true, since_ms: 0, hits_max: 1_000 }
}

fn search(index: &SearchIndex, matcher: &mut LineMatcher) -> Result<IndexHits, IndexError> {
    index.view(Arc::new(|| false), |view| view.search(all_of(matcher)))
}

fn rows(index: &SearchIndex, words: &str) -> Vec<u64> {
    let found = search(index, &mut LineMatcher::words(words).unwrap()).unwrap();
    found.hits.iter().map(|hit| hit.row).collect()
}

#[test]
fn a_line_is_found_by_its_words_newest_first() {
    let home = TempDir::new().unwrap();
    let (index, one) = (index_in(home.path()), session(1));
    let outcome = store(&index, batch(&one, 0, &["make all", "src/a.rs:3: Error", "done"]));
    assert_eq!(outcome, BatchOutcome::Stored);
    assert_eq!(store(&index, batch(&one, 3, &["error: gave up"])), BatchOutcome::Stored);
    assert_eq!(rows(&index, "error"), [3, 1]);
    assert_eq!(rows(&index, "err a.rs"), [1]);
    assert_eq!(rows(&index, "src/a.rs:3:"), [1]);
    assert!(rows(&index, "rror").is_empty());
}

#[test]
fn queries_have_no_language() {
    let home = TempDir::new().unwrap();
    let (index, one) = (index_in(home.path()), session(1));
    store(&index, batch(&one, 0, &["a \"b\" c", "NOT this", "x* OR (y", "--- ---"]));
    assert_eq!(rows(&index, "\"b\""), [0]);
    assert_eq!(rows(&index, "not"), [1]);
    assert_eq!(rows(&index, "(y OR x*"), [2]);
    assert!(rows(&index, "text:a").is_empty());
    assert_eq!(rows(&index, "\0not\0this"), [1]);
    assert_eq!(rows(&index, "---"), [3]);
}

#[test]
fn a_pattern_is_found_in_any_line() {
    let home = TempDir::new().unwrap();
    let (index, one) = (index_in(home.path()), session(1));
    store(&index, batch(&one, 0, &["took 3ms", "took 12s", "took long"]));
    let mut matcher = LineMatcher::pattern(&Pattern::regex(r"took \d+s$").unwrap());
    let found = search(&index, &mut matcher).unwrap();
    assert_eq!(found.hits.iter().map(|hit| hit.row).collect::<Vec<_>>(), [1]);
}

#[test]
fn rows_have_their_numbers_where_lines_wrapped_or_are_missing() {
    let home = TempDir::new().unwrap();
    let (index, one) = (index_in(home.path()), session(1));
    let line = |row, text: &str| IndexedLine { row, text: text.to_owned() };
    let lines = vec![line(5, "wide line of three rows"), line(8, "next"), line(1_000, "far")];
    let rest = RowBatch { next_row: 1_001, skipped: 996, lines, ..batch(&one, 0, &[]) };
    assert_eq!(store(&index, rest), BatchOutcome::Stored);
    assert_eq!((rows(&index, "next"), rows(&index, "far")), (vec![8], vec![1_000]));
    let positions = index.view(Arc::new(|| false), |view| view.positions(&[one.id])).unwrap();
    assert_eq!(positions[&one.id], (1_001, 996));
}

#[test]
fn rows_are_stored_once_whoever_hands_them_over() {
    let home = TempDir::new().unwrap();
    let one = session(1);
    let first = index_in(home.path());
    store(&first, batch(&one, 0, &["apple", "pear"]));
    // As a daemon does that starts, or still runs beside the first.
    let second = index_in(home.path());
    let again = store(&second, batch(&one, 0, &["apple", "pear"]));
    assert_eq!(again, BatchOutcome::Expected { from_row: 2 });
    assert_eq!(store(&second, batch(&one, 2, &["plum"])), BatchOutcome::Stored);
    let late = store(&first, batch(&one, 2, &["plum"]));
    assert_eq!(late, BatchOutcome::Expected { from_row: 3 });
    assert_eq!((rows(&first, "pear"), rows(&first, "plum")), (vec![1], vec![2]));
}

#[test]
fn an_index_that_rested_stores_again() {
    let home = TempDir::new().unwrap();
    let (index, one) = (index_in(home.path()), session(1));
    // Without a file, and with one.
    for (row, text) in ["apple", "pear"].into_iter().enumerate() {
        index.rest();
        assert_eq!(store(&index, batch(&one, row as u64, &[text])), BatchOutcome::Stored);
        assert_eq!(rows(&index, text), [row as u64]);
    }
}

#[test]
fn a_command_is_found_with_how_it_ended() {
    let home = TempDir::new().unwrap();
    let (index, one) = (index_in(home.path()), session(1));
    let commands = vec![command(1, "cargo test"), command(2, "git push")];
    store(&index, RowBatch { commands: commands.clone(), ..batch(&one, 0, &[]) });
    store(&index, RowBatch { commands, ..batch(&one, 0, &["more"]) });
    let found = search(&index, &mut LineMatcher::words("cargo").unwrap()).unwrap();
    let [hit] = &found.hits[..] else { panic!("{found:?}") };
    let command = hit.command.as_ref().unwrap();
    assert_eq!((hit.row, command.number, command.exit_code), (7, 1, Some(2)));
    assert_eq!((command.directory.as_deref(), command.duration_ms), (Some("/src"), 1_500));
}

#[test]
fn nothing_is_found_that_the_caller_may_not_see() {
    let home = TempDir::new().unwrap();
    let index = index_in(home.path());
    let other = IndexedSession { tenant: TenantId::of_uid(1_001), ..session(2) };
    store(&index, batch(&session(1), 0, &["shared word"]));
    store(&index, RowBatch { commands: vec![command(1, "word")], ..batch(&other, 0, &["word"]) });
    let own = |_: SessionId, tenant: &TenantId| *tenant == TenantId::of_uid(1_000);
    let matcher = &mut LineMatcher::words("word").unwrap();
    let seen = |view: &IndexView<'_>| view.search(IndexQuery { sees: &own, ..all_of(matcher) });
    let found = index.view(Arc::new(|| false), seen).unwrap();
    assert_eq!(found.hits.iter().map(|hit| hit.session).collect::<Vec<_>>(), [session(1).id]);
}

#[test]
fn a_search_ends_when_its_time_is_up() {
    let home = TempDir::new().unwrap();
    let (index, one) = (index_in(home.path()), session(1));
    for from in 0..3 {
        store(&index, batch(&one, from * 64, &["word"; 64]));
    }
    let matcher = &mut LineMatcher::words("word").unwrap();
    let found = index.view(Arc::new(|| true), |view| view.search(all_of(matcher))).unwrap();
    assert!(found.unfinished && found.hits.len() < 192, "{found:?}");
}

#[test]
fn text_older_than_its_days_is_removed() {
    let home = TempDir::new().unwrap();
    let index = index_in(home.path());
    let (old, new) = (session(1), session(2));
    let long_ago = RowBatch {
        at_ms: NOW_MS - 31 * DAY_MS,
        ended: true,
        commands: vec![IndexedCommand { started_ms: NOW_MS - 31 * DAY_MS, ..command(1, "word") }],
        ..batch(&old, 0, &["word of old"])
    };
    store(&index, long_ago);
    assert_eq!(rows(&index, "word").len(), 2);
    // Its file is removed once the one that follows it has begun before that age.
    store(
        &index,
        RowBatch { at_ms: NOW_MS - 30 * DAY_MS - 2, ..batch(&new, 0, &["word of then"]) },
    );
    store(&index, batch(&new, 1, &["word of new"]));
    let found = search(&index, &mut LineMatcher::words("word").unwrap()).unwrap();
    assert_eq!(found.hits.iter().map(|hit| hit.session).collect::<Vec<_>>(), [new.id]);
    let known = index.view(Arc::new(|| false), |view| view.sessions_named("s1")).unwrap();
    assert!(known.is_empty());
}

/// A line of some of many words, and one that no other line has.
fn varied(row: u64) -> String {
    let words =
        (0..12).map(|word| format!("word{}", (row * 12 + word).wrapping_mul(7_919) % 5_003));
    format!("row{row} {}", words.collect::<Vec<_>>().join(" "))
}

/// Stores so many batches of varied lines, from this row on.
fn fill(index: &SearchIndex, session: &IndexedSession, row: &mut u64, batches: usize) {
    for _ in 0..batches {
        let texts: Vec<String> = (*row..*row + 256).map(varied).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        assert_eq!(store(index, batch(session, *row, &texts)), BatchOutcome::Stored);
        *row += 256;
    }
}

/// The bytes of all files of an index.
fn bytes_in(directory: &Path) -> u64 {
    let length = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().metadata().unwrap().len();
    fs::read_dir(directory).unwrap().map(length).sum()
}

fn has_text(directory: &Path, text: &str) -> bool {
    fs::read_dir(directory).unwrap().any(|entry| {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

#[test]
fn the_oldest_text_is_removed_beyond_the_bytes_and_most_of_what_fits_stays() {
    let home = TempDir::new().unwrap();
    let bytes_max = 4 << 20;
    let index = SearchIndex::start(home.path().to_owned(), limits(bytes_max));
    let (one, mut row) = (session(1), 0);
    fill(&index, &one, &mut row, 20);
    assert_eq!(rows(&index, "row0 "), [0]);
    fill(&index, &one, &mut row, 200);
    assert!(rows(&index, "row0 ").is_empty());
    assert_eq!(rows(&index, &format!("row{}", row - 1)), [row - 1]);
    let oldest = (0..row).rev().find(|row| rows(&index, &format!("row{row} ")).is_empty());
    let kept = row - oldest.unwrap();
    let text = kept * varied(row).len() as u64;
    assert!(text > bytes_max / 4, "{kept} rows with {text} bytes are kept");
    // One batch more may be there, and a file that SQLite is to merge with the one beside it.
    assert!(bytes_in(home.path()) < bytes_max * 5 / 4, "{}", bytes_in(home.path()));
    assert!(!has_text(home.path(), &varied(0)) && has_text(home.path(), &varied(row - 1)));
    let positions = index.view(Arc::new(|| false), |view| view.positions(&[one.id])).unwrap();
    assert_eq!(positions[&one.id], (row, 0));
    // A lower limit counts from the next batch on.
    index.set_limits(limits(bytes_max / 2));
    fill(&index, &one, &mut row, 1);
    assert!(bytes_in(home.path()) < bytes_max * 3 / 4, "{}", bytes_in(home.path()));
    assert_eq!(rows(&index, &format!("row{}", row - 300)), [row - 300]);
}

#[test]
fn a_command_that_two_files_have_is_found_once() {
    let home = TempDir::new().unwrap();
    let index = SearchIndex::start(home.path().to_owned(), limits(4 << 20));
    let (one, mut row) = (session(1), 0);
    for _ in 0..2 {
        let commands = vec![command(1, "cargo test")];
        store(&index, RowBatch { commands, ..batch(&one, row, &[]) });
        fill(&index, &one, &mut row, 10);
    }
    assert!(IndexFiles::in_directory(home.path().to_owned()).all().len() > 1);
    let found = search(&index, &mut LineMatcher::words("cargo").unwrap()).unwrap();
    assert_eq!(found.hits.len(), 1, "{found:?}");
}

#[test]
fn a_damaged_file_among_others_is_set_aside_once_a_search_met_it() {
    let home = TempDir::new().unwrap();
    let index = SearchIndex::start(home.path().to_owned(), limits(4 << 20));
    let (one, mut row) = (session(1), 0);
    fill(&index, &one, &mut row, 60);
    let files = IndexFiles::in_directory(home.path().to_owned());
    let [oldest, ..] = files.all()[..] else { panic!("there is no file") };
    assert!(files.all().len() > 2);
    drop(index);
    fs::write(files.path(oldest), "no database at all, but long enough for a header".repeat(100))
        .unwrap();
    let index = SearchIndex::start(home.path().to_owned(), limits(4 << 20));
    let found = search(&index, &mut LineMatcher::words("row0 ").unwrap());
    assert!(matches!(found, Err(IndexError::Damaged(_))), "{found:?}");
    fill(&index, &one, &mut row, 1);
    assert!(rows(&index, "row0 ").is_empty());
    assert_eq!(rows(&index, &format!("row{}", row - 1)), [row - 1]);
    assert!(home.path().join("index.db.damaged").exists());
}

#[test]
fn a_damaged_file_is_set_aside_and_a_new_one_begins() {
    type Damage = fn(&Path);
    let overwrite: Damage = |path| {
        fs::write(path, "no database at all, but long enough for a header".repeat(100)).unwrap()
    };
    let truncate: Damage =
        |path| fs::File::options().write(true).open(path).unwrap().set_len(5_000).unwrap();
    for damage in [overwrite, truncate] {
        let home = TempDir::new().unwrap();
        let one = session(1);
        let index = index_in(home.path());
        let many = vec!["many words to fill some pages of the file"; 2_000];
        store(&index, batch(&one, 0, &many));
        close(index, home.path());
        let files = IndexFiles::in_directory(home.path().to_owned());
        damage(&files.path(files.all()[0]));
        let index = index_in(home.path());
        let again = store(&index, batch(&one, 2_000, &["later"]));
        // All rows that are still there are wanted again.
        assert_eq!(again, BatchOutcome::Expected { from_row: 0 });
        assert_eq!(store(&index, batch(&one, 0, &["again"])), BatchOutcome::Stored);
        assert_eq!(rows(&index, "again"), [0]);
        assert!(home.path().join("index.db.damaged").exists());
    }
}

#[test]
fn a_file_that_is_gone_is_created_again() {
    let home = TempDir::new().unwrap();
    let (index, one) = (index_in(home.path()), session(1));
    store(&index, batch(&one, 0, &["first"]));
    for entry in fs::read_dir(home.path()).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let later = store(&index, batch(&one, 1, &["second"]));
    assert_eq!(later, BatchOutcome::Expected { from_row: 0 });
    assert_eq!(store(&index, batch(&one, 0, &["first", "second"])), BatchOutcome::Stored);
    assert_eq!(rows(&index, "second"), [1]);
}

#[test]
fn files_are_for_their_owner_only() {
    let home = TempDir::new().unwrap();
    let place = home.path().join("deep/index");
    let index = index_in(&place);
    store(&index, batch(&session(1), 0, &["first"]));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place), 0o700);
    for entry in fs::read_dir(&place).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn a_place_that_cannot_be_written_refuses_until_it_can() {
    let home = TempDir::new().unwrap();
    let place = home.path().join("index");
    fs::write(&place, "a file where the directory should be").unwrap();
    let (index, one) = (index_in(&place), session(1));
    assert_eq!(store(&index, batch(&one, 0, &["first"])), BatchOutcome::Refused);
    let found = search(&index, &mut LineMatcher::words("first").unwrap());
    assert!(matches!(found, Err(IndexError::NotReady)), "{found:?}");
    fs::remove_file(&place).unwrap();
    assert_eq!(store(&index, batch(&one, 0, &["first"])), BatchOutcome::Stored);
    assert_eq!(rows(&index, "first"), [0]);
}

/// Waits until the thread of an index has closed its file: then SQLite removes the one beside it.
fn close(index: SearchIndex, directory: &Path) {
    drop(index);
    let is_open = || {
        let names = fs::read_dir(directory).unwrap().map(|it| it.unwrap().file_name());
        names.into_iter().any(|name| name.to_string_lossy().ends_with("-wal"))
    };
    while is_open() {
        std::thread::yield_now();
    }
}
