//! The pictures of an animation: the screen of a recording at the times when it is seen to change.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::cli::failure::CliFailure;
use crate::cli::record::pace::PlaybackPace;
use crate::cli::record::played::PlayedScreen;
use crate::cli::record::progress::ExportProgress;
use crate::core::frame::Size;
use crate::core::frame::line::{Line, Run};
use crate::core::human_duration::measured;
use crate::session::recording::reader::TimedEvent;

/// The most pictures a second, and of one animation: eleven minutes of changes without a pause.
const PICTURES_PER_SECOND: u32 = 15;
const PICTURES_MAX: usize = 10_000;

/// How many bytes all different lines of an animation may have.
const LINES_BYTES_MAX: usize = 128 << 20;

/// How long the last picture is shown before the first one returns.
const LAST_SHOWN: Duration = Duration::from_secs(3);

/// The largest image, in bytes.
const IMAGE_BYTES_MAX: usize = 64 << 20;

/// What to do if an animation becomes too large.
const SMALLER: &str =
    "export a part of the recording with --from and --to, or play it faster with --speed";

/// Which part of a recording is shown, and how fast.
#[derive(Clone, Copy, Debug)]
pub(super) struct FilmCut {
    /// Times of the recording; what comes before is in the first picture.
    pub(super) from: Duration,
    pub(super) to: Duration,
    pub(super) pace: PlaybackPace,
}

/// What is seen at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FilmPicture {
    /// After the begin of the animation.
    pub(super) at: Duration,
    /// Of each row.
    pub(super) lines: Vec<Arc<Line>>,
    /// Row and column of the cursor, if it is visible.
    pub(super) cursor: Option<(u16, u16)>,
}

/// An animation.
#[derive(Clone, Debug)]
pub(super) struct Film {
    /// Of the largest screen.
    pub(super) size: Size,
    /// At least one, in the order of their times. Each differs from the one before.
    pub(super) pictures: Vec<FilmPicture>,
    /// From the first picture on, until it returns.
    pub(super) length: Duration,
}

impl Film {
    /// One picture of a screen.
    pub(super) fn still(screen: &mut PlayedScreen) -> Self {
        let (size, picture) = picture_of(screen, Duration::ZERO);
        Self { size, pictures: vec![picture], length: Duration::ZERO }
    }

    /// Plays a recording.
    ///
    /// # Errors
    /// If the recording is broken, ends before the part begins, or the part has too many pictures.
    pub(super) fn play(
        mut screen: PlayedScreen,
        events: impl IntoIterator<Item = Result<TimedEvent, CliFailure>>,
        cut: &FilmCut,
        progress: &mut ExportProgress<'_>,
    ) -> Result<Self, CliFailure> {
        let mut film = GrowingFilm::default();
        // When the event before happened, and when that is seen.
        let (mut before, mut seen) = (cut.from, Duration::ZERO);
        let mut is_over = false;
        for event in events {
            let event = event?;
            if event.at > cut.to {
                is_over = true;
                break;
            }
            if let Some(passed) = event.at.checked_sub(before) {
                seen += cut.pace.pause(passed);
                before = event.at;
                film.reach(seen, &mut screen)?;
                film.change(seen);
            }
            progress.show(|| format!("reading {}", measured_of(event.at)));
            screen.play(event);
        }
        if !is_over && screen.at() < cut.from {
            let end = measured_of(screen.at());
            return Err(CliFailure::Usage(format!("--from: the recording ends at {end}")));
        }
        if is_over {
            seen += cut.pace.pause(cut.to - before);
        }
        film.end(seen, &mut screen)
    }
}

