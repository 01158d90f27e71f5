//! The bytes of a mouse event, in the three encodings that programs can request.
//!
//! The caller checks that the position is on the screen. Reference: xterm's control sequences, "Mouse
//! Tracking".

use crate::core::keys::modes::{InputModes, MouseEncoding, MouseReporting};
use crate::core::keys::{Modifiers, Piece};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MouseAction {
    /// A press and its release, sent together.
    Click,
    Press,
    Release,
    /// Movement without a button; the event's button is ignored.
    Move,
    /// Movement with the button down.
    Drag,
    /// One notch of the wheel; the event's button is ignored.
    ScrollUp,
    /// One notch of the wheel; the event's button is ignored.
    ScrollDown,
}

/// The order gives the numbers of the encodings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MouseButton {
    #[default]
    Left,
    Middle,
    Right,
}

/// One event at one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MouseEvent {
    pub action: MouseAction,
    /// The row on the screen, from 0.
    pub row: u16,
    /// The column, from 0.
    pub col: u16,
    pub button: MouseButton,
    pub modifiers: Modifiers,
}

/// Why a mouse event cannot be sent to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MouseError {
    #[error("the program did not ask for mouse events")]
    ReportingOff,
    #[error("the program asked for mouse clicks but not for this movement")]
    MovementOff,
    #[error(
        "row {row}, column {col} cannot be written in the program's encoding, only up to {max}"
    )]
    OutOfRange {
        row: u16,
        col: u16,
        /// The highest row or column of the encoding, from 0.
        max: u16,
    },
}

const MOTION: u32 = 32;
const NO_BUTTON: u32 = 3;
const WHEEL_UP: u32 = 64;
const WHEEL_DOWN: u32 = 65;

/// The bytes of one event, as one piece.
///
/// Errors: the program turned reporting off, did not request this movement, or uses an encoding that
/// cannot express the position.
pub fn encode_mouse(event: MouseEvent, modes: &InputModes) -> Result<Vec<Piece>, MouseError> {
    check_reported(event.action, modes.mouse)?;
    let encoding = modes.mouse_encoding;
    let out_of_range =
        || MouseError::OutOfRange { row: event.row, col: event.col, max: place_max(encoding) };
    let write = |code: u32, ends: bool| {
        // Only SGR reports which button was released.
        let code = if ends && encoding != MouseEncoding::Sgr { NO_BUTTON } else { code };
        let code = code + 4 * u32::from(event.modifiers.parameter() - 1);
        let report = MouseReport { code, row: event.row, col: event.col, ends };
        report.bytes(encoding).ok_or_else(out_of_range)
    };
    let button = event.button as u32;
    let bytes = match event.action {
        MouseAction::Click => [write(button, false)?, write(button, true)?].concat(),
        MouseAction::Press => write(button, false)?,
        MouseAction::Release => write(button, true)?,
        MouseAction::Move => write(NO_BUTTON + MOTION, false)?,
        MouseAction::Drag => write(button + MOTION, false)?,
        MouseAction::ScrollUp => write(WHEEL_UP, false)?,
        MouseAction::ScrollDown => write(WHEEL_DOWN, false)?,
    };
    Ok(vec![Piece::Key(bytes)])
}

/// One report: the event as a number, and the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MouseReport {
    /// The encoding's number for button, wheel or movement, with the modifiers.
    pub code: u32,
    /// The row on the screen, from 0.
    pub row: u16,
    /// The column, from 0.
    pub col: u16,
    /// The button was released. Encodings other than SGR express this in the code.
    pub ends: bool,
}

impl MouseReport {
    /// The bytes in this encoding; none when it cannot express the position.
    pub fn bytes(self, encoding: MouseEncoding) -> Option<Vec<u8>> {
        let Self { code, row, col, ends } = self;
        if row.max(col) > place_max(encoding) {
            return None;
        }
        let parts = [code, u32::from(col) + 1, u32::from(row) + 1];
        Some(match encoding {
            MouseEncoding::Sgr => {
                let last = if ends { 'm' } else { 'M' };
                format!("\x1b[<{};{};{}{last}", parts[0], parts[1], parts[2]).into_bytes()
            }
            MouseEncoding::Bytes => {
                let mut bytes = b"\x1b[M".to_vec();
                bytes.extend(parts.map(|value| (value + 32) as u8));
                bytes
            }
            MouseEncoding::Utf8 => {
                let characters = parts.map(|value| char::from_u32(value + 32));
                let text: String = characters.into_iter().flatten().collect();
                [b"\x1b[M", text.as_bytes()].concat()
            }
        })
    }
}

fn check_reported(action: MouseAction, reporting: MouseReporting) -> Result<(), MouseError> {
    let moves = match reporting {
        MouseReporting::Off => return Err(MouseError::ReportingOff),
        MouseReporting::Clicks => [].as_slice(),
        MouseReporting::Drags => &[MouseAction::Drag],
        MouseReporting::Motion => &[MouseAction::Drag, MouseAction::Move],
    };
    let is_movement = matches!(action, MouseAction::Move | MouseAction::Drag);
    if is_movement && !moves.contains(&action) { Err(MouseError::MovementOff) } else { Ok(()) }
}

/// The highest row or column, from 0, in an encoding.
fn place_max(encoding: MouseEncoding) -> u16 {
    // One byte holds up to 255 and a two-byte character up to 2047, both counted from 33.
    match encoding {
        MouseEncoding::Bytes => 0xff - 33,
        MouseEncoding::Utf8 => 0x7ff - 33,
        MouseEncoding::Sgr => u16::MAX,
    }
}

#[cfg(test)]
mod tests;
