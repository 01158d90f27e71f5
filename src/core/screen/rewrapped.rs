//! Stamps of rows that only stand in other places: wrapped for another width, or shown again.
//!
//! Whoever waits for new text must not find old text because the terminal got another size.

use std::sync::Arc;

use crate::core::frame::Stamped;
use crate::core::frame::line::Line;
use crate::core::ids::Watermark;

/// Stamps the rows `after` a screen got another width: those of a line that was there `before` with that line's
/// newest stamp, the others with `mark`. A line is all rows that it wraps over. The lines stay in their order.
pub(crate) fn stamped_again(
    before: &[Stamped<Arc<Line>>],
    after: Vec<Arc<Line>>,
    mark: Watermark,
) -> Arc<[Stamped<Arc<Line>>]> {
    let rows = before.iter().map(|row| (&*row.value, row.changed));
    let mut old = whole_lines(rows).into_iter();
    let mut stamps = Vec::with_capacity(after.len());
    for WholeLine { text, rows, .. } in whole_lines(after.iter().map(|row| (&**row, mark))) {
        let mut rest = old.clone();
        let known = rest.find(|line| line.text == text);
        if known.is_some() {
            old = rest;
        }
        let changed = known.map_or(mark, |line| line.changed);
        stamps.extend(std::iter::repeat_n(changed, rows));
    }
    after.into_iter().zip(stamps).map(|(value, changed)| Stamped { value, changed }).collect()
}

/// The rows of one line.
#[derive(Clone, Debug)]
struct WholeLine {
    /// Without blanks: a row that wraps may have lost some.
    text: String,
    rows: usize,
    changed: Watermark,
}

fn whole_lines<'a>(rows: impl Iterator<Item = (&'a Line, Watermark)>) -> Vec<WholeLine> {
    let mut lines: Vec<WholeLine> = Vec::new();
    let mut goes_on = false;
    for (row, changed) in rows {
        if !goes_on {
            lines.push(WholeLine { text: String::new(), rows: 0, changed });
        }
        if let Some(line) = lines.last_mut() {
            line.text.extend(row.text.split_whitespace());
            (line.rows, line.changed) = (line.rows + 1, line.changed.max(changed));
        }
        goes_on = row.wrapped;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of which those that end in `>` go on in the next one.
    fn row(text: &str) -> Arc<Line> {
        let (text, wrapped) = text.strip_suffix('>').map_or((text, false), |text| (text, true));
        Arc::new(Line { text: text.into(), wrapped, ..Line::default() })
    }

    #[track_caller]
    fn check(before: &[(&str, u64)], after: &[(&str, u64)]) {
        let stamped = |(text, changed): &(&str, u64)| Stamped {
            value: row(text),
            changed: Watermark(*changed),
        };
        let before: Vec<_> = before.iter().map(stamped).collect();
        let rows = after.iter().map(|(text, _)| row(text)).collect();
        let expected: Vec<_> = after.iter().map(stamped).collect();
        assert_eq!(*stamped_again(&before, rows, Watermark(9)), *expected);
    }

    #[test]
    fn rows_that_wrap_otherwise_keep_the_newest_stamp_of_their_line() {
        let narrow = [("one>", 2), ("two>", 5), ("three", 3), ("", 1), ("$", 4)];
        check(&narrow, &[("onetwothree", 5), ("", 1), ("$", 4)]);
        check(&[("onetwothree", 5), ("$", 4)], &[("onetwo>", 5), ("three", 5), ("$", 4)]);
    }

    #[test]
    fn a_blank_that_is_lost_at_the_end_of_a_row_makes_no_other_line() {
        check(&[("enter the", 2)], &[("enter>", 2), ("the", 2)]);
    }

    #[test]
    fn what_was_not_there_is_new_and_takes_no_stamp_of_a_line_above() {
        check(&[("a", 1), ("b", 2)], &[("b", 2), ("a", 9), ("c", 9)]);
        check(&[("a", 1), ("a", 2)], &[("a", 1), ("a", 2), ("a", 9)]);
        check(&[], &[("a", 9)]);
    }
}
