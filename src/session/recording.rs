//! Recordings of sessions as asciicast v3 files: output, sizes and markers, and never input.
//!
//! A recording takes output by its offsets and notes in the file how far it has come. So it takes no byte twice and
//! leaves none out, whichever daemon hands it over. Where output is missing, it goes on with a picture of the whole
//! screen; it begins in the middle the same way.

pub mod asciicast;
pub mod directory;
mod file;
mod marks;
pub mod reader;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::core::frame::Size;
use crate::core::moment::Moment;
use crate::core::screen::Screen;
use crate::session::off_worker::while_others_go_on;
use crate::session::pty::shell::Nonce;
use crate::session::recording::asciicast::{CastEvent, CastHeader, RecordingState, SplitText};
use crate::session::recording::directory::make_room_or_warn;
use crate::session::recording::file::RecordingFile;
use crate::session::recording::marks::MarkFilter;

/// How soon to try again to write what the disk did not take.
const WRITE_AGAIN: Duration = Duration::from_secs(1);

/// What is left below the limit for the marker that says so, in bytes.
const LAST_WORDS: u64 = 1_024;

/// After how much more of a recording there may be too much of all of them, in bytes.
const ROOM_EVERY: u64 = 1 << 20;

/// How much of a buffer is kept, in bytes.
const BUFFER_KEPT: usize = 64 * 1024;

/// The most characters of a marker.
const MARKER_MAX: usize = 200;

/// What is recorded of sessions, and how much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordingLimits {
    /// Whether each new session is recorded.
    pub always: bool,
    /// How large one recording may become.
    pub bytes_max: u64,
    /// How large all of them may become.
    pub total_bytes_max: u64,
}

/// What a recording is of, and how large it may become.
#[derive(Clone, Debug)]
pub struct RecordingPlan {
    pub path: PathBuf,
    pub limits: RecordingLimits,
    pub title: String,
    pub command: String,
    pub begun_at: SystemTime,
    /// What the marks of its shell carry, which is not recorded.
    pub nonce: Option<Nonce>,
}

impl RecordingPlan {
    /// The name of the file.
    pub fn file_name(&self) -> Option<Arc<str>> {
        Some(Arc::from(self.path.file_name()?.to_str()?))
    }
}

/// The recording of one session. It is written by [`Recording::flush`] alone, in one step.
#[derive(Debug)]
pub struct Recording {
    plan: RecordingPlan,
    file: Option<RecordingFile>,
    /// All output before this offset was taken; `None` if a picture must come first.
    covered: Option<u64>,
    text: SplitText,
    marks: MarkFilter,
    size: Size,
    /// The time of the last event, in milliseconds since boot.
    at_ms: u64,
    /// Output that is no event yet.
    output: String,
    batch: Vec<u8>,
    /// Before when nothing is written, after the disk refused.
    retry_at: Option<Moment>,
    /// Output is missing that was taken, or that nobody kept.
    is_torn: bool,
    /// The disk took nothing of the last batch.
    is_refused: bool,
    /// Why, if it refused.
    failure: Option<io::Error>,
    /// The offset in the newest state of the file.
    noted: Option<u64>,
    /// The size and the time of the last event in the file.
    written: (Size, u64),
    is_over: bool,
    /// How the program ended, until the file has it.
    exit: Option<CastEvent>,
}

impl Recording {
    /// Begins the recording, or continues the one that a daemon before left there. It has the output before `offset`
    /// if nothing came before it.
    pub fn open(plan: RecordingPlan, now: Moment, offset: u64, size: Size) -> Self {
        let nonce = plan.nonce.as_ref().map(|nonce| Arc::from(nonce.as_str()));
        let marks = MarkFilter::new(nonce);
        let mut recording = Self {
            plan,
            file: None,
            covered: (offset == 0).then_some(0),
            text: SplitText::default(),
            marks,
            size,
            at_ms: millis(now),
            output: String::new(),
            batch: Vec::new(),
            retry_at: None,
            is_torn: false,
            is_refused: false,
            failure: None,
            noted: None,
            written: (size, millis(now)),
            is_over: false,
            exit: None,
        };
        match RecordingFile::resume(&recording.plan.path) {
            Ok((file, state)) => recording.resume(file, state),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => recording.refuse(now, &error),
        }
        recording
    }

