//! One row of text without attributes, addressed by columns.

use serde::{Deserialize, Serialize};
use unicode_width::UnicodeWidthChar;

/// A row of a recorder's screen. Columns behind its text are blank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Row {
    text: String,
    /// How many columns the text takes.
    columns: u16,
    /// The line goes on in the next row.
    pub(super) wrapped: bool,
    /// Something was written here, or output began here.
    pub(super) touched: bool,
    /// It shows what was typed, and is no output.
    pub(super) is_echo: bool,
}

/// A place in the text.
struct Edge {
    byte: usize,
    column: u16,
}

impl Row {
    pub(super) fn of_letter(letter: char, columns: u16) -> Self {
        let text = std::iter::repeat_n(letter, columns.into()).collect();
        Self { text, columns, touched: true, ..Self::default() }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn columns(&self) -> u16 {
        self.columns
    }

    pub(super) fn is_blank(&self) -> bool {
        self.text.bytes().all(|byte| byte == b' ')
    }

    /// Measures the text again, and says whether that gives the columns that were stored.
    pub(super) fn is_measured(&self) -> bool {
        let columns: usize = self.text.chars().filter_map(UnicodeWidthChar::width).sum();
        columns == usize::from(self.columns) && !self.text.contains(char::is_control)
    }

    /// Whether each byte is one column.
    fn is_simple(&self) -> bool {
        self.text.len() == usize::from(self.columns)
    }

    /// Writes a character of so many columns.
    #[inline]
    pub(super) fn put(&mut self, column: u16, character: char, width: u16) {
        self.touched = true;
        if column == self.columns {
            self.text.push(character);
            self.columns += width;
        } else {
            self.replace(column, column + width, character.encode_utf8(&mut [0; 4]), width);
        }
    }

    /// Adds a mark to the character that ends before this column.
    pub(super) fn combine(&mut self, column: u16, mark: char) {
        let column = column.min(self.columns);
        if column > 0 {
            let at = self.edge(column, true).byte;
            self.text.insert(at, mark);
        }
    }

    pub(super) fn erase(&mut self, from: u16, to: u16) {
        self.touched = true;
        if to >= self.columns {
            self.truncate(from);
        } else if from < to {
            let blanks = " ".repeat((to - from).into());
            self.replace(from, to, &blanks, to - from);
        }
    }

    /// Fills the row up with blanks to so many columns.
    pub(super) fn fill(&mut self, columns: u16) {
        let blanks = columns.saturating_sub(self.columns);
        self.text.extend(std::iter::repeat_n(' ', blanks.into()));
        self.columns += blanks;
    }

    pub(super) fn truncate(&mut self, column: u16) {
        if column < self.columns {
            self.replace(column, self.columns, "", 0);
        }
        self.wrapped = false;
    }

    /// Moves what begins at this column to the right, on a row of so many columns.
    pub(super) fn insert_blanks(&mut self, column: u16, count: u16, columns: u16) {
        if column < self.columns {
            self.replace(column, column, &" ".repeat(count.into()), count);
            self.truncate(columns);
        }
    }

    pub(super) fn delete(&mut self, column: u16, count: u16) {
        if column < self.columns {
            self.replace(column, column.saturating_add(count).min(self.columns), "", 0);
        }
        self.wrapped = false;
    }

    /// Takes the text before this column away.
    pub(super) fn split_off_front(&mut self, column: u16) -> String {
        let at = self.edge(column.min(self.columns), true);
        self.columns -= at.column;
        self.text.drain(..at.byte).collect()
    }

    /// Puts other text in the place of some columns. Half of a wide character becomes a blank.
    fn replace(&mut self, from: u16, to: u16, with: &str, columns: u16) {
        self.fill(from);
        let to = to.clamp(from, self.columns.max(from));
        if self.is_simple() {
            self.text.replace_range(usize::from(from)..usize::from(to), with);
            self.columns = self.columns - (to - from) + columns;
            return;
        }
        let (start, end) = (self.edge(from, false), self.edge(to, true));
        // A character that lies over both edges is replaced once.
        let end = if end.byte < start.byte { Edge { ..start } } else { end };
        let (left, right) = (from - start.column, end.column.saturating_sub(to));
        let blanks = |count: u16| " ".repeat(count.into());
        self.text.replace_range(start.byte..end.byte, &(blanks(left) + with + &blanks(right)));
        self.columns = self.columns - (end.column - start.column) + left + columns + right;
    }

    /// Where this column begins. Inside a wide character, where that begins or, for `after`, ends.
    fn edge(&self, column: u16, after: bool) -> Edge {
        if self.is_simple() {
            return Edge { byte: column.into(), column };
        }
        let mut edge = Edge { byte: 0, column: 0 };
        for (byte, character) in self.text.char_indices() {
            let width = character.width().unwrap_or_default() as u16;
            if width > 0 {
                let inside = edge.column < column && edge.column + width > column;
                if edge.column >= column || inside && !after {
                    return Edge { byte, column: edge.column };
                }
            }
            edge = Edge { byte: byte + character.len_utf8(), column: edge.column + width };
        }
        edge
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> Row {
        let mut row = Row::default();
        for character in text.chars() {
            let width = character.width().unwrap_or_default() as u16;
            match width {
                0 => row.combine(row.columns(), character),
                width => row.put(row.columns(), character, width),
            }
        }
        assert!(row.is_measured());
        row
    }

    #[track_caller]
    fn reads(row: &Row, text: &str) {
        assert_eq!(row.text(), text);
        assert!(row.is_measured(), "{row:?}");
    }

    #[test]
    fn characters_are_written_over_and_behind_others() {
        let mut row = row("abc");
        row.put(1, 'X', 1);
        row.put(5, 'é', 1);
        row.put(0, '漢', 2);
        reads(&row, "漢c  é");
        row.put(6, '.', 1);
        reads(&row, "漢c  é.");
    }

    #[test]
    fn half_of_a_wide_character_becomes_a_blank() {
        for (column, text) in [(0, "X b"), (1, " Xb"), (2, "漢X")] {
            let mut row = row("漢b");
            row.put(column, 'X', 1);
            reads(&row, text);
        }
        let mut both = row("漢漢");
        both.put(1, '字', 2);
        reads(&both, " 字 ");
    }

    #[test]
    fn a_mark_joins_the_character_before_it() {
        let mut row = row("ae\u{301}z");
        assert_eq!(row.columns(), 3);
        row.combine(1, '\u{308}');
        reads(&row, "a\u{308}e\u{301}z");
        row.put(1, 'o', 1);
        reads(&row, "a\u{308}oz");
        row.combine(0, '\u{301}');
        reads(&row, "a\u{308}oz");
    }

    #[test]
    fn columns_are_erased_inserted_and_deleted() {
        let mut erased = row("a漢b");
        erased.erase(1, 2);
        reads(&erased, "a  b");
        erased.erase(2, 9);
        reads(&erased, "a ");
        let mut moved = row("a漢b");
        moved.insert_blanks(1, 2, 5);
        reads(&moved, "a  漢");
        moved.delete(1, 2);
        reads(&moved, "a漢");
        assert_eq!((moved.split_off_front(1), moved.text()), ("a".to_owned(), "漢"));
    }
}
