//! One person's unanswered requests, with a bound on their number.
//!
//! It detects a daemon that does not answer, so that the person can still leave.

use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::cli::attach::renderer::TerminalSize;
use crate::cli::attach::unanswered::Number;
use crate::transport::client::{Client, ClientError};

/// With this many unanswered requests, the client stops reading input.
const REQUESTS_MAX: usize = 16;
/// How long an answer may take at that bound. A healthy daemon answers within a second, regardless of
/// the program.
const ANSWER_TIME: Duration = Duration::from_secs(3);

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Types these bytes.
    Typing(Number),
    TakeOver,
    HandBack,
    /// Sends the available size.
    Room,
    About,
    History,
    Search,
    FollowApprovals,
    Approvals,
    /// Lets a call pass or denies it.
    Decide,
}

impl Purpose {
    /// Whether its success gives the person the keyboard.
    fn is_for_keyboard(self) -> bool {
        match self {
            Self::Typing(_) | Self::TakeOver => true,
            Self::HandBack
            | Self::Room
            | Self::About
            | Self::History
            | Self::Search
            | Self::FollowApprovals
            | Self::Approvals
            | Self::Decide => false,
        }
    }
}

#[derive(Debug)]
pub struct Answered {
    pub asked: Purpose,
    pub answer: Result<Value, ClientError>,
}

#[derive(Debug, Default)]
pub struct Requests {
    waiting: JoinSet<Answered>,
    /// How many of them give the person the keyboard.
    keyboard: usize,
    due: Option<Instant>,
    stuck: bool,
}

impl Requests {
    /// Sends a request after all earlier ones.
    pub fn send(
        &mut self,
        client: &Client,
        asked: Purpose,
        method: &str,
        params: &Value,
    ) -> Result<(), ClientError> {
        let mut reply = client.post(method, params)?;
        self.waiting.spawn(async move { Answered { asked, answer: reply.wait().await } });
        self.keyboard += usize::from(asked.is_for_keyboard());
        if self.waiting.len() == REQUESTS_MAX {
            self.due = Some(Instant::now() + ANSWER_TIME);
        }
        Ok(())
    }

    /// Waits for the next answer; none when no request is unanswered. Cancel-safe.
    pub async fn next(&mut self) -> Option<Answered> {
        let answered = self.waiting.join_next().await?;
        (self.due, self.stuck) = (None, false);
        // The tasks only wait: they do not panic, and are aborted only all together.
        let answered = answered.expect("a task that waits for an answer comes to its end");
        self.keyboard -= usize::from(answered.asked.is_for_keyboard());
        Some(answered)
    }

    /// Whether a request for typing or taking over is unanswered.
    pub fn is_typing(&self) -> bool {
        self.keyboard > 0
    }

    /// Whether to stop reading input until an answer arrives.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= REQUESTS_MAX && !self.stuck
    }

    /// Whether the daemon does not answer, so that further input is lost.
    pub fn is_stuck(&self) -> bool {
        self.stuck
    }

    /// When to call `on_time`.
    pub fn deadline(&self) -> Option<Instant> {
        self.due
    }

    /// Checks whether an answer is late.
    pub fn on_time(&mut self, now: Instant) {
        if self.due.is_some_and(|due| due <= now) {
            (self.due, self.stuck) = (None, true);
        }
    }
}

/// The size that was sent last, and whether its answer is pending.
#[derive(Debug, Default)]
pub struct RoomTold {
    told: Option<TerminalSize>,
    awaited: bool,
}

impl RoomTold {
    /// Returns the size to send now, unless it was sent already or an answer is pending.
    #[must_use]
    pub fn on_room(&mut self, room: TerminalSize) -> Option<TerminalSize> {
        if self.awaited || self.told == Some(room) {
            return None;
        }
        (self.told, self.awaited) = (Some(room), true);
        self.told
    }

    /// Returns the size to send after the daemon's answer, if it has changed.
    #[must_use]
    pub fn on_answer(&mut self, room: TerminalSize) -> Option<TerminalSize> {
        self.awaited = false;
        self.on_room(room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn room(cols: u16) -> TerminalSize {
        TerminalSize { rows: 20, cols }
    }

    #[test]
    fn while_one_size_is_on_its_way_only_the_newest_waits() {
        let mut told = RoomTold::default();
        assert_eq!(told.on_room(room(80)), Some(room(80)));
        for cols in 40..80 {
            assert_eq!(told.on_room(room(cols)), None);
        }
        assert_eq!(told.on_answer(room(79)), Some(room(79)));
        assert_eq!(told.on_answer(room(79)), None);
    }

    #[test]
    fn a_size_that_is_known_is_not_told_again() {
        let mut told = RoomTold::default();
        assert_eq!(told.on_room(room(80)), Some(room(80)));
        assert_eq!(told.on_room(room(60)), None);
        assert_eq!(told.on_answer(room(80)), None);
        assert_eq!(told.on_room(room(60)), Some(room(60)));
    }
}
