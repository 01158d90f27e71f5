//! A screen as an SVG image: rectangles for backgrounds, and text where each run is as wide as its columns.

use std::fmt::Write as _;

use crate::core::frame::Frame;
use crate::core::frame::line::{Attributes, Color, Glyph, Line, Style};

/// The size of a cell and of the text in it, in units of the image.
const CELL: (u32, u32) = (10, 20);
const FONT_SIZE: u32 = 16;
/// The room around the screen.
const MARGIN: u32 = 10;

type Rgb = (u8, u8, u8);

const FOREGROUND: Rgb = (0xd8, 0xd8, 0xd8);
const BACKGROUND: Rgb = (0x18, 0x18, 0x18);

/// The first sixteen colours, as xterm has them.
const NAMED: [Rgb; 16] = [
    (0x00, 0x00, 0x00),
    (0xcd, 0x00, 0x00),
    (0x00, 0xcd, 0x00),
    (0xcd, 0xcd, 0x00),
    (0x3b, 0x78, 0xff),
    (0xcd, 0x00, 0xcd),
    (0x00, 0xcd, 0xcd),
    (0xe5, 0xe5, 0xe5),
    (0x7f, 0x7f, 0x7f),
    (0xff, 0x00, 0x00),
    (0x00, 0xff, 0x00),
    (0xff, 0xff, 0x00),
    (0x5c, 0x5c, 0xff),
    (0xff, 0x00, 0xff),
    (0x00, 0xff, 0xff),
    (0xff, 0xff, 0xff),
];

/// The image of a screen.
pub(super) fn svg_of(frame: &Frame) -> String {
    let size = frame.size.value;
    let (width, height) = (u32::from(size.cols) * CELL.0, u32::from(size.rows) * CELL.1);
    let (width, height) = (width + 2 * MARGIN, height + 2 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" font-size=\"{FONT_SIZE}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n",
        hex(BACKGROUND)
    );
    for (row, line) in frame.lines.iter().enumerate() {
        draw_line(&mut out, row as u32, &line.value);
    }
    let cursor = frame.cursor.value;
    if let Some(row) = cursor.row.0.checked_sub(frame.base_row.0).filter(|_| cursor.visible) {
        let (x, y) = (MARGIN + u32::from(cursor.col) * CELL.0, MARGIN + row as u32 * CELL.1);
        let (width, height) = CELL;
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{}\" \
             fill-opacity=\"0.5\"/>",
            hex(FOREGROUND)
        );
    }
    out.push_str("</svg>");
    out
}

fn draw_line(out: &mut String, row: u32, line: &Line) {
    let (top, base) = (MARGIN + row * CELL.1, MARGIN + row * CELL.1 + CELL.1 * 3 / 4);
    for run in &line.runs {
        let (_, background) = colours(run.style);
        if background != BACKGROUND {
            let (x, width) =
                (MARGIN + u32::from(run.column) * CELL.0, u32::from(run.columns) * CELL.0);
            let (height, fill) = (CELL.1, hex(background));
            let _ = writeln!(
                out,
                "<rect x=\"{x}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\"/>"
            );
        }
    }
    let glyphs: Vec<_> = line.glyphs().collect();
    let alike = |one: &Glyph<'_>, other: &Glyph<'_>| {
        line.style_at(one.column) == line.style_at(other.column)
            && one.column + one.columns == other.column
    };
    for run in glyphs.chunk_by(alike) {
        let text: String = run.iter().map(|glyph| glyph.text).collect();
        let style = line.style_at(run[0].column);
        if text.trim().is_empty() || style.attributes.contains(Attributes::CONCEALED) {
            continue;
        }
        let columns: u32 = run.iter().map(|glyph| u32::from(glyph.columns)).sum();
        let (x, width) = (MARGIN + u32::from(run[0].column) * CELL.0, columns * CELL.0);
        let (fill, look) = (hex(colours(style).0), look_of(style.attributes));
        let _ = writeln!(
            out,
            "<text x=\"{x}\" y=\"{base}\" textLength=\"{width}\" lengthAdjust=\"spacingAndGlyphs\" \
             xml:space=\"preserve\" fill=\"{fill}\"{look}>{}</text>",
            escaped(&text)
        );
    }
}

