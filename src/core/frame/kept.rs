//! The stored form of lines and their colours.
//!
//! Other versions of the daemon read these bytes, so the types change only with a new version of the
//! format that contains them. Reading checks every value.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use unicode_width::UnicodeWidthChar;

use crate::core::frame::Size;
use crate::core::frame::history::{History, HistoryLimits, HistoryRow};
use crate::core::frame::line::{Attributes, Color, Line, Link, Run, Style};
use crate::core::ids::{RowNumber, Watermark};

/// A colour, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum KeptColor {
    Default,
    Indexed(u8),
    Rgb(u8, u8, u8),
}

impl From<Color> for KeptColor {
    fn from(color: Color) -> Self {
        match color {
            Color::Default => Self::Default,
            Color::Indexed(index) => Self::Indexed(index),
            Color::Rgb(red, green, blue) => Self::Rgb(red, green, blue),
        }
    }
}

impl From<KeptColor> for Color {
    fn from(color: KeptColor) -> Self {
        match color {
            KeptColor::Default => Self::Default,
            KeptColor::Indexed(index) => Self::Indexed(index),
            KeptColor::Rgb(red, green, blue) => Self::Rgb(red, green, blue),
        }
    }
}

/// A run of columns, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct KeptRun {
    column: u16,
    columns: u16,
    foreground: KeptColor,
    background: KeptColor,
    attributes: u16,
}

impl KeptRun {
    fn of(run: &Run) -> Self {
        let Style { foreground, background, attributes } = run.style;
        Self {
            column: run.column,
            columns: run.columns,
            foreground: foreground.into(),
            background: background.into(),
            attributes: attributes.0,
        }
    }

    fn run(&self) -> Run {
        let style = Style {
            foreground: self.foreground.into(),
            background: self.background.into(),
            attributes: Attributes(self.attributes),
        };
        Run { column: self.column, columns: self.columns, style }
    }
}

/// A link, as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptLink<'a> {
    pub(crate) column: u16,
    pub(crate) columns: u16,
    #[serde(borrow)]
    pub(crate) target: Cow<'a, str>,
}

impl<'a> KeptLink<'a> {
    pub(crate) fn of(link: &'a Link) -> Self {
        let Link { column, columns, target } = link;
        Self { column: *column, columns: *columns, target: Cow::Borrowed(target) }
    }

    pub(crate) fn into_owned(self) -> KeptLink<'static> {
        KeptLink { target: Cow::Owned(self.target.into_owned()), ..self }
    }

    fn link(&self) -> Link {
        Link { column: self.column, columns: self.columns, target: Arc::from(&*self.target) }
    }
}

/// A line, as stored.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct KeptLine<'a> {
    text: &'a str,
    runs: Vec<KeptRun>,
    #[serde(borrow)]
    links: Vec<KeptLink<'a>>,
    wrapped: bool,
}

impl KeptLine<'_> {
    /// The line; none when no screen can have shown it. Older versions stored concealed text.
    pub(crate) fn line(&self) -> Option<Line> {
        let runs: Box<[Run]> = self.runs.iter().map(KeptRun::run).collect();
        let links: Box<[Link]> = self.links.iter().map(KeptLink::link).collect();
        let possible = text_is_possible(self.text)
            && are_in_order(runs.iter().map(|run| (run.column, run.columns)))
            && are_in_order(links.iter().map(|link| (link.column, link.columns)))
            && links.iter().all(|link| Link::is_allowed(&link.target));
        let line = || Line { text: self.text.into(), runs, links, wrapped: self.wrapped };
        possible.then(|| line().concealed())
    }
}

/// Whether the text has no control characters and a column count that fits. Versions may disagree on
/// a character's width, so a line may seem wider than any screen.
fn text_is_possible(text: &str) -> bool {
    let columns: usize = text.chars().map(|character| character.width().unwrap_or(0)).sum();
    columns <= usize::from(u16::MAX) && !text.chars().any(char::is_control)
}

/// Whether these stretches of columns are in order, do not overlap and fit on a screen.
fn are_in_order(stretches: impl IntoIterator<Item = (u16, u16)>) -> bool {
    let mut end = 0;
    stretches.into_iter().all(|(column, columns)| {
        let begins_behind = column >= end && columns > 0;
        end = column.saturating_add(columns);
        begins_behind && end <= Size::SIDE_MAX
    })
}

/// The written version of the block format, the first byte of each block.
const FORMAT: u8 = 2;

/// Every row number and watermark is below this: 2^53.
pub(crate) const NUMBER_MAX: u64 = 1 << 53;

#[derive(Debug, Serialize, Deserialize)]
struct BlockHead {
    format: u8,
    first: u64,
    rows: u32,
}

