//! One write as it goes into the queue: bytes that belong together and where they may be cut.
//!
//! It knows nothing of leases; the queue decides when to cut, the unit only says where that is
//! harmless.

/// A part of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text, which may be cut between any two characters; never empty.
    Text(Vec<u8>),
    /// One key or mouse event, which is sent whole or not at all; never empty.
    Key(Vec<u8>),
    /// The start of a bracketed paste: once it went out, the paste must be closed.
    PasteStart,
    /// The end of a bracketed paste.
    PasteEnd,
}

impl Piece {
    /// What opens a bracketed paste, by xterm's control sequences (mode 2004).
    pub const PASTE_START: &'static [u8] = b"\x1b[200~";
    /// What closes a bracketed paste.
    pub const PASTE_END: &'static [u8] = b"\x1b[201~";

    /// The bytes that go to the terminal.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(bytes) | Self::Key(bytes) => bytes,
            Self::PasteStart => Self::PASTE_START,
            Self::PasteEnd => Self::PASTE_END,
        }
    }
}

/// The pieces of one write, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    pub pieces: Vec<Piece>,
}

impl Unit {
    /// How many bytes the write has in all.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.bytes().len()).sum()
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the write is nothing but Ctrl-C, which may jump over bytes that are stuck.
    pub fn is_interrupt(&self) -> bool {
        matches!(self.pieces.as_slice(), [Piece::Key(bytes)] if bytes.as_slice() == b"\x03")
    }
}
