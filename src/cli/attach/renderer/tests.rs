//! What is painted, as an emulator of the person's terminal understands it.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::core::frame::line::{Attributes, Color, Link, Run, Style};
use crate::core::frame::{Frame, ScreenMode, Size};
use crate::core::moment::Moment;
use crate::core::screen::{Facts, Origin, Screen, ScreenLimits};

const ROOM: TerminalSize = TerminalSize { rows: 6, cols: 12 };

/// A person's terminal.
struct Person {
    screen: Screen,
    canvas: Canvas,
    frame: Arc<Frame>,
}

impl Person {
    fn new() -> Self {
        let size = Size { rows: ROOM.rows, cols: ROOM.cols };
        let mut screen = Screen::new(size, ScreenLimits::default(), Origin::default());
        let frame = screen.first_frame(Moment::default(), &Facts::default());
        let mut person = Self { screen, canvas: Canvas::default(), frame };
        person.show(b"$ ls\r\nbefore");
        person.show(ENTER.as_bytes());
        person.canvas.resize(ROOM);
        person
    }

    fn show(&mut self, bytes: &[u8]) {
        self.screen.feed(Moment::default(), bytes);
        let published = self.screen.publish(Moment::default(), &Facts::default());
        self.frame = published.unwrap_or_else(|| Arc::clone(&self.frame));
    }

    fn paint(&mut self, picture: &Picture) -> String {
        let bytes = self.canvas.paint(picture);
        self.show(bytes.as_bytes());
        bytes
    }

    /// The terminal shows exactly this.
    fn shows(&self, picture: &Picture) {
        for (index, shown) in self.frame.lines.iter().enumerate() {
            let wanted = picture.lines.get(index).cloned().unwrap_or_default();
            assert_eq!(shown.value.text, wanted.text, "row {index}");
            for glyph in wanted.glyphs() {
                let style = wanted.style_at(glyph.column);
                assert_eq!(shown.value.style_at(glyph.column), style, "row {index} {glyph:?}");
            }
        }
        let cursor = self.frame.cursor.value;
        let at = picture.pointer.as_ref().map(|pointer| (pointer.row, pointer.col));
        let row = (cursor.row.0 - self.frame.base_row.0) as u16;
        assert_eq!(cursor.visible.then_some((row, cursor.col)), at);
        let modes = InputModes { line_feed_new_line: false, ..self.screen.modes() };
        assert_eq!(modes, with_wheel(picture.modes));
        assert_eq!(*self.frame.title.value, *picture.title);
    }
}

fn style() -> impl Strategy<Value = Style> {
    let color = prop_oneof![
        Just(Color::Default),
        any::<u8>().prop_map(Color::Indexed),
        any::<[u8; 3]>().prop_map(|[red, green, blue]| Color::Rgb(red, green, blue)),
    ];
    let attributes = prop::sample::select(vec![
        Attributes::default(),
        Attributes::BOLD,
        Attributes::INVERSE.with(Attributes::UNDERLINE),
        Attributes::STRIKE.with(Attributes::BLINK),
    ]);
    (color.clone(), color, attributes).prop_map(|(foreground, background, attributes)| Style {
        foreground,
        background,
        attributes,
    })
}

/// A line of letters, at most as wide as the room, some of them in a style, and some a link.
fn line() -> impl Strategy<Value = Line> {
    let text = prop::collection::vec(prop::sample::select(vec!["a", "Z", "\u{e9}", "漢"]), 0..6);
    let target = prop::sample::select(vec!["", "http://a", "mailto:b"]);
    (text, style(), 0u16..4, target).prop_map(|(text, style, from, target)| {
        let text: String = text.concat();
        let plain = Line { text: text.into(), ..Line::default() };
        let Some(glyph) = plain.glyphs().find(|glyph| glyph.column >= from) else {
            return plain;
        };
        let (column, columns) = (glyph.column, plain.columns() - glyph.column);
        let run = (style != Style::default()).then_some(Run { column, columns, style });
        let link = Link { column, columns, target: target.into() };
        let links = (!target.is_empty()).then_some(link).into_iter().collect();
        Line { runs: run.into_iter().collect(), links, ..plain }
    })
}

fn picture() -> impl Strategy<Value = Picture> {
    let lines = prop::collection::vec(line(), 0..=usize::from(ROOM.rows));
    let pointer = prop::option::of((0..ROOM.rows, 0..ROOM.cols));
    let modes = (any::<[bool; 3]>(), 0u8..4, 0u8..3, 0u8..32);
    (lines, pointer, modes, "[a-z]{0,5}").prop_map(|(lines, pointer, modes, title)| {
        let ([cursor, keypad, paste], mouse, encoding, kitty_flags) = modes;
        let reporting = [
            MouseReporting::Off,
            MouseReporting::Clicks,
            MouseReporting::Drags,
            MouseReporting::Motion,
        ];
        let encodings = [MouseEncoding::Bytes, MouseEncoding::Utf8, MouseEncoding::Sgr];
        let modes = InputModes {
            application_cursor: cursor,
            application_keypad: keypad,
            bracketed_paste: paste,
            line_feed_new_line: false,
            mouse: reporting[usize::from(mouse)],
            mouse_encoding: encodings[usize::from(encoding)],
            kitty_flags,
        };
        let pointer = pointer.map(|(row, col)| PaintedCursor { row, col, style: 2 });
        Picture { lines, pointer, title, modes, ..Picture::default() }
    })
}

