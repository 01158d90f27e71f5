//! The protocol between a shim and a daemon. See `docs/SHIM.md`.
//! Shims outlive daemons of many versions: readers skip unknown kinds and ignore data after the known fields.
//! Nothing here allocates.

pub mod from_shim;
pub mod to_shim;

pub const FRAME_MAX: usize = 64 * 1024;
pub type Frame = [u8; FRAME_MAX];

/// Room for a frame.
pub fn frame() -> Box<Frame> {
    let zeros = vec![0; FRAME_MAX].into_boxed_slice();
    zeros.try_into().expect("it was made with this length")
}

/// Follows the kind in the first frame of each side.
pub const MAGIC: u32 = u32::from_le_bytes(*b"tghd");
pub const VERSION: u16 = 2;

/// The longest note, in bytes.
pub const NOTE_MAX: usize = 8 * 1024;
/// The number of note slots.
pub const NOTES: usize = 8;
/// How many results of writes a shim keeps, half for agents and half for people.
pub const RESULTS_MAX: usize = 128;
pub const SEGMENTS_MAX: usize = 64;
pub const SNAPSHOTS_MAX: usize = 2;
/// The most descriptors in one frame, that of [`from_shim::Attached`].
pub const DESCRIPTORS_MAX: usize = 4 + SEGMENTS_MAX + SNAPSHOTS_MAX;

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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    pub rows: u16,
    pub cols: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramEnd {
    Code(i32),
    Signal(i32),
    /// The kernel did not report how.
    Unknown,
}

/// Bytes that a shim stores for later daemons without reading them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoteFrame<'a> {
    /// The slot, below [`NOTES`].
    pub slot: u16,
    /// At most [`NOTE_MAX`] bytes.
    pub bytes: &'a [u8],
}

impl<'a> NoteFrame<'a> {
    fn encode(self, out: &mut FrameWriter<'_>) {
        let bytes = &self.bytes[..self.bytes.len().min(NOTE_MAX)];
        out.u16(self.slot);
        out.u16(u16::try_from(bytes.len()).expect("a note is shorter than that"));
        out.bytes(bytes);
    }

    fn decode(from: &mut FrameReader<'a>) -> Result<Self, Malformed> {
        let slot = from.u16()?;
        let length = usize::from(from.u16()?);
        if usize::from(slot) >= NOTES || length > NOTE_MAX {
            return Err(Malformed::Value);
        }
        Ok(Self { slot, bytes: from.bytes(length)? })
    }
}

/// Writes fields into a frame. The caller must keep the bounds of each list; a field that does not fit
/// panics.
#[derive(Debug)]
struct FrameWriter<'a> {
    frame: &'a mut Frame,
    length: usize,
}

impl<'a> FrameWriter<'a> {
    /// Starts a frame of this kind.
    fn new(frame: &'a mut Frame, kind: u16) -> Self {
        let mut writer = Self { frame, length: 0 };
        writer.u16(kind);
        writer.u16(0);
        writer
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.frame[self.length..][..bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    fn u16(&mut self, number: u16) {
        self.bytes(&number.to_le_bytes());
    }

    fn u32(&mut self, number: u32) {
        self.bytes(&number.to_le_bytes());
    }

    fn i32(&mut self, number: i32) {
        self.bytes(&number.to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    /// Writes the length of a list.
    fn count(&mut self, count: usize) {
        self.u16(u16::try_from(count).expect("every list in a frame is shorter than that"));
    }

    /// Returns the frame's length.
    fn finish(self) -> usize {
        self.length
    }
}

#[derive(Debug)]
struct FrameReader<'a> {
    rest: &'a [u8],
}

impl<'a> FrameReader<'a> {
    /// Reads the kind of a frame. Returns it with a reader of the fields.
    fn new(frame: &'a [u8]) -> Result<(u16, Self), Malformed> {
        let mut reader = Self { rest: frame };
        let kind = reader.u16()?;
        reader.u16()?;
        Ok((kind, reader))
    }

    fn bytes(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Whether an older program wrote the frame, which knew no more fields.
    fn is_over(&self) -> bool {
        self.rest.is_empty()
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    fn i32(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads the length of a list of at most `most` items.
    fn count(&mut self, most: usize) -> Result<usize, Malformed> {
        let count = usize::from(self.u16()?);
        if count <= most { Ok(count) } else { Err(Malformed::Value) }
    }
}

#[cfg(test)]
mod tests;
