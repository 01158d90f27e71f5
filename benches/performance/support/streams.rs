//! Output as programs write it, made anew for each run and the same every time.
//!
//! It knows nothing of terminals. What is written is made in advance, so that making it costs no
//! time that is measured.

use std::fmt::Write as _;

/// How many bytes are made; more is written by repeating them.
pub(crate) const BLOCK: usize = 2_000_000;

/// Columns and rows of the terminal it is for.
const COLS: usize = 80;
const ROWS: usize = 24;

/// A kind of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Lines of a log, 30 to 110 characters long, without colours.
    Plain,
    /// Words of two to nine characters, each in a style of its own.
    Styled,
    /// An editor that scrolls and repaints the alternate screen, with its status line.
    FullScreen,
}

impl Stream {
    pub(crate) const ALL: [Self; 3] = [Self::Plain, Self::Styled, Self::FullScreen];

    /// The name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Styled => "SGR",
            Self::FullScreen => "full-screen",
        }
    }

    /// Makes the bytes with this line end, at least [`BLOCK`] and hardly more.
    pub(crate) fn make(self, line_end: &str) -> Vec<u8> {
        let mut maker = Maker { text: String::with_capacity(BLOCK + 8192), dice: Dice(20_261_121) };
        if self == Self::FullScreen {
            maker.text.push_str("\x1b[?1049h\x1b[H\x1b[2J");
        }
        let mut count = 0;
        while maker.text.len() < BLOCK {
            count += 1;
            match self {
                Self::Plain => maker.log_line(count, line_end),
                Self::Styled => maker.styled_line(line_end),
                Self::FullScreen => maker.redraw(count),
            }
        }
        maker.text.into_bytes()
    }
}

/// A row of numbers that looks random and is always the same.
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    /// A number below `sides`.
    fn roll(&mut self, sides: usize) -> usize {
        // The constants are those of the usual 64-bit linear congruential generator.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % sides
    }
}

const WORDS: [&str; 16] = [
    "session", "of", "request", "in", "queue", "took", "bytes", "from", "cache", "retry", "at",
    "worker", "closed", "index", "ok", "pending",
];

#[derive(Debug)]
struct Maker {
    text: String,
    dice: Dice,
}

impl Maker {
    fn push(&mut self, text: std::fmt::Arguments<'_>) {
        self.text.write_fmt(text).expect("a string takes everything");
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.dice.roll(WORDS.len())]
    }

    fn log_line(&mut self, count: usize, line_end: &str) {
        let level = ["INFO", "INFO", "DEBUG", "WARN"][self.dice.roll(4)];
        self.push(format_args!("12:{:02}:{:02} {level} [{count}]", count / 60 % 60, count % 60));
        for _ in 0..2 + self.dice.roll(12) {
            let word = self.word();
            self.push(format_args!(" {word}"));
        }
        self.text.push_str(line_end);
    }

    fn styled_line(&mut self, line_end: &str) {
        for _ in 0..10 {
            self.styled_word();
        }
        self.text.push_str("\x1b[0m");
        self.text.push_str(line_end);
    }

    fn styled_word(&mut self) {
        let (colour, word) = (self.dice.roll(256), self.word());
        match self.dice.roll(4) {
            0 => self.push(format_args!("\x1b[{}m{word} ", 30 + colour % 8)),
            1 => self.push(format_args!(
                "\x1b[1;{};{}m{word} ",
                30 + colour % 8,
                40 + colour / 8 % 8
            )),
            2 => self.push(format_args!("\x1b[38;5;{colour}m{word} ")),
            3 => self.push(format_args!("\x1b[38;2;{colour};{};90m{word} ", 255 - colour)),
            _ => unreachable!("the dice has four sides"),
        }
    }

    /// Seven times of eight the text scrolls by a line, else everything is painted.
    fn redraw(&mut self, count: usize) {
        self.text.push_str("\x1b[?25l");
        if count.is_multiple_of(8) {
            for row in 1..ROWS {
                self.push(format_args!("\x1b[{row};1H"));
                self.source_line(count + row);
            }
        } else {
            self.push(format_args!("\x1b[1;{}r\x1b[{};1H\n\x1b[1;{ROWS}r", ROWS - 1, ROWS - 1));
            self.push(format_args!("\x1b[{};1H", ROWS - 1));
            self.source_line(count + ROWS);
        }
        self.push(format_args!(
            "\x1b[{ROWS};1H\x1b[7m{:<60}{:>19}\x1b[0m\x1b[{};{}H\x1b[?25h",
            " src/session/queue.rs",
            format!("{count},1  {}%", count % 100),
            1 + self.dice.0 as usize % (ROWS - 1),
            1 + self.dice.0 as usize % COLS,
        ));
    }

    fn source_line(&mut self, number: usize) {
        self.push(format_args!("\x1b[33m{number:>4} \x1b[0m"));
        for _ in 0..self.dice.roll(8) {
            let (colour, word) = (31 + self.dice.roll(6), self.word());
            self.push(format_args!("\x1b[{colour}m{word}\x1b[0m("));
        }
        self.text.push_str("\x1b[K");
    }
}
