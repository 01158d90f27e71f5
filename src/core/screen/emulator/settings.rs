//! The settings that belong to neither screen: modes, scrolling region, tab stops, character set, cursor
//! style, keyboard flags.
//!
//! The emulator does not expose its tab stops and its stacks of keyboard flags, so they are counted here.
//! Restoring uses the operations with which a program sets them, before it restores the cursors, since some
//! operations move a cursor.

use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::term::TermMode;
use alacritty_terminal::vte::ansi::{
    Attr, CharsetIndex, CursorShape, CursorStyle, Handler, KeyboardModes,
    KeyboardModesApplyBehavior, NamedMode, NamedPrivateMode, PrivateMode, StandardCharset,
    TabulationClearMode,
};

use crate::core::screen::emulator::Emulator;
use crate::core::screen::emulator::shell::KeyCodes;
use crate::core::screen::snapshot::KeptSettings;
use crate::core::screen::snapshot::cells::{CHARSETS, Damage};

/// How a mode is set.
#[derive(Clone, Copy)]
enum Switch {
    Keypad,
    Public(NamedMode),
    Private(NamedPrivateMode),
}

/// The modes. The index of each is its bit in a snapshot.
const MODES: [(TermMode, Switch); 16] = [
    (TermMode::SHOW_CURSOR, Switch::Private(NamedPrivateMode::ShowCursor)),
    (TermMode::APP_CURSOR, Switch::Private(NamedPrivateMode::CursorKeys)),
    (TermMode::APP_KEYPAD, Switch::Keypad),
    (TermMode::BRACKETED_PASTE, Switch::Private(NamedPrivateMode::BracketedPaste)),
    (TermMode::LINE_WRAP, Switch::Private(NamedPrivateMode::LineWrap)),
    (TermMode::LINE_FEED_NEW_LINE, Switch::Public(NamedMode::LineFeedNewLine)),
    (TermMode::ORIGIN, Switch::Private(NamedPrivateMode::Origin)),
    (TermMode::INSERT, Switch::Public(NamedMode::Insert)),
    (TermMode::FOCUS_IN_OUT, Switch::Private(NamedPrivateMode::ReportFocusInOut)),
    (TermMode::MOUSE_REPORT_CLICK, Switch::Private(NamedPrivateMode::ReportMouseClicks)),
    (TermMode::MOUSE_DRAG, Switch::Private(NamedPrivateMode::ReportCellMouseMotion)),
    (TermMode::MOUSE_MOTION, Switch::Private(NamedPrivateMode::ReportAllMouseMotion)),
    (TermMode::SGR_MOUSE, Switch::Private(NamedPrivateMode::SgrMouse)),
    (TermMode::UTF8_MOUSE, Switch::Private(NamedPrivateMode::Utf8Mouse)),
    (TermMode::ALTERNATE_SCROLL, Switch::Private(NamedPrivateMode::AlternateScroll)),
    (TermMode::URGENCY_HINTS, Switch::Private(NamedPrivateMode::UrgencyHints)),
];

/// The terminal's own cursor shape, and those that a program can choose. The index of each is its number in
/// a snapshot.
const SHAPES: [CursorShape; 4] =
    [OWN_STYLE.shape, CursorShape::Underline, CursorShape::Beam, CursorShape::Block];

/// The style before a program chooses one. No program can choose this shape.
pub(crate) const OWN_STYLE: CursorStyle =
    CursorStyle { shape: CursorShape::HollowBlock, blinking: false };

/// The parameter of DECSCUSR for a style.
pub(super) fn style_parameter(style: CursorStyle) -> u8 {
    let steady = match style.shape {
        CursorShape::HollowBlock | CursorShape::Hidden if !style.blinking => return 0,
        CursorShape::Block | CursorShape::HollowBlock | CursorShape::Hidden => 2,
        CursorShape::Underline => 4,
        CursorShape::Beam => 6,
    };
    steady - u8::from(style.blinking)
}

impl Emulator {
    /// Resets everything that programs set and showed. Used rows become history.
    pub(super) fn reset_all(&mut self) {
        if self.alternate() {
            self.leave_alternate();
        }
        self.renumber();
        self.term.reset_state();
        self.on_rows_moved();
        self.titles.clear();
        self.keyboard = KeyboardStacks::default();
        self.tabs = TabStops::every_eighth(self.term.columns());
        self.charset = CharsetIndex::default();
        self.sync = None;
    }

