//! The initial state of a session's task: an empty screen, or the one that the previous daemon left.
//! The stored state may be damaged. The result then holds what was readable.

use std::fmt;
use std::time::SystemTime;

use crate::core::frame::Size;
use crate::core::ids::{RowNumber, Watermark};
use crate::core::moment::Moment;
use crate::core::screen::{Origin, Screen, ScreenLimits};
use crate::session::pty::Note;
use crate::session::pty::held::recovered::Recovered;
use crate::session::records::{Gap, Gaps, Stillness};

/// A history with more segments is stored again as one.
const SEGMENTS_KEPT_MAX: usize = 32;

/// The state of a session before its task runs.
#[derive(Debug)]
pub struct OpeningState {
    pub screen: Screen,
    /// The offset of the first output that the screen has not processed.
    pub offset: u64,
    /// The commands that were sent before this offset of the output are on the screen, or on one that cannot be
    /// read.
    pub covered: u64,
    /// All queries in the output before this offset have been answered.
    pub answered: u64,
    /// The row after the newest stored row of history; `None` if the stored rows are unusable.
    pub kept_rows: Option<RowNumber>,
    pub gaps: Gaps,
    /// Whether another daemon had the terminal before.
    pub found: bool,
    /// When the screen last changed, if that was before this daemon found it.
    pub still_since: Option<Moment>,
    /// The end of the output that was pending when the terminal was found. Clients do not see the session
    /// before its screen has processed that output. [`UNTIL_END`] if the program has ended: then its end must be
    /// told first.
    pub unread_until: u64,
}

/// The end of the pending output of a program that is known to have ended. No output reaches it.
pub const UNTIL_END: u64 = u64::MAX;

/// Cancels an unfinished escape sequence, so that output after a gap is parsed from its beginning.
pub const CANCEL: &[u8] = b"\x18";

impl OpeningState {
    /// The empty screen of a new program.
    pub fn empty(size: Size, limits: ScreenLimits) -> Self {
        let screen = Screen::new(size, limits, Origin::default());
        Self {
            screen,
            offset: 0,
            covered: 0,
            answered: 0,
            kept_rows: None,
            gaps: Gaps::default(),
            found: false,
            still_since: None,
            unread_until: 0,
        }
    }

    /// The stored screen of a program whose terminal is gone; `None` if it is unreadable.
    pub fn left(snapshot: &[u8], kept_at: SystemTime, limits: ScreenLimits) -> Option<Self> {
        let screen = Screen::restore(snapshot, std::iter::empty::<&[u8]>(), limits).ok()?;
        let mut gaps = Gaps::default();
        gaps.add(Gap { row: screen.cursor_row(), bytes: None, since: Some(kept_at) });
        let empty = Self::empty(screen.size(), limits);
        Some(Self { screen, gaps, found: true, ..empty })
    }

    /// The screen as the previous daemon stored it, and where its output continues.
    pub fn restored(
        session: &impl fmt::Display,
        recovered: &Recovered,
        limits: ScreenLimits,
        now: Moment,
    ) -> Self {
        let (offset, answered) = (recovered.resume_at(), recovered.attached.answered);
        let unread_until = recovered.exit().map_or(recovered.attached.head, |_| UNTIL_END);
        let blocks = || recovered.segments.iter().map(|segment| segment.rows.as_slice());
        let mut gaps = Gaps::from_note(recovered.notes.get(Note::Gaps)).unwrap_or_else(|error| {
            tracing::warn!(%session, %error, "the record of earlier lost output cannot be read");
            Gaps::default()
        });
        let mut newest_first = recovered.snapshots.iter().rev();
        let found = newest_first.find_map(|snapshot| {
            match Screen::restore(&snapshot.bytes, blocks(), limits) {
                Ok(screen) => Some((screen, snapshot.offset)),
                Err(error) => {
                    tracing::warn!(%session, %error, "a stored screen cannot be read");
                    None
                }
            }
        });
        let Some((mut screen, covered)) = found else {
            let screen = Self::blank(recovered, limits, now);
            // At offset 0, reading starts from the first byte and nothing is lost.
            if offset > 0 {
                gaps.add(Gap { row: screen.cursor_row(), bytes: None, since: None });
            }
            let empty = Self::empty(recovered.size(), limits);
            let covered = offset;
            let found = true;
            return Self { screen, offset, covered, answered, gaps, found, unread_until, ..empty };
        };
        if covered < offset {
            tracing::warn!(%session, from = covered, to = offset, "output was lost");
            screen.feed(now, CANCEL);
            screen.on_lost_output();
            let bytes = Some(offset - covered);
            gaps.add(Gap { row: screen.cursor_row(), bytes, since: None });
        }
        let few = recovered.segments.len() <= SEGMENTS_KEPT_MAX && !recovered.history_damaged;
        let kept_rows = few.then(|| screen.history_end());
        let still = Stillness::from_note(recovered.notes.get(Note::Terminal));
        let still = still.unwrap_or_else(|error| {
            tracing::warn!(%session, %error, "the time of the last output cannot be read");
            None
        });
        let lasts =
            |still: &Stillness| [covered, offset, recovered.attached.head] == [still.offset; 3];
        let still_since = still.filter(lasts).map(|still| still.at.min(now));
        let newest = recovered.snapshots.last().map(|snapshot| snapshot.offset);
        let covered = if newest == Some(covered) { covered } else { offset };
        let found = true;
        Self {
            screen,
            offset,
            covered,
            answered,
            kept_rows,
            gaps,
            found,
            still_since,
            unread_until,
        }
    }

    /// An empty screen. Its watermarks and rows follow all that earlier daemons can have reported.
    fn blank(recovered: &Recovered, limits: ScreenLimits, now: Moment) -> Screen {
        /// More watermarks than any session has used, and far below the maximum.
        const SKIPPED: u64 = 1 << 50;
        let row = recovered.segments.last().map_or(RowNumber(0), |segment| segment.end_row);
        let mark = SKIPPED + u64::try_from(now.since(Moment::default()).as_millis()).unwrap_or(0);
        Screen::new(recovered.size(), limits, Origin { watermark: Watermark(mark), row })
    }
}

#[cfg(test)]
mod tests;
