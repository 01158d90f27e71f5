//! Lets a person choose among the sessions that run.

use std::io;

use crate::cli::attach::bar::Bar;
use crate::cli::attach::pointer::PointerReport;
use crate::cli::attach::renderer::{Picture, TerminalSize};
use crate::cli::attach::status::{choosing, named};
use crate::cli::attach::terminal::{Hint, Terminal, TerminalEvent, TerminalSignals};
use crate::cli::attach::words::shortened;
use crate::cli::ls::state;
use crate::cli::table::render;
use crate::core::frame::line::Line;
use crate::core::keys::tokens::keys_of;
use crate::wire::session::SessionWire;

/// How many bytes one read takes from the person.
const TYPED_MAX: usize = 256;

/// Shows the sessions, at least one, until the person chooses one. Returns its id, or none when the person
/// leaves.
pub async fn choose(
    sessions: Vec<SessionWire>,
    terminal: &mut Terminal,
    signals: &mut TerminalSignals,
) -> io::Result<Option<String>> {
    let mut chooser = Chooser { sessions, chosen: 0, number: 0 };
    let mut typed = [0; TYPED_MAX];
    loop {
        if !terminal.is_behind() {
            terminal.paint(&chooser.picture(terminal.room()));
        }
        tokio::select! {
            signal = signals.next() => match signal {
                Hint::Leave => return Ok(None),
                Hint::Resized => terminal.resize(),
                Hint::Stop => terminal.stop_for_a_while()?,
                Hint::GoesOn => terminal.enter()?,
            },
            turn = terminal.turn(&mut typed, true) => match turn {
                Ok(TerminalEvent::Typed(count)) => match chooser.on_typed(&typed[..count]) {
                    Chosen::Open => {}
                    Chosen::Session(id) => return Ok(Some(id)),
                    Chosen::None => return Ok(None),
                },
                Ok(TerminalEvent::Flushed) => {}
                // The person closed the window.
                Ok(TerminalEvent::Gone) | Err(_) => return Ok(None),
            },
        }
    }
}

/// What the person did.
#[derive(Debug, PartialEq, Eq)]
enum Chosen {
    Open,
    Session(String),
    None,
}

/// The sessions, of which one is marked.
struct Chooser {
    sessions: Vec<SessionWire>,
    chosen: usize,
    /// The number that is being typed.
    number: usize,
}

impl Chooser {
    /// Follows the keys up to the one that ends the choice.
    fn on_typed(&mut self, typed: &[u8]) -> Chosen {
        for key in keys_of(typed) {
            let number = std::mem::take(&mut self.number);
            match key.as_slice() {
                b"\r" | b"\n" => return Chosen::Session(self.sessions[self.chosen].id.clone()),
                b"q" | b"\x03" | b"\x1b" => return Chosen::None,
                b"\x1b[A" | b"\x1bOA" | b"k" => self.chosen = self.chosen.saturating_sub(1),
                b"\x1b[B" | b"\x1bOB" | b"j" => self.choose(self.chosen + 1),
                [digit @ b'0'..=b'9'] => self.on_digit(number, usize::from(digit - b'0')),
                key => match PointerReport::of(key).and_then(PointerReport::wheel_rows) {
                    Some(..0) => self.chosen = self.chosen.saturating_sub(1),
                    Some(1..) => self.choose(self.chosen + 1),
                    Some(0) | None => {}
                },
            }
        }
        Chosen::Open
    }

    fn choose(&mut self, index: usize) {
        self.chosen = index.min(self.sessions.len() - 1);
    }

    /// Adds a digit to the number before it, or starts a new one where there are not so many sessions.
    fn on_digit(&mut self, before: usize, digit: usize) {
        let wanted = [before * 10 + digit, digit];
        if let Some(number) = wanted.into_iter().find(|it| (1..=self.sessions.len()).contains(it)) {
            self.number = number;
            self.chosen = number - 1;
        }
    }

