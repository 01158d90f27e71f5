//! What was typed at a terminal, as far as it is known from the bytes.

use std::sync::Arc;

use crate::core::moment::Moment;

/// What was typed at the terminal, and how far it may have been read.
#[derive(Debug)]
pub(super) struct TypedSoFar {
    pub(super) at: Moment,
    /// Something was typed that was no command, and may not have been read yet: the next command to
    /// begin need not be the next that is sent.
    pub(super) ahead: bool,
    /// Something was typed since the last command that was none: a key may wait for its second.
    pub(super) between: bool,
    /// What was typed last ended no line.
    pub(super) half_line: bool,
    /// When an Enter was typed last, if that was since the shell began to read where it reads, or may be read there.
    pub(super) entered_at: Option<Moment>,
    /// A line was typed since a program was last seen to wait for one.
    pub(super) answered: bool,
    /// What was sent to a program has not ended for it: it asks for the rest.
    pub(super) goes_on: bool,
    /// The prompt of a shell without marks when it was last typed at.
    pub(super) prompt: Option<Arc<str>>,
}

impl TypedSoFar {
    /// Begins with a terminal that was just made, or was `found`: then it is unknown what was typed there before.
    pub(super) fn begin(now: Moment, found: bool) -> Self {
        Self {
            at: now,
            ahead: found,
            between: found,
            half_line: found,
            entered_at: None,
            answered: false,
            goes_on: false,
            prompt: None,
        }
    }

    pub(super) fn note(&mut self, now: Moment, bytes: &[u8]) {
        const ENTERS: [u8; 2] = [b'\r', b'\n'];
        const INTERRUPT: u8 = 0x03;
        // `C-d` and `C-\` end a line for programs alone: line editors keep it, and a shell without one gets the half
        // that is there.
        const ENDS_OF_PROGRAMS: [u8; 2] = [0x04, 0x1c];
        let ends = |byte: &u8| ENTERS.contains(byte) || *byte == INTERRUPT;
        let ends_for_programs = |byte: &u8| ENDS_OF_PROGRAMS.contains(byte);
        self.answered |= bytes.iter().any(|byte| ends(byte) || ends_for_programs(byte));
        if let Some(last) = bytes.iter().rfind(|byte| !ends_for_programs(byte)) {
            self.half_line = !ends(last);
        }
        // A paste has line ends within.
        if bytes.last().is_some_and(|byte| ENTERS.contains(byte)) {
            self.entered_at = Some(now);
        }
        self.at = now;
    }

    /// The prompt where this stands before the cursor: where a line was begun, the prompt before.
    pub(super) fn at_prompt(&mut self, before_cursor: &str) -> Arc<str> {
        if !self.half_line {
            self.prompt = Some(before_cursor.into());
        }
        self.prompt.clone().unwrap_or_else(|| before_cursor.into())
    }
}
