//! The kitty keyboard protocol's flags, and how many of them a program has put aside.
//!
//! The emulator fails when its own stack of them overflows and does not show what is on it, so they
//! are counted and remembered here before it is asked. What the flags do to keys is not known here.

use alacritty_terminal::term::TermMode;
use alacritty_terminal::vte::ansi::{Handler, KeyboardModes, KeyboardModesApplyBehavior};

use crate::core::screen::emulator::Emulator;

/// How many sets of flags a program may put aside on each screen.
pub(crate) const FLAGS_STACK_MAX: usize = 64;

/// The sets of flags on the stacks of the shown screen and of the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyboardStacks {
    pub(super) shown: Vec<KeyboardModes>,
    pub(super) other: Vec<KeyboardModes>,
}

impl KeyboardStacks {
    pub(crate) fn swap(&mut self) {
        std::mem::swap(&mut self.shown, &mut self.other);
    }
}

/// The flags in force.
pub(crate) fn flags(mode: TermMode) -> KeyboardModes {
    let pairs = [
        (TermMode::DISAMBIGUATE_ESC_CODES, KeyboardModes::DISAMBIGUATE_ESC_CODES),
        (TermMode::REPORT_EVENT_TYPES, KeyboardModes::REPORT_EVENT_TYPES),
        (TermMode::REPORT_ALTERNATE_KEYS, KeyboardModes::REPORT_ALTERNATE_KEYS),
        (TermMode::REPORT_ALL_KEYS_AS_ESC, KeyboardModes::REPORT_ALL_KEYS_AS_ESC),
        (TermMode::REPORT_ASSOCIATED_TEXT, KeyboardModes::REPORT_ASSOCIATED_TEXT),
    ];
    let set = pairs.into_iter().filter(|(bit, _)| mode.contains(*bit));
    set.fold(KeyboardModes::NO_MODE, |all, (_, flag)| all | flag)
}

impl Emulator {
    /// Puts the flags aside and takes these; on a full stack only takes them.
    pub(super) fn push_keyboard_flags(&mut self, flags: KeyboardModes) {
        if self.keyboard.shown.len() == FLAGS_STACK_MAX {
            self.set_keyboard_flags(flags);
        } else {
            self.keyboard.shown.push(flags);
            self.term.push_keyboard_mode(flags);
        }
    }

    pub(super) fn pop_keyboard_flags(&mut self, count: u16) {
        let left = self.keyboard.shown.len().saturating_sub(usize::from(count));
        self.keyboard.shown.truncate(left);
        self.term.pop_keyboard_modes(count);
    }

    pub(super) fn set_keyboard_flags(&mut self, flags: KeyboardModes) {
        Handler::set_keyboard_mode(&mut self.term, flags, KeyboardModesApplyBehavior::Replace);
    }
}
