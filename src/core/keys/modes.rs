//! What the program on the screen asked of the keyboard and the mouse.
//!
//! The screen fills it in, the encoders read it; neither knows the other.

/// Which mouse events the program wants to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MouseReporting {
    #[default]
    Off,
    /// Presses and releases (mode 1000).
    Clicks,
    /// Also movement while a button is down (mode 1002).
    Drags,
    /// Also movement without a button (mode 1003).
    Motion,
}

/// How mouse events are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MouseEncoding {
    /// Single bytes, columns and rows up to 223 (X10).
    #[default]
    Bytes,
    /// UTF-8 characters (mode 1005).
    Utf8,
    /// Decimal numbers (mode 1006).
    Sgr,
}

/// The modes that change what a key, a paste or a mouse event is written as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputModes {
    /// Cursor keys are written as SS3 sequences (DECCKM).
    pub application_cursor: bool,
    /// The keypad is written as SS3 sequences (DECKPAM).
    pub application_keypad: bool,
    /// Pastes are enclosed in brackets (mode 2004).
    pub bracketed_paste: bool,
    /// Enter sends CR LF (LNM).
    pub line_feed_new_line: bool,
    pub mouse: MouseReporting,
    pub mouse_encoding: MouseEncoding,
    /// The flags of the kitty keyboard protocol that the program pushed; 0 is the legacy protocol.
    pub kitty_flags: u8,
}
