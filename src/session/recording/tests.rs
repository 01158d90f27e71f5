//! A recording beside the screen that it is of: what a replay shows is what the screen shows.

use std::fs;
use std::io::BufReader;

use tempfile::TempDir;

use super::*;
use crate::core::frame::Frame;
use crate::core::screen::{Facts, Origin, ScreenLimits};
use crate::session::recording::reader::CastReader;

const SIZE: Size = Size { rows: 5, cols: 20 };

fn at(millis: u64) -> Moment {
    Moment::from_boot(Duration::from_millis(millis))
}

fn screen() -> Screen {
    Screen::new(SIZE, ScreenLimits::default(), Origin::default())
}

/// A session that is recorded.
struct Recorded {
    recording: Recording,
    screen: Screen,
    offset: u64,
    ground: TempDir,
}

impl Recorded {
    fn begin(bytes_max: u64) -> Self {
        let ground = tempfile::tempdir().unwrap();
        // The directory of recordings is made with the first one.
        let plan = plan(ground.path().join("recordings").join("0123456789ab-2.cast"), bytes_max);
        let recording = Recording::open(plan, at(0), 0, SIZE);
        Self { recording, screen: screen(), offset: 0, ground }
    }

    fn path(&self) -> PathBuf {
        self.recording.plan.path.clone()
    }

    /// The next daemon, which reads the output from this offset on again with this screen.
    fn restart(self, screen: Screen, offset: u64) -> Self {
        let plan = self.recording.plan.clone();
        drop(self.recording);
        let recording = Recording::open(plan, at(10_000), offset, screen.size());
        Self { recording, screen, offset, ground: self.ground }
    }

    fn print(&mut self, millis: u64, output: &str) {
        self.print_bytes(millis, output.as_bytes());
    }

    fn print_bytes(&mut self, millis: u64, output: &[u8]) {
        self.recording.on_output(at(millis), self.offset, output, &mut self.screen);
        self.screen.feed(at(millis), output);
        self.offset += output.len() as u64;
    }

    fn flush(&mut self, millis: u64) {
        self.recording.flush(at(millis), self.offset, &mut self.screen);
    }

    fn events(&self) -> Vec<(u128, CastEvent)> {
        let file = fs::File::open(self.path()).unwrap();
        let events = CastReader::open(BufReader::new(file)).unwrap();
        events.map(|event| event.unwrap()).map(|it| (it.at.as_millis(), it.event)).collect()
    }

    /// All output in the file.
    fn output(&self) -> String {
        let output = |(_, event)| match event {
            CastEvent::Output(text) => Some(text),
            CastEvent::Resize(_) | CastEvent::Marker(_) | CastEvent::Exit(_) => None,
        };
        self.events().into_iter().filter_map(output).collect()
    }

    /// Whether a replay ends with the screen as it is.
    fn assert_replays(&mut self) {
        let mut replayed = screen();
        for (millis, event) in self.events() {
            match event {
                CastEvent::Output(text) => replayed.feed(at(millis as u64), text.as_bytes()),
                CastEvent::Resize(size) => replayed.resize(size),
                CastEvent::Marker(_) | CastEvent::Exit(_) => {}
            }
        }
        assert_eq!(shown(&mut replayed), shown(&mut self.screen));
    }
}

fn plan(path: PathBuf, bytes_max: u64) -> RecordingPlan {
    let (title, command) = ("build".to_owned(), "make".to_owned());
    let limits = RecordingLimits { always: false, bytes_max, total_bytes_max: 3 << 20 };
    RecordingPlan { path, limits, title, command, begun_at: UNIX_EPOCH, nonce: None }
}

fn shown(screen: &mut Screen) -> impl PartialEq + std::fmt::Debug + use<> {
    let frame: Arc<Frame> = screen.first_frame(Moment::default(), &Facts::default());
    let lines: Vec<_> = frame.lines.iter().map(|line| (*line.value).clone()).collect();
    let cursor = frame.cursor.value;
    let place = (cursor.row.0 - frame.base_row.0, cursor.col, cursor.visible);
    (lines, place, frame.mode.value, frame.size.value)
}