    fn resume(&mut self, file: RecordingFile, state: Option<RecordingState>) {
        self.file = Some(file);
        self.covered = state.as_ref().map(|state| state.offset);
        self.noted = self.covered;
        let Some(state) = state else { return self.is_torn = true };
        self.text = SplitText::holding(state.held_bytes());
        self.size = Size { rows: state.rows, cols: state.cols };
        self.at_ms = self.at_ms.min(state.at_ms);
        self.written = (self.size, self.at_ms);
        self.is_over = state.is_over;
    }

    /// Whether nothing more is recorded, and the file has it all.
    pub fn is_over(&self) -> bool {
        self.is_over && self.retry_at.is_none()
    }

    /// Why the disk refused the last batch, if it did.
    ///
    /// # Errors
    /// That error.
    pub fn take_failure(&mut self) -> io::Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// When to call [`Recording::flush`] again, if not with the next output.
    pub fn due(&self) -> Option<Moment> {
        self.retry_at
    }

    /// Takes output from `offset` on, which the screen has not seen.
    pub fn on_output(&mut self, now: Moment, offset: u64, bytes: &[u8], screen: &mut Screen) {
        if self.retry_at.is_some() {
            return;
        }
        let end = offset + bytes.len() as u64;
        let known = match self.covered {
            Some(covered) if covered >= end => return,
            Some(covered) => covered.saturating_sub(offset) as usize,
            None => 0,
        };
        if self.covered.is_none_or(|covered| covered < offset) {
            self.draw(now, offset, screen);
        }
        self.note_size(now, screen.size());
        self.text.push(&bytes[known..], &mut self.output);
        self.covered = Some(end);
    }

    /// Relies on nothing that was recorded before: the screen became another one.
    pub fn forget(&mut self) {
        (self.covered, self.is_torn) = (None, true);
        self.marks.forget();
    }

    /// Sets a marker.
    pub fn mark(&mut self, now: Moment, text: &str) {
        let text = text.chars().take(MARKER_MAX).collect();
        self.push(now, &CastEvent::Marker(text));
    }

    /// Records how the program ended. Nothing follows.
    pub fn end(&mut self, now: Moment, exit: Option<&CastEvent>) {
        self.push_output(now);
        (self.exit, self.is_over) = (exit.cloned(), true);
    }

    /// Writes what was taken, and whether the screen has another size. `offset` is where the output ends that the
    /// screen has seen. What the disk refuses is missing from the recording.
    pub fn flush(&mut self, now: Moment, offset: u64, screen: &mut Screen) {
        if self.retry_at.is_some_and(|at| now < at) {
            return;
        }
        if self.retry_at.take().is_some() {
            self.is_torn = true;
            self.covered = None;
        }
        if self.covered.is_none_or(|covered| covered < offset) {
            self.draw(now, offset, screen);
        }
        self.note_size(now, screen.size());
        self.push_output(now);
        if let Some(exit) = self.exit.clone() {
            self.write_event(now, &exit);
        }
        if self.batch.is_empty() && self.noted == self.covered {
            return;
        }
        // A disk that stalls blocks this session only.
        match while_others_go_on(|| self.write(now)) {
            Ok(()) => {
                (self.noted, self.is_refused) = (self.covered, false);
                (self.written, self.exit) = ((self.size, self.at_ms), None);
            }
            Err(error) => {
                self.refuse(now, &error);
                self.failure = Some(error);
            }
        }
        self.batch.clear();
        self.batch.shrink_to(BUFFER_KEPT);
        self.output.shrink_to(BUFFER_KEPT);
    }

