//! An animation as a GIF: after the first picture, only the pixels that change.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use gif::{DisposalMethod, Encoder, EncodingError, Frame, Repeat};

use crate::cli::failure::CliFailure;
use crate::cli::record::bitmap::{Bitmap, PixelArea};
use crate::cli::record::film::{Film, FilmPicture, check_size};
use crate::cli::record::font::GlyphFont;
use crate::cli::record::palette::{BACKGROUND, Rgb};
use crate::cli::record::progress::ExportProgress;

/// How many colours a picture has beside the transparent one.
const COLOURS_MAX: usize = 255;

/// The index of pixels that stay as they are.
const UNCHANGED: u8 = 0;

/// An image, and the characters that its font does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GifImage {
    pub(super) bytes: Vec<u8>,
    pub(super) missing: Vec<char>,
}

/// Draws an animation.
///
/// # Errors
/// If the image would be too large.
pub(super) fn gif_of(
    film: &Film,
    progress: &mut ExportProgress<'_>,
) -> Result<GifImage, CliFailure> {
    let (mut font, mut bitmap) = (GlyphFont::new(), Bitmap::new(film.size));
    let side = |pixels: usize| u16::try_from(pixels).unwrap_or(u16::MAX);
    let (width, height) = (side(bitmap.width()), side(bitmap.height()));
    let mut encoder = Encoder::new(Vec::new(), width, height, &[]).map_err(unencoded)?;
    if film.pictures.len() > 1 {
        encoder.set_repeat(Repeat::Infinite).map_err(unencoded)?;
    }
    let mut shown = bitmap.clone();
    let mut before: Option<&FilmPicture> = None;
    for (number, picture) in film.pictures.iter().enumerate() {
        progress.show(|| format!("drawing {} %", number * 100 / film.pictures.len()));
        let drawn = draw(&mut bitmap, before, picture, &mut font);
        let area = match before {
            None => bitmap.area(),
            Some(_) => changed_area(&shown, &bitmap, drawn),
        };
        let is_kept = |pixel: (Rgb, Rgb)| before.is_some() && pixel.0 == pixel.1;
        let pixels = shown.pixels_in(area).zip(bitmap.pixels_in(area));
        let pixels = pixels.map(|pixel| (!is_kept(pixel)).then_some(pixel.1)).collect::<Vec<_>>();
        let (palette, buffer) = with_palette(&pixels);
        let end = film.pictures.get(number + 1).map_or(film.length, |next| next.at);
        encoder
            .write_frame(&Frame {
                // Rounded one by one, they would not add up to the time that passes.
                delay: side((end.as_millis() / 10 - picture.at.as_millis() / 10) as usize),
                dispose: DisposalMethod::Keep,
                transparent: Some(UNCHANGED),
                left: side(area.left),
                top: side(area.top),
                width: side(area.width),
                height: side(area.height),
                palette: Some(palette),
                buffer: Cow::Owned(buffer),
                ..Frame::default()
            })
            .map_err(unencoded)?;
        check_size(encoder.get_ref().len())?;
        shown.copy_area(&bitmap, area);
        before = Some(picture);
    }
    let bytes = encoder.into_inner().map_err(unencoded)?;
    Ok(GifImage { bytes, missing: font.missing().iter().copied().collect() })
}

fn unencoded(error: EncodingError) -> CliFailure {
    anyhow::anyhow!("the image cannot be encoded: {error}").into()
}

/// Draws the rows that differ from the picture before, and says where they are.
fn draw(
    bitmap: &mut Bitmap,
    before: Option<&FilmPicture>,
    picture: &FilmPicture,
    font: &mut GlyphFont,
) -> PixelArea {
    let rows = picture.lines.len().max(before.map_or(0, |before| before.lines.len()));
    let on_row = |picture: &FilmPicture, row: usize| {
        let cursor = picture.cursor.filter(|(at, _)| usize::from(*at) == row);
        (picture.lines.get(row).cloned(), cursor.map(|(_, column)| column))
    };
    let mut drawn: Option<PixelArea> = None;
    for row in 0..rows {
        let (line, cursor) = on_row(picture, row);
        if before.is_some_and(|before| on_row(before, row) == (line.clone(), cursor)) {
            continue;
        }
        bitmap.draw_row(row, &line.unwrap_or_default(), cursor, font);
        let area = bitmap.area_of_row(row);
        drawn = Some(match drawn {
            None => area,
            Some(drawn) => PixelArea { height: area.top + area.height - drawn.top, ..drawn },
        });
    }
    drawn.unwrap_or_else(|| bitmap.area_of_row(0))
}