#[test]
fn intervals_add_up_to_the_time_that_passed() {
    let mut it = Recorded::begin(1 << 20);
    for tick in 0..10 {
        // A third of a millisecond each: rounded one by one, they would be nothing.
        let now = Moment::from_boot(Duration::from_micros(tick * 10_333));
        it.recording.on_output(now, it.offset, b"x", &mut it.screen);
        it.offset += 1;
        it.screen.feed(now, b"x");
        it.recording.flush(now, it.offset, &mut it.screen);
    }
    assert_eq!(it.events().last().map(|(millis, _)| *millis), Some(92));
    it.assert_replays();
}

#[test]
fn a_recording_that_grows_removes_old_ones_beyond_the_limit_of_all() {
    let mut it = Recorded::begin(100 << 20);
    it.print(1, "one\r\n");
    it.flush(1);
    let old = it.path().with_file_name("0123456789ab-1.cast");
    std::fs::write(&old, vec![b'x'; 1_000_000]).unwrap();
    let many = "x".repeat(900_000);
    for (tick, is_kept) in [(2, true), (3, true), (4, false)] {
        it.print(tick, &many);
        it.flush(tick);
        assert_eq!(old.exists(), is_kept, "{tick}");
    }
}

#[test]
fn a_restart_records_nothing_twice_and_leaves_nothing_out() {
    let mut it = Recorded::begin(1 << 20);
    it.print(1, "one\r\n");
    it.flush(1);
    let mut kept = screen();
    kept.feed(at(1), b"one\r\n");
    it.print(2, "two\r\n");
    it.flush(2);
    // This was not written when the daemon was killed.
    it.print(3, "lost");
    let mut next = it.restart(kept, 5);
    next.print(4, "two\r\nlost");
    next.print(5, " and found");
    next.flush(5);
    assert_eq!(next.output(), "one\r\ntwo\r\nlost and found");
    next.assert_replays();
}

#[test]
fn a_character_that_a_restart_splits_is_recorded_whole() {
    let mut it = Recorded::begin(1 << 20);
    it.print_bytes(1, &"a漢".as_bytes()[..2]);
    it.flush(1);
    let mut kept = screen();
    kept.feed(at(1), &"a漢".as_bytes()[..2]);
    let mut next = it.restart(kept, 2);
    next.print_bytes(2, &"漢b".as_bytes()[1..]);
    next.flush(2);
    assert_eq!(next.output(), "a漢b");
    next.assert_replays();
}

#[test]
fn output_that_nobody_kept_is_told_and_the_whole_screen_follows() {
    let mut it = Recorded::begin(1 << 20);
    it.print(1, "one\r\n");
    it.flush(1);
    let mut other = screen();
    other.feed(at(1), b"something else\r\n$ ");
    let mut next = it.restart(other, 100);
    next.print(2, "ls");
    next.flush(2);
    let markers: Vec<_> =
        next.events().into_iter().filter(|(_, it)| matches!(it, CastEvent::Marker(_))).collect();
    let expected = CastEvent::Marker("95 bytes of output are missing".to_owned());
    assert_eq!(markers.into_iter().map(|(_, it)| it).collect::<Vec<_>>(), [expected]);
    next.assert_replays();
}

#[test]
fn what_begins_in_the_middle_shows_the_screen_as_it_is() {
    let mut it = Recorded::begin(1 << 20);
    it.screen.feed(at(0), b"\x1b[1;32mbefore\x1b[0m\r\n$ \x1b[");
    it.offset = 50;
    it.recording = Recording::open(plan(it.path(), 1 << 20), at(0), 50, SIZE);
    it.flush(1);
    it.print(2, "31mred");
    it.flush(2);
    assert!(it.events().iter().all(|(_, event)| matches!(event, CastEvent::Output(_))));
    it.assert_replays();
}

