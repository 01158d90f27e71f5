//! Deltas: readers who skip frames, lose their place or come late know what the newest frame says.

use std::collections::BTreeMap;
use std::sync::Arc;

use termgate::core::frame::Frame;
use termgate::core::frame::delta::{Delta, Lane, Replica, Update, View};
use termgate::core::frame::line::Line;
use termgate::core::ids::{RowNumber, Watermark};
use termgate::core::moment::Moment;
use termgate::core::screen::{Facts, Origin, Screen, ScreenLimits};
use termgate::wire::delta::{DeltaWire, UpdateWire};

use super::choices::Choices;
use super::steps::{SIZE, Step, steps};

/// A reader of one view.
struct Reader {
    view: View,
    replica: Replica,
    since: Option<Watermark>,
    /// The row after the last one of history that it got.
    told: Option<RowNumber>,
    /// All rows it ever got, on the screen or above it.
    known: BTreeMap<RowNumber, Arc<Line>>,
}

impl Reader {
    fn new(view: View) -> Self {
        let replica = Replica::default();
        Self { view, replica, since: None, told: None, known: BTreeMap::new() }
    }

    fn read(&mut self, frame: &Frame) {
        let delta = frame.delta_since(self.since, &self.view, self.told);
        check_wire(&delta);
        if delta.reset {
            // What scrolled off before the reader's last screen stays as it was.
            let told = self.told.unwrap_or_default();
            self.known.retain(|row, _| *row < told);
        }
        for update in &delta.updates {
            if let Update::Row { row, line } = update {
                self.known.insert(*row, Arc::clone(line));
            }
        }
        self.replica.apply(&delta);
        self.since = Some(frame.watermark);
        self.told = Some(frame.base_row);
        self.check(frame);
    }

    /// Checks that it knows what the frame says.
    fn check(&self, frame: &Frame) {
        let replica = &self.replica;
        assert_eq!(replica.watermark, frame.watermark);
        assert_eq!(replica.base_row, frame.base_row);
        assert_eq!(replica.cursor, Some(frame.cursor.value));
        assert_eq!(replica.size, Some(frame.size.value));
        assert_eq!(replica.mode, frame.mode.value);
        assert_eq!((&replica.title, replica.bell), (&frame.title.value, frame.bell.value));
        if self.view.input_modes {
            assert_eq!(replica.input_modes, frame.input_modes.value);
            assert_eq!(replica.clipboard, frame.clipboard.value);
        }
        let rows = self.view.rows.map_or(frame.lines.len(), usize::from);
        let wanted = frame.lines.iter().enumerate().skip(self.view.top.into()).take(rows);
        for (index, line) in wanted {
            let known = replica.rows.get(&frame.base_row.plus(index));
            assert_eq!(known, Some(&line.value), "row {index} of {:?}", self.view);
        }
        if self.view.lane == Lane::History {
            let history = frame.history.range(frame.history.first(), frame.history.end());
            let kept: Vec<_> = history.map(|(row, kept)| (row, kept.line())).collect();
            let above = self.known.range(frame.history.first()..frame.base_row);
            let known: Vec<_> = above.map(|(row, line)| (*row, Line::clone(line))).collect();
            assert_eq!(known, kept, "history");
        }
    }
}

/// Checks that a delta reads back from JSON as it was written, row by row.
fn check_wire(delta: &Delta) {
    let text = serde_json::to_string(&DeltaWire::from(delta)).expect("a delta has a JSON form");
    let read: DeltaWire = serde_json::from_str(&text).expect("it reads back");
    assert_eq!(read.reset, delta.reset);
    assert_eq!((read.from, read.watermark), (delta.from.0, delta.watermark.0));
    assert_eq!(read.updates.len(), delta.updates.len());
    for (read, written) in read.updates.iter().zip(&delta.updates) {
        if let (UpdateWire::Row(read), Update::Row { row, line }) = (read, written) {
            // What of wrapping a reader sees is the number of the next row.
            let line = Line { wrapped: false, ..Line::clone(line) };
            assert_eq!((read.row, Line::from(read)), (row.0, line));
        }
    }
    let again = serde_json::to_string(&read).expect("what was read has a JSON form");
    assert_eq!(again, text);
}

fn views() -> [View; 5] {
    let whole = View::default();
    [
        View { input_modes: true, ..whole },
        View { lane: Lane::Recent, ..whole },
        View { lane: Lane::History, ..whole },
        View { top: 1, rows: Some(2), ..whole },
        View { rows: Some(2), ..whole },
    ]
}

pub fn check(data: &[u8]) {
    let mut choices = Choices::of(data);
    let mut screen = Screen::new(SIZE, ScreenLimits::default(), Origin::default());
    let mut now = Moment::default();
    let facts = Facts::default();
    let mut frame = screen.first_frame(now, &facts);
    let (mut attentive, mut skipping) = (views().map(Reader::new), views().map(Reader::new));
    for step in steps(data).into_iter().chain([Step::Publish]) {
        match step {
            Step::Output(bytes) => screen.feed(now, bytes),
            Step::Resize(size) => screen.resize(size),
            Step::Wait(time) => now = now + time,
            Step::ClearHistory => screen.clear_history(),
            Step::Publish => {}
        }
        if matches!(step, Step::Wait(_) | Step::ClearHistory) || choices.below(4) == 0 {
            continue;
        }
        let before = frame.watermark;
        if let Some(published) = screen.publish(now, &facts) {
            assert!(published.watermark >= before);
            frame = published;
        }
        for (one, other) in attentive.iter_mut().zip(&mut skipping) {
            one.read(&frame);
            match choices.below(8) {
                0..4 => {}
                4 => {
                    // It asks for changes since a watermark that nobody can know.
                    other.since = Some(Watermark(frame.watermark.0 + 1 + choices.below(9) as u64));
                    other.read(&frame);
                }
                5 => {
                    *other = Reader::new(other.view);
                    other.read(&frame);
                }
                _ => other.read(&frame),
            }
        }
    }
    let newest = screen.first_frame(now, &facts);
    for reader in attentive.iter_mut().chain(&mut skipping) {
        reader.read(&newest);
    }
}