    /// The sessions around the marked one, under their head, and the keys at the bottom.
    fn picture(&self, room: TerminalSize) -> Picture {
        let (rows, cols) = (usize::from(room.rows), room.cols);
        let row = |(index, session): (usize, &SessionWire)| {
            let (by, kind) = (session.lease.by.as_deref(), session.lease.kind);
            let holder = by.zip(kind).map_or("-".to_owned(), |(by, kind)| named(by, kind));
            let number = (index + 1).to_string();
            [number, session.name.clone(), state(session), holder, session.command.clone()]
        };
        let cells: Vec<_> = self.sessions.iter().enumerate().map(row).collect();
        let table = render(["", "NAME", "STATE", "KEYBOARD", "COMMAND"], &cells);
        let mut table = table.lines().map(|line| shortened(line, cols.into()));
        let head = table.next().unwrap_or_default();
        // Terminals of a few rows have room for the sessions only.
        let framed = rows >= 4;
        let height = if framed { rows - 2 } else { rows };
        let first = (self.chosen + 1).saturating_sub(height);
        let shown = table.enumerate().skip(first).take(height);
        let lines = shown.map(|(index, text)| match index == self.chosen {
            true => Bar::plain(text).line(cols),
            false => line(&text),
        });
        let mut lines: Vec<_> = lines.collect();
        if framed {
            lines.insert(0, line(&head));
            lines.resize(rows - 1, Line::default());
            lines.push(Bar::plain(choosing(cols)).line(cols));
        }
        Picture { lines, ..Picture::default() }
    }
}

fn line(text: &str) -> Line {
    Line { text: text.into(), ..Line::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chooser(names: &[&str]) -> Chooser {
        let session = |name: &&str| SessionWire {
            id: format!("id-{name}"),
            name: (*name).to_owned(),
            ..SessionWire::example()
        };
        Chooser { sessions: names.iter().map(session).collect(), chosen: 0, number: 0 }
    }

    #[track_caller]
    fn check(typed: &str, choice: Chosen) {
        let names: Vec<String> = (1..=12).map(|number| number.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(chooser(&names).on_typed(typed.as_bytes()), choice, "{typed:?}");
    }

    fn session(id: &str) -> Chosen {
        Chosen::Session(format!("id-{id}"))
    }

    #[test]
    fn arrows_numbers_and_the_wheel_mark_a_session_and_enter_takes_it() {
        check("\r", session("1"));
        check("\x1b[B\x1bOBj\r", session("4"));
        check("\x1b[B\x1b[A\x1b[A\r", session("1"));
        check("3\r", session("3"));
        check("12\r", session("12"));
        check("45\r", session("5"));
        check("0\r", session("1"));
        check("12j\r", session("12"));
        check("\x1b[<65;1;1M\x1b[<65;1;1M\x1b[<64;1;1M\r", session("2"));
        check("x\x1b[C", Chosen::Open);
    }

    #[test]
    fn q_escape_and_interrupt_leave() {
        for key in ["q", "\x1b", "\x03", "jq\r"] {
            check(key, Chosen::None);
        }
    }

    #[test]
    fn the_marked_session_is_shown_on_terminals_of_any_size_with_the_keys() {
        let mut chooser = chooser(&["build", "deploy", "logs", "tests"]);
        chooser.chosen = 3;
        for (rows, cols) in [(5, 20), (10, 40), (24, 80), (50, 200), (2, 20)] {
            let picture = chooser.picture(TerminalSize { rows, cols });
            assert!(picture.lines.len() <= usize::from(rows));
            let marked = picture.lines.iter().find(|line| !line.runs.is_empty()).unwrap();
            assert!(marked.text.starts_with("4  tests"), "{marked:?}");
            assert!(picture.lines.iter().all(|line| line.columns() <= cols));
            let last = &picture.lines.last().unwrap().text;
            let keys = last.contains("Enter") || rows < 4;
            assert!(keys, "{last}");
        }
        let picture = chooser.picture(TerminalSize { rows: 6, cols: 60 });
        let texts: Vec<_> = picture.lines.iter().map(|line| &*line.text).collect();
        assert_eq!(texts[1], "1  build   running  -         make -j2");
        assert_eq!(texts[5], "choose with arrows or a number | Enter attaches | q leaves");
    }
}
