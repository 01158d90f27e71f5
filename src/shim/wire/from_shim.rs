//! Frames from a shim to a daemon.

use crate::shim::bounded::Bounded;
use crate::shim::wire::{
    Frame, FrameReader, FrameWriter, MAGIC, Malformed, NoteFrame, ProgramEnd, RESULTS_MAX,
    SEGMENTS_MAX, SNAPSHOTS_MAX, Window, WriteName,
};

const ATTACHED: u16 = 65;
const FAILED: u16 = 66;
const EXITED: u16 = 69;
const NOTE: u16 = 70;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromShim<'a> {
    /// Answers the first frame of a connection. Carries descriptors: the ring, the daemon's eventfd, the memory for
    /// input, the shim's eventfd, the segments and the snapshots, oldest first. The notes follow.
    Attached(Box<Attached>),
    /// Answers a start that failed, or comes where *attached* could not be sent. The shim hangs up.
    Failed(StartFailure),
    /// The program has ended, and its output ends at `head`.
    Exited {
        ended: ProgramEnd,
        head: u64,
    },
    Note(NoteFrame<'a>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attached {
    /// The shim's protocol version.
    pub version: u16,
    /// Counts the attached connections. The shim serves only the newest.
    pub generation: u64,
    /// The shim's own process.
    pub shim: ProcessIdentity,
    pub leader: ProcessIdentity,
    /// The number of the terminal under `/dev/pts`.
    pub terminal: u32,
    pub window: Window,
    pub ring_bytes: u32,
    pub notes: u16,
    pub head: u64,
    /// The end of the output that the snapshots and segments cover.
    pub committed: u64,
    /// The offset of the oldest byte in the ring; above `committed` if output was lost.
    pub tail: u64,
    /// All queries in the output before this offset have been answered.
    pub answered: u64,
    pub epoch: u64,
    /// How the program ended; `None` until all its output is in the ring.
    pub ended: Option<ProgramEnd>,
    /// The results of the last named writes: those of agents, then those of people, each oldest first.
    pub results: Bounded<WriteProgress, RESULTS_MAX>,
    /// The valid bytes of each segment, oldest first.
    pub segments: Bounded<u64, SEGMENTS_MAX>,
    /// The end of the output that each snapshot covers, oldest first.
    pub snapshots: Bounded<u64, SNAPSHOTS_MAX>,
    /// How many bytes of input that needs a lease were taken in all. Shims of older programs do not say.
    pub typed: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessIdentity {
    pub pid: i32,
    /// In clock ticks since boot.
    pub started: u64,
}

/// How many bytes of a write the terminal has taken in total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteProgress {
    pub write: WriteName,
    pub bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartFailure {
    pub stage: StartStage,
    pub errno: i32,
}

/// The step of a start that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartStage {
    /// The shim's own resources, such as its memory or socket.
    Shim,
    Terminal,
    Program,
    Sandbox,
}

impl<'a> FromShim<'a> {
    pub fn encode(&self, frame: &mut Frame) -> usize {
        match self {
            Self::Attached(attached) => attached.encode(frame),
            Self::Failed(failed) => {
                let mut out = FrameWriter::new(frame, FAILED);
                out.u16(match failed.stage {
                    StartStage::Shim => 0,
                    StartStage::Terminal => 1,
                    StartStage::Program => 2,
                    StartStage::Sandbox => 3,
                });
                out.u16(0);
                out.i32(failed.errno);
                out.finish()
            }
            Self::Exited { ended, head } => {
                let mut out = FrameWriter::new(frame, EXITED);
                encode_ended(Some(*ended), &mut out);
                out.u64(*head);
                out.finish()
            }
            Self::Note(note) => {
                let mut out = FrameWriter::new(frame, NOTE);
                note.encode(&mut out);
                out.finish()
            }
        }
    }

    /// Reads a frame; `None` for an unknown kind.
    pub fn decode(frame: &'a [u8]) -> Result<Option<Self>, Malformed> {
        let (kind, mut from) = FrameReader::new(frame)?;
        Ok(Some(match kind {
            ATTACHED => Self::Attached(Box::new(Attached::decode(&mut from)?)),
            FAILED => Self::Failed(StartFailure::decode(&mut from)?),
            EXITED => {
                let ended = decode_ended(&mut from)?.ok_or(Malformed::Value)?;
                Self::Exited { ended, head: from.u64()? }
            }
            NOTE => Self::Note(NoteFrame::decode(&mut from)?),
            _ => return Ok(None),
        }))
    }
}

