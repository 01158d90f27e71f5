//! The requests of one person that the daemon has not answered yet, and how many of them there may be.
//!
//! What an answer means is the desk's affair. A daemon that answers nothing is noticed here, so that a
//! person can leave it all the same.

use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::cli::attach::unanswered::Number;
use crate::transport::client::{Client, ClientError};

/// How many requests may wait for their answers before nothing more is typed.
const REQUESTS_MAX: usize = 16;
/// How long one of that many may wait: a daemon that is well answers within a second, whatever the
/// program does.
const ANSWER_TIME: Duration = Duration::from_secs(3);

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// To type these bytes.
    Typing(Number),
    TakeOver,
    HandBack,
    /// To say how much room there is.
    Room,
    About,
    History,
}

impl Asked {
    /// Whether the person has the keyboard once it is granted.
    fn is_for_keyboard(self) -> bool {
        match self {
            Self::Typing(_) | Self::TakeOver => true,
            Self::HandBack | Self::Room | Self::About | Self::History => false,
        }
    }
}

/// What a request was for, with its answer.
#[derive(Debug)]
pub struct Answered {
    pub asked: Asked,
    pub answer: Result<Value, ClientError>,
}

/// Requests that wait for their answers.
#[derive(Debug, Default)]
pub struct Requests {
    waiting: JoinSet<Answered>,
    /// How many of them are for the keyboard.
    keyboard: usize,
    due: Option<Instant>,
    stuck: bool,
}

impl Requests {
    /// Sends a request behind all before it.
    ///
    /// # Errors
    /// That the daemon has gone, or that the request is too large.
    pub fn send(
        &mut self,
        client: &Client,
        asked: Asked,
        method: &str,
        params: &Value,
    ) -> Result<(), ClientError> {
        let reply = client.post(method, params)?;
        self.waiting.spawn(async move { Answered { asked, answer: reply.wait().await } });
        self.keyboard += usize::from(asked.is_for_keyboard());
        if self.waiting.len() == REQUESTS_MAX {
            self.due = Some(Instant::now() + ANSWER_TIME);
        }
        Ok(())
    }

    /// Waits for the next answer; none when there is nothing to wait for. Cancel-safe.
    pub async fn next(&mut self) -> Option<Answered> {
        let answered = self.waiting.join_next().await?;
        (self.due, self.stuck) = (None, false);
        // A task that only waits neither panics nor is aborted before all of them are.
        let answered = answered.expect("a task that waits for an answer comes to its end");
        self.keyboard -= usize::from(answered.asked.is_for_keyboard());
        Some(answered)
    }

    /// Whether the daemon has not said yet what became of typing or of taking over.
    pub fn is_typing(&self) -> bool {
        self.keyboard > 0
    }

    /// Whether no more should be typed until something was answered.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= REQUESTS_MAX && !self.stuck
    }

    /// Whether the daemon answers nothing, so that what is typed can only be lost.
    pub fn is_stuck(&self) -> bool {
        self.stuck
    }

    /// When to look again.
    pub fn deadline(&self) -> Option<Instant> {
        self.due
    }

    /// Looks whether an answer is late.
    pub fn on_time(&mut self, now: Instant) {
        if self.due.is_some_and(|due| due <= now) {
            (self.due, self.stuck) = (None, true);
        }
    }
}
