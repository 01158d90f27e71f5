//! Readers who skip frames know the same as one who saw them all.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::differential::{Step, bytes_of, steps};
use super::*;
use crate::core::frame::delta::{Delta, Lane, Replica, Update, View};
use crate::core::frame::line::Line;

/// A reader of one view.
struct Reader {
    view: View,
    replica: Replica,
    since: Option<Watermark>,
    /// The row after the last one of history that was told.
    told: Option<RowNumber>,
    /// All rows ever told, on the screen or above it.
    known: BTreeMap<RowNumber, Arc<Line>>,
}

impl Reader {
    fn new(view: View) -> Self {
        let replica = Replica::default();
        Self { view, replica, since: None, told: None, known: BTreeMap::new() }
    }

    fn read(&mut self, frame: &Frame) {
        let delta = frame.delta_since(self.since, &self.view, self.told);
        self.learn(&delta);
        self.replica.apply(&delta);
        self.since = Some(frame.watermark);
        self.told = Some(frame.base_row);
    }

    fn learn(&mut self, delta: &Delta) {
        if delta.reset {
            // What scrolled off before the reader's last screen stays as it was told.
            let told = self.told.unwrap_or_default();
            self.known.retain(|row, _| *row < told);
        }
        for update in &delta.updates {
            if let Update::Row { row, line } = update {
                self.known.insert(*row, Arc::clone(line));
            }
        }
    }

    /// The rows of the view that are on the screen.
    fn seen(&self, frame: &Frame) -> Vec<Option<Arc<Line>>> {
        let rows = self.view.rows.map_or(frame.lines.len(), usize::from);
        let view = (0..frame.lines.len()).skip(usize::from(self.view.top)).take(rows);
        view.map(|index| self.replica.rows.get(&frame.base_row.plus(index)).cloned()).collect()
    }

    fn check(&self, frame: &Frame) {
        let view = frame.lines.iter().skip(usize::from(self.view.top));
        let shown: Vec<_> = view
            .take(self.view.rows.map_or(usize::MAX, usize::from))
            .map(|line| Some(Arc::clone(&line.value)))
            .collect();
        assert_eq!(self.seen(frame), shown);
        if self.view.lane == Lane::History {
            let history = frame.history.range(frame.history.first(), frame.history.end());
            let kept: Vec<_> = history.map(|(row, kept)| (row, Arc::new(kept.line()))).collect();
            let above = self.known.range(frame.history.first()..frame.base_row);
            let told: Vec<_> = above.map(|(row, line)| (*row, Arc::clone(line))).collect();
            assert_eq!(told, kept);
        }
    }
}

fn views() -> [View; 5] {
    let whole = View::default();
    [
        whole,
        View { lane: Lane::Recent, ..whole },
        View { lane: Lane::History, ..whole },
        View { top: 1, rows: Some(2), ..whole },
        View { rows: Some(2), ..whole },
    ]
}

/// The parts of a replica that do not depend on the view.
fn parts(replica: &Replica) -> Replica {
    Replica { rows: BTreeMap::new(), ..replica.clone() }
}

#[test]
fn a_reader_of_the_top_rows_is_told_those_that_a_smaller_screen_moves_there() {
    let mut terminal = Terminal::new(4, 10);
    let mut reader = Reader::new(View { rows: Some(2), ..View::default() });
    terminal.show("a\r\nb\r\nc\r\nd");
    reader.read(&terminal.frame);
    terminal.resize(2, 10);
    terminal.shows(2, &["c", "d"]);
    reader.read(&terminal.frame);
    reader.check(&terminal.frame);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_reader_who_skips_frames_knows_what_one_knows_who_saw_all(
        steps in steps(),
        skips in vec(any::<bool>(), 4..40),
    ) {
        let mut terminal = Terminal::new(4, 10);
        let mut all = views().map(Reader::new);
        let mut skipping = views().map(Reader::new);
        let mut skips = skips.iter().cycle();
        for step in steps.iter().chain(&[Step::Publish]) {
            if let Step::Resize(size) = step {
                terminal.screen.resize(*size);
            }
            terminal.feed(bytes_of(step));
            if !matches!(step, Step::Publish) {
                continue;
            }
            terminal.publish();
            for (one, other) in all.iter_mut().zip(&mut skipping) {
                one.read(&terminal.frame);
                one.check(&terminal.frame);
                if skips.next() == Some(&false) {
                    other.read(&terminal.frame);
                    other.check(&terminal.frame);
                    prop_assert_eq!(parts(&other.replica), parts(&one.replica));
                    prop_assert_eq!(other.seen(&terminal.frame), one.seen(&terminal.frame));
                }
            }
        }
    }
}
