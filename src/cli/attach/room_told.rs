//! What the daemon is told of the room here, while a person drags the window.
//!
//! It sends nothing. A drag changes the size tens of times a second, and only where it ends matters: one
//! request is on its way at a time, and the next tells the newest size.

use crate::cli::attach::renderer::Room;

/// The room that the daemon was told last, and whether it has not answered that yet.
#[derive(Debug, Default)]
pub struct RoomTold {
    told: Option<Room>,
    awaited: bool,
}

impl RoomTold {
    /// What to tell now that there is this room; nothing that is known, and nothing meanwhile.
    #[must_use]
    pub fn on_room(&mut self, room: Room) -> Option<Room> {
        if self.awaited || self.told == Some(room) {
            return None;
        }
        (self.told, self.awaited) = (Some(room), true);
        self.told
    }

    /// What to tell once the daemon has answered, when there is this room by now.
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
