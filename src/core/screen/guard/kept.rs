//! Saves the guard's place in the stream: which sequence it is in the middle of.
//!
//! A sequence has no effect before it ends. So its bytes so far, cut to those that can matter, are
//! the whole state of the guard and of the parser behind it.

use crate::core::screen::guard::fragment::Fragment;
use crate::core::screen::guard::{CSI_BYTES_MAX, DCS_BYTES_MAX, Guard, INTERMEDIATES_MAX, State};
use crate::core::screen::snapshot::KeptPlace;

impl Guard {
    /// The guard's place between two pieces of input.
    pub(crate) fn kept(&self) -> KeptPlace {
        match self.state {
            State::Ground => KeptPlace::Text {
                broken: self.broken.bytes().to_vec(),
                split: self.split.bytes().to_vec(),
            },
            // The guard reads an introducer together with the escape before it.
            State::Escape | State::Introducer => KeptPlace::Escape,
            State::EscapeIntermediate => KeptPlace::Intermediates(self.sequence.clone()),
            State::Csi => {
                KeptPlace::Parameters { bytes: self.sequence.clone(), overflowed: self.overflowed }
            }
            State::Osc => {
                let text = if self.overflowed { Vec::new() } else { self.string.clone() };
                KeptPlace::Command { text, overflowed: self.overflowed }
            }
            State::Dcs => KeptPlace::Device(self.string.clone()),
            State::Skipped => KeptPlace::Skipped,
        }
    }

    /// Creates a guard at this place, and the bytes that bring a new parser to the same place. Returns
    /// none when the place is invalid.
    pub(crate) fn resumed(place: KeptPlace, command_bytes_max: usize) -> Option<(Self, Vec<u8>)> {
        let mut guard = Self::new(command_bytes_max);
        let passed = match place {
            KeptPlace::Text { broken, split } => {
                guard.broken = Fragment::exactly(&broken)?;
                guard.split = Fragment::exactly(&split)?;
                broken
            }
            KeptPlace::Escape => {
                guard.state = State::Escape;
                b"\x1b".to_vec()
            }
            KeptPlace::Intermediates(bytes) => {
                guard.state = State::EscapeIntermediate;
                guard.read_again(bytes, INTERMEDIATES_MAX, b"\x1b")?
            }
            KeptPlace::Parameters { bytes, overflowed } => {
                guard.state = State::Csi;
                guard.overflowed = overflowed;
                guard.read_again(bytes, CSI_BYTES_MAX, b"\x1b[")?
            }
            KeptPlace::Command { text, overflowed } => {
                guard.state = State::Osc;
                guard.overflowed = overflowed || text.len() > command_bytes_max;
                guard.string = if guard.overflowed { Vec::new() } else { text };
                Vec::new()
            }
            KeptPlace::Device(head) => {
                guard.state = State::Dcs;
                guard.string = head;
                guard.string.truncate(DCS_BYTES_MAX);
                Vec::new()
            }
            KeptPlace::Skipped => {
                guard.state = State::Skipped;
                Vec::new()
            }
        };
        Some((guard, passed))
    }

    /// Restores the bytes of a sequence after `start`, and returns all bytes that the parser gets.
    fn read_again(&mut self, bytes: Vec<u8>, most: usize, start: &[u8]) -> Option<Vec<u8>> {
        let fits = bytes.len() <= most && bytes.iter().all(|byte| (0x20..=0x3f).contains(byte));
        self.sequence = bytes;
        fits.then(|| [start, &self.sequence].concat())
    }
}