fn look_of(attributes: Attributes) -> String {
    let mut look = String::new();
    let mut add = |bit, text: &str| {
        if attributes.contains(bit) {
            look.push_str(text);
        }
    };
    add(Attributes::BOLD, " font-weight=\"bold\"");
    add(Attributes::DIM, " fill-opacity=\"0.6\"");
    add(Attributes::ITALIC, " font-style=\"italic\"");
    let lines = [
        (Attributes::UNDERLINE, "underline"),
        (Attributes::DOUBLE_UNDERLINE, "underline"),
        (Attributes::CURLY_UNDERLINE, "underline"),
        (Attributes::STRIKE, "line-through"),
    ];
    let mut lines: Vec<_> =
        lines.iter().filter(|(bit, _)| attributes.contains(*bit)).map(|(_, line)| *line).collect();
    lines.dedup();
    if !lines.is_empty() {
        let _ = write!(look, " text-decoration=\"{}\"", lines.join(" "));
    }
    look
}

/// Foreground and background as they are seen.
fn colours(style: Style) -> (Rgb, Rgb) {
    let foreground = rgb(style.foreground).unwrap_or(FOREGROUND);
    let background = rgb(style.background).unwrap_or(BACKGROUND);
    match style.attributes.contains(Attributes::INVERSE) {
        true => (background, foreground),
        false => (foreground, background),
    }
}

fn rgb(color: Color) -> Option<Rgb> {
    match color {
        Color::Default => None,
        Color::Rgb(red, green, blue) => Some((red, green, blue)),
        Color::Indexed(index @ 0..=15) => Some(NAMED[usize::from(index)]),
        // A cube of six steps each, then a ramp of greys.
        Color::Indexed(index @ 16..=231) => {
            let step = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            let index = index - 16;
            Some((step(index / 36), step(index / 6 % 6), step(index % 6)))
        }
        Color::Indexed(index) => {
            let grey = 8 + 10 * (index - 232);
            Some((grey, grey, grey))
        }
    }
}

fn hex((red, green, blue): Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // XML has no control characters.
            control if control.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::record::played::PlayedScreen;
    use crate::core::frame::Size;
    use crate::session::recording::asciicast::CastEvent;
    use crate::session::recording::reader::TimedEvent;

    fn image(output: &str) -> String {
        let mut screen = PlayedScreen::new(Size { rows: 3, cols: 20 });
        let event = CastEvent::Output(output.to_owned());
        screen.play(TimedEvent { at: std::time::Duration::ZERO, event });
        svg_of(&screen.frame())
    }

    #[test]
    fn text_stands_at_its_cell_in_its_colour_and_cannot_end_its_element() {
        let image = image("ab\x1b[3;5H\x1b[1;31m<b>&\x1b[0m");
        let expected = "<text x=\"50\" y=\"65\" textLength=\"40\" lengthAdjust=\"spacingAndGlyphs\" \
            xml:space=\"preserve\" fill=\"#cd0000\" font-weight=\"bold\">&lt;b&gt;&amp;</text>";
        assert!(image.contains(expected), "{image}");
        assert!(image.contains(">ab</text>"), "{image}");
        assert!(image.starts_with("<svg ") && image.ends_with("</svg>"));
    }

    #[test]
    fn backgrounds_and_inverse_text_are_rectangles() {
        let image = image("\x1b[48;5;21mx\x1b[0m\x1b[7my");
        let blue = "<rect x=\"10\" y=\"10\" width=\"10\" height=\"20\" fill=\"#0000ff\"/>";
        let light = "<rect x=\"20\" y=\"10\" width=\"10\" height=\"20\" fill=\"#d8d8d8\"/>";
        assert!(image.contains(blue) && image.contains(light), "{image}");
        assert!(image.contains("fill=\"#181818\">y</text>"), "{image}");
    }

    #[test]
    fn each_indexed_colour_is_that_of_xterm() {
        assert_eq!(rgb(Color::Indexed(196)), Some((255, 0, 0)));
        assert_eq!(rgb(Color::Indexed(16)), Some((0, 0, 0)));
        assert_eq!(rgb(Color::Indexed(232)), Some((8, 8, 8)));
        assert_eq!(rgb(Color::Indexed(255)), Some((238, 238, 238)));
    }
}