    fn write(&mut self, now: Moment) -> io::Result<()> {
        let Self { plan, file, size, .. } = self;
        let file = match file {
            Some(file) => file,
            None => file.insert(open(plan, *size)?),
        };
        if file.is_removed() {
            tracing::warn!(file = %plan.path.display(), "the recording was removed, and ends");
            self.is_over = true;
            return Ok(());
        }
        let length = file.length();
        self.write_state();
        if length + self.batch.len() as u64 + LAST_WORDS > self.plan.limits.bytes_max
            && !self.is_over
        {
            self.batch.clear();
            let most = self.plan.limits.bytes_max;
            self.mark(
                now,
                &format!("the recording ends: it has reached its limit of {most} bytes"),
            );
            self.is_over = true;
            self.write_state();
        }
        self.append()
    }

    fn append(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let before = file.length();
        file.append(&self.batch)?;
        let directory = self.plan.path.parent();
        if let Some(directory) =
            directory.filter(|_| file.length() / ROOM_EVERY > before / ROOM_EVERY)
        {
            make_room_or_warn(directory, self.plan.limits.total_bytes_max);
        }
        Ok(())
    }

    fn write_state(&mut self) {
        let Self { at_ms, size: Size { rows, cols }, is_over, .. } = *self;
        // The beginning of a mark is not in the file.
        let offset = self.covered.unwrap_or_default().saturating_sub(self.marks.held_bytes());
        let held = self.text.held();
        let state = RecordingState { offset, held, at_ms, rows, cols, is_over };
        state.write(&mut self.batch);
    }

    /// The disk took nothing.
    fn refuse(&mut self, now: Moment, error: &io::Error) {
        if !std::mem::replace(&mut self.is_refused, true) {
            let file = self.plan.path.display();
            tracing::warn!(%file, %error, "the recording cannot be written; it goes on once it can be");
        }
        (self.is_torn, self.covered, self.retry_at) = (true, None, Some(now + WRITE_AGAIN));
        (self.size, self.at_ms) = self.written;
        self.output.clear();
        self.marks.forget();
    }

    /// Goes on with a picture of the screen, which has seen the output before `offset`.
    fn draw(&mut self, now: Moment, offset: u64, screen: &mut Screen) {
        if self.is_torn || self.covered.is_some() {
            let missing = match self.covered {
                Some(covered) => format!("{} bytes of output are missing", offset - covered),
                None => "output may be missing".to_owned(),
            };
            self.mark(now, &missing);
        }
        self.is_torn = false;
        self.note_size(now, screen.size());
        self.text = SplitText::default();
        self.marks.forget();
        self.text.push(&screen.picture(), &mut self.output);
        self.covered = Some(offset);
    }

    fn note_size(&mut self, now: Moment, size: Size) {
        if self.size != size {
            self.size = size;
            self.push(now, &CastEvent::Resize(size));
        }
    }

    fn push(&mut self, now: Moment, event: &CastEvent) {
        self.push_output(now);
        self.write_event(now, event);
    }

    fn push_output(&mut self, now: Moment) {
        let output = self.marks.pass(std::mem::take(&mut self.output));
        if !output.is_empty() {
            self.write_event(now, &CastEvent::Output(output));
        }
    }

    /// All events have times in whole milliseconds, so that intervals add up to the time that passed.
    fn write_event(&mut self, now: Moment, event: &CastEvent) {
        if self.retry_at.is_some() {
            return;
        }
        let at_ms = millis(now).max(self.at_ms);
        event.write(&mut self.batch, at_ms - self.at_ms);
        self.at_ms = at_ms;
    }
}

fn open(plan: &RecordingPlan, size: Size) -> io::Result<RecordingFile> {
    let timestamp = plan.begun_at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (title, command) = (plan.title.clone(), plan.command.clone());
    let header = CastHeader { size, timestamp, title, command };
    match RecordingFile::create(&plan.path, &header.line()) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Ok(RecordingFile::resume(&plan.path)?.0)
        }
        created => created,
    }
}

fn millis(at: Moment) -> u64 {
    u64::try_from(at.since_boot().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
