//! The colours that a screen has in images.

use crate::core::frame::line::{Attributes, Color, Style};

/// Red, green and blue.
pub(super) type Rgb = [u8; 3];

pub(super) const FOREGROUND: Rgb = [0xd8, 0xd8, 0xd8];
pub(super) const BACKGROUND: Rgb = [0x18, 0x18, 0x18];

/// The first sixteen colours, as xterm has them.
const NAMED: [Rgb; 16] = [
    [0x00, 0x00, 0x00],
    [0xcd, 0x00, 0x00],
    [0x00, 0xcd, 0x00],
    [0xcd, 0xcd, 0x00],
    [0x3b, 0x78, 0xff],
    [0xcd, 0x00, 0xcd],
    [0x00, 0xcd, 0xcd],
    [0xe5, 0xe5, 0xe5],
    [0x7f, 0x7f, 0x7f],
    [0xff, 0x00, 0x00],
    [0x00, 0xff, 0x00],
    [0xff, 0xff, 0x00],
    [0x5c, 0x5c, 0xff],
    [0xff, 0x00, 0xff],
    [0x00, 0xff, 0xff],
    [0xff, 0xff, 0xff],
];

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
        Color::Indexed(index @ 0..=15) => Some(NAMED[usize::from(index)]),
        // A cube of six steps each, then a ramp of greys.
        Color::Indexed(index @ 16..=231) => {
            let step = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            let index = index - 16;
            Some([step(index / 36), step(index / 6 % 6), step(index % 6)])
        }
        Color::Indexed(index) => Some([8 + 10 * (index - 232); 3]),
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
