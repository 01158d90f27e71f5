//! The text that a command printed, as lines: bounded, and shared by its copies.

use std::collections::VecDeque;
use std::sync::Arc;

/// How many bytes of text share one chunk, the unit that copies share and that trimming drops.
const CHUNK_BYTES: usize = 4 * 1024;

/// The newest lines that a command printed.
///
/// Lines have numbers from 0, which do not change when the oldest lines are trimmed. Copies share their
/// text, so they cost little however long it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    chunks: VecDeque<Arc<TextChunk>>,
    bytes: usize,
    /// How many lines end in the chunks.
    ends: u64,
    /// How many lines were trimmed before them.
    trimmed: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct TextChunk {
    text: String,
    ends: u64,
}

impl Output {
    /// Puts together an output that was stored: its text, before which so many lines were trimmed.
    pub(crate) fn restored<'a>(trimmed: u64, text: impl IntoIterator<Item = &'a str>) -> Self {
        let mut output = Self { trimmed, ..Self::default() };
        text.into_iter().for_each(|piece| output.append(piece));
        output
    }

    /// Appends text. Line ends in it end lines.
    pub(crate) fn append(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let full = self.chunks.back().is_none_or(|chunk| chunk.text.len() >= CHUNK_BYTES);
            if full {
                self.chunks.push_back(Arc::default());
            }
            let Some(chunk) = self.chunks.back_mut().map(Arc::make_mut) else { return };
            let room = CHUNK_BYTES.saturating_sub(chunk.text.len()).max(char::MAX_LEN_UTF8);
            let (part, after) = rest.split_at(rest.floor_char_boundary(room));
            let ends = part.bytes().filter(|byte| *byte == b'\n').count() as u64;
            chunk.text.push_str(part);
            chunk.ends += ends;
            (self.ends, self.bytes) = (self.ends + ends, self.bytes + part.len());
            rest = after;
        }
    }

    /// Drops the oldest lines until at most so many bytes are left. Of a longer line its end is kept.
    pub(crate) fn trim(&mut self, bytes_max: usize) {
        let mut cut = false;
        while self.bytes > bytes_max
            && let Some(chunk) = self.chunks.pop_front()
        {
            (self.bytes, self.ends) = (self.bytes - chunk.text.len(), self.ends - chunk.ends);
            self.trimmed += chunk.ends;
            cut = !chunk.text.ends_with('\n');
        }
        if cut {
            self.drop_cut_line();
        }
    }

    /// Drops what is left of a line whose beginning was trimmed, if a whole line follows it.
    fn drop_cut_line(&mut self) {
        let whole = self.chunks.iter().position(|chunk| chunk.ends > 0);
        let Some(whole) = whole else { return };
        for chunk in self.chunks.drain(..whole) {
            self.bytes -= chunk.text.len();
        }
        let Some(first) = self.chunks.front_mut().map(Arc::make_mut) else { return };
        let end = first.text.find('\n').map_or(0, |end| end + 1);
        first.text.drain(..end);
        first.ends -= 1;
        let is_empty = first.text.is_empty();
        (self.bytes, self.ends) = (self.bytes - end, self.ends - 1);
        self.trimmed += 1;
        if is_empty {
            self.chunks.pop_front();
        }
    }

    /// Drops the last lines, and the end of the one before, from where `unwanted` says for each.
    pub(crate) fn drop_end(&mut self, unwanted: impl Fn(&str) -> Option<usize>) {
        let mut whole = true;
        while whole
            && let Some(chunk) = self.chunks.back_mut()
            && let Some(line) = last_line_of(&chunk.text)
            && let Some(at) = unwanted(&chunk.text[line..])
        {
            whole = at == 0;
            let start = line + at;
            let chunk = Arc::make_mut(chunk);
            let ends = u64::from(chunk.text.ends_with('\n'));
            (self.bytes, self.ends) = (self.bytes - (chunk.text.len() - start), self.ends - ends);
            chunk.text.truncate(start);
            chunk.ends -= ends;
            if chunk.text.is_empty() {
                self.chunks.pop_back();
            }
        }
    }

    /// How many bytes of text there are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many lines it has in all, with those that were trimmed and one that did not end yet.
    pub fn lines_total(&self) -> u64 {
        let open = self.chunks.back().is_some_and(|chunk| !chunk.text.ends_with('\n'));
        self.trimmed + self.ends + u64::from(open)
    }

    /// How many of its first lines are not kept any more, which is also the number of the first that is.
    pub fn lines_trimmed(&self) -> u64 {
        self.trimmed
    }

    /// How many lines have ended, with those that were trimmed.
    pub fn lines_ended(&self) -> u64 {
        self.trimmed + self.ends
    }

    /// The text of the lines from this one on.
    pub fn text_from(&self, line: u64) -> String {
        let mut before = self.trimmed;
        let mut text = String::new();
        for chunk in &self.chunks {
            let skipped = line.saturating_sub(before);
            before += chunk.ends;
            if skipped <= chunk.ends {
                let start = match skipped.checked_sub(1) {
                    Some(last) => chunk.text.match_indices('\n').nth(last as usize),
                    None => None,
                };
                text.push_str(&chunk.text[start.map_or(0, |(at, _)| at + 1)..]);
            }
        }
        text
    }

    /// The beginning of what is kept: at least 4,000 bytes, if there are so many.
    pub fn beginning(&self) -> String {
        self.pieces().take(2).collect()
    }

    /// All text that is kept.
    pub fn text(&self) -> String {
        self.pieces().collect()
    }

    /// All text that is kept, in pieces.
    pub fn pieces(&self) -> impl Iterator<Item = &str> {
        self.chunks.iter().map(|chunk| chunk.text.as_str())
    }
}

