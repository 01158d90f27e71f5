//! Filters the output before the emulator's parser: takes control strings, text and repetitions out of the stream.
//!
//! The parser collects a control string without bound, and ends some at bytes that are UTF-8 text.
//! So the guard reads strings in bounded memory and passes a lone string terminator instead. It also
//! joins split characters, after which the parser can lose the next one. All other bytes pass
//! uncopied.

mod fragment;
mod kept;
mod scan;

use crate::core::screen::guard::fragment::Fragment;
use crate::core::screen::guard::scan::{
    TEXT_MIN, find_escape_or_text, first_number, harmless_sequence, repeats, text_length,
};

const BELL: u8 = 0x07;
pub(crate) const CANCEL: u8 = 0x18;
const SUBSTITUTE: u8 = 0x1a;
const ESCAPE: u8 = 0x1b;

/// How many bytes of a device control string are read; the rest is skipped.
const DCS_BYTES_MAX: usize = 16;

/// The most parameter bytes of a control sequence; a longer one is dropped. The emulator takes 32
/// numbers of five digits, so no meaningful sequence is longer.
const CSI_BYTES_MAX: usize = 256;

/// How many intermediate bytes of an escape sequence are kept. The emulator drops a sequence with
/// more than two.
const INTERMEDIATES_MAX: usize = 3;

/// The most times one sequence may repeat a character: the column count of the widest row.
pub(crate) const REPEAT_MAX: usize = 1_000;

