//! The keyboard and mouse modes that the program on the screen set.

/// Which mouse events the program wants.
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

/// The encoding of mouse events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MouseEncoding {
    /// Single bytes, for columns and rows up to 223 (X10).
    #[default]
    Bytes,
    /// UTF-8 characters (mode 1005).
    Utf8,
    /// Decimal numbers (mode 1006).
    Sgr,
}

/// The modes that affect the bytes of a key, a paste or a mouse event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputModes {
    /// Cursor keys are sent as SS3 sequences (DECCKM).
    pub application_cursor: bool,
    /// Keypad keys are sent as SS3 sequences (DECKPAM).
    pub application_keypad: bool,
    /// Pastes are enclosed in brackets (mode 2004).
    pub bracketed_paste: bool,
    /// Enter sends CR LF (LNM).
    pub line_feed_new_line: bool,
    pub mouse: MouseReporting,
    pub mouse_encoding: MouseEncoding,
    /// The active flags of the kitty keyboard protocol; 0 is the legacy protocol.
    pub kitty_flags: u8,
}
