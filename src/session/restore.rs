//! Where the task of a session begins: at an empty screen, or where the daemon before left it.
//!
//! It knows nothing of how the terminal is held. Whatever was kept may be damaged; there is a screen
//! all the same, with what could be read.

use std::fmt;
use std::time::SystemTime;

use crate::core::frame::Size;
use crate::core::ids::{RowNumber, Watermark};
use crate::core::moment::Moment;
use crate::core::screen::{Origin, Screen, ScreenLimits};
use crate::session::pty::Note;
use crate::session::pty::held::recovered::Recovered;
use crate::session::records::gaps::{Gap, Gaps};
use crate::session::records::stillness::Stillness;

/// So many segments of rows are gone on with; more are put together into one.
const SEGMENTS_KEPT_MAX: usize = 32;

/// The state of a session before its task runs.
#[derive(Debug)]
pub struct Opening {
    pub screen: Screen,
    /// The first byte of output that the screen has not seen.
    pub offset: u64,
    /// The queries in the output before this offset have had their answers.
    pub answered: u64,
    /// The row after the newest one of history that is kept for the next daemon; none when nothing
    /// that is kept is of use.
    pub kept_rows: Option<RowNumber>,
    /// The output that was lost.
    pub gaps: Gaps,
    /// Another daemon had the terminal.
    pub found: bool,
    /// When the screen last changed, where that was before this daemon found it so.
    pub still_since: Option<Moment>,
    /// The output before this offset was there when the terminal was found: nobody is shown the session
    /// before its screen has seen that.
    pub unread_until: u64,
}

/// Ends what the output was in the midst of, so that what follows a gap is read from its beginning.
pub const CANCEL: &[u8] = b"\x18";

impl Opening {
    /// The empty screen of a program that was just started.
    pub fn empty(size: Size, limits: ScreenLimits) -> Self {
        let screen = Screen::new(size, limits, Origin::default());
        Self {
            screen,
            offset: 0,
            answered: 0,
            kept_rows: None,
            gaps: Gaps::default(),
            found: false,
            still_since: None,
            unread_until: 0,
        }
    }

    /// The screen of a program whose terminal is gone, as it was kept at this moment; none when it cannot
    /// be read.
    pub fn left(snapshot: &[u8], kept_at: SystemTime, limits: ScreenLimits) -> Option<Self> {
        let screen = Screen::restore(snapshot, std::iter::empty::<&[u8]>(), limits).ok()?;
        let mut gaps = Gaps::default();
        gaps.add(Gap { row: screen.cursor_row(), bytes: None, since: Some(kept_at) });
        let empty = Self::empty(screen.size(), limits);
        Some(Self { screen, gaps, found: true, ..empty })
    }

    /// The screen as the daemon before kept it, and where its output goes on.
    pub fn restored(
        session: &impl fmt::Display,
        recovered: &Recovered,
        limits: ScreenLimits,
        now: Moment,
    ) -> Self {
        let (offset, answered) = (recovered.resume_at(), recovered.answered);
        let unread_until = recovered.head;
        let blocks = || recovered.segments.iter().map(|segment| segment.rows.as_slice());
        let mut gaps = Gaps::from_note(recovered.notes.get(Note::Gaps)).unwrap_or_else(|error| {
            tracing::warn!(%session, %error, "nobody knows which output was lost before");
            Gaps::default()
        });
        let mut newest_first = recovered.snapshots.iter().rev();
        let found = newest_first.find_map(|snapshot| {
            match Screen::restore(&snapshot.bytes, blocks(), limits) {
                Ok(screen) => Some((screen, snapshot.offset)),
                Err(error) => {
                    tracing::warn!(%session, %error, "a screen that was kept cannot be read");
                    None
                }
            }
        });
        let Some((mut screen, covered)) = found else {
            let screen = Self::blank(recovered, limits, now);
            // From the first byte on, all of it is read again.
            if offset > 0 {
                gaps.add(Gap { row: screen.cursor_row(), bytes: None, since: None });
            }
            let empty = Self::empty(recovered.size, limits);
            return Self { screen, offset, answered, gaps, found: true, unread_until, ..empty };
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
            tracing::warn!(%session, %error, "nobody knows since when the screen is as it is");
            None
        });
        let lasts = |still: &Stillness| [covered, offset, recovered.head] == [still.offset; 3];
        let still_since = still.filter(lasts).map(|still| still.at.min(now));
        let found = true;
        Self { screen, offset, answered, kept_rows, gaps, found, still_since, unread_until }
    }

    /// An empty screen whose watermarks and rows come after all that were told, as far as anybody
    /// can know.
    fn blank(recovered: &Recovered, limits: ScreenLimits, now: Moment) -> Screen {
        /// More watermarks than any session has counted up to, and far below the highest.
        const SKIPPED: u64 = 1 << 50;
        let row = recovered.segments.last().map_or(RowNumber(0), |segment| segment.end_row);
        let mark = SKIPPED + u64::try_from(now.since(Moment::default()).as_millis()).unwrap_or(0);
        Screen::new(recovered.size, limits, Origin { watermark: Watermark(mark), row })
    }
}

#[cfg(test)]
mod tests;