impl Attached {
    pub fn encode(&self, frame: &mut Frame) -> usize {
        let mut out = FrameWriter::new(frame, ATTACHED);
        out.u32(MAGIC);
        out.u16(self.version);
        out.u16(self.notes);
        out.u64(self.generation);
        self.shim.encode(&mut out);
        self.leader.encode(&mut out);
        out.u32(self.terminal);
        self.window.encode(&mut out);
        out.u32(self.ring_bytes);
        for number in [self.head, self.committed, self.tail, self.answered, self.epoch] {
            out.u64(number);
        }
        encode_ended(self.ended, &mut out);
        out.count(self.results.as_slice().len());
        out.count(self.segments.as_slice().len());
        out.count(self.snapshots.as_slice().len());
        for result in self.results.as_slice() {
            out.bytes(&result.write);
            out.u64(result.bytes);
        }
        for number in self.segments.as_slice().iter().chain(self.snapshots.as_slice()) {
            out.u64(*number);
        }
        if let Some(typed) = self.typed {
            out.u64(typed);
        }
        out.finish()
    }

    fn decode(from: &mut FrameReader<'_>) -> Result<Self, Malformed> {
        if from.u32()? != MAGIC {
            return Err(Malformed::Magic);
        }
        let (version, notes, generation) = (from.u16()?, from.u16()?, from.u64()?);
        let (shim, leader) = (ProcessIdentity::decode(from)?, ProcessIdentity::decode(from)?);
        let (terminal, window, ring_bytes) = (from.u32()?, Window::decode(from)?, from.u32()?);
        let (head, committed, tail) = (from.u64()?, from.u64()?, from.u64()?);
        let (answered, epoch) = (from.u64()?, from.u64()?);
        let ended = decode_ended(from)?;
        let results = from.count(RESULTS_MAX)?;
        let segments = from.count(SEGMENTS_MAX)?;
        let snapshots = from.count(SNAPSHOTS_MAX)?;
        let written = |from: &mut FrameReader<'_>| -> Result<WriteProgress, Malformed> {
            Ok(WriteProgress { write: from.array()?, bytes: from.u64()? })
        };
        Ok(Self {
            version,
            generation,
            shim,
            leader,
            terminal,
            window,
            ring_bytes,
            notes,
            head,
            committed,
            tail,
            answered,
            epoch,
            ended,
            results: (0..results).map(|_| written(from)).collect::<Result<_, _>>()?,
            segments: (0..segments).map(|_| from.u64()).collect::<Result<_, _>>()?,
            snapshots: (0..snapshots).map(|_| from.u64()).collect::<Result<_, _>>()?,
            typed: if from.is_over() { None } else { Some(from.u64()?) },
        })
    }
}

impl ProcessIdentity {
    fn encode(self, out: &mut FrameWriter<'_>) {
        out.i32(self.pid);
        out.u64(self.started);
    }

    fn decode(from: &mut FrameReader<'_>) -> Result<Self, Malformed> {
        Ok(Self { pid: from.i32()?, started: from.u64()? })
    }
}

impl StartFailure {
    fn decode(from: &mut FrameReader<'_>) -> Result<Self, Malformed> {
        let stage = match from.u16()? {
            0 => StartStage::Shim,
            1 => StartStage::Terminal,
            2 => StartStage::Program,
            3 => StartStage::Sandbox,
            _ => return Err(Malformed::Value),
        };
        from.u16()?;
        Ok(Self { stage, errno: from.i32()? })
    }
}

fn encode_ended(ended: Option<ProgramEnd>, out: &mut FrameWriter<'_>) {
    let (kind, number) = match ended {
        None => (0, 0),
        Some(ProgramEnd::Code(code)) => (1, code),
        Some(ProgramEnd::Signal(signal)) => (2, signal),
        Some(ProgramEnd::Unknown) => (3, 0),
    };
    out.u16(kind);
    out.i32(number);
}

fn decode_ended(from: &mut FrameReader<'_>) -> Result<Option<ProgramEnd>, Malformed> {
    let (kind, number) = (from.u16()?, from.i32()?);
    match kind {
        0 => Ok(None),
        1 => Ok(Some(ProgramEnd::Code(number))),
        2 => Ok(Some(ProgramEnd::Signal(number))),
        3 => Ok(Some(ProgramEnd::Unknown)),
        _ => Err(Malformed::Value),
    }
}