#[derive(Debug, Deserialize)]
struct KeptRow<'a> {
    #[serde(borrow)]
    line: KeptLine<'a>,
    changed: u64,
}

/// A [`KeptRow`] that is written: the same bytes, without a copy before.
struct WrittenRow<'a>(HistoryRow<'a>);

impl Serialize for WrittenRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// A list that is written item by item.
        struct Items<I>(I);
        impl<I: ExactSizeIterator<Item: Serialize> + Clone> Serialize for Items<I> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_seq(self.0.clone())
            }
        }
        let HistoryRow { text, runs, links, wrapped, changed } = self.0;
        let runs = Items(runs.iter().map(KeptRun::of));
        let links = Items(links.iter().map(KeptLink::of));
        (text, runs, links, wrapped, changed.0).serialize(serializer)
    }
}

pub(crate) type Damage = &'static str;

impl History {
    /// A block with the rows from `since` on; empty when there are no rows.
    pub fn block(&self, since: RowNumber) -> Vec<u8> {
        let since = since.max(self.first());
        if since >= self.end() {
            return Vec::new();
        }
        let rows = u32::try_from(self.end().0 - since.0).unwrap_or(u32::MAX);
        let room = self.bytes() / self.len() * rows as usize;
        let head = BlockHead { format: FORMAT, first: since.0, rows };
        let mut bytes = append(&head, Vec::with_capacity(room));
        for (_, row) in self.range(since, since.plus(rows as usize)) {
            bytes = append(&WrittenRow(row), bytes);
        }
        bytes
    }

    /// Adds the new rows of these blocks, in the order in which they were written. When rows are
    /// missing in between, all rows before the gap are dropped.
    ///
    /// # Errors
    /// [`Damage`] when the bytes are not blocks; the rows before the damage are added.
    pub(crate) fn take_blocks(
        &mut self,
        limits: HistoryLimits,
        bytes: &[u8],
    ) -> Result<(), Damage> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let head: BlockHead = take(&mut rest)?;
            if head.format != FORMAT {
                return Err("they are of a format that is not known here");
            }
            let first = RowNumber(head.first);
            if head.first.saturating_add(head.rows.into()) > NUMBER_MAX {
                return Err("a row has a number that is too high");
            }
            if first > self.end() {
                *self = Self::starting_at(first, limits);
            }
            for number in head.first..head.first + u64::from(head.rows) {
                let row: KeptRow<'_> = take(&mut rest)?;
                let line = row.line.line().ok_or("a row is none that a screen shows")?;
                if row.changed > NUMBER_MAX {
                    return Err("a row has a watermark that is too high");
                }
                if RowNumber(number) == self.end() {
                    self.push(HistoryRow::of(&line, Watermark(row.changed)));
                }
            }
        }
        Ok(())
    }
}

fn append(value: &impl Serialize, bytes: Vec<u8>) -> Vec<u8> {
    postcard::to_extend(value, bytes).expect("memory takes all that these types are made of")
}

fn take<'a, T: Deserialize<'a>>(rest: &mut &'a [u8]) -> Result<T, Damage> {
    let (value, after) = postcard::take_from_bytes(rest).map_err(|_| "a row cannot be read")?;
    *rest = after;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line that is read of what is written of this one.
    fn kept(line: &Line) -> Option<Line> {
        let row = HistoryRow::of(line, Watermark(7));
        let bytes = append(&WrittenRow(row), Vec::new());
        let row: KeptRow<'_> = take(&mut bytes.as_slice()).unwrap();
        assert_eq!(row.changed, 7);
        row.line.line()
    }

    #[test]
    fn what_an_older_version_kept_of_concealed_text_is_not_shown() {
        let style = Style { attributes: Attributes::CONCEALED, ..Style::default() };
        let runs = [Run { column: 5, columns: 6, style }];
        let line = Line { text: "user secret end".into(), runs: runs.into(), ..Line::default() };
        let line = kept(&line).unwrap();
        assert_eq!(&*line.text, "user        end");
    }

    #[test]
    fn a_link_is_kept_and_refused_with_a_target_that_no_terminal_may_show() {
        let linked = |target: &str, columns| {
            let link = |column| Link { column, columns, target: target.into() };
            let links = Box::new([link(1), link(3)]);
            let line = Line { text: "linked".into(), links, ..Line::default() };
            (kept(&line), line)
        };
        let (kept, line) = linked("https://example.org", 2);
        assert_eq!(kept, Some(line));
        assert_eq!(linked("https://example.org", 3).0, None, "they overlap");
        for target in ["javascript:x", "http://a\x1b]2;x", ""] {
            assert_eq!(linked(target, 2).0, None, "{target:?}");
        }
    }
}
