//! The fixed colours that answer a program's colour queries, regardless of what was set.
//!
//! A session has no real terminal behind it, so it reports a dark screen with the usual palette.

/// The default foreground and cursor.
const FOREGROUND: [u8; 3] = [0xd8, 0xd8, 0xd8];
const BACKGROUND: [u8; 3] = [0, 0, 0];

/// The sixteen named colours of xterm.
const NAMED: [[u8; 3]; 16] = [
    [0, 0, 0],
    [205, 0, 0],
    [0, 205, 0],
    [205, 205, 0],
    [0, 0, 238],
    [205, 0, 205],
    [0, 205, 205],
    [229, 229, 229],
    [127, 127, 127],
    [255, 0, 0],
    [0, 255, 0],
    [255, 255, 0],
    [92, 92, 255],
    [255, 0, 255],
    [0, 255, 255],
    [255, 255, 255],
];

/// The most queries that one sequence may hold.
const QUERIES_MAX: usize = 16;

/// Answers the queries in a colour command (OSC 4, 10, 11, 12), each with the query's terminator.
pub(crate) fn answers(code: &str, arguments: &str, end: &str) -> Vec<String> {
    let arguments = arguments.split(';');
    if code == "4" {
        let arguments: Vec<&str> = arguments.take(2 * QUERIES_MAX).collect();
        let asked = arguments.chunks_exact(2).filter(|pair| pair[1] == "?");
        let index = asked.filter_map(|pair| pair[0].parse::<u8>().ok());
        return index.map(|index| answer(&format!("4;{index}"), indexed(index), end)).collect();
    }
    // Each further argument asks for the next of the three colours.
    let dynamic = [("10", FOREGROUND), ("11", BACKGROUND), ("12", FOREGROUND)];
    let asked = dynamic.into_iter().skip_while(|(name, _)| *name != code).zip(arguments);
    let asked = asked.filter(|(_, argument)| *argument == "?");
    asked.map(|((name, color), _)| answer(name, color, end)).collect()
}

fn answer(name: &str, [red, green, blue]: [u8; 3], end: &str) -> String {
    format!("\x1b]{name};rgb:{red:02x}{red:02x}/{green:02x}{green:02x}/{blue:02x}{blue:02x}{end}")
}

/// The colour with this index of 256: sixteen named ones, a cube of six steps a side, and greys.
fn indexed(index: u8) -> [u8; 3] {
    match index {
        0..=15 => NAMED[usize::from(index)],
        16..=231 => {
            let place = index - 16;
            let step = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            [step(place / 36), step(place / 6 % 6), step(place % 6)]
        }
        232..=255 => [8 + 10 * (index - 232); 3],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_palette_query_names_its_index_and_ends_like_the_query() {
        assert_eq!(answers("4", "1;?", "\x07"), ["\x1b]4;1;rgb:cdcd/0000/0000\x07"]);
        assert_eq!(answers("4", "231;?", "\x1b\\"), ["\x1b]4;231;rgb:ffff/ffff/ffff\x1b\\"]);
        assert_eq!(answers("4", "255;?", "\x07"), ["\x1b]4;255;rgb:eeee/eeee/eeee\x07"]);
    }

    #[test]
    fn setting_a_colour_is_not_answered() {
        assert!(answers("4", "1;#ff0000", "\x07").is_empty());
        assert!(answers("4", "256;?", "\x07").is_empty());
        assert!(answers("11", "black", "\x07").is_empty());
    }

    #[test]
    fn further_questions_ask_for_the_next_dynamic_colour() {
        let both = answers("10", "?;?", "\x07");
        assert_eq!(both, ["\x1b]10;rgb:d8d8/d8d8/d8d8\x07", "\x1b]11;rgb:0000/0000/0000\x07"]);
    }
}
