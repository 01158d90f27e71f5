//! The screen of a recording that is played.
//!
//! Output goes through termgate's own screen, and never to a person's terminal as it is: a recording that was made
//! elsewhere could otherwise change that terminal, write to its clipboard, or have it answer as if somebody typed.

use std::sync::Arc;
use std::time::Duration;

use crate::core::frame::line::Line;
use crate::core::frame::{Frame, Size};
use crate::core::moment::Moment;
use crate::core::screen::{Facts, Origin, Screen, ScreenLimits};
use crate::session::recording::asciicast::CastEvent;
use crate::session::recording::reader::TimedEvent;

/// A screen that is fed events.
#[derive(Debug)]
pub(in crate::cli) struct PlayedScreen {
    screen: Screen,
    at: Duration,
    marker: Option<String>,
}

impl PlayedScreen {
    pub(in crate::cli) fn new(size: Size) -> Self {
        let screen = Screen::new(size, ScreenLimits::default(), Origin::default());
        Self { screen, at: Duration::ZERO, marker: None }
    }

    pub(in crate::cli) fn play(&mut self, event: TimedEvent) {
        self.at = event.at;
        match event.event {
            CastEvent::Output(text) => {
                let now = Moment::from_boot(self.at);
                for slice in text.as_bytes().chunks(self.screen.slice_bytes().max(1)) {
                    self.screen.feed(now, slice);
                }
                // Nobody is there who asked.
                self.screen.take_answers();
                self.screen.take_reports();
            }
            CastEvent::Resize(size) => self.screen.resize(size),
            CastEvent::Marker(text) => self.marker = Some(text),
            CastEvent::Exit(code) => self.marker = Some(format!("ended with exit code {code}")),
        }
    }

    /// The time of the newest event.
    pub(in crate::cli) fn at(&self) -> Duration {
        self.at
    }

    /// The newest marker.
    pub(in crate::cli) fn marker(&self) -> Option<&str> {
        self.marker.as_deref()
    }

    pub(in crate::cli) fn frame(&mut self) -> Arc<Frame> {
        self.screen.first_frame(Moment::from_boot(self.at), &Facts::default())
    }

    /// History and screen as text; rows that wrap are one line.
    pub(in crate::cli) fn text(&mut self) -> String {
        let frame = self.frame();
        let history = frame.history.range(frame.history.first(), frame.history.end());
        let mut text = String::new();
        let mut add = |line: &Line| {
            text.push_str(&line.text);
            if !line.wrapped {
                text.push('\n');
            }
        };
        history.for_each(|(_, row)| add(&row.line()));
        frame.lines.iter().for_each(|line| add(&line.value));
        text.truncate(text.trim_end().len());
        text
    }
}
