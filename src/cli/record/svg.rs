//! A screen, or an animation, as an SVG image: rectangles for backgrounds, and text where each run is as wide as its
//! columns.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::ops::Range;

use crate::cli::failure::CliFailure;
use crate::cli::record::film::{Film, check_size};
use crate::cli::record::palette::{BACKGROUND, FOREGROUND, Rgb, colours};
use crate::core::frame::line::{Attributes, Glyph, Line};
use crate::core::frame::{Frame, Size};

/// The size of a cell and of the text in it, in units of the image.
const CELL: (u32, u32) = (10, 20);
const FONT_SIZE: u32 = 16;
/// The room around the screen.
const MARGIN: u32 = 10;

/// What it takes at least to show a part of the screen for a time, in bytes.
const SEEN_BYTES_MIN: usize = 30;

/// The image of a screen.
pub(super) fn svg_of(frame: &Frame) -> String {
    let mut out = begin(frame.size.value);
    for (row, line) in frame.lines.iter().enumerate() {
        draw_line(&mut out, row as u32, &line.value);
    }
    let cursor = frame.cursor.value;
    if let Some(row) = cursor.row.0.checked_sub(frame.base_row.0).filter(|_| cursor.visible) {
        let (x, y) = (u32::from(cursor.col) * CELL.0, row as u32 * CELL.1);
        let _ = writeln!(out, "<rect x=\"{x}\" y=\"{y}\" {}/>", cursor_look());
    }
    out.push_str("</g>\n</svg>");
    out
}

/// An animation: each line that differs is defined once, and used on each row at the times when it is there. Programs
/// that know no animations show the last picture.
///
/// # Errors
/// If the image would be too large.
pub(super) fn animated_svg(film: &Film) -> Result<String, CliFailure> {
    let (mut out, mut uses) = (begin(film.size), String::new());
    let (mut numbers, mut seen) = (HashMap::<&Line, usize>::new(), SeenParts::default());
    out.push_str("<defs>\n");
    for (at, picture) in film.pictures.iter().enumerate() {
        let lines = picture.lines.iter().enumerate();
        for (row, line) in lines.filter(|(_, line)| line.painted_columns() > 0) {
            let next = numbers.len();
            let number = *numbers.entry(line).or_insert(next);
            if number == next {
                let _ = writeln!(out, "<g id=\"l{number}\">");
                draw_line(&mut out, 0, line);
                out.push_str("</g>\n");
            }
            seen.note(at, SeenPart::Line { row, number });
        }
        if let Some((row, column)) = picture.cursor {
            seen.note(at, SeenPart::Cursor { row, column });
        }
        check_size(out.len() + seen.times * SEEN_BYTES_MIN)?;
    }
    let _ = writeln!(out, "<rect id=\"c\" {}/>\n</defs>", cursor_look());
    let _ = writeln!(
        out,
        "<style>use{{animation:{:.3}s step-end infinite}}\
         @media(prefers-reduced-motion:reduce){{use{{animation:none!important}}}}",
        film.length.as_secs_f64()
    );
    for (number, (part, pictures)) in seen.parts.into_iter().enumerate() {
        let (x, y, target) = match part {
            SeenPart::Line { row, number } => (0, row as u32, format!("l{number}")),
            SeenPart::Cursor { row, column } => (u32::from(column), u32::from(row), "c".to_owned()),
        };
        let (x, y) = (x * CELL.0, y * CELL.1);
        let _ = write!(uses, "<use href=\"#{target}\" x=\"{x}\" y=\"{y}\"");
        let always = 0..film.pictures.len();
        if pictures.first() != Some(&always) {
            let _ = writeln!(out, "@keyframes k{number}{{{}}}", keyframes(film, &pictures));
            let _ = write!(uses, " style=\"animation-name:k{number}\"");
        }
        if pictures.last().is_none_or(|last| last.end < always.end) {
            uses.push_str(" visibility=\"hidden\"");
        }
        uses.push_str("/>\n");
        check_size(out.len() + uses.len())?;
    }
    let _ = write!(out, "</style>\n{uses}</g>\n</svg>");
    Ok(out)
}

/// What is seen in some pictures of an animation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SeenPart {
    Line { row: usize, number: usize },
    Cursor { row: u16, column: u16 },
}

/// In which pictures parts are seen: ranges of numbers.
#[derive(Debug, Default)]
struct SeenParts {
    parts: BTreeMap<SeenPart, Vec<Range<usize>>>,
    /// How many ranges there are.
    times: usize,
}

impl SeenParts {
    fn note(&mut self, picture: usize, part: SeenPart) {
        let ranges = self.parts.entry(part).or_default();
        match ranges.last_mut() {
            Some(last) if last.end == picture => last.end += 1,
            Some(_) | None => {
                ranges.push(picture..picture + 1);
                self.times += 1;
            }
        }
    }
}

/// When an element is visible that is seen in these pictures only.
fn keyframes(film: &Film, pictures: &[Range<usize>]) -> String {
    let length = film.length.as_secs_f64();
    let mut keyframes = String::new();
    let mut set = |picture: usize, word: &str| {
        if let Some(picture) = film.pictures.get(picture) {
            let part = picture.at.as_secs_f64() / length * 100.0;
            let _ = write!(keyframes, "{part:.4}%{{visibility:{word}}}");
        }
    };
    if pictures.first().is_some_and(|first| first.start > 0) {
        set(0, "hidden");
    }
    for Range { start, end } in pictures {
        set(*start, "visible");
        set(*end, "hidden");
    }
    keyframes
}

/// The beginning of an image, up to the group that has the screen.
fn begin(Size { rows, cols }: Size) -> String {
    let (width, height) = (u32::from(cols) * CELL.0, u32::from(rows) * CELL.1);
    let (width, height) = (width + 2 * MARGIN, height + 2 * MARGIN);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" font-size=\"{FONT_SIZE}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n\
         <g transform=\"translate({MARGIN} {MARGIN})\">\n",
        hex(BACKGROUND)
    )
}

fn cursor_look() -> String {
    let ((width, height), fill) = (CELL, hex(FOREGROUND));
    format!("width=\"{width}\" height=\"{height}\" fill=\"{fill}\" fill-opacity=\"0.5\"")
}

fn draw_line(out: &mut String, row: u32, line: &Line) {
    let (top, base) = (row * CELL.1, row * CELL.1 + CELL.1 * 3 / 4);
    for run in &line.runs {
        let (_, background) = colours(run.style);
        if background != BACKGROUND {
            let (x, width) = (u32::from(run.column) * CELL.0, u32::from(run.columns) * CELL.0);
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
        let (x, width) = (u32::from(run[0].column) * CELL.0, columns * CELL.0);
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

fn hex([red, green, blue]: Rgb) -> String {
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
mod tests;
