//! The byte format of a snapshot, which stores everything that affects later output.
//!
//! The types name nothing of the emulator's layout, since later versions of the daemon have another
//! one. The code that uses the values checks them.

pub(crate) mod cells;
pub(crate) mod numbers;
mod outputs;
pub(crate) mod shell;

use serde::{Deserialize, Serialize};

use crate::core::screen::emulator::recording::Recordings;
use crate::core::screen::emulator::shell::MarkedShell;
use crate::core::screen::snapshot::cells::KeptGrid;
use crate::core::screen::snapshot::shell::{KeptShell, WrittenCommands};

/// The start of a snapshot: a magic number and the version of the format. Increase the version when
/// any type below changes.
const FORMAT: [u8; 5] = *b"TGSC\x05";

/// Why stored bytes cannot be restored to a screen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The bytes are in a version of the format that this program does not read, or no snapshot.
    #[error("the snapshot begins with {found:02x?}, which is no format known here")]
    Format { found: Vec<u8> },
    #[error("the snapshot is damaged: {what}")]
    Damaged { what: &'static str },
    #[error("the rows of history are damaged: {what}")]
    Rows { what: &'static str },
}

/// A screen without its history, as stored.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredScreen<'a> {
    /// The watermark at which a restored screen continues.
    pub(crate) reserved: u64,
    /// The oldest row of history, and the row after the newest.
    pub(crate) first_row: u64,
    pub(crate) end_row: u64,
    pub(crate) place: KeptPlace,
    #[serde(borrow)]
    pub(crate) emulator: KeptEmulator<'a>,
}

/// Where in the stream the guard and the parser are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum KeptPlace {
    /// In text: the start of a character that the parser has, and the start of one that the guard
    /// holds back. Usually both are empty.
    Text {
        broken: Vec<u8>,
        split: Vec<u8>,
    },
    Escape,
    /// In an escape sequence, after these intermediate bytes.
    Intermediates(Vec<u8>),
    /// In a control sequence, after these bytes or after too many.
    Parameters {
        bytes: Vec<u8>,
        overflowed: bool,
    },
    Command {
        text: Vec<u8>,
        overflowed: bool,
    },
    /// In a device control string; only its head matters.
    Device(Vec<u8>),
    Skipped,
}

/// The emulator, as stored.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct KeptEmulator<'a> {
    pub(crate) rows: u16,
    pub(crate) cols: u16,
    /// The alternate screen is shown, and `other` is the normal one.
    pub(crate) alternate: bool,
    #[serde(borrow)]
    pub(crate) shown: KeptGrid<'a>,
    /// Contains rows only when it is the normal screen.
    pub(crate) other: KeptGrid<'a>,
    /// The index in the emulator's table of what happened to the normal screen behind the alternate one.
    pub(crate) hidden_resize: u8,
    pub(crate) settings: KeptSettings,
    pub(crate) bells: u64,
    pub(crate) title: &'a str,
    pub(crate) titles: Vec<&'a str>,
    /// The end of a synchronized update in nanoseconds since boot, and its bytes so far.
    pub(crate) sync: Option<(u64, u64)>,
}

/// The settings that belong to neither screen.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct KeptSettings {
    /// One bit for each mode, in the order of the emulator's table.
    pub(crate) modes: u32,
    /// The top row of the scrolling region, from 0, and the row after the bottom one.
    pub(crate) region: (u16, u16),
    pub(crate) tabs: Vec<u16>,
    /// The index of the active character set, 0 to 3.
    pub(crate) charset: u8,
    /// The index of the cursor's shape in the emulator's table, and whether it blinks.
    pub(crate) cursor_style: (u8, bool),
    /// The keyboard flags, and the stacks of the shown screen and of the other.
    pub(crate) keyboard: (u8, Vec<u8>, Vec<u8>),
    pub(crate) repeatable: Option<char>,
}

impl<'a> StoredScreen<'a> {
    pub(crate) fn encode(
        &self,
        (shell, recordings): (&MarkedShell, &Recordings),
        commands: &mut WrittenCommands,
    ) -> Vec<u8> {
        let bytes = postcard::to_extend(self, FORMAT.to_vec());
        let bytes = bytes.and_then(|bytes| commands.write(shell, recordings, bytes));
        bytes.expect("memory takes all that these types are made of")
    }

    /// # Errors
    /// [`SnapshotError`] when the bytes are not a snapshot in a known format.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<(Self, KeptShell<'a>), SnapshotError> {
        let (head, body) = bytes.split_at(bytes.len().min(FORMAT.len()));
        if head != FORMAT {
            return Err(SnapshotError::Format { found: head.to_vec() });
        }
        let cut = |_| SnapshotError::Damaged { what: "it cannot be read to its end" };
        let (snapshot, rest) = postcard::take_from_bytes(body).map_err(cut)?;
        let (shell, rest) = postcard::take_from_bytes(rest).map_err(cut)?;
        if !rest.is_empty() {
            return Err(SnapshotError::Damaged { what: "bytes follow its end" });
        }
        Ok((snapshot, shell))
    }
}
