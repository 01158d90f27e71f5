//! One person's unanswered requests, with a bound on their number.
//!
//! It detects a daemon that does not answer, so that the person can still leave.

use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::cli::attach::unanswered::Number;
use crate::transport::client::{Client, ClientError};

/// With this many unanswered requests, the client stops reading input.
const REQUESTS_MAX: usize = 16;
/// How long an answer may take at that bound. A healthy daemon answers within a second, regardless of
/// the program.
const ANSWER_TIME: Duration = Duration::from_secs(3);

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Types these bytes.
    Typing(Number),
    TakeOver,
    HandBack,
    /// Sends the available size.
    Room,
    About,
    History,
}

impl Asked {
    /// Whether its success gives the person the keyboard.
    fn is_for_keyboard(self) -> bool {
        match self {
            Self::Typing(_) | Self::TakeOver => true,
            Self::HandBack | Self::Room | Self::About | Self::History => false,
        }
    }
}

#[derive(Debug)]
pub struct Answered {
    pub asked: Asked,
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
    ///
    /// # Errors
    /// The daemon is gone, or the request is too large.
    pub fn send(
        &mut self,
        client: &Client,
        asked: Asked,
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
