//! A bar across the terminal: one row of text in one style.

use crate::core::frame::line::{Attributes, Color, Line, Run, Style};

/// How a bar looks, by what it says about the person's keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BarLook {
    /// The keyboard is not this person's.
    #[default]
    Plain,
    /// The person has the keyboard while typing.
    Typing,
    /// The person has the keyboard until it is handed back.
    TakenOver,
    /// A key was not taken.
    Refused,
    /// A call waits for the person.
    Asking,
}

/// A text and its look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bar {
    pub text: String,
    pub look: BarLook,
    /// Whether to use colours.
    pub coloured: bool,
}

impl Bar {
    /// The bar in the look that says nothing.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// The row of a terminal with so many columns.
    pub fn line(&self, cols: u16) -> Line {
        let line = Line { text: self.text.as_str().into(), ..Line::default() };
        let runs = [Run { column: 0, columns: cols, style: self.style() }];
        Line { runs: runs.into(), ..line.cut(0, cols) }
    }

    fn style(&self) -> Style {
        let inverse = Style { attributes: Attributes::INVERSE, ..Style::default() };
        let colours = |foreground, background| Style {
            foreground: Color::Indexed(foreground),
            background: Color::Indexed(background),
            attributes: Attributes::BOLD,
        };
        match (self.look, self.coloured) {
            (BarLook::Plain, _) => inverse,
            (BarLook::Typing, true) => colours(0, 2),
            (BarLook::TakenOver, true) => colours(0, 3),
            (BarLook::Refused, true) => colours(15, 1),
            (BarLook::Asking, true) => colours(0, 6),
            (BarLook::Typing | BarLook::TakenOver | BarLook::Refused | BarLook::Asking, false) => {
                Style { attributes: Attributes::INVERSE.with(Attributes::BOLD), ..inverse }
            }
        }
    }
}
