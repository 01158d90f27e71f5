//! Lets a person choose among the sessions that run.

use std::io;

use crate::cli::attach::bar::Bar;
use crate::cli::attach::pointer::PointerReport;
use crate::cli::attach::renderer::{Picture, TerminalSize};
use crate::cli::attach::status::{choosing, named};
use crate::cli::attach::terminal::{Hint, Terminal, TerminalEvent, TerminalSignals};
use crate::cli::attach::typed_text::TypedText;
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
    let mut chooser = Chooser::new(sessions);
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
    /// A number, or a name or its beginning.
    typed: TypedText,
    /// Why Enter found no session, until the next key.
    problem: Option<String>,
}

impl Chooser {
    fn new(sessions: Vec<SessionWire>) -> Self {
        Self { sessions, chosen: 0, typed: TypedText::default(), problem: None }
    }

    /// Follows the keys up to the one that ends the choice.
    fn on_typed(&mut self, typed: &[u8]) -> Chosen {
        let ends = |chosen: &Chosen| *chosen != Chosen::Open;
        let mut chosen = keys_of(typed).into_iter().map(|key| self.on_key(&key));
        chosen.find(ends).unwrap_or(Chosen::Open)
    }

    fn on_key(&mut self, key: &[u8]) -> Chosen {
        self.problem = None;
        match key {
            b"\r" | b"\n" => return self.take(),
            b"\x03" => return Chosen::None,
            b"\x1b" if self.typed.is_empty() => return Chosen::None,
            b"q" if self.is_key("q") => return Chosen::None,
            b"\x1b" => self.typed = TypedText::default(),
            b"\x7f" | b"\x08" => {
                self.typed.erase();
                self.mark_typed();
            }
            b"\x1b[A" | b"\x1bOA" => self.step(-1),
            b"\x1b[B" | b"\x1bOB" => self.step(1),
            b"k" if self.is_key("k") => self.step(-1),
            b"j" if self.is_key("j") => self.step(1),
            key if self.typed.add(key) => self.mark_typed(),
            key => {
                let wheel = PointerReport::of(key).and_then(PointerReport::wheel_rows);
                if let Some(rows) = wheel.filter(|rows| *rows != 0) {
                    self.step(rows.signum() as isize);
                }
            }
        }
        Chosen::Open
    }

    /// Whether a letter is a key, and not the beginning of a name.
    fn is_key(&self, letter: &str) -> bool {
        self.typed.is_empty() && !self.sessions.iter().any(|it| it.name.starts_with(letter))
    }

    /// Takes the session that was typed, or else the marked one.
    fn take(&mut self) -> Chosen {
        let fitting = if self.typed.is_empty() { vec![self.chosen] } else { self.fitting() };
        let typed = self.typed.text();
        self.problem = match fitting.as_slice() {
            [index] => return Chosen::Session(self.sessions[*index].id.clone()),
            [] => Some(format!("no session fits {typed}")),
            [_, ..] => Some(format!("several names begin with {typed}")),
        };
        Chosen::Open
    }

    /// Marks the session that was typed, so that the person sees which one Enter takes.
    fn mark_typed(&mut self) {
        if let [index] = self.fitting()[..] {
            self.chosen = index;
        }
    }

    /// The sessions that the typed text may mean: by their number, or else by their name, or else by the
    /// beginning of that.
    fn fitting(&self) -> Vec<usize> {
        let typed = &*self.typed.text();
        let number = |(index, _): (usize, &SessionWire)| (index + 1).to_string() == typed;
        let name = |(_, session): (usize, &SessionWire)| session.name == typed;
        let exact = self.sessions.iter().enumerate().position(number);
        let exact = exact.or_else(|| self.sessions.iter().enumerate().position(name));
        match exact {
            Some(index) => vec![index],
            None => {
                let begins = |index: &usize| self.sessions[*index].name.starts_with(typed);
                (0..self.sessions.len()).filter(begins).collect()
            }
        }
    }

    /// Marks another session; what was typed no longer counts.
    fn step(&mut self, rows: isize) {
        self.typed = TypedText::default();
        let index = self.chosen.saturating_add_signed(rows);
        self.chosen = index.min(self.sessions.len() - 1);
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
            let keys = choosing(&self.typed.text(), self.problem.as_deref(), cols);
            lines.push(Bar::plain(keys).line(cols));
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
        Chooser::new(names.iter().map(session).collect())
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
        check("12\x1b[A\r", session("11"));
        check("12\x7f\r", session("1"));
        check("\x1b[<65;1;1M\x1b[<65;1;1M\x1b[<64;1;1M\r", session("2"));
        for nowhere in ["45\r", "0\r", "x\r", "x\x1b[C", "\x1b[I"] {
            check(nowhere, Chosen::Open);
        }
    }

    #[test]
    fn a_typed_name_or_its_beginning_takes_its_session_and_never_another_one() {
        let named = |typed: &str| {
            let mut chooser = chooser(&["build", "123abc", "builder", "quiz", "logs", "9"]);
            let chosen = chooser.on_typed(typed.as_bytes());
            let bar = chooser.picture(TerminalSize { rows: 9, cols: 80 }).lines.pop().unwrap();
            (chosen, bar.text.to_string())
        };
        for (typed, id) in [
            ("123abc\r", "123abc"),
            ("12\r", "123abc"),
            ("build\r", "build"),
            ("builde\r", "builder"),
            ("9\r", "9"),
            ("3\r", "builder"),
            ("lox\x7fg\r", "logs"),
            // Arrows mark a session from the one that was typed on.
            ("log\x1b[A\r", "quiz"),
        ] {
            assert_eq!(named(typed).0, session(id), "{typed:?}");
        }
        for (typed, bar) in [
            ("buil", "buil_ | Enter attaches | Esc clears"),
            // Keys are text behind text.
            ("bjkq", "bjkq_ | Enter attaches | Esc clears"),
            ("buil\r", "several names begin with buil | Esc clears"),
            ("123abd\r", "no session fits 123abd | Esc clears"),
            ("123abd\r\x7f", "123ab_ | Enter attaches | Esc clears"),
            ("x\x1b", "choose with arrows, a number or a name | Enter attaches | q leaves"),
        ] {
            assert_eq!(named(typed), (Chosen::Open, bar.to_owned()), "{typed:?}");
        }
    }

    #[test]
    fn q_escape_and_interrupt_leave() {
        for key in ["q", "\x1b", "\x03", "jq\r", "x\x03"] {
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
        assert_eq!(texts[5], "choose | Enter attaches | q leaves");
    }
}