/// Where the last line begins; none without text.
fn last_line_of(text: &str) -> Option<usize> {
    let line = text.strip_suffix('\n').unwrap_or(text);
    (!text.is_empty()).then(|| line.rfind('\n').map_or(0, |end| end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(range: std::ops::Range<u64>) -> Output {
        let mut output = Output::default();
        for number in range {
            output.append(&format!("line {number}\n"));
        }
        output
    }

    #[test]
    fn lines_are_found_by_their_number() {
        let output = numbers(0..2_000);
        assert_eq!((output.lines_total(), output.lines_trimmed()), (2_000, 0));
        for line in [0, 1, 500, 1_234, 1_999] {
            let text = output.text_from(line);
            assert_eq!(text.lines().next(), Some(&*format!("line {line}")));
            assert_eq!(text.lines().count() as u64, 2_000 - line);
        }
        assert_eq!(output.text_from(2_000), "");
        assert_eq!(output.text_from(9_999), "");
    }

    #[test]
    fn the_oldest_lines_are_dropped_whole_and_counted() {
        let mut output = numbers(0..5_000);
        output.append("open");
        output.trim(10_000);
        let first = output.lines_trimmed();
        assert!(output.bytes() <= 10_000 && output.bytes() > 10_000 - 2 * CHUNK_BYTES);
        assert!(output.text().starts_with(&format!("line {first}\n")), "{first}");
        assert!(output.text().ends_with("line 4999\nopen"));
        assert_eq!((output.lines_total(), output.lines_ended()), (5_001, 5_000));
        assert_eq!(output.text_from(0), output.text());
        assert_eq!(
            output.text_from(first + 1).lines().next(),
            Some(&*format!("line {}", first + 1))
        );
    }

    #[test]
    fn a_line_that_is_cut_away_whole_leaves_nothing_behind() {
        let mut output = Output::default();
        output.append(&("x".repeat(CHUNK_BYTES) + "end\n"));
        output.trim(CHUNK_BYTES);
        assert_eq!((output.bytes(), output.lines_total(), output.lines_ended()), (0, 1, 1));
    }

    #[test]
    fn of_one_endless_line_the_end_is_kept() {
        let mut output = Output::default();
        output.append(&"é".repeat(20_000));
        output.append("end");
        output.trim(10_000);
        assert!(output.text().ends_with("éend") && output.bytes() <= 10_000);
        assert_eq!((output.lines_total(), output.lines_trimmed()), (1, 0));
    }

    #[test]
    fn the_last_lines_with_a_text_are_dropped() {
        let mut output = Output::default();
        output.append("our own\nb\n+ our x\nour y");
        output.drop_end(|line| line.contains("our").then_some(0));
        assert_eq!((output.text().as_str(), output.lines_total()), ("our own\nb\n", 2));
        let mut all = Output::restored(0, ["our"]);
        all.drop_end(|line| (line == "our").then_some(0));
        assert_eq!((all.bytes(), all.lines_total()), (0, 0));
    }

    #[test]
    fn copies_stay_as_they_were() {
        let mut output = numbers(0..3);
        let before = output.clone();
        output.append("more\n");
        assert_eq!(before.text(), "line 0\nline 1\nline 2\n");
        assert_eq!(output.text(), before.text() + "more\n");
        assert_eq!(Output::restored(7, ["a\nb", "\nc"]).lines_total(), 10);
    }
}
