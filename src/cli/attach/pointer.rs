//! Converts the pointer reports of a person's terminal to reports for the program.
//!
//! A report has a cell of the person's terminal; the program expects a cell of its own.

use crate::cli::attach::layout::VisiblePart;
use crate::core::keys::modes::MouseEncoding;
use crate::core::keys::mouse::MouseReport;

/// Bits of a report's code.
const NO_BUTTON: u32 = 3;
const MOVED: u32 = 32;
const WHEEL: u32 = 64;
const MORE_BUTTONS: u32 = 128;

/// One report of the person's terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointerReport {
    report: MouseReport,
    form: ReportForm,
}

/// The encoding of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReportForm {
    /// Decimal numbers.
    Sgr,
    /// Characters: single bytes, unless the terminal uses the mode for large screens.
    Characters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Did {
    Press,
    Release,
    Drag,
    Hover,
    Scroll,
}

impl PointerReport {
    /// Parses a token; none when it is not a report.
    pub fn of(token: &[u8]) -> Option<Self> {
        match token {
            [0x1b, b'[', b'M', parts @ ..] => Self::of_characters(parts),
            [0x1b, b'[', b'<', body @ .., last @ (b'M' | b'm')] => {
                Self::of_numbers(body, *last == b'm')
            }
            _ => None,
        }
    }

    fn of_numbers(body: &[u8], ends: bool) -> Option<Self> {
        let mut numbers = std::str::from_utf8(body).ok()?.split(';');
        let code = numbers.next()?.parse().ok()?;
        let mut place = || numbers.next()?.parse::<u16>().ok()?.checked_sub(1);
        let (col, row) = (place()?, place()?);
        Some(Self { report: MouseReport { code, row, col, ends }, form: ReportForm::Sgr })
    }

    fn of_characters(mut parts: &[u8]) -> Option<Self> {
        let mut part = || {
            let (value, length) = match *parts {
                [first @ 0xc2..=0xdf, second @ 0x80..=0xbf, ..] => {
                    (u16::from(first & 0x1f) << 6 | u16::from(second & 0x3f), 2)
                }
                [byte, ..] => (u16::from(byte), 1),
                [] => return None,
            };
            parts = &parts[length..];
            value.checked_sub(32)
        };
        let code = part()?;
        let (col, row) = (part()?.checked_sub(1)?, part()?.checked_sub(1)?);
        let report = MouseReport { code: u32::from(code), row, col, ends: false };
        Some(Self { report, form: ReportForm::Characters })
    }

    fn did(self) -> Did {
        let code = self.report.code;
        let no_button = code & NO_BUTTON == NO_BUTTON && code & MORE_BUTTONS == 0;
        if code & WHEEL != 0 && code & MORE_BUTTONS == 0 {
            Did::Scroll
        } else if code & MOVED != 0 {
            if no_button { Did::Hover } else { Did::Drag }
        } else if self.report.ends || (no_button && self.form == ReportForm::Characters) {
            Did::Release
        } else {
            Did::Press
        }
    }

    /// Whether the pointer only moved, which does not count as typing.
    pub fn hovers(self) -> bool {
        self.did() == Did::Hover
    }

    /// How many rows the wheel was turned down, or up when negative; none for another event.
    pub fn wheel_rows(self) -> Option<i64> {
        const ROWS: i64 = 3;
        match (self.did(), self.report.code & NO_BUTTON) {
            (Did::Scroll, 0) => Some(-ROWS),
            (Did::Scroll, 1) => Some(ROWS),
            (Did::Scroll, _) => Some(0),
            (Did::Press | Did::Release | Did::Drag | Did::Hover, _) => None,
        }
    }

    /// Whether a button was pressed.
    pub fn is_press(self) -> bool {
        self.did() == Did::Press
    }
}

/// The buttons that were pressed on the session and are still down.
#[derive(Debug, Default)]
pub struct Pointer {
    down: u8,
}

