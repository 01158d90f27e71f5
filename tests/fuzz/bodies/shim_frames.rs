//! Frames between a shim and a daemon: any bytes are safe to decode, and frames come back as they were written.

use termgate::shim::wire::from_shim::FromShim;
use termgate::shim::wire::to_shim::ToShim;
use termgate::shim::wire::{FRAME_MAX, NOTE_MAX, NOTES};

use super::choices::Choices;

pub fn check(data: &[u8]) {
    let received = &data[..data.len().min(FRAME_MAX)];
    let mut choices = Choices::of(data);
    if let Ok(Some(frame)) = ToShim::decode(received) {
        if let ToShim::Note(note) = frame {
            assert!(usize::from(note.slot) < NOTES && note.bytes.len() <= NOTE_MAX);
        }
        let mut room = [0; FRAME_MAX];
        let length = frame.encode(&mut room);
        assert!(length <= received.len(), "a frame has no more than was read");
        assert_eq!(ToShim::decode(&room[..length]), Ok(Some(frame)));
        // A later version appends fields.
        assert_eq!(ToShim::decode(&room), Ok(Some(frame)));
        let short = ToShim::decode(&room[..choices.below(length)]);
        assert!(!matches!(short, Ok(Some(_))), "{short:?} is a part of {frame:?}");
    }
    if let Ok(Some(frame)) = FromShim::decode(received) {
        if let FromShim::Note(note) = frame {
            assert!(usize::from(note.slot) < NOTES && note.bytes.len() <= NOTE_MAX);
        }
        let mut room = [0; FRAME_MAX];
        let length = frame.encode(&mut room);
        assert!(length <= received.len(), "a frame has no more than was read");
        assert_eq!(FromShim::decode(&room[..length]).as_ref(), Ok(&Some(frame.clone())));
        let typed = match &frame {
            FromShim::Attached(attached) => attached.typed,
            FromShim::Failed(_) | FromShim::Exited { .. } | FromShim::Note(_) => Some(0),
        };
        if typed.is_some() {
            assert_eq!(FromShim::decode(&room).as_ref(), Ok(&Some(frame.clone())));
        }
        let cut = choices.below(length);
        let short = FromShim::decode(&room[..cut]);
        // Without its last field, this one is the frame of an older shim.
        let is_older =
            matches!(frame, FromShim::Attached(_)) && typed.is_some() && cut + 8 == length;
        assert!(is_older || !matches!(short, Ok(Some(_))), "{short:?} is a part of {frame:?}");
    }
}
