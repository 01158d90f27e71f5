//! What is found beside a terminal becomes the screen it was, or one that nobody mistakes for it.

use crate::core::frame::{Frame, Size};
use crate::core::ids::Watermark;
use crate::core::moment::Moment;
use crate::core::screen::{Facts, Screen, ScreenLimits};
use crate::session::pty::held::recovered::{HistorySegment, Notes, Recovered, ScreenSnapshot};
use crate::shim::wire;
use crate::shim::wire::from_shim::Attached;

use super::*;

const SIZE: Size = Size { rows: 3, cols: 10 };

/// What a daemon kept after a program had written these pieces, one checkpoint behind each.
fn recovered(pieces: &[&str]) -> Recovered {
    let mut screen = Screen::new(SIZE, ScreenLimits::default(), Origin::default());
    let (mut offset, mut since) = (0, RowNumber(0));
    let (mut snapshots, mut segments) = (Vec::new(), Vec::new());
    for piece in pieces {
        screen.feed(Moment::default(), piece.as_bytes());
        offset += piece.len() as u64;
        let kept = screen.checkpoint(since);
        since = kept.end_row;
        snapshots.push(ScreenSnapshot { offset, bytes: kept.snapshot });
        segments.push(HistorySegment { end_row: kept.end_row, rows: kept.rows });
    }
    let attached = Attached {
        window: SIZE.into(),
        committed: offset,
        head: offset,
        tail: offset,
        ..Attached::default()
    };
    Recovered {
        attached: Box::new(attached),
        notes: Notes::default(),
        snapshots,
        segments,
        history_damaged: false,
    }
}

fn at(seconds: u64) -> Moment {
    Moment::from_boot(std::time::Duration::from_secs(seconds))
}

fn opened(recovered: &Recovered) -> OpeningState {
    OpeningState::restored(&"a session", recovered, ScreenLimits::default(), Moment::default())
}

fn frame(opening: &mut OpeningState) -> Frame {
    (*opening.screen.first_frame(Moment::default(), &Facts::default())).clone()
}

fn shown(frame: &Frame) -> Vec<String> {
    frame.lines.iter().map(|line| line.value.text.trim_end().to_owned()).collect()
}

fn lost(row: u64, bytes: Option<u64>) -> Gap {
    Gap { row: RowNumber(row), bytes, since: None }
}

#[test]
fn a_screen_goes_on_where_it_was_kept() {
    let mut opening = opened(&recovered(&["one\r\ntwo\r\nthree\r\nfour", "\r\nfive"]));
    assert_eq!(
        (opening.offset, opening.kept_rows),
        ("one\r\ntwo\r\nthree\r\nfour\r\nfive".len() as u64, Some(RowNumber(2)))
    );
    assert_eq!(opening.gaps.as_slice(), [], "nothing was lost");
    assert_eq!(opening.covered, opening.offset);
    let frame = frame(&mut opening);
    assert_eq!(shown(&frame), ["three", "four", "five"]);
    assert_eq!(frame.base_row, RowNumber(2));
}

#[test]
fn a_session_whose_program_has_ended_is_hidden_until_its_end_is_told() {
    let mut found = recovered(&["one"]);
    assert_eq!(opened(&found).unread_until, 3);
    found.attached.ended = Some(wire::ProgramEnd::Code(3));
    assert_eq!(opened(&found).unread_until, UNTIL_END);
}

#[test]
fn a_screen_is_still_since_it_last_changed_unless_more_came_or_some_is_missing() {
    let noted = |offset| {
        let mut kept = recovered(&["one", "\r\ntwo"]);
        let note = Stillness { offset, at: at(7) }.to_note();
        kept.notes.set(wire::NoteFrame { slot: 2, bytes: &note });
        kept
    };
    let since = |kept: &Recovered, now| {
        let limits = ScreenLimits::default();
        OpeningState::restored(&"a session", kept, limits, at(now)).still_since
    };
    let kept = noted(8);
    assert_eq!(since(&kept, 9), Some(at(7)));
    assert_eq!(since(&kept, 5), Some(at(5)), "not later than now");
    let (mut more, mut gap) = (kept.clone(), kept);
    more.attached.head = 9;
    gap.attached.tail = 9;
    assert_eq!((since(&more, 9), since(&gap, 9)), (None, None));
    assert_eq!(since(&noted(3), 9), None, "that was before the last output");
    assert_eq!(since(&recovered(&["one"]), 9), None);
}

#[test]
fn after_a_damaged_snapshot_the_one_before_is_gone_on_with() {
    let mut kept = recovered(&["one", "\r\ntwo"]);
    kept.snapshots[1].bytes = b"nonsense".to_vec();
    let mut opening = opened(&kept);
    assert_eq!(
        opening.offset, kept.attached.committed,
        "what is read next is what nobody has seen"
    );
    assert_eq!(opening.covered, opening.offset, "the damaged one knew what was sent before");
    assert_eq!(shown(&frame(&mut opening)), ["one", "", ""]);
    assert_eq!(opening.gaps.as_slice(), [lost(0, Some(5))], "what came behind it is not shown");
}

#[test]
fn without_any_snapshot_numbers_go_on_above_all_that_were_told() {
    let mut kept = recovered(&["one\r\ntwo\r\nthree\r\nfour"]);
    kept.snapshots.clear();
    let mut opening = opened(&kept);
    assert_eq!(opening.kept_rows, None);
    assert_eq!(opening.gaps.as_slice(), [lost(1, None)]);
    let frame = frame(&mut opening);
    assert_eq!((frame.base_row, shown(&frame)), (RowNumber(1), vec![String::new(); 3]));
    assert!(frame.watermark > Watermark(1 << 50) && frame.watermark.0 < 1 << 53);
}

#[test]
fn what_follows_lost_output_is_read_from_its_beginning() {
    let mut kept = recovered(&["one \x1b]0;a title that"]);
    kept.attached.tail = kept.attached.committed + 100;
    let mut opening = opened(&kept);
    assert_eq!(opening.offset, kept.attached.committed + 100);
    assert_eq!(opening.covered, kept.attached.committed, "what was sent then no screen knows");
    assert_eq!(opening.gaps.as_slice(), [lost(0, Some(100))]);
    opening.screen.feed(Moment::default(), b"two");
    assert_eq!(shown(&frame(&mut opening))[0], "one two");
}

#[test]
fn many_segments_are_put_together_into_one() {
    let pieces: Vec<String> = (0..40).map(|number| format!("{number}\r\n")).collect();
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    assert_eq!(opened(&recovered(&pieces)).kept_rows, None);
    assert_eq!(opened(&recovered(&pieces[..30])).kept_rows, Some(RowNumber(28)));
}

#[test]
fn where_nothing_was_kept_and_nothing_is_gone_all_is_read_again_and_nothing_was_lost() {
    let opening = opened(&recovered(&[]));
    assert_eq!((opening.offset, opening.gaps.as_slice()), (0, [].as_slice()));
}
