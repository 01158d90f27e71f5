//! The protocol between a shim and a daemon. See `docs/SHIM.md`.
//! Shims outlive daemons of many versions, so version 1 is frozen: readers skip unknown kinds and ignore data
//! after the known fields. Nothing here allocates.

mod fields;
pub mod from_shim;
pub mod to_shim;

pub const FRAME_MAX: usize = 64 * 1024;
/// The buffer for one frame.
pub type Frame = [u8; FRAME_MAX];

/// Follows the kind in the first frame of each side.
pub const MAGIC: u32 = u32::from_le_bytes(*b"tghd");
pub const VERSION: u16 = 1;

/// The most input in one frame, in bytes.
pub const INPUT_MAX: usize = 32 * 1024;
/// The longest note, in bytes.
pub const NOTE_MAX: usize = 8 * 1024;
/// The number of note slots.
pub const NOTES: usize = 8;
/// How many results of writes a shim keeps, half for agents and half for people.
pub const RESULTS_MAX: usize = 128;
pub const SEGMENTS_MAX: usize = 64;
pub const SNAPSHOTS_MAX: usize = 2;
/// The most descriptors in one frame, that of [`from_shim::Attached`].
pub const DESCRIPTORS_MAX: usize = 2 + SEGMENTS_MAX + SNAPSHOTS_MAX;

/// The name of a write. A daemon can ask for its result after a restart. All zeros mean no name.
pub type WriteName = [u8; 16];

/// Why a frame cannot be decoded. The receiver closes the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("a frame is shorter than its fields")]
    Short,
    #[error("the other side does not begin as shims and daemons do")]
    Magic,
    #[error("a field has a value it cannot have")]
    Value,
}

/// The size of a terminal in character cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    pub rows: u16,
    pub cols: u16,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The exit code.
    Code(i32),
    /// The signal that ended it.
    Signal(i32),
    /// The kernel did not report how.
    Unknown,
}

/// Bytes that a shim stores for later daemons without reading them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note<'a> {
    /// The slot, below [`NOTES`].
    pub slot: u16,
    /// At most [`NOTE_MAX`] bytes.
    pub bytes: &'a [u8],
}

impl<'a> Note<'a> {
    fn encode(self, out: &mut fields::Writer<'_>) {
        let bytes = &self.bytes[..self.bytes.len().min(NOTE_MAX)];
        out.u16(self.slot);
        out.u16(u16::try_from(bytes.len()).expect("a note is shorter than that"));
        out.bytes(bytes);
    }

    fn decode(from: &mut fields::Reader<'a>) -> Result<Self, Malformed> {
        let slot = from.u16()?;
        let length = usize::from(from.u16()?);
        if usize::from(slot) >= NOTES || length > NOTE_MAX {
            return Err(Malformed::Value);
        }
        Ok(Self { slot, bytes: from.bytes(length)? })
    }
}

#[cfg(test)]
mod tests;
