//! Limits how often the daemon gets the terminal's size.
//!
//! Dragging a window changes the size many times a second, and only the last one matters. So one request
//! is pending at a time, and the next one carries the newest size.

use crate::cli::attach::renderer::Room;

/// The size that was sent last, and whether its answer is pending.
#[derive(Debug, Default)]
pub struct RoomTold {
    told: Option<Room>,
    awaited: bool,
}

impl RoomTold {
    /// Returns the size to send now, unless it was sent already or an answer is pending.
    #[must_use]
    pub fn on_room(&mut self, room: Room) -> Option<Room> {
        if self.awaited || self.told == Some(room) {
            return None;
        }
        (self.told, self.awaited) = (Some(room), true);
        self.told
    }

    /// Returns the size to send after the daemon's answer, if it has changed.
    #[must_use]
    pub fn on_answer(&mut self, room: Room) -> Option<Room> {
        self.awaited = false;
        self.on_room(room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn room(cols: u16) -> Room {
        Room { rows: 20, cols }
    }

    #[test]
    fn while_one_size_is_on_its_way_only_the_newest_waits() {
        let mut told = RoomTold::default();
        assert_eq!(told.on_room(room(80)), Some(room(80)));
        for cols in 40..80 {
            assert_eq!(told.on_room(room(cols)), None);
        }
        assert_eq!(told.on_answer(room(79)), Some(room(79)));
        assert_eq!(told.on_answer(room(79)), None);
    }

    #[test]
    fn a_size_that_is_known_is_not_told_again() {
        let mut told = RoomTold::default();
        assert_eq!(told.on_room(room(80)), Some(room(80)));
        assert_eq!(told.on_room(room(60)), None);
        assert_eq!(told.on_answer(room(80)), None);
        assert_eq!(told.on_room(room(60)), Some(room(60)));
    }
}
