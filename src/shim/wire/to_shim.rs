//! Frames from a daemon to a shim.

use crate::shim::wire::{
    Frame, FrameReader, FrameWriter, MAGIC, Malformed, NoteFrame, VERSION, Window,
};

const START: u16 = 1;
const ATTACH: u16 = 2;
const COMMIT: u16 = 6;
const NOTE: u16 = 7;
const END: u16 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToShim<'a> {
    /// The first frame on the first connection. Carries the memfd with the program.
    Start(Start),
    /// The first frame on every later connection. `version` is the daemon's protocol version.
    Attach {
        version: u16,
    },
    /// Carries the descriptors of the snapshot and the segment that it announces, in this order.
    Commit(Commit),
    Note(NoteFrame<'a>),
    /// The session is over: the shim ends all its processes and itself.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    pub window: Window,
    /// The capacity of the ring; a multiple of the page size.
    pub ring_bytes: u32,
    /// What to do with output that does not fit while no daemon is connected.
    pub unread: Unread,
    /// How long the program may run without a daemon, in milliseconds; 0 sets no limit.
    pub orphan_ttl_ms: u64,
    /// The soft limit of open files for the program; 0 inherits the shim's.
    pub descriptors: u64,
}

/// What to do with output that does not fit while no daemon is connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unread {
    /// The program waits; no output is lost.
    #[default]
    Block,
    /// The program continues; the oldest output is lost.
    Overwrite,
}

/// Records that a checkpoint covers the output before `offset`, so that the shim may release it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    pub offset: u64,
    /// The valid bytes of the last segment, after the segment of this frame is added.
    pub segment_bytes: u64,
    /// How many of the oldest segments to drop.
    pub segments_dropped: u16,
    pub snapshot: bool,
    pub segment: bool,
    /// Whether no more output is expected soon, so that the shim may free memory.
    pub quiet: bool,
}

const CARRIES_SNAPSHOT: u16 = 1;
const CARRIES_SEGMENT: u16 = 2;
const QUIET: u16 = 4;

impl<'a> ToShim<'a> {
    pub fn encode(&self, frame: &mut Frame) -> usize {
        let mut out = FrameWriter::new(frame, self.kind());
        match self {
            Self::Start(start) => start.encode(&mut out),
            Self::Attach { version } => {
                out.u32(MAGIC);
                out.u16(*version);
            }
            Self::Commit(commit) => commit.encode(&mut out),
            Self::Note(note) => note.encode(&mut out),
            Self::End => {}
        }
        out.finish()
    }

    /// Reads a frame; `None` for an unknown kind.
    pub fn decode(frame: &'a [u8]) -> Result<Option<Self>, Malformed> {
        let (kind, mut from) = FrameReader::new(frame)?;
        Ok(Some(match kind {
            START => Self::Start(Start::decode(&mut from)?),
            ATTACH => {
                check_magic(&mut from)?;
                Self::Attach { version: from.u16()? }
            }
            COMMIT => Self::Commit(Commit::decode(&mut from)?),
            NOTE => Self::Note(NoteFrame::decode(&mut from)?),
            END => Self::End,
            _ => return Ok(None),
        }))
    }

    fn kind(&self) -> u16 {
        match self {
            Self::Start(_) => START,
            Self::Attach { .. } => ATTACH,
            Self::Commit(_) => COMMIT,
            Self::Note(_) => NOTE,
            Self::End => END,
        }
    }
}

fn check_magic(from: &mut FrameReader<'_>) -> Result<(), Malformed> {
    if from.u32()? == MAGIC { Ok(()) } else { Err(Malformed::Magic) }
}

impl Start {
    fn encode(&self, out: &mut FrameWriter<'_>) {
        out.u32(MAGIC);
        out.u16(VERSION);
        out.u16(match self.unread {
            Unread::Block => 0,
            Unread::Overwrite => 1,
        });
        self.window.encode(out);
        out.u32(self.ring_bytes);
        out.u64(self.orphan_ttl_ms);
        out.u64(self.descriptors);
    }

    fn decode(from: &mut FrameReader<'_>) -> Result<Self, Malformed> {
        check_magic(from)?;
        from.u16()?;
        let unread = match from.u16()? {
            0 => Unread::Block,
            1 => Unread::Overwrite,
            _ => return Err(Malformed::Value),
        };
        Ok(Self {
            unread,
            window: Window::decode(from)?,
            ring_bytes: from.u32()?,
            orphan_ttl_ms: from.u64()?,
            descriptors: from.u64()?,
        })
    }
}

impl Window {
    pub(super) fn encode(self, out: &mut FrameWriter<'_>) {
        out.u16(self.rows);
        out.u16(self.cols);
    }

    pub(super) fn decode(from: &mut FrameReader<'_>) -> Result<Self, Malformed> {
        Ok(Self { rows: from.u16()?, cols: from.u16()? })
    }
}

impl Commit {
    fn encode(&self, out: &mut FrameWriter<'_>) {
        let flag = |set: bool, flag: u16| if set { flag } else { 0 };
        out.u64(self.offset);
        out.u64(self.segment_bytes);
        out.u16(self.segments_dropped);
        out.u16(
            flag(self.snapshot, CARRIES_SNAPSHOT)
                | flag(self.segment, CARRIES_SEGMENT)
                | flag(self.quiet, QUIET),
        );
    }

    fn decode(from: &mut FrameReader<'_>) -> Result<Self, Malformed> {
        let (offset, segment_bytes, segments_dropped) = (from.u64()?, from.u64()?, from.u16()?);
        let flags = from.u16()?;
        Ok(Self {
            offset,
            segment_bytes,
            segments_dropped,
            snapshot: flags & CARRIES_SNAPSHOT != 0,
            segment: flags & CARRIES_SEGMENT != 0,
            quiet: flags & QUIET != 0,
        })
    }
}
