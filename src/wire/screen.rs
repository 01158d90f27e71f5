//! The screen, its cursor and rows, and what a program asked of keyboard and mouse.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use crate::core::frame::{Cursor, CursorShape, ScreenMode};
use crate::core::keys::modes::{InputModes, MouseEncoding, MouseReporting};
use crate::wire::activity::ActivityWire;
use crate::wire::is_zero;
use crate::wire::line::LineWire;
use crate::wire::session::{ExitWire, GapWire};
use crate::wire::untrusted::Untrusted;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CursorWord {
    #[default]
    Block,
    Underline,
    Beam,
}

/// The cursor, on an absolute row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CursorWire {
    pub row: u64,
    pub col: u16,
    pub visible: bool,
    #[serde(default)]
    pub shape: CursorWord,
    /// The parameter of DECSCUSR, when it is not the terminal's own look.
    // For people's terminals, and the list of tools is as long as it may be.
    #[schemars(skip)]
    #[serde(default, skip_serializing_if = "is_own")]
    pub style: u8,
}

fn is_own(style: &u8) -> bool {
    *style == 0
}

impl From<Cursor> for CursorWire {
    fn from(cursor: Cursor) -> Self {
        let shape = match cursor.shape {
            CursorShape::Block => CursorWord::Block,
            CursorShape::Underline => CursorWord::Underline,
            CursorShape::Beam => CursorWord::Beam,
        };
        Self {
            row: cursor.row.0,
            col: cursor.col,
            visible: cursor.visible,
            shape,
            style: cursor.style,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScreenWord {
    Normal,
    Alt,
}

impl From<ScreenMode> for ScreenWord {
    fn from(mode: ScreenMode) -> Self {
        match mode {
            ScreenMode::Normal => Self::Normal,
            ScreenMode::Alternate => Self::Alt,
        }
    }
}

/// The result of `read_screen`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ScreenWire {
    pub session: Arc<str>,
    pub watermark: u64,
    /// Whether the answer replaces everything that was read before.
    pub reset: bool,
    pub cols: u16,
    pub rows: u16,
    pub base_row: u64,
    pub cursor: CursorWire,
    pub mode: ScreenWord,
    pub title: String,
    pub activity: ActivityWire,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExitWire>,
    // Rare, and the list of tools is as long as it may be.
    #[schemars(skip)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_output: Vec<GapWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<LineWire>>,
    /// How many of the rows that were asked for did not fit in the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_left_out: Option<usize>,
    /// The `top` of the next call, which reads them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_top: Option<u64>,
    /// How many characters of this session were left out because nobody sees them, such as tags and reading orders.
    #[schemars(skip)]
    #[serde(default, skip_serializing_if = "is_zero")]
    pub invisible_left_out: u64,
    #[schemars(skip)]
    #[serde(default)]
    pub untrusted: Untrusted,
}

/// What the program asked of the keyboard and the mouse; attached people set their terminal to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InputModesWire {
    pub application_cursor: bool,
    pub application_keypad: bool,
    pub bracketed_paste: bool,
    pub mouse: MouseWord,
    pub mouse_encoding: MouseEncodingWord,
    /// The flags of the kitty keyboard protocol; 0 is the legacy protocol.
    pub kitty_flags: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MouseWord {
    Off,
    Clicks,
    Drags,
    Motion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MouseEncodingWord {
    Bytes,
    Utf8,
    Sgr,
}

impl From<InputModes> for InputModesWire {
    fn from(modes: InputModes) -> Self {
        let mouse = match modes.mouse {
            MouseReporting::Off => MouseWord::Off,
            MouseReporting::Clicks => MouseWord::Clicks,
            MouseReporting::Drags => MouseWord::Drags,
            MouseReporting::Motion => MouseWord::Motion,
        };
        let mouse_encoding = match modes.mouse_encoding {
            MouseEncoding::Bytes => MouseEncodingWord::Bytes,
            MouseEncoding::Utf8 => MouseEncodingWord::Utf8,
            MouseEncoding::Sgr => MouseEncodingWord::Sgr,
        };
        Self {
            application_cursor: modes.application_cursor,
            application_keypad: modes.application_keypad,
            bracketed_paste: modes.bracketed_paste,
            mouse,
            mouse_encoding,
            kitty_flags: modes.kitty_flags,
        }
    }
}

impl From<InputModesWire> for InputModes {
    fn from(modes: InputModesWire) -> Self {
        let mouse = match modes.mouse {
            MouseWord::Off => MouseReporting::Off,
            MouseWord::Clicks => MouseReporting::Clicks,
            MouseWord::Drags => MouseReporting::Drags,
            MouseWord::Motion => MouseReporting::Motion,
        };
        let mouse_encoding = match modes.mouse_encoding {
            MouseEncodingWord::Bytes => MouseEncoding::Bytes,
            MouseEncodingWord::Utf8 => MouseEncoding::Utf8,
            MouseEncodingWord::Sgr => MouseEncoding::Sgr,
        };
        Self {
            application_cursor: modes.application_cursor,
            application_keypad: modes.application_keypad,
            bracketed_paste: modes.bracketed_paste,
            line_feed_new_line: false,
            mouse,
            mouse_encoding,
            kitty_flags: modes.kitty_flags,
        }
    }
}
