//! Saves the guard's place in the stream: which sequence it is in the middle of.
//!
//! A sequence has no effect before it ends. So its bytes so far, cut to those that can matter, are
//! the whole state of the guard and of the parser behind it.

use crate::core::screen::guard::fragment::Fragment;
use crate::core::screen::guard::{
    CSI_BYTES_MAX, DCS_BYTES_MAX, Guard, INTERMEDIATES_MAX, ScanState,
};
use crate::core::screen::snapshot::KeptPlace;

impl Guard {
    /// The guard's place between two pieces of input.
    pub(crate) fn kept(&self) -> KeptPlace {
        match self.state {
            ScanState::Ground => KeptPlace::Text {
                broken: self.broken.bytes().to_vec(),
                split: self.split.bytes().to_vec(),
            },
            // The guard reads an introducer together with the escape before it.
            ScanState::Escape | ScanState::Introducer => KeptPlace::Escape,
            ScanState::EscapeIntermediate => KeptPlace::Intermediates(self.sequence.clone()),
            ScanState::Csi => {
                KeptPlace::Parameters { bytes: self.sequence.clone(), overflowed: self.overflowed }
            }
            ScanState::Osc => {
                let text = if self.overflowed { Vec::new() } else { self.string.clone() };
                KeptPlace::Command { text, overflowed: self.overflowed }
            }
            ScanState::Dcs => KeptPlace::Device(self.string.clone()),
            ScanState::Skipped => KeptPlace::Skipped,
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
                guard.state = ScanState::Escape;
                b"\x1b".to_vec()
            }
            KeptPlace::Intermediates(bytes) => {
                guard.state = ScanState::EscapeIntermediate;
                guard.read_again(bytes, INTERMEDIATES_MAX, b"\x1b")?
            }
            KeptPlace::Parameters { bytes, overflowed } => {
                guard.state = ScanState::Csi;
                guard.overflowed = overflowed;
                guard.read_again(bytes, CSI_BYTES_MAX, b"\x1b[")?
            }
            KeptPlace::Command { text, overflowed } => {
                guard.state = ScanState::Osc;
                guard.overflowed = overflowed || text.len() > command_bytes_max;
                guard.string = if guard.overflowed { Vec::new() } else { text };
                Vec::new()
            }
            KeptPlace::Device(head) => {
                guard.state = ScanState::Dcs;
                guard.string = head;
                guard.string.truncate(DCS_BYTES_MAX);
                Vec::new()
            }
            KeptPlace::Skipped => {
                guard.state = ScanState::Skipped;
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