/// The smallest part of an area with all pixels that differ; one pixel if none does.
fn changed_area(before: &Bitmap, now: &Bitmap, within: PixelArea) -> PixelArea {
    let pixels = before.pixels_in(within).zip(now.pixels_in(within));
    let (mut columns, mut rows) = ((usize::MAX, 0), (usize::MAX, 0));
    for (at, _) in pixels.enumerate().filter(|(_, (before, now))| before != now) {
        let (x, y) = (at % within.width, at / within.width);
        columns = (columns.0.min(x), columns.1.max(x));
        rows = (rows.0.min(y), rows.1.max(y));
    }
    if columns.0 > columns.1 {
        return PixelArea { width: 1, height: 1, ..within };
    }
    let (width, height) = (columns.1 - columns.0 + 1, rows.1 - rows.0 + 1);
    PixelArea { left: within.left + columns.0, top: within.top + rows.0, width, height }
}

/// A palette for pixels, the transparent colour first, and their indices in it. Where there are more colours than a
/// palette has, those that differ least become one.
fn with_palette(pixels: &[Option<Rgb>]) -> (Vec<u8>, Vec<u8>) {
    let colours: HashSet<Rgb> = pixels.iter().flatten().copied().collect();
    let rounded = |colour: Rgb, bits: u32| colour.map(|part| part >> bits << bits);
    let are_few = |bits: &u32| {
        let colours: HashSet<_> = colours.iter().map(|colour| rounded(*colour, *bits)).collect();
        colours.len() <= COLOURS_MAX
    };
    // With one bit for each part there are eight.
    let bits = (0..7).find(are_few).unwrap_or(7);
    let (mut palette, mut known) = (vec![BACKGROUND], HashMap::new());
    let index = |pixel: &Option<Rgb>| match pixel {
        None => UNCHANGED,
        Some(colour) => *known.entry(rounded(*colour, bits)).or_insert_with(|| {
            palette.push(*colour);
            u8::try_from(palette.len() - 1).unwrap_or(u8::MAX)
        }),
    };
    let indices = pixels.iter().map(index).collect();
    (palette.concat(), indices)
}

#[cfg(test)]
mod tests {
    use gif::{ColorOutput, DecodeOptions};

    use super::*;
    use crate::cli::record::film::tests::{SIZE, WHOLE, film_of, millis};
    use crate::cli::record::font::CELL;
    use crate::cli::record::palette::FOREGROUND;

    const RED: Rgb = [0xcd, 0, 0];
    const BLUE: Rgb = [0, 0, 0xff];

    fn encoded(events: &[(u64, &str)]) -> GifImage {
        gif_of(&film_of(events, &WHOLE), &mut ExportProgress::unseen()).unwrap()
    }

    /// The pictures that a viewer shows, each with its time in hundredths of a second.
    fn decoded(image: &GifImage) -> Vec<(u16, Vec<Rgb>)> {
        let mut options = DecodeOptions::new();
        options.set_color_output(ColorOutput::RGBA);
        let mut decoder = options.read_info(&image.bytes[..]).unwrap();
        let width = usize::from(decoder.width());
        let mut canvas = vec![[0; 3]; width * usize::from(decoder.height())];
        let mut pictures = Vec::new();
        while let Some(frame) = decoder.read_next_frame().unwrap() {
            for (at, pixel) in frame.buffer.chunks(4).enumerate() {
                let (x, y) = (at % usize::from(frame.width), at / usize::from(frame.width));
                if pixel[3] > 0 {
                    let at = (usize::from(frame.top) + y) * width + usize::from(frame.left) + x;
                    canvas[at] = [pixel[0], pixel[1], pixel[2]];
                }
            }
            pictures.push((frame.delay, canvas.clone()));
        }
        pictures
    }

    /// The pixels of a cell.
    fn cell(picture: &[Rgb], row: usize, column: usize) -> Vec<Rgb> {
        let area = PixelArea {
            left: 10 + column * CELL.0,
            top: 10 + row * CELL.1,
            width: CELL.0,
            height: CELL.1,
        };
        let width = 20 + usize::from(SIZE.cols) * CELL.0;
        let rows = picture.chunks(width).skip(area.top).take(area.height);
        rows.flat_map(|row| &row[area.left..area.left + area.width]).copied().collect()
    }