    /// Takes back what a program that has ended set on the screen, and would spoil what is shown next.
    pub(super) fn clean_screen(&mut self) {
        if self.alternate() {
            self.leave_alternate();
        }
        for mode in [NamedMode::Insert, NamedMode::LineFeedNewLine] {
            self.term.unset_mode(mode.into());
        }
        self.put_mode(Switch::Private(NamedPrivateMode::LineWrap), true);
        self.put_mode(Switch::Private(NamedPrivateMode::ShowCursor), true);
        self.term.terminal_attribute(Attr::Reset);
        for charset in CHARSETS {
            self.term.configure_charset(charset, StandardCharset::Ascii);
        }
        self.set_active_charset(CharsetIndex::default());
        // Both of these move the cursor.
        let cursor = self.term.grid().cursor.clone();
        self.term.unset_private_mode(NamedPrivateMode::Origin.into());
        self.term.set_scrolling_region(1, None);
        self.term.grid_mut().saved_cursor = cursor.clone();
        self.term.grid_mut().cursor = cursor;
        self.sync = None;
    }

    /// Takes back what a program that has ended set for the keyboard and the mouse. A shell sets its own again with its
    /// next prompt.
    pub(super) fn clean_input_modes(&mut self) {
        const INPUT: [NamedPrivateMode; 9] = [
            NamedPrivateMode::CursorKeys,
            NamedPrivateMode::BracketedPaste,
            NamedPrivateMode::ReportFocusInOut,
            NamedPrivateMode::ReportMouseClicks,
            NamedPrivateMode::ReportCellMouseMotion,
            NamedPrivateMode::ReportAllMouseMotion,
            NamedPrivateMode::SgrMouse,
            NamedPrivateMode::Utf8Mouse,
            NamedPrivateMode::AlternateScroll,
        ];
        INPUT.into_iter().for_each(|mode| self.put_mode(Switch::Private(mode), false));
        self.put_mode(Switch::Keypad, false);
        self.restore_keyboard(KeyboardModes::NO_MODE);
    }

    pub(super) fn key_codes(&self) -> KeyCodes {
        let keypad = self.term.mode().contains(TermMode::APP_KEYPAD);
        KeyCodes { flags: self.keyboard_flags(), keypad }
    }

    /// Switches off what the program that has ended had switched on. It may have been a shell with codes of its
    /// own, so none are switched on.
    pub(super) fn leave_key_codes(&mut self, before: KeyCodes) {
        self.restore_keyboard(before.flags & self.keyboard_flags());
        if !before.keypad {
            self.put_mode(Switch::Keypad, false);
        }
    }

    pub(super) fn keyboard_flags(&self) -> KeyboardModes {
        keyboard_flags(*self.term.mode())
    }

    /// Gives the keyboard these flags, whatever programs that have ended left behind.
    pub(super) fn restore_keyboard(&mut self, flags: KeyboardModes) {
        if self.keyboard_flags() != flags {
            self.pop_keyboard_flags(u16::MAX);
            self.set_keyboard_flags(flags);
        }
    }

    pub(super) fn kept_settings(&mut self) -> KeptSettings {
        let mode = *self.term.mode();
        let bit = |(at, (mode_bit, _)): (usize, &(TermMode, Switch))| {
            u32::from(mode.contains(*mode_bit)) << at
        };
        let style = self.term.cursor_style();
        let place = |found: Option<usize>| found.unwrap_or_default() as u8;
        let bits = |stack: &[KeyboardModes]| stack.iter().map(|flags| flags.bits()).collect();
        KeptSettings {
            modes: MODES.iter().enumerate().map(bit).sum(),
            region: self.scrolling_region(),
            tabs: self.tabs.columns().map(|column| column as u16).collect(),
            charset: place(CHARSETS.iter().position(|charset| *charset == self.charset)),
            cursor_style: (
                place(SHAPES.iter().position(|shape| *shape == style.shape)),
                style.blinking,
            ),
            keyboard: (
                keyboard_flags(mode).bits(),
                bits(&self.keyboard.shown),
                bits(&self.keyboard.other),
            ),
            repeatable: self.repeatable,
        }
    }