#[test]
fn sizes_are_recorded_before_the_output_that_follows() {
    let mut it = Recorded::begin(1 << 20);
    it.print(1, "a");
    it.flush(1);
    let size = Size { rows: 7, cols: 30 };
    it.screen.resize(size);
    it.print(2, "b");
    it.flush(2);
    let kinds: Vec<_> = it.events().into_iter().map(|(_, event)| event).collect();
    let output = |text: &str| CastEvent::Output(text.to_owned());
    assert_eq!(kinds, [output("a"), CastEvent::Resize(size), output("b")]);
    it.assert_replays();
}

#[test]
fn a_recording_ends_at_its_limit_with_a_marker_and_stays_below_it() {
    let mut it = Recorded::begin(4_096);
    let mut count = 0;
    while !it.recording.is_over() {
        it.print(count, "some words of output\r\n");
        it.flush(count);
        count += 1;
        assert!(count < 1_000);
    }
    assert!(fs::metadata(it.path()).unwrap().len() <= 4_096);
    let last = it.events().pop().unwrap().1;
    assert!(matches!(&last, CastEvent::Marker(text) if text.contains("4096 bytes")), "{last:?}");
    let plan = it.recording.plan.clone();
    drop(it.recording);
    assert!(Recording::open(plan, at(0), 9_999, SIZE).is_over());
}

#[test]
fn a_recording_goes_on_with_the_whole_screen_once_the_disk_takes_it() {
    // What refuses here is a file where the directory should be.
    let mut refused = Recorded::begin(1 << 20);
    let place = refused.path().parent().unwrap().to_owned();
    fs::write(&place, "").unwrap();
    refused.print(1, "unseen");
    refused.flush(1);
    assert!(refused.recording.take_failure().is_err());
    refused.print(500, " and more");
    refused.flush(500);
    assert_eq!(refused.recording.due(), Some(at(1_001)));
    fs::remove_file(&place).unwrap();
    refused.flush(1_001);
    assert_eq!(refused.recording.due(), None);
    refused.print(1_002, "!");
    refused.flush(1_002);
    refused.assert_replays();
    assert!(refused.events().iter().any(|(_, it)| matches!(it, CastEvent::Marker(_))));
}

#[test]
fn a_recording_that_was_removed_ends() {
    let mut it = Recorded::begin(1 << 20);
    it.print(1, "one");
    it.flush(1);
    fs::remove_file(it.path()).unwrap();
    it.print(2, "two");
    it.flush(2);
    assert!(it.recording.is_over());
}

#[test]
fn what_a_full_disk_refused_is_made_good_with_size_time_and_end() {
    let mut refused = Recorded::begin(1 << 20);
    refused.print(1, "before");
    refused.flush(1);
    let place = refused.path().parent().unwrap().to_owned();
    let aside = place.with_extension("aside");
    fs::rename(&place, &aside).unwrap();
    fs::write(&place, "no directory").unwrap();
    // The next batch creates the file again, which fails.
    refused.recording.file = None;
    let smaller = Size { rows: 4, cols: 12 };
    refused.screen.resize(smaller);
    refused.print(900, " and more");
    refused.recording.end(at(900), Some(&CastEvent::Exit(3)));
    refused.flush(900);
    assert!(refused.recording.take_failure().is_err());
    assert!(!refused.recording.is_over(), "its end is not written");
    fs::remove_file(&place).unwrap();
    fs::rename(&aside, &place).unwrap();
    refused.flush(1_900);
    assert!(refused.recording.is_over());
    refused.assert_replays();
    let events = refused.events();
    assert!(events.contains(&(1_900, CastEvent::Resize(smaller))), "{events:?}");
    assert_eq!(events.last(), Some(&(1_900, CastEvent::Exit(3))), "{events:?}");
}