fn measured_of(time: Duration) -> String {
    measured(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// A film that is made.
#[derive(Debug)]
struct GrowingFilm {
    size: Option<Size>,
    pictures: Vec<FilmPicture>,
    /// All lines so far, each once.
    lines: HashSet<Arc<Line>>,
    lines_bytes: usize,
    /// When to take a picture of changes before.
    due: Option<Duration>,
    /// The earliest time of the next picture.
    next: Duration,
}

impl Default for GrowingFilm {
    fn default() -> Self {
        Self {
            size: None,
            pictures: Vec::new(),
            lines: HashSet::new(),
            lines_bytes: 0,
            due: Some(Duration::ZERO),
            next: Duration::ZERO,
        }
    }
}

impl GrowingFilm {
    /// Takes the picture that is due before something else changes.
    fn reach(&mut self, now: Duration, screen: &mut PlayedScreen) -> Result<(), CliFailure> {
        match self.due.take_if(|due| *due < now) {
            Some(due) => self.take(due, screen),
            None => Ok(()),
        }
    }

    /// Notes that the screen is about to change.
    fn change(&mut self, now: Duration) {
        self.due.get_or_insert(now.max(self.next));
    }

    fn take(&mut self, at: Duration, screen: &mut PlayedScreen) -> Result<(), CliFailure> {
        let (size, mut picture) = picture_of(screen, at);
        for line in &mut picture.lines {
            match self.lines.get(line) {
                Some(known) => *line = Arc::clone(known),
                None => {
                    self.lines_bytes += line.text.len() + line.runs.len() * size_of::<Run>();
                    self.lines.insert(Arc::clone(line));
                }
            }
        }
        let is_seen = self
            .pictures
            .last()
            .is_none_or(|last| (&last.lines, last.cursor) != (&picture.lines, picture.cursor));
        if !is_seen {
            return Ok(());
        }
        if self.pictures.len() == PICTURES_MAX || self.lines_bytes > LINES_BYTES_MAX {
            let most = match self.lines_bytes > LINES_BYTES_MAX {
                true => format!("{} MiB of text", LINES_BYTES_MAX >> 20),
                false => format!("{PICTURES_MAX} pictures"),
            };
            let told = format!("the animation would have more than {most}: {SMALLER}");
            return Err(CliFailure::Usage(told));
        }
        let before = self.size.unwrap_or(size);
        let (rows, cols) = (before.rows.max(size.rows), before.cols.max(size.cols));
        self.size = Some(Size { rows, cols });
        self.next = at + Duration::from_secs(1) / PICTURES_PER_SECOND;
        self.pictures.push(picture);
        Ok(())
    }

    fn end(mut self, end: Duration, screen: &mut PlayedScreen) -> Result<Film, CliFailure> {
        if let Some(due) = self.due.take() {
            self.take(due, screen)?;
        }
        let last = self.pictures.last().map_or(Duration::ZERO, |last| last.at);
        let size = self.size.unwrap_or_else(|| screen.frame().size.value);
        Ok(Film { size, pictures: self.pictures, length: last.max(end) + LAST_SHOWN })
    }
}

fn picture_of(screen: &mut PlayedScreen, at: Duration) -> (Size, FilmPicture) {
    let frame = screen.frame();
    let lines = frame.lines.iter().map(|line| Arc::clone(&line.value)).collect();
    let cursor = frame.cursor.value;
    let row = cursor.row.0.checked_sub(frame.base_row.0).filter(|_| cursor.visible);
    let cursor = row.and_then(|row| Some((u16::try_from(row).ok()?, cursor.col)));
    (frame.size.value, FilmPicture { at, lines, cursor })
}

/// Fails if an image of so many bytes is too large.
pub(super) fn check_size(bytes: usize) -> Result<(), CliFailure> {
    if bytes <= IMAGE_BYTES_MAX {
        return Ok(());
    }
    let most = IMAGE_BYTES_MAX >> 20;
    Err(CliFailure::Usage(format!("the image would have more than {most} MiB: {SMALLER}")))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::session::recording::asciicast::CastEvent;

    pub(in crate::cli::record) const SIZE: Size = Size { rows: 3, cols: 20 };

    /// All of a recording, as fast as it was.
    pub(in crate::cli::record) const WHOLE: FilmCut = FilmCut {
        from: Duration::ZERO,
        to: Duration::MAX,
        pace: PlaybackPace { speed: 1.0, idle_limit: None },
    };

    pub(in crate::cli::record) fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// The film of output at these milliseconds.
    pub(in crate::cli::record) fn film_of(events: &[(u64, &str)], cut: &FilmCut) -> Film {
        play(events.iter().map(|(at, text)| (*at, (*text).to_owned())), cut).unwrap()
    }

    fn play(
        events: impl Iterator<Item = (u64, String)>,
        cut: &FilmCut,
    ) -> Result<Film, CliFailure> {
        let event = |(at, text)| Ok(TimedEvent { at: millis(at), event: CastEvent::Output(text) });
        let screen = PlayedScreen::new(SIZE);
        Film::play(screen, events.map(event), cut, &mut ExportProgress::unseen())
    }

    /// When each picture is shown, and its first row.
    fn shown(film: &Film) -> Vec<(u128, &str)> {
        film.pictures.iter().map(|it| (it.at.as_millis(), &*it.lines[0].text)).collect()
    }

    #[test]
    fn changes_that_come_faster_than_pictures_share_one() {
        let events = [(100, "a"), (110, "b"), (120, "c"), (1_000, "d"), (1_001, "e")];
        let film = film_of(&events, &WHOLE);
        let expected = [(0, ""), (100, "a"), (166, "abc"), (1_000, "abcd"), (1_066, "abcde")];
        assert_eq!(shown(&film), expected);
        assert_eq!(film.length.as_millis(), 4_066, "and three seconds more");
    }

    #[test]
    fn what_cannot_be_seen_is_no_picture() {
        let film = film_of(&[(0, "a"), (500, "\x1b]0;title\x07\x1b[1m"), (900, "\x08a")], &WHOLE);
        assert_eq!(shown(&film), [(0, "a"), (900, "a")], "the second a is bold");
    }

    #[test]
    fn a_part_begins_with_what_came_before_and_ends_in_time() {
        let events = [(100, "a"), (2_000, "b"), (3_000, "c"), (9_000, "d")];
        let cut = FilmCut { from: millis(1_500), to: millis(4_000), ..WHOLE };
        let film = film_of(&events, &cut);
        assert_eq!(shown(&film), [(0, "a"), (500, "ab"), (1_500, "abc")]);
        assert_eq!(film.length, millis(2_500) + LAST_SHOWN);
        let late = FilmCut { from: millis(9_001), ..WHOLE };
        let events = events.map(|(at, text)| (at, text.to_owned()));
        let error = play(events.into_iter(), &late).unwrap_err();
        assert_eq!(error.to_string(), "--from: the recording ends at 9.0s");
    }

    #[test]
    fn long_pauses_are_cut_and_speed_shortens_all() {
        let pace = PlaybackPace { speed: 2.0, idle_limit: Some(millis(1_000)) };
        let film = film_of(&[(400, "a"), (60_400, "b")], &FilmCut { pace, ..WHOLE });
        assert_eq!(shown(&film), [(0, ""), (200, "a"), (700, "ab")]);
    }

    #[test]
    fn an_animation_of_too_many_pictures_says_how_to_make_a_smaller_one() {
        let events = (0..20_000).map(|number| (number * 100, format!("\r{number}")));
        let error = play(events, &WHOLE).unwrap_err().to_string();
        assert!(error.contains("10000 pictures") && error.contains("--from and --to"), "{error}");
    }

    #[test]
    fn the_film_is_as_large_as_the_largest_screen() {
        let screen = PlayedScreen::new(SIZE);
        let sizes = [Size { rows: 2, cols: 40 }, Size { rows: 6, cols: 10 }];
        let events = sizes.into_iter().enumerate().map(|(at, size)| {
            Ok(TimedEvent { at: millis(at as u64 * 500), event: CastEvent::Resize(size) })
        });
        let film = Film::play(screen, events, &WHOLE, &mut ExportProgress::unseen()).unwrap();
        assert_eq!(film.size, Size { rows: 6, cols: 40 });
    }
}
