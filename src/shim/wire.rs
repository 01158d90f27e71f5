//! What a shim and a daemon say to each other: frames of bytes, the same for ever.
//!
//! It knows no socket. Shims outlive daemons of many versions, so version 1 is frozen as
//! `docs/SHIM.md` says: kinds that are not known are skipped and what follows the known fields
//! of a kind is ignored. Nothing here allocates.

mod fields;
pub mod from_shim;
pub mod to_shim;

/// The longest frame, in bytes.
pub const FRAME_MAX: usize = 64 * 1024;
/// Room for one frame.
pub type Frame = [u8; FRAME_MAX];

/// What the first frame of each side begins with, after its kind.
pub const MAGIC: u32 = u32::from_le_bytes(*b"tghd");
/// The version of this protocol.
pub const VERSION: u16 = 1;

/// How much input one frame carries at most, in bytes.
pub const INPUT_MAX: usize = 32 * 1024;
/// The longest note, in bytes.
pub const NOTE_MAX: usize = 8 * 1024;
/// How many notes a shim keeps.
pub const NOTES: usize = 8;
/// How many results of writes a shim keeps: half of them of agents, half of people.
pub const RESULTS_MAX: usize = 128;
/// How many segments of history a shim keeps.
pub const SEGMENTS_MAX: usize = 64;
/// How many snapshots a shim keeps.
pub const SNAPSHOTS_MAX: usize = 2;
/// How many descriptors one frame carries at most: those of [`from_shim::Attached`].
pub const DESCRIPTORS_MAX: usize = 2 + SEGMENTS_MAX + SNAPSHOTS_MAX;

/// The name of a write, so that its result can be asked for after a restart; all zero names none.
pub type WriteName = [u8; 16];

/// Says why a frame cannot be understood. Whoever sent it is not worth listening to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("a frame is shorter than its fields")]
    Short,
    #[error("the other side does not begin as shims and daemons do")]
    Magic,
    #[error("a field has a value it cannot have")]
    Value,
}

/// The rows and columns of a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    pub rows: u16,
    pub cols: u16,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It returned this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// It ended, and the kernel did not say how.
    Unknown,
}

/// Some bytes that a shim keeps for daemons to come, without reading them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note<'a> {
    /// Which of the notes it is, below [`NOTES`].
    pub slot: u16,
    /// At most [`NOTE_MAX`].
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
