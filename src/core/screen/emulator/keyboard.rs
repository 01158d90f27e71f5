//! Tracks the flags of the kitty keyboard protocol and the stacks that programs push them on.
//!
//! The emulator fails when its own stack overflows and does not expose its contents, so this module
//! counts and remembers them first.

use alacritty_terminal::term::TermMode;
use alacritty_terminal::vte::ansi::{Handler, KeyboardModes, KeyboardModesApplyBehavior};

use crate::core::screen::emulator::Emulator;

/// The most sets of flags a program may push on each screen.
pub(crate) const FLAGS_STACK_MAX: usize = 64;

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

/// The flags in effect.
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
    /// Pushes the flags and sets them. When the stack is full, it only sets them.
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
