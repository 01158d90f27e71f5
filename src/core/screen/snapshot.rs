//! A snapshot: all that decides how later output is shown, as bytes of a format of our own.
//!
//! The types here say how the bytes lie. They name nothing of the emulator's own layout, since a
//! snapshot is read by versions of the daemon that have another one. What is read is believed
//! where it is put to use, not here.

pub(crate) mod cells;
pub(crate) mod shell;

use serde::{Deserialize, Serialize};

use crate::core::frame::kept::KeptLine;
use crate::core::screen::checkpoint::SnapshotError;
use crate::core::screen::emulator::shell::Shell;
use crate::core::screen::snapshot::cells::KeptGrid;
use crate::core::screen::snapshot::shell::{KeptShell, WrittenCommands};

/// What a snapshot begins with: a mark, and the version of the format. A change of any type below
/// takes another version.
const FORMAT: [u8; 5] = *b"TGSC\x02";

/// The first version, which is read as well, knows nothing of the shell.
const FIRST_FORMAT: [u8; 5] = *b"TGSC\x01";

/// A screen without its history, kept.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Snapshot<'a> {
    /// The watermark that a restored screen counts on from.
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
    /// In text, after the beginning of a character that the parser has, and of one that the guard
    /// holds back; most often after neither.
    Text {
        broken: Vec<u8>,
        split: Vec<u8>,
    },
    Escape,
    /// In an escape sequence after these.
    Intermediates(Vec<u8>),
    /// In a control sequence after these, or after more than one may have.
    Parameters {
        bytes: Vec<u8>,
        overflowed: bool,
    },
    /// In an operating system command.
    Command {
        text: Vec<u8>,
        overflowed: bool,
    },
    /// In a device control string, of which only the head matters.
    Device(Vec<u8>),
    /// In a string that means nothing here.
    Skipped,
}

/// The emulator, kept.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct KeptEmulator<'a> {
    pub(crate) rows: u16,
    pub(crate) cols: u16,
    /// The alternate screen is shown, and the normal one is the other.
    pub(crate) alternate: bool,
    #[serde(borrow)]
    pub(crate) shown: KeptGrid<'a>,
    /// Its rows matter, and are here, when it is the normal screen.
    pub(crate) other: KeptGrid<'a>,
    pub(crate) shelf: Vec<KeptLine<'a>>,
    pub(crate) shelved: KeptShelved,
    pub(crate) settings: KeptSettings,
    pub(crate) bells: u64,
    pub(crate) title: &'a str,
    pub(crate) titles: Vec<&'a str>,
    pub(crate) sync: Option<KeptSync>,
}

/// What became of the normal screen behind the alternate one.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum KeptShelved {
    Untouched,
    Resized,
    Rewrapped,
}

/// What programs set that belongs to neither screen.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct KeptSettings {
    /// A bit for each mode, in the order in which the emulator's table has them.
    pub(crate) modes: u32,
    /// The top row of the scrolling region, from 0, and the row after the bottom one.
    pub(crate) region: (u16, u16),
    /// The columns with a tab stop.
    pub(crate) tabs: Vec<u16>,
    /// Which of the four character sets is in use.
    pub(crate) charset: u8,
    /// The shape of the cursor by its place in the emulator's table, and whether it blinks.
    pub(crate) cursor_style: (u8, bool),
    /// The keyboard's flags, and those put aside on the shown screen and on the other.
    pub(crate) keyboard: (u8, Vec<u8>, Vec<u8>),
    /// The character that a repetition repeats.
    pub(crate) repeatable: Option<char>,
}

/// A synchronized update under way: its end in nanoseconds since boot, and its length so far.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct KeptSync {
    pub(crate) until: u64,
    pub(crate) bytes: u64,
}

impl<'a> Snapshot<'a> {
    /// The bytes of the screen, and of the shell on it.
    pub(crate) fn encode(&self, shell: &Shell, commands: &mut WrittenCommands) -> Vec<u8> {
        let bytes = postcard::to_extend(self, FORMAT.to_vec());
        let bytes = bytes.and_then(|bytes| commands.write(shell, bytes));
        bytes.expect("memory takes all that these types are made of")
    }

    /// # Errors
    /// [`SnapshotError`] when the bytes are no snapshot of the format read here.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<(Self, KeptShell<'a>), SnapshotError> {
        let (head, body) = bytes.split_at(bytes.len().min(FORMAT.len()));
        let first = head == FIRST_FORMAT;
        if !first && head != FORMAT {
            return Err(SnapshotError::Format { found: head.to_vec() });
        }
        let cut = |_| SnapshotError::Damaged { what: "it cannot be read to its end" };
        let (snapshot, rest) = postcard::take_from_bytes(body).map_err(cut)?;
        let (shell, rest) = if first {
            (KeptShell::default(), rest)
        } else {
            postcard::take_from_bytes(rest).map_err(cut)?
        };
        if !rest.is_empty() {
            return Err(SnapshotError::Damaged { what: "bytes follow its end" });
        }
        Ok((snapshot, shell))
    }
}