    fn is_filled(picture: &[Rgb], row: usize, column: usize, colour: Rgb) -> bool {
        cell(picture, row, column).iter().all(|pixel| *pixel == colour)
    }

    #[test]
    fn each_picture_has_its_cells_in_their_colours_for_its_time() {
        let image = encoded(&[
            (0, "\x1b[?25l\x1b[31m█\x1b[m x\x1b[2;4H\x1b[48;5;21m "),
            (1_000, "\r\x1b[m\x1b[3;1H█"),
            (1_500, "\x1b[H "),
        ]);
        let pictures = decoded(&image);
        let times: Vec<_> = pictures.iter().map(|(time, _)| *time).collect();
        assert_eq!(times, [100, 50, 300]);
        let [(_, first), (_, second), (_, third)] = &pictures[..] else { panic!("{times:?}") };
        assert!(is_filled(first, 0, 0, RED) && is_filled(first, 1, 3, BLUE));
        assert!(is_filled(first, 2, 0, BACKGROUND) && is_filled(second, 2, 0, FOREGROUND));
        assert!(is_filled(second, 0, 0, RED) && is_filled(third, 0, 0, BACKGROUND));
        let letter = cell(first, 0, 2);
        assert!(letter.iter().any(|pixel| pixel[0] > 0xa0) && letter.contains(&BACKGROUND));
        assert_eq!(cell(third, 0, 2), letter);
        assert_eq!(image.missing, []);
    }

    #[test]
    fn the_cursor_is_seen_and_lines_go_below_and_through_text() {
        let pictures = decoded(&encoded(&[(0, "\x1b[4mx\x1b[m\x1b[9my\x1b[m"), (500, "\x1b[7mz")]));
        let (first, last) = (&pictures[0].1, &pictures[1].1);
        let half = [(0x18 + 0xd8) / 2; 3];
        assert!(is_filled(first, 0, 2, half) && is_filled(last, 0, 3, half));
        let row = |column, y: usize| cell(last, 0, column)[y * CELL.0..][..CELL.0].to_vec();
        assert!(row(0, 17) == [FOREGROUND; 10] && row(1, 11) == [FOREGROUND; 10]);
        assert!(cell(last, 0, 2)[0] == FOREGROUND, "it is inverse");
    }

    #[test]
    fn more_colours_than_a_palette_has_become_the_nearest() {
        let background = |at: u8| [at * 4, at.wrapping_mul(29), 255 - at];
        let cell_of = |at: u8| {
            let [red, green, blue] = background(at);
            format!("\x1b[48;2;{red};{green};{blue};38;2;{green};{blue};{red}mx")
        };
        let output: String = (0..60).map(cell_of).collect();
        // Without the cursor.
        let events = [(0, "\x1b[?25l"), (0, &*output)];
        let mut exact = Bitmap::new(SIZE);
        draw(&mut exact, None, &film_of(&events, &WHOLE).pictures[0], &mut GlyphFont::new());
        let count = |pixels: &mut dyn Iterator<Item = Rgb>| pixels.collect::<HashSet<_>>().len();
        assert!(count(&mut exact.pixels_in(exact.area())) > COLOURS_MAX);
        let (_, picture) = decoded(&encoded(&events)).remove(0);
        assert!(count(&mut picture.iter().copied()) <= COLOURS_MAX);
        for at in 0..60 {
            // The letter leaves the corner free.
            let shown = cell(&picture, usize::from(at / 20), usize::from(at % 20))[0];
            let is_near = |(one, other): (&u8, &u8)| one.abs_diff(*other) < 32;
            assert!(shown.iter().zip(&background(at)).all(is_near), "{at}: {shown:?}");
        }
    }

    #[test]
    fn characters_without_a_glyph_are_told() {
        let image = encoded(&[(0, "漢字漢")]);
        assert_eq!(image.missing, ['字', '漢']);
        let pictures = decoded(&image);
        assert!(cell(&pictures[0].1, 0, 0).contains(&FOREGROUND));
    }

    #[test]
    fn pauses_add_up_to_the_time_that_passes() {
        let events: Vec<_> = (0..10).map(|at| (at * 333, "x")).collect();
        let pictures = decoded(&encoded(&events));
        let sum: u64 = pictures.iter().map(|(time, _)| u64::from(*time)).sum();
        assert_eq!(millis(sum * 10), millis(2_990) + millis(3_000));
    }
}