proptest! {
    #[test]
    fn the_terminal_shows_each_picture_whatever_it_showed_before(
        pictures in prop::collection::vec(picture(), 1..6),
    ) {
        let mut person = Person::new();
        for picture in &pictures {
            person.paint(picture);
            person.shows(picture);
        }
    }

    #[test]
    fn a_terminal_is_left_as_it_was_found(pictures in prop::collection::vec(picture(), 0..4)) {
        let mut person = Person::new();
        for picture in &pictures {
            person.paint(picture);
        }
        let leaving = person.canvas.leave();
        person.show(leaving.as_bytes());
        let frame = &person.frame;
        prop_assert_eq!(&*frame.lines[0].value.text, "$ ls");
        prop_assert_eq!(&*frame.lines[1].value.text, "before");
        prop_assert_eq!(frame.mode.value, ScreenMode::Normal);
        prop_assert_eq!(person.screen.modes(), InputModes::default());
        prop_assert_eq!(&*frame.title.value, "");
        prop_assert!(frame.cursor.value.visible);
        let cursor = (frame.cursor.value.row.0 - frame.base_row.0, frame.cursor.value.col);
        prop_assert_eq!(cursor, (1, 6));
    }
}

fn texts(texts: &[&str]) -> Picture {
    let line = |text: &&str| Line { text: (*text).into(), ..Line::default() };
    Picture { lines: texts.iter().map(line).collect(), ..Picture::default() }
}

#[test]
fn only_rows_that_changed_are_painted() {
    let mut person = Person::new();
    person.paint(&texts(&["one", "two", "three"]));
    let bytes = person.paint(&texts(&["one", "TWO", "three"]));
    assert!(bytes.contains("TWO"), "{bytes:?}");
    assert!(!bytes.contains("one") && !bytes.contains("three"), "{bytes:?}");
    assert_eq!(person.paint(&texts(&["one", "TWO", "three"])), "");
}

#[test]
fn a_row_drawn_wider_than_it_is_counted_spoils_no_other() {
    let wide = "x".repeat(usize::from(ROOM.cols) + 3);
    let mut person = Person::new();
    person.paint(&texts(&["one", "", "", "", "", &wide]));
    assert_eq!(&*person.frame.lines[0].value.text, "one");
    let leaving = person.canvas.leave();
    person.show(leaving.as_bytes());
    person.show(format!("\x1b[H{wide}").as_bytes());
    assert_eq!(&*person.frame.lines[1].value.text, "xxxore", "rows run on again");
}

#[test]
fn a_terminal_that_changed_its_size_is_painted_anew() {
    let mut person = Person::new();
    person.paint(&texts(&["one"]));
    person.canvas.resize(ROOM);
    assert!(person.paint(&texts(&["one"])).contains("one"));
}

#[test]
fn a_bell_rings_once_and_not_for_those_before() {
    let mut person = Person::new();
    let rung = |bells| Picture { bells, ..Picture::default() };
    assert!(!person.canvas.paint(&rung(3)).contains('\x07'));
    assert!(person.canvas.paint(&rung(5)).contains('\x07'));
    assert!(!person.canvas.paint(&rung(5)).contains('\x07'));
}

#[test]
fn a_title_cannot_smuggle_sequences() {
    let mut person = Person::new();
    let title = "a\x1b[2Jb\x07c".to_owned();
    let bytes = person.canvas.paint(&Picture { title, ..Picture::default() });
    assert!(bytes.contains("\x1b]2;a[2Jbc\x1b\\"), "{bytes:?}");
}

#[test]
fn the_style_of_the_cursor_is_shown_and_goes_with_the_person() {
    let mut person = Person::new();
    for style in [6, 5, 4, 3, 2, 1, 0, 5] {
        let pointer = Some(PaintedCursor { row: 0, col: 0, style });
        person.paint(&Picture { pointer, ..Picture::default() });
        assert_eq!(person.frame.cursor.value.style, style);
    }
    let leaving = person.canvas.leave();
    person.show(leaving.as_bytes());
    assert_eq!(person.frame.cursor.value.style, 0);
}

#[test]
fn the_clipboard_gets_what_was_written_while_the_person_was_there() {
    let mut person = Person::new();
    let written = |count| {
        let clipboard = ClipboardWrite { count, data: "aGk=".into() };
        Picture { clipboard, ..Picture::default() }
    };
    let copy = "\x1b]52;c;aGk=\x1b\\";
    assert!(!person.paint(&written(3)).contains(copy), "it was written before");
    assert!(person.paint(&written(4)).contains(copy));
    assert!(!person.paint(&written(4)).contains(copy));
    assert!(!person.paint(&written(0)).contains(copy), "another daemon counts anew");
    assert!(person.paint(&written(1)).contains(copy));
}

#[test]
fn a_row_at_the_bottom_is_painted_below_what_is_shown_and_the_picture_comes_back_after_it() {
    let mut person = Person::new();
    let pointer = Some(PaintedCursor { row: 1, col: 2, style: 6 });
    let mut shown = Picture { pointer, ..texts(&["one", "two", "", "", "", "status"]) };
    shown.modes.bracketed_paste = true;
    person.paint(&shown);
    let bar = Line { text: "silent".into(), ..Line::default() };
    let bytes = person.canvas.paint_last_row(&bar);
    person.show(bytes.as_bytes());
    person.shows(&texts(&["one", "two", "", "", "", "silent"]));
    assert_eq!(person.canvas.paint_last_row(&bar), "");
    person.paint(&shown);
    person.shows(&shown);
}
