//! The screen as output, for a recording that begins in the middle.

use crate::core::screen::Screen;
use crate::core::screen::snapshot::KeptPlace;

impl Screen {
    /// Output that clears a screen of this size, makes it show what this one shows, and goes on like this one:
    /// with its modes, and in the middle of the same sequence or character.
    pub fn picture(&mut self) -> Vec<u8> {
        let mut picture = self.emulator.picture().into_bytes();
        let sequence = |start: &[u8], rest: Vec<u8>| [start, &rest].concat();
        picture.extend(match self.guard.kept() {
            KeptPlace::Text { broken, split } => sequence(&broken, split),
            KeptPlace::Escape => b"\x1b".to_vec(),
            KeptPlace::Intermediates(bytes) => sequence(b"\x1b", bytes),
            KeptPlace::Parameters { bytes, .. } => sequence(b"\x1b[", bytes),
            KeptPlace::Command { text, .. } => sequence(b"\x1b]", text),
            KeptPlace::Device(head) => sequence(b"\x1bP", head),
            // A string that is shown nowhere.
            KeptPlace::Skipped => b"\x1bX".to_vec(),
        });
        picture
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::frame::{Frame, Size};
    use crate::core::moment::Moment;
    use crate::core::screen::{Facts, Origin, ScreenLimits};

    const SIZE: Size = Size { rows: 6, cols: 12 };

    fn screen() -> Screen {
        Screen::new(SIZE, ScreenLimits::default(), Origin::default())
    }

    /// What of a frame a person sees, and what decides about later input.
    fn shown(frame: &Frame) -> impl PartialEq + std::fmt::Debug + use<> {
        let lines: Vec<_> = frame.lines.iter().map(|line| (*line.value).clone()).collect();
        let cursor = frame.cursor.value;
        let place = (cursor.row.0 - frame.base_row.0, cursor.col, cursor.visible, cursor.style);
        (lines, place, frame.mode.value, frame.title.value.clone(), frame.input_modes.value)
    }

    /// A screen that was given the output before, and one that was given its picture, show the same, also after
    /// the output behind.
    fn check(before: &[u8], behind: &[u8]) {
        let now = Moment::default();
        let (mut given, mut drawn) = (screen(), screen());
        given.feed(now, before);
        drawn.feed(now, b"what was there before\r\nand more");
        drawn.feed(now, &given.picture());
        for more in [&b""[..], behind] {
            given.feed(now, more);
            drawn.feed(now, more);
            let (one, other) = (
                given.first_frame(now, &Facts::default()),
                drawn.first_frame(now, &Facts::default()),
            );
            assert_eq!(shown(&one), shown(&other), "{:?}", String::from_utf8_lossy(before));
        }
    }

    #[test]
    fn a_picture_shows_text_styles_wide_characters_and_wrapped_rows() {
        check(b"plain \x1b[1;31mred\x1b[0m\r\nnext", b" more");
        check("漢字漢字漢字漢 e\u{301}\r\n\x1b[44m\x1b[K".as_bytes(), b"x");
        check(b"twelve cells and more of them without an end", b"!");
        check(b"a b         c           d", b"\r\nz");
        check(b"one\r\n\x1b]8;;http://a.example\x1b\\link", b"ed\x1b]8;;\x1b\\ not");
    }

    #[test]
    fn a_picture_keeps_the_cursor_that_waits_to_wrap_and_its_style() {
        check(b"exactly12chr", b"next row");
        check("ten cells 漢".as_bytes(), b"next row");
        check(b"\x1b[7mtext\x1b[5;3H\x1b[4 q", b"inverse");
    }

    #[test]
    fn a_picture_keeps_modes_region_tabs_and_character_sets() {
        check(b"a\r\nb\r\nc\x1b[2;4r\x1b[4;1H", b"\n\n\nd");
        check(b"a\r\nb\r\nc\x1b[2;4r\x1b[?6h\x1b[2;2H", b"x\x1b[1;1Hy");
        check(b"\x1b[?25l\x1b[?1h\x1b=\x1b[?2004h\x1b[?1002h\x1b[?1006h", b"x");
        check(b"\x1b[4habc\r", b"x");
        check(b"\x1b[?7labc", b"defghijklmnop");
        check(b"\x1b(0lqk", b"x");
        check(b"\x1b)0\x0eqq", b"x\x0fx");
        check(b"\x1b[3g\x1b[5G\x1bH\r", b"\tx");
        check(b"\x1b]2;a title\x07\x1b[2;2H\x1b7\x1b[4;4H", b"x\x1b8y");
    }

    #[test]
    fn behind_the_alternate_screen_the_picture_has_the_normal_one() {
        check(b"shell$ vi\r\n\x1b[?1049h\x1b[2J\x1b[3;3Hfull", b" screen\x1b[?1049lback");
        check(b"one\r\ntwo\x1b[?1049h\x1b[1;2Hx", b"\x1b[?1049l");
    }

    #[test]
    fn a_picture_in_the_middle_of_a_sequence_goes_on_in_it() {
        check(b"ab\x1b", b"[31mc");
        check(b"ab\x1b[3", b"1mc");
        check(b"ab\x1b]2;tit", b"le\x07c");
        check(b"ab\x1bPq#1", b"2\x1b\\c");
        check(b"ab\x1b(", b"0q");
        check(b"ab\x1b_hidden", b"more\x1b\\c");
        let bytes = "é漢".as_bytes();
        check(&bytes[..1], &bytes[1..]);
        check(&bytes[..4], &bytes[4..]);
    }
}