impl Pointer {
    /// The bytes for the program, in the report's encoding; none when the report does not concern it.
    ///
    /// A button that was pressed on the session belongs to the program until its release. A release outside
    /// the session counts at the nearest cell.
    pub fn aim(
        &mut self,
        report: PointerReport,
        window: &VisiblePart,
        encoding: MouseEncoding,
    ) -> Option<Vec<u8>> {
        let place = (report.report.row, report.report.col);
        let inside = window.cell_at(place);
        let (row, col) = match report.did() {
            Did::Press => {
                self.down = self.down.saturating_add(u8::from(inside.is_some()));
                inside?
            }
            Did::Hover => {
                self.down = 0;
                inside?
            }
            Did::Scroll => inside?,
            Did::Drag | Did::Release if self.down == 0 => return None,
            Did::Drag => window.nearest_cell(place),
            Did::Release => {
                self.down -= 1;
                window.nearest_cell(place)
            }
        };
        let encoding = match (report.form, encoding) {
            (ReportForm::Sgr, _) => MouseEncoding::Sgr,
            (ReportForm::Characters, MouseEncoding::Utf8) => MouseEncoding::Utf8,
            (ReportForm::Characters, MouseEncoding::Bytes | MouseEncoding::Sgr) => {
                MouseEncoding::Bytes
            }
        };
        MouseReport { row, col, ..report.report }.bytes(encoding)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::attach::bar::Bar;
    use crate::cli::attach::renderer::TerminalSize;
    use crate::cli::attach::view::SessionView;

    /// A window of 11 rows and 40 columns over a session whose cursor is at its lower right.
    fn window(rows: u16, cols: u16) -> VisiblePart {
        let mut view = SessionView::default();
        let size = json!({"type": "size", "rows": rows, "cols": cols});
        let cursor = json!({"type": "cursor", "row": rows - 2, "col": cols - 10, "visible": true});
        let updates = json!([size, cursor]);
        let delta = json!({
            "session": "s", "from": 0, "watermark": 1, "base_row": 0, "updates": updates,
        });
        assert!(view.apply(delta));
        let mut window = VisiblePart::default();
        window.picture(&view, TerminalSize { rows: 12, cols: 40 }, &Bar::plain("status"));
        window
    }

    /// What the program is told of these reports.
    fn told(window: &VisiblePart, encoding: MouseEncoding, reports: &[&[u8]]) -> String {
        let mut pointer = Pointer::default();
        let told = reports.iter().filter_map(|token| {
            let report = PointerReport::of(token).expect("a report");
            pointer.aim(report, window, encoding)
        });
        told.flatten().flat_map(std::ascii::escape_default).map(char::from).collect()
    }

    #[test]
    fn a_click_is_told_for_the_cell_that_the_person_sees() {
        let cropped = window(30, 100);
        let sgr = told(&cropped, MouseEncoding::Sgr, &[b"\x1b[<0;5;5M", b"\x1b[<0;5;5m"]);
        // Row 28 is the last that is seen, and column 90.
        assert_eq!(sgr, "\\x1b[<0;56;23M\\x1b[<0;56;23m");
        let bytes = told(&cropped, MouseEncoding::Bytes, &[b"\x1b[M %%", b"\x1b[M#%%"]);
        assert_eq!(bytes, "\\x1b[M X7\\x1b[M#X7");
        let whole = window(11, 40);
        assert_eq!(told(&whole, MouseEncoding::Sgr, &[b"\x1b[<0;5;5M"]), "\\x1b[<0;5;5M");
    }

    #[test]
    fn characters_stay_characters_and_bytes_stay_bytes() {
        let cropped = window(11, 200);
        // Column 40 is column 190 of the session, 222 with what is added to it.
        let token: &[u8] = b"\x1b[MCH!";
        assert_eq!(told(&cropped, MouseEncoding::Bytes, &[token]), "\\x1b[MC\\xdf!");
        assert_eq!(told(&cropped, MouseEncoding::Utf8, &[token]), "\\x1b[MC\\xc3\\x9f!");
        let wide = PointerReport::of("\x1b[M \u{100}!".as_bytes()).expect("a report");
        assert_eq!((wide.report.row, wide.report.col), (0, 0x100 - 33));
    }

    #[test]
    fn what_an_encoding_cannot_write_is_not_told() {
        let cropped = window(11, 400);
        assert_eq!(told(&cropped, MouseEncoding::Bytes, &[b"\x1b[M %%"]), "");
        assert_ne!(told(&cropped, MouseEncoding::Utf8, &[b"\x1b[M %%"]), "");
    }

    #[test]
    fn what_happens_beside_the_session_is_not_told() {
        let padded = window(5, 20);
        for beside in [
            &b"\x1b[<0;5;12M"[..],
            b"\x1b[<0;5;6M",
            b"\x1b[<0;21;1M",
            b"\x1b[<64;5;12M",
            b"\x1b[<35;21;1M",
            b"\x1b[M %,",
        ] {
            assert_eq!(told(&padded, MouseEncoding::Sgr, &[beside]), "", "{beside:?}");
        }
        let click: [&[u8]; 3] = [b"\x1b[<0;5;12M", b"\x1b[<32;5;4M", b"\x1b[<0;5;4m"];
        assert_eq!(told(&padded, MouseEncoding::Sgr, &click), "");
        assert_eq!(told(&VisiblePart::default(), MouseEncoding::Sgr, &[b"\x1b[<0;1;1M"]), "");
    }

    #[test]
    fn a_button_that_went_down_on_the_session_comes_up_there() {
        let padded = window(5, 20);
        let drag: [&[u8]; 3] = [b"\x1b[<0;5;4M", b"\x1b[<32;30;4M", b"\x1b[<0;30;12m"];
        let expected = "\\x1b[<0;5;4M\\x1b[<32;20;4M\\x1b[<0;20;5m";
        assert_eq!(told(&padded, MouseEncoding::Sgr, &drag), expected);
    }

    #[test]
    fn what_is_no_report_is_none() {
        for token in
            [&b"\x1b[<0;5M"[..], b"\x1b[<0;0;1M", b"\x1b[<0;70000;1M", b"\x1b[A", b"\x1b[M \x20!"]
        {
            assert_eq!(PointerReport::of(token), None, "{token:?}");
        }
    }
}
