//! The keys that empty the line editor of a shell before a command is typed there.

use std::iter;

use crate::core::keys::Key;
use crate::core::shell::Shell;
use crate::core::shell::commands::Commands;
use crate::core::shell::commands::record::Position;

/// A shell that searches in a thread, and shows what it found also when nobody searches any more: it is
/// given no key before ours that changes what is searched. No key waits there for a second for long.
const SEARCHES_LATE: &str = "fish";

/// How many rows of text that stands on the line already are cleared.
const CLEARED_ROWS_MAX: u64 = 64;

impl Shell {
    /// What empties the line that a marked shell reads: of what was left there, of a key that waits for its
    /// second and shows nothing, and of a mode in which the line editor takes no command.
    pub fn emptying(&self, commands: &Commands, cursor: Position) -> Vec<Key> {
        let between = self.typed.between;
        let Some(at) = commands.reading_at().filter(|at| *at != cursor || between) else {
            return Vec::new();
        };
        let rows = cursor.row.0.saturating_sub(at.row.0).min(CLEARED_ROWS_MAX);
        // One for the text of each line, and one for what parts it from the line before.
        let kills = 2 * rows as usize + 1;
        let mut keys =
            if between { self.leaving_modes(commands, at != cursor) } else { Vec::new() };
        keys.push(Key::LINE_END);
        keys.extend(iter::repeat_n(Key::KILL_LINE, kills));
        keys
    }

    /// The keys that leave the mode of the line editor: what is pending may take the first
    /// [`Key::EMPTY_LINE`], the next may only have text taken again, and the last empties the line.
    fn leaving_modes(&self, commands: &Commands, shows_text: bool) -> Vec<Key> {
        if !commands.knows_key() {
            return vec![Key::KILL_LINE];
        }
        let foreground = self.seen().and_then(|seen| seen.foreground.as_ref());
        let program = foreground.and_then(|group| group.program.as_deref());
        if program == Some(SEARCHES_LATE) {
            return vec![Key::EMPTY_LINE; 2];
        }
        // The first ends what waits for a key, and questions of the editor, which take no other key.
        let mut keys = vec![Key::BACKSPACE, Key::KILL_LINE];
        if shows_text {
            // A search of vi knows no key of ours, and ends by this one once it is empty.
            keys.push(Key::BACKSPACE);
        }
        keys.extend([Key::EMPTY_LINE; 3]);
        keys
    }
}