/// A part of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    Bytes(&'a [u8]),
    /// Printable ASCII characters, which need no parser.
    Text(&'a [u8]),
    /// Repeat the last character this many times (REP).
    Repeat(usize),
    /// A character for the emulator that arrived in several pieces.
    Joined(Fragment),
    /// A query that the emulator does not answer.
    Query(Query),
    /// A control string ended: see [`Guard::string`].
    String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Query {
    /// XTVERSION.
    Version,
    /// DECXCPR.
    CursorPosition,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControlString<'a> {
    /// An operating system command and its terminator, with which an answer must end too.
    Command { text: &'a [u8], end: &'static str },
    /// The head of a device control string.
    Device(&'a [u8]),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ScanState {
    #[default]
    Ground,
    Escape,
    EscapeIntermediate,
    Csi,
    /// The byte that opens a string is the next input.
    Introducer,
    Osc,
    Dcs,
    /// An ignored string: APC, PM or SOS.
    Skipped,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StringEnd {
    #[default]
    ByTerminator,
    ByBell,
    Device,
}

/// The scanner's state between two pieces of input.
#[derive(Debug)]
pub(crate) struct Guard {
    state: ScanState,
    /// The most bytes of an operating system command; a longer one is skipped whole.
    command_bytes_max: usize,
    /// The current string, or its head.
    string: Vec<u8>,
    ended: StringEnd,
    /// The parameter and intermediate bytes of the current sequence.
    sequence: Vec<u8>,
    /// The current string or sequence is longer than its kept part.
    overflowed: bool,
    /// The item to return before reading more input.
    due: Option<Item<'static>>,
    /// A character whose end has not arrived yet.
    split: Fragment,
    /// The start of a character at the end of the parser's input. The input continues with something
    /// else, but the parser does not know yet.
    broken: Fragment,
}

impl Guard {
    pub(crate) fn new(command_bytes_max: usize) -> Self {
        Self {
            state: ScanState::default(),
            command_bytes_max,
            string: Vec::new(),
            ended: StringEnd::default(),
            sequence: Vec::new(),
            overflowed: false,
            due: None,
            split: Fragment::default(),
            broken: Fragment::default(),
        }
    }

    /// Returns the next item and advances `rest` past it; none at the end of the input.
    pub(crate) fn next<'a>(&mut self, rest: &mut &'a [u8]) -> Option<Item<'a>> {
        loop {
            if let Some(due) = self.due.take() {
                self.broken = Fragment::default();
                return Some(due);
            }
            let first = *rest.first()?;
            if !self.split.is_empty() {
                return self.join(rest);
            }
            match self.state {
                ScanState::Introducer => {
                    *rest = &rest[1..];
                    return Some(self.open_string(first));
                }
                ScanState::Osc | ScanState::Dcs | ScanState::Skipped => {
                    if self.read_string(rest) {
                        return Some(Item::String);
                    }
                }
                ScanState::Ground
                | ScanState::Escape
                | ScanState::EscapeIntermediate
                | ScanState::Csi => {
                    let text = self.text(rest);
                    if !text.is_empty() {
                        return Some(Item::Text(text));
                    }
                    let bytes = self.pass(rest);
                    if !bytes.is_empty() {
                        let in_text = self.state == ScanState::Ground;
                        let broken = in_text.then(|| Fragment::at_end_of(bytes));
                        self.broken = broken.unwrap_or_default();
                        return Some(Item::Bytes(bytes));
                    }
                }
            }
        }
    }

    /// The control string that ended last.
    pub(crate) fn string(&self) -> ControlString<'_> {
        match self.ended {
            StringEnd::ByTerminator => ControlString::Command { text: &self.string, end: "\x1b\\" },
            StringEnd::ByBell => ControlString::Command { text: &self.string, end: "\x07" },
            StringEnd::Device => ControlString::Device(&self.string),
        }
    }

    /// Takes the text at the start of the input, unless the parser waits for the rest of something.
    #[inline]
    fn text<'a>(&self, rest: &mut &'a [u8]) -> &'a [u8] {
        if self.state != ScanState::Ground || !self.broken.is_empty() {
            return &[];
        }
        let length = text_length(rest);
        if length < TEXT_MIN { &[] } else { rest.split_off(..length).unwrap_or_default() }
    }

    /// Takes bytes for the emulator, up to the end, to text, or to the first byte it must not get.
    fn pass<'a>(&mut self, rest: &mut &'a [u8]) -> &'a [u8] {
        let bytes = *rest;
        let mut at = 0;
        while at < bytes.len() && self.due.is_none() {
            match self.state {
                ScanState::Ground => {
                    // What completes nothing ends what the parser waits for.
                    at += usize::from(at == 0 && !self.broken.is_empty() && bytes[0] != ESCAPE);
                    at += find_escape_or_text(&bytes[at..]);
                    let sequence = harmless_sequence(&bytes[at..]);
                    if sequence > 0 {
                        at += sequence;
                        continue;
                    }
                    if bytes.get(at).is_some_and(|byte| *byte != ESCAPE) {
                        break;
                    }
                }
                ScanState::Csi => at += self.read_parameters(&bytes[at..]),
                ScanState::Escape
                | ScanState::EscapeIntermediate
                | ScanState::Introducer
                | ScanState::Osc
                | ScanState::Dcs
                | ScanState::Skipped => {}
            }
            let Some(byte) = bytes.get(at) else { break };
            self.state = self.after(*byte);
            if self.state == ScanState::Introducer {
                *rest = &bytes[at..];
                return &bytes[..at];
            }
            at += 1;
        }
        *rest = &bytes[at..];
        if matches!(self.due, Some(Item::Bytes(_) | Item::Repeat(_))) {
            return &bytes[..at - 1];
        }
        if self.state == ScanState::Ground && rest.is_empty() {
            self.split = Fragment::at_end_of(bytes);
        }
        &bytes[..at - self.split.bytes().len()]
    }

    /// Completes the character that the last input split, as far as this input reaches.
    fn join(&mut self, rest: &mut &[u8]) -> Option<Item<'static>> {
        if !self.split.complete(rest) {
            return None;
        }
        let joined = std::mem::take(&mut self.split);
        self.broken = Fragment::at_end_of(joined.bytes());
        Some(Item::Joined(joined))
    }

    /// The state after a byte outside strings, the same as in the emulator's parser.
    fn after(&mut self, byte: u8) -> ScanState {
        match (self.state, byte) {
            (_, ESCAPE) => ScanState::Escape,
            (_, CANCEL | SUBSTITUTE) => ScanState::Ground,
            (ScanState::Escape, b'[') => {
                self.sequence.clear();
                self.overflowed = false;
                ScanState::Csi
            }
            (ScanState::Escape, b']' | b'P' | b'X' | b'^' | b'_') => ScanState::Introducer,
            (ScanState::Escape, 0x20..=0x2f) => {
                self.sequence.clear();
                self.sequence.push(byte);
                ScanState::EscapeIntermediate
            }
            (ScanState::EscapeIntermediate, 0x20..=0x2f) => {
                if self.sequence.len() < INTERMEDIATES_MAX {
                    self.sequence.push(byte);
                }
                ScanState::EscapeIntermediate
            }
            (ScanState::Escape | ScanState::EscapeIntermediate, 0x30..=0x7e) => ScanState::Ground,
            (ScanState::Csi, 0x40..=0x7e) => {
                self.due = self.after_sequence(byte);
                ScanState::Ground
            }
            (state, _) => state,
        }
    }

    /// Keeps the next parameter and intermediate bytes up to the bound, and returns how many there are.
    fn read_parameters(&mut self, bytes: &[u8]) -> usize {
        let length = bytes.iter().position(|byte| !(0x20..=0x3f).contains(byte));
        let length = length.unwrap_or(bytes.len());
        let kept = length.min(CSI_BYTES_MAX - self.sequence.len());
        self.overflowed |= kept < length;
        self.sequence.extend_from_slice(&bytes[..kept]);
        length
    }

    /// The item after a control sequence with this final byte. Bytes and a repetition replace the final byte.
    fn after_sequence(&self, end: u8) -> Option<Item<'static>> {
        match (self.sequence.as_slice(), end) {
            _ if self.overflowed => Some(Item::Bytes(&[CANCEL])),
            (count, b'b') if repeats(count) => {
                Some(Item::Repeat(first_number(count).clamp(1, REPEAT_MAX)))
            }
            (b">" | b">0", b'q') => Some(Item::Query(Query::Version)),
            (b"?6", b'n') => Some(Item::Query(Query::CursorPosition)),
            _ => None,
        }
    }

    /// Begins a string. The parser has already read the escape: the returned byte turns that into a
    /// string terminator, which also cancels whatever the escape interrupted.
    fn open_string(&mut self, introducer: u8) -> Item<'static> {
        self.string.clear();
        self.overflowed = false;
        self.state = match introducer {
            b']' => ScanState::Osc,
            b'P' => ScanState::Dcs,
            _ => ScanState::Skipped,
        };
        Item::Bytes(b"\\")
    }

    /// Continues a string. Returns whether it ended and may have a meaning.
    fn read_string(&mut self, rest: &mut &[u8]) -> bool {
        let length = rest.iter().position(|byte| *byte < 0x20).unwrap_or(rest.len());
        self.collect(&rest[..length]);
        let control = rest.get(length).copied();
        // An escape that ends a string is also the start of the next sequence.
        let taken = usize::from(control.is_some_and(|control| control != ESCAPE));
        *rest = &rest[length + taken..];
        let ended = match (self.state, control) {
            (ScanState::Osc, Some(BELL)) => Some(StringEnd::ByBell),
            (ScanState::Osc, Some(ESCAPE)) => Some(StringEnd::ByTerminator),
            (ScanState::Dcs, Some(ESCAPE)) => Some(StringEnd::Device),
            (_, Some(ESCAPE | CANCEL | SUBSTITUTE)) => None,
            (_, Some(_) | None) => return false,
        };
        self.state = ScanState::Ground;
        self.ended = ended.unwrap_or_default();
        ended.is_some() && !self.overflowed
    }

    fn collect(&mut self, bytes: &[u8]) {
        match self.state {
            ScanState::Osc => {
                self.overflowed |= self.string.len() + bytes.len() > self.command_bytes_max;
                if !self.overflowed {
                    self.string.extend_from_slice(bytes);
                }
            }
            ScanState::Dcs => {
                let room = DCS_BYTES_MAX - self.string.len();
                self.string.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            ScanState::Ground
            | ScanState::Escape
            | ScanState::EscapeIntermediate
            | ScanState::Csi
            | ScanState::Introducer
            | ScanState::Skipped => {}
        }
    }
}
