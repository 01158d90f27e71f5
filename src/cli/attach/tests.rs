//! From what a program prints to what a person sees: the session's screen, its deltas on the wire, the
//! view, the picture, the painting, and an emulator of the person's terminal.

use std::sync::Arc;

use proptest::prelude::*;

use crate::cli::attach::bar::Bar;
use crate::cli::attach::layout::{VisiblePart, room_for_session};
use crate::cli::attach::renderer::{Canvas, ENTER, TerminalSize, with_wheel};
use crate::cli::attach::view::SessionView;
use crate::core::frame::delta::View as Wanted;
use crate::core::frame::line::Line;
use crate::core::frame::{Frame, Size};
use crate::core::ids::Watermark;
use crate::core::keys::modes::InputModes;
use crate::core::moment::Moment;
use crate::core::screen::{Facts, Origin, Screen, ScreenLimits};
use crate::wire::delta::DeltaWire;

/// A terminal, the session's or the person's.
struct Terminal {
    screen: Screen,
    frame: Arc<Frame>,
}

impl Terminal {
    fn new(size: Size) -> Self {
        let mut screen = Screen::new(size, ScreenLimits::default(), Origin::default());
        let frame = screen.first_frame(Moment::default(), &Facts::default());
        Self { screen, frame }
    }

    fn print(&mut self, text: &str) {
        self.screen.feed(Moment::default(), text.as_bytes());
        self.publish();
    }

    fn resize(&mut self, size: Size) {
        self.screen.resize(size);
        self.publish();
    }

    fn publish(&mut self) {
        let published = self.screen.publish(Moment::default(), &Facts::default());
        self.frame = published.unwrap_or_else(|| Arc::clone(&self.frame));
    }

    /// Where the cursor is, counted from the top left.
    fn cursor(&self) -> (u16, u16) {
        let cursor = self.frame.cursor.value;
        ((cursor.row.0 - self.frame.base_row.0) as u16, cursor.col)
    }

    fn line(&self, row: u16) -> Line {
        self.frame.lines.get(usize::from(row)).map(|line| (*line.value).clone()).unwrap_or_default()
    }
}

/// A person in front of a session.
struct Attached {
    session: Terminal,
    person: Terminal,
    canvas: Canvas,
    view: SessionView,
    window: VisiblePart,
    seen: Option<Watermark>,
}

impl Attached {
    fn new(size: Size, room: Size) -> Self {
        let mut attached = Self {
            session: Terminal::new(size),
            person: Terminal::new(room),
            canvas: Canvas::default(),
            view: SessionView::default(),
            window: VisiblePart::default(),
            seen: None,
        };
        attached.person.print(ENTER);
        attached.make_room(room);
        attached
    }

    fn make_room(&mut self, room: Size) {
        self.person.resize(room);
        self.canvas.resize(TerminalSize { rows: room.rows, cols: room.cols });
    }

    /// Brings the person's terminal up to date, whatever happened since the last time.
    fn paint(&mut self) {
        let frame = &self.session.frame;
        let wanted = Wanted { input_modes: true, ..Wanted::default() };
        let delta = DeltaWire::from(&frame.delta_since(self.seen, &wanted, None));
        self.seen = Some(frame.watermark);
        let mut delta = serde_json::to_value(delta).unwrap();
        delta["session"] = "s".into();
        assert!(self.view.apply(delta));
        let picture =
            self.window.picture(&self.view, self.canvas.room(), &Bar::plain("the status"));
        let bytes = self.canvas.paint(&picture);
        self.person.print(&bytes);
    }

    /// The person sees the part of the session around its cursor, and the status line below.
    fn check(&self) {
        let room = self.canvas.room();
        let inner = room_for_session(room);
        let (theirs, ours) = (self.session.cursor(), self.person.cursor());
        let (top, left) = (theirs.0.checked_sub(ours.0), theirs.1.checked_sub(ours.1));
        let (top, left) = (top.expect("the cursor's row"), left.expect("the cursor's column"));
        assert!(ours.0 < inner.rows, "the cursor is on the status line");
        for row in 0..inner.rows {
            let line = self.session.line(top + row);
            let wanted = line.cut(left, inner.cols);
            looks_like(&self.person.line(row), &wanted, row);
        }
        if inner != room {
            let end = "the status".len().min(usize::from(room.cols));
            assert_eq!(&*self.person.line(inner.rows).text, "the status"[..end].trim_end());
        }
        let modes = |terminal: &Terminal| InputModes {
            line_feed_new_line: false,
            ..terminal.screen.modes()
        };
        assert_eq!(modes(&self.person), with_wheel(modes(&self.session)));
        assert_eq!(self.person.frame.title.value, self.session.frame.title.value);
        assert_eq!(self.person.frame.cursor.value.style, self.session.frame.cursor.value.style);
    }
}

fn looks_like(line: &Line, wanted: &Line, row: u16) {
    assert_eq!(&*line.text, wanted.text.trim_end_matches(' '), "row {row}");
    for glyph in line.glyphs() {
        let (style, wanted) = (line.style_at(glyph.column), wanted.style_at(glyph.column));
        assert_eq!(style, wanted, "row {row}, {glyph:?}");
    }
    let painted = wanted.runs.last().map_or(0, |run| run.column + run.columns);
    for column in 0..painted {
        let (style, wanted) = (line.style_at(column), wanted.style_at(column));
        assert_eq!(style.background, wanted.background, "row {row}, column {column}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Print(&'static str),
    Resize(Size),
    Room(Size),
    Paint,
}

fn size() -> impl Strategy<Value = Size> {
    (2u16..12, 2u16..24).prop_map(|(rows, cols)| Size { rows, cols })
}

fn step() -> impl Strategy<Value = Step> {
    let printed = prop::sample::select(vec![
        "some text ",
        "漢字",
        "e\u{301}",
        "wide 漢 and narrow text that wraps around",
        "\r\n",
        "\n\n\n",
        "\x1b[1;31m",
        "\x1b[44m",
        "\x1b[7;4m",
        "\x1b[38;2;1;2;3;48;5;200m",
        "\x1b[8msecret",
        "\x1b[m",
        "\x1b[2J",
        "\x1b[H",
        "\x1b[3;9H",
        "\x1b[K",
        "\x1b[2L",
        "\x1bM",
        "\x1b[?1049h",
        "\x1b[?1049l",
        "\x1b[?1h\x1b=",
        "\x1b[?1l\x1b>",
        "\x1b[?1002h\x1b[?1006h",
        "\x1b[?1002l",
        "\x1b[?2004h",
        "\x1b[>5u",
        "\x1b[<u",
        "\x1b[4 q",
        "\x1b[5 q\x1b[5m",
        "\x1b[0 q",
        "\x1b]2;a title\x07",
        "\x1bc",
    ]);
    prop_oneof![
        12 => printed.prop_map(Step::Print),
        1 => size().prop_map(Step::Resize),
        1 => size().prop_map(Step::Room),
        4 => Just(Step::Paint),
    ]
}

proptest! {
    #[test]
    fn a_person_sees_the_session_whatever_was_skipped(
        size in size(),
        room in size(),
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let mut attached = Attached::new(size, room);
        for step in steps.iter().chain([&Step::Paint]) {
            match step {
                Step::Print(text) => attached.session.print(text),
                Step::Resize(size) => attached.session.resize(*size),
                Step::Room(room) => attached.make_room(*room),
                Step::Paint => {
                    attached.paint();
                    attached.check();
                }
            }
        }
    }
}
