//! The colours that a screen has in images.

use crate::core::frame::line::{Attributes, Color, Style};
use crate::core::screen::sequence::indexed;

/// Red, green and blue.
pub(super) type Rgb = [u8; 3];

pub(super) const FOREGROUND: Rgb = [0xd8, 0xd8, 0xd8];
pub(super) const BACKGROUND: Rgb = [0x18, 0x18, 0x18];

/// Blue, which is hard to read on the background as xterm has it.
const BLUE: Rgb = [0x3b, 0x78, 0xff];

/// Foreground and background as they are seen.
pub(super) fn colours(style: Style) -> (Rgb, Rgb) {
    let foreground = rgb(style.foreground).unwrap_or(FOREGROUND);
    let background = rgb(style.background).unwrap_or(BACKGROUND);
    match style.attributes.contains(Attributes::INVERSE) {
        true => (background, foreground),
        false => (foreground, background),
    }
}

/// `over` laid on `below`, where 0 leaves that as it is and `whole` hides it.
pub(super) fn blend(below: Rgb, over: Rgb, part: u32, whole: u32) -> Rgb {
    let mix = |below: u8, over: u8| {
        let sum = u32::from(below) * (whole - part) + u32::from(over) * part;
        u8::try_from(sum / whole).unwrap_or(u8::MAX)
    };
    std::array::from_fn(|at| mix(below[at], over[at]))
}

fn rgb(color: Color) -> Option<Rgb> {
    match color {
        Color::Default => None,
        Color::Rgb(red, green, blue) => Some([red, green, blue]),
        Color::Indexed(4) => Some(BLUE),
        Color::Indexed(index) => Some(indexed(index)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_indexed_colour_is_that_of_xterm() {
        assert_eq!(rgb(Color::Indexed(196)), Some([255, 0, 0]));
        assert_eq!(rgb(Color::Indexed(16)), Some([0, 0, 0]));
        assert_eq!(rgb(Color::Indexed(232)), Some([8, 8, 8]));
        assert_eq!(rgb(Color::Indexed(255)), Some([238, 238, 238]));
    }

    #[test]
    fn a_blend_goes_from_one_colour_to_the_other() {
        let (black, white) = ([0; 3], [255; 3]);
        let steps = [0, 1, 2].map(|part| blend(black, white, part, 2));
        assert_eq!(steps, [black, [127; 3], white]);
    }
}
