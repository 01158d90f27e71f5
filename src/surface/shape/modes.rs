//! What a program asked of the keyboard and the mouse, on the wire.
//!
//! Only who types at a session is told; it sets its own terminal to these modes, so that the bytes of
//! its keys are those that the program expects.

use schemars::JsonSchema;
use serde::Serialize;

use crate::core::keys::modes::{InputModes, MouseEncoding, MouseReporting};

/// What the program asked of the keyboard and the mouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InputModesWire {
    pub application_cursor: bool,
    pub application_keypad: bool,
    pub bracketed_paste: bool,
    /// `off`, `clicks`, `drags` or `motion`.
    pub mouse: &'static str,
    /// `bytes`, `utf8` or `sgr`.
    pub mouse_encoding: &'static str,
    /// The flags of the kitty keyboard protocol; 0 is the legacy protocol.
    pub kitty_flags: u8,
}

impl From<InputModes> for InputModesWire {
    fn from(modes: InputModes) -> Self {
        let mouse = match modes.mouse {
            MouseReporting::Off => "off",
            MouseReporting::Clicks => "clicks",
            MouseReporting::Drags => "drags",
            MouseReporting::Motion => "motion",
        };
        let mouse_encoding = match modes.mouse_encoding {
            MouseEncoding::Bytes => "bytes",
            MouseEncoding::Utf8 => "utf8",
            MouseEncoding::Sgr => "sgr",
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
