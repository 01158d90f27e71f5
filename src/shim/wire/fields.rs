//! The fields of a frame: little-endian, without padding.

use crate::shim::wire::{Frame, Malformed};

/// Writes fields into a frame. The caller must keep the bounds of each list; a field that does not fit
/// panics.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    frame: &'a mut Frame,
    length: usize,
}

impl<'a> Writer<'a> {
    /// Starts a frame of this kind.
    pub(super) fn new(frame: &'a mut Frame, kind: u16) -> Self {
        let mut writer = Self { frame, length: 0 };
        writer.u16(kind);
        writer.u16(0);
        writer
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.frame[self.length..][..bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    pub(super) fn u16(&mut self, number: u16) {
        self.bytes(&number.to_le_bytes());
    }

    pub(super) fn u32(&mut self, number: u32) {
        self.bytes(&number.to_le_bytes());
    }

    pub(super) fn i32(&mut self, number: i32) {
        self.bytes(&number.to_le_bytes());
    }

    pub(super) fn u64(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    /// Writes the length of a list.
    pub(super) fn count(&mut self, count: usize) {
        self.u16(u16::try_from(count).expect("every list in a frame is shorter than that"));
    }

    /// Returns the frame's length.
    pub(super) fn finish(self) -> usize {
        self.length
    }
}

#[derive(Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads the kind of a frame. Returns it with a reader of the fields.
    pub(super) fn new(frame: &'a [u8]) -> Result<(u16, Self), Malformed> {
        let mut reader = Self { rest: frame };
        let kind = reader.u16()?;
        reader.u16()?;
        Ok((kind, reader))
    }

    pub(super) fn bytes(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(*bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn i32(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads the length of a list of at most `most` items.
    pub(super) fn count(&mut self, most: usize) -> Result<usize, Malformed> {
        let count = usize::from(self.u16()?);
        if count <= most { Ok(count) } else { Err(Malformed::Value) }
    }
}
