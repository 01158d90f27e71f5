//! The bytes of a mouse event, in the three encodings that programs ask for.
//!
//! It knows the modes but not the screen: whether a place lies on it is for the caller to check.
//! Reference: xterm's control sequences, "Mouse Tracking".

use crate::core::input::unit::Piece;
use crate::core::keys::Modifiers;
use crate::core::keys::modes::{InputModes, MouseEncoding, MouseReporting};

/// What the mouse does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MouseAction {
    /// A press and its release, which are sent together or not at all.
    Click,
    Press,
    Release,
    /// Movement with no button down; the event's button does not count.
    Move,
    /// Movement with the button down.
    Drag,
    /// The wheel, one notch; the event's button does not count.
    ScrollUp,
    /// The wheel, one notch; the event's button does not count.
    ScrollDown,
}

/// A button of the mouse.
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

/// Says why a mouse event cannot be told to the program.
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
        /// The highest row or column that can be written, from 0.
        max: u16,
    },
}

const MOTION: u32 = 32;
const NO_BUTTON: u32 = 3;
const WHEEL_UP: u32 = 64;
const WHEEL_DOWN: u32 = 65;

/// The bytes of one event, as one piece.
///
/// Errors: the program has reporting off, did not ask for this movement, or asked for an encoding
/// that cannot name the place.
pub fn encode_mouse(event: MouseEvent, modes: &InputModes) -> Result<Vec<Piece>, MouseError> {
    check_reported(event.action, modes.mouse)?;
    let max = place_max(modes.mouse_encoding);
    if event.row > max || event.col > max {
        return Err(MouseError::OutOfRange { row: event.row, col: event.col, max });
    }
    let write = |report| encode_report(report, event, modes.mouse_encoding);
    let press = Report { code: button_code(event.button), ends: false };
    let release = Report { code: button_code(event.button), ends: true };
    let bytes = match event.action {
        MouseAction::Click => [write(press), write(release)].concat(),
        MouseAction::Press => write(press),
        MouseAction::Release => write(release),
        MouseAction::Move => write(Report { code: NO_BUTTON + MOTION, ends: false }),
        MouseAction::Drag => write(Report { code: press.code + MOTION, ends: false }),
        MouseAction::ScrollUp => write(Report { code: WHEEL_UP, ends: false }),
        MouseAction::ScrollDown => write(Report { code: WHEEL_DOWN, ends: false }),
    };
    Ok(vec![Piece::Key(bytes)])
}

/// One report of an event: which button or movement, and whether it is let go.
#[derive(Clone, Copy)]
struct Report {
    code: u32,
    ends: bool,
}

fn check_reported(action: MouseAction, reporting: MouseReporting) -> Result<(), MouseError> {
    let moves = match reporting {
        MouseReporting::Off => return Err(MouseError::ReportingOff),
        MouseReporting::Clicks => [].as_slice(),
        MouseReporting::Drags => &[MouseAction::Drag],
        MouseReporting::Motion => &[MouseAction::Drag, MouseAction::Move],
    };
    match action {
        MouseAction::Move | MouseAction::Drag if !moves.contains(&action) => {
            Err(MouseError::MovementOff)
        }
        MouseAction::Move
        | MouseAction::Drag
        | MouseAction::Click
        | MouseAction::Press
        | MouseAction::Release
        | MouseAction::ScrollUp
        | MouseAction::ScrollDown => Ok(()),
    }
}

/// The highest row or column, from 0, that an encoding can write.
fn place_max(encoding: MouseEncoding) -> u16 {
    // One byte holds up to 255 and a two-byte character up to 2047, both counted from 33.
    match encoding {
        MouseEncoding::Bytes => 0xff - 33,
        MouseEncoding::Utf8 => 0x7ff - 33,
        MouseEncoding::Sgr => u16::MAX,
    }
}

fn button_code(button: MouseButton) -> u32 {
    match button {
        MouseButton::Left => 0,
        MouseButton::Middle => 1,
        MouseButton::Right => 2,
    }
}

fn encode_report(report: Report, event: MouseEvent, encoding: MouseEncoding) -> Vec<u8> {
    let held = event.modifiers;
    let modifiers = 4 * u32::from(held.shift) + 8 * u32::from(held.alt) + 16 * u32::from(held.ctrl);
    let (col, row) = (u32::from(event.col) + 1, u32::from(event.row) + 1);
    // Only SGR can say which button was let go.
    let code = modifiers + if report.ends { NO_BUTTON } else { report.code };
    match encoding {
        MouseEncoding::Sgr => {
            let last = if report.ends { 'm' } else { 'M' };
            format!("\x1b[<{};{col};{row}{last}", report.code + modifiers).into_bytes()
        }
        MouseEncoding::Bytes => {
            let mut bytes = b"\x1b[M".to_vec();
            bytes.extend([code, col, row].map(|value| (value + 32) as u8));
            bytes
        }
        MouseEncoding::Utf8 => {
            let characters = [code, col, row].map(|value| char::from_u32(value + 32));
            let text: String = characters.into_iter().flatten().collect();
            [b"\x1b[M", text.as_bytes()].concat()
        }
    }
}

#[cfg(test)]
mod tests;