    /// Finds the scrolling region by moving the cursor in origin mode.
    fn scrolling_region(&mut self) -> (u16, u16) {
        const ORIGIN: PrivateMode = PrivateMode::Named(NamedPrivateMode::Origin);
        let cursor = self.term.grid().cursor.clone();
        let had_origin = self.term.mode().contains(TermMode::ORIGIN);
        self.term.set_private_mode(ORIGIN);
        let top = self.term.grid().cursor.point.line.0;
        self.term.goto(self.term.screen_lines() as i32, 0);
        let bottom = self.term.grid().cursor.point.line.0;
        if !had_origin {
            self.term.unset_private_mode(ORIGIN);
        }
        self.term.grid_mut().cursor = cursor;
        (top as u16, bottom as u16 + 1)
    }

    /// Applies the settings to a new emulator that shows the normal screen.
    pub(super) fn put_settings(&mut self, kept: &KeptSettings) -> Result<(), Damage> {
        for (at, (_, switch)) in MODES.iter().enumerate() {
            self.put_mode(*switch, kept.modes & 1 << at != 0);
        }
        let rows = self.term.screen_lines();
        let (top, end) = (usize::from(kept.region.0), usize::from(kept.region.1));
        if top >= end || end > rows {
            return Err("the scrolling region lies beside the screen");
        }
        // The emulator accepts a region of the bottom row alone only when its end lies beyond the screen.
        self.set_scrolling_region(top + 1, Some(if end == rows { rows + 1 } else { end }));
        self.put_tabs(&kept.tabs)?;
        let charset = CHARSETS.get(usize::from(kept.charset)).ok_or("no such character set")?;
        self.set_active_charset(*charset);
        let (shape, blinking) = kept.cursor_style;
        let shape = *SHAPES.get(usize::from(shape)).ok_or("no such shape of the cursor")?;
        self.set_cursor_style(Some(CursorStyle { shape, blinking }));
        self.repeatable = kept.repeatable;
        Ok(())
    }

    fn put_mode(&mut self, switch: Switch, on: bool) {
        match (switch, on) {
            (Switch::Keypad, true) => self.set_keypad_application_mode(),
            (Switch::Keypad, false) => self.unset_keypad_application_mode(),
            (Switch::Public(mode), true) => self.set_mode(mode.into()),
            (Switch::Public(mode), false) => self.unset_mode(mode.into()),
            (Switch::Private(mode), true) => self.set_private_mode(mode.into()),
            (Switch::Private(mode), false) => self.unset_private_mode(mode.into()),
        }
    }

    fn put_tabs(&mut self, columns: &[u16]) -> Result<(), Damage> {
        self.clear_tabs(TabulationClearMode::All);
        for column in columns {
            if usize::from(*column) >= self.term.columns() {
                return Err("a tab stop lies beside the screen");
            }
            self.term.grid_mut().cursor.point.column.0 = usize::from(*column);
            self.set_horizontal_tabstop();
        }
        Ok(())
    }

    /// Pushes these flags on the shown screen's stack, the top one last.
    pub(super) fn put_keyboard_stack(&mut self, stack: &[u8]) -> Result<(), Damage> {
        if stack.len() > FLAGS_STACK_MAX {
            return Err("too many of the keyboard's flags are put aside");
        }
        for flags in stack {
            self.push_keyboard_flags(KeyboardModes::from_bits_truncate(*flags));
        }
        Ok(())
    }
}

/// Whether each column has a tab stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TabStops(Vec<bool>);

impl TabStops {
    /// The distance in columns between two default stops.
    const INTERVAL: usize = 8;

    pub(super) fn every_eighth(columns: usize) -> Self {
        let mut stops = Self(Vec::new());
        stops.resize(columns);
        stops
    }

    /// Adds new columns with the default stops; removed columns lose theirs.
    pub(super) fn resize(&mut self, columns: usize) {
        self.0.truncate(columns);
        self.0.extend((self.0.len()..columns).map(|column| column % Self::INTERVAL == 0));
    }

    pub(super) fn set(&mut self, column: usize) {
        self.0[column] = true;
    }

    pub(super) fn clear(&mut self, mode: &TabulationClearMode, column: usize) {
        match mode {
            TabulationClearMode::Current => self.0[column] = false,
            TabulationClearMode::All => self.0.fill(false),
        }
    }

    pub(super) fn columns(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().filter(|(_, stop)| **stop).map(|(column, _)| column)
    }
}

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

pub(crate) fn keyboard_flags(mode: TermMode) -> KeyboardModes {
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
