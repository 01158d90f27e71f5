//! One person at one session, from sitting down to leaving: everything that may happen, one thing
//! after the other, in one task.
//!
//! What is to be seen and what keys mean is decided elsewhere; here it is only brought about.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use crate::cli::attach::chord::{Chords, Order, Typed};
use crate::cli::attach::scene::{Window, history, room_for_session};
use crate::cli::attach::scrollback::{Scrollback, moves};
use crate::cli::attach::signals::{Hint, Signals};
use crate::cli::attach::status::{CHORDS, Status};
use crate::cli::attach::terminal::{Terminal, Turn};
use crate::cli::attach::view::{Ended, View};
use crate::cli::daemon::Daemon;
use crate::cli::failure::Failure;
use crate::mcp::attach::{HAND_BACK_METHOD, INPUT_METHOD, SIZE_METHOD, TAKE_OVER_METHOD};
use crate::transport::client::{ClientError, Observation};

/// How long a lone Escape waits for what could make it the beginning of a sequence.
const ESCAPE_TIME: Duration = Duration::from_millis(15);
/// How long the status line shows news.
const NEWS_TIME: Duration = Duration::from_secs(5);
/// How many requests may wait for their answers before nothing more is read from the person.
const REQUESTS_MAX: usize = 16;
/// How many bytes are read from the person at once.
const TYPED_MAX: usize = 4096;

/// How a person left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leaving {
    Detached,
    /// Somebody detached all who were attached.
    SentAway,
    Exited(Ended),
    /// The daemon has ended or forgotten the session.
    Closed,
}

/// A person at a session.
#[derive(Debug)]
pub struct Desk<'a> {
    daemon: &'a Daemon,
    attach: Observation,
    terminal: Terminal,
    view: View,
    window: Window,
    chords: Chords,
    escape_due: Option<Instant>,
    scrollback: Option<Scrollback>,
    news: Option<(String, Instant)>,
    requests: JoinSet<Answered>,
    name: String,
    /// What others call this person, once the daemon said so.
    me: String,
    watching: Option<&'static str>,
    dirty: bool,
}

/// What a request was for, with its answer.
#[derive(Debug)]
struct Answered {
    asked: Asked,
    answer: Result<Value, ClientError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// To type, take over, hand back, or to say how much room there is.
    Keyboard,
    About,
    History,
}

impl<'a> Desk<'a> {
    /// A person who asked to be attached, on a terminal of its own.
    pub fn new(
        daemon: &'a Daemon,
        attach: Observation,
        terminal: Terminal,
        view_only: bool,
    ) -> Self {
        Self {
            daemon,
            attach,
            terminal,
            view: View::default(),
            window: Window::default(),
            chords: Chords::default(),
            escape_due: None,
            scrollback: None,
            news: None,
            requests: JoinSet::new(),
            name: String::new(),
            me: String::new(),
            watching: view_only.then_some("watching only"),
            dirty: false,
        }
    }

    /// Gives the terminal back; says at which session this was, by id and name.
    pub fn leave(mut self) -> (String, String) {
        self.terminal.leave();
        if let Some(name) = self.attach.result()["name"].as_str() {
            name.clone_into(&mut self.name);
        }
        (std::mem::take(&mut self.view.session), std::mem::take(&mut self.name))
    }

    /// Shows the session and passes on what is typed until one of both ends.
    ///
    /// # Errors
    /// What the daemon answered instead, or that it or the terminal went away.
    pub async fn sit(&mut self) -> Result<Leaving, Failure> {
        let mut signals = Signals::new().map_err(terminal_failed)?;
        let mut typed = [0; TYPED_MAX];
        loop {
            if self.dirty && !self.terminal.is_behind() {
                self.paint();
            }
            let due = self.due();
            let reading = self.requests.len() < REQUESTS_MAX;
            tokio::select! {
                signal = signals.next() => match signal {
                    Hint::Leave => return Ok(Leaving::Detached),
                    Hint::Resized => self.on_resized()?,
                    Hint::Stop => self.stop_for_a_while()?,
                    Hint::GoesOn => self.take_terminal_again()?,
                },
                turn = self.terminal.turn(&mut typed, reading) => match turn {
                    Ok(Turn::Typed(count)) => {
                        if let Some(leaving) = self.on_typed(&typed[..count])? {
                            return Ok(leaving);
                        }
                    }
                    Ok(Turn::Flushed) => {}
                    // The person has closed the window.
                    Ok(Turn::Gone) | Err(_) => return Ok(Leaving::Detached),
                },
                delta = self.attach.next() => match delta? {
                    Some(delta) => self.on_delta(delta)?,
                    None => return Ok(self.ending()),
                },
                Some(answered) = self.requests.join_next() => self.on_answer(answered)?,
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    if let Some(leaving) = self.on_time()? {
                        return Ok(leaving);
                    }
                }
            }
        }
    }

    fn paint(&mut self) {
        self.dirty = false;
        let room = self.terminal.room();
        let place = self.scrollback.as_ref().map(Scrollback::place);
        let status = Status {
            name: &self.name,
            me: &self.me,
            watching: self.watching,
            news: self.news.as_ref().map(|(news, _)| news.as_str()),
            history: place.as_deref(),
            in_chord: self.chords.has_begun(),
        };
        let status = status.text(&self.view);
        let picture = match &self.scrollback {
            Some(back) => history(back.lines(), &self.view, room, &status),
            None => self.window.picture(&self.view, room, &status),
        };
        self.terminal.paint(&picture);
    }

    fn on_delta(&mut self, delta: Value) -> Result<(), Failure> {
        let first = self.view.session.is_empty();
        if !self.view.apply(delta) {
            return Err(ClientError::Malformed.into());
        }
        self.dirty = true;
        if first {
            let about =
                json!({"name": "list_sessions", "arguments": {"session": self.view.session}});
            self.ask(Asked::About, "tools/call", &about)?;
        }
        Ok(())
    }

    fn on_typed(&mut self, bytes: &[u8]) -> Result<Option<Leaving>, Failure> {
        let typed = self.chords.feed(bytes);
        let waits = self.chords.is_waiting();
        self.escape_due = waits.then(|| Instant::now() + ESCAPE_TIME);
        self.dirty = true;
        self.obey(typed)
    }

    fn obey(&mut self, typed: Vec<Typed>) -> Result<Option<Leaving>, Failure> {
        for typed in typed {
            match typed {
                Typed::Bytes(bytes) if self.scrollback.is_some() => self.look(&bytes)?,
                Typed::Bytes(bytes) => self.send(&bytes)?,
                // Moving the pointer across the window does not take the keyboard from an agent.
                Typed::Aside(bytes) if self.is_typing() => self.send(&bytes)?,
                Typed::Aside(_) => {}
                Typed::Order(Order::Detach) => return Ok(Some(Leaving::Detached)),
                Typed::Order(Order::TakeOver) => self.ask_keyboard(TAKE_OVER_METHOD)?,
                Typed::Order(Order::HandBack) => self.ask_keyboard(HAND_BACK_METHOD)?,
                Typed::Order(Order::Scrollback) => self.look_back()?,
                Typed::Order(Order::Help) => self.tell(CHORDS),
                Typed::Order(Order::Unknown) => self.tell(&format!("unknown key; {CHORDS}")),
            }
        }
        Ok(None)
    }

    /// Whether this person has the keyboard, or will have once what it typed is answered.
    fn is_typing(&self) -> bool {
        let mine = !self.me.is_empty() && self.view.lease.holder.by == self.me;
        self.scrollback.is_none() && (mine || !self.requests.is_empty())
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let data = STANDARD.encode(bytes);
        let params = json!({"attach": self.attach.id(), "data": data});
        self.ask(Asked::Keyboard, INPUT_METHOD, &params)
    }

    fn ask_keyboard(&mut self, method: &str) -> Result<(), Failure> {
        let params = json!({"attach": self.attach.id()});
        self.ask(Asked::Keyboard, method, &params)
    }

    fn look_back(&mut self) -> Result<(), Failure> {
        let room = room_for_session(self.terminal.room());
        self.scrollback = Some(Scrollback::above(self.view.base_row, room.rows));
        self.ask_for_history()
    }

    fn look(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        for step in moves(bytes) {
            let stays = self.scrollback.as_mut().is_some_and(|back| back.go(step));
            if !stays {
                self.scrollback = None;
                return Ok(());
            }
        }
        self.ask_for_history()
    }

    fn ask_for_history(&mut self) -> Result<(), Failure> {
        let Some((start_row, count)) = self.scrollback.as_mut().and_then(Scrollback::wanted) else {
            return Ok(());
        };
        let arguments = json!({
            "session": self.view.session,
            "start_row": start_row,
            "count": count,
            "format": "cells",
        });
        let call = json!({"name": "read_history", "arguments": arguments});
        self.ask(Asked::History, "tools/call", &call)
    }

    fn ask(&mut self, asked: Asked, method: &str, params: &Value) -> Result<(), Failure> {
        let reply = self.daemon.client().post(method, params)?;
        self.requests.spawn(async move { Answered { asked, answer: reply.wait().await } });
        Ok(())
    }

    fn on_answer(&mut self, answered: Result<Answered, JoinError>) -> Result<(), Failure> {
        // A task that only waits neither panics nor is aborted while the desk stands.
        let Ok(Answered { asked, answer }) = answered else { return Ok(()) };
        let answer = match answer {
            Ok(answer) => answer,
            Err(ClientError::Closed) => return Ok(()),
            Err(error) => {
                self.tell(&error.to_string());
                return Ok(());
            }
        };
        self.dirty = true;
        match asked {
            Asked::Keyboard => {
                if let Some(me) = answer["you"].as_str() {
                    me.clone_into(&mut self.me);
                }
            }
            Asked::About => self.on_about(&answer["structuredContent"]["sessions"][0]),
            Asked::History => {
                let mut answer = answer;
                let told = answer["structuredContent"].take();
                let goes_on = self.scrollback.as_mut().is_some_and(|back| back.take(told));
                if goes_on {
                    return self.ask_for_history();
                }
            }
        }
        Ok(())
    }

    fn on_about(&mut self, session: &Value) {
        session["name"].as_str().unwrap_or(&self.view.session).clone_into(&mut self.name);
        if session["write_allowed"] == false && self.watching.is_none() {
            self.watching = Some("read-only; `termgate allow-write on` switches writing on");
        }
    }

    fn on_resized(&mut self) -> Result<(), Failure> {
        self.terminal.resize();
        self.dirty = true;
        let room = room_for_session(self.terminal.room());
        let params = json!({"attach": self.attach.id(), "cols": room.cols, "rows": room.rows});
        self.ask(Asked::Keyboard, SIZE_METHOD, &params)
    }

    fn stop_for_a_while(&mut self) -> Result<(), Failure> {
        self.terminal.leave();
        nix::sys::signal::raise(nix::sys::signal::Signal::SIGSTOP)
            .map_err(|errno| terminal_failed(errno.into()))?;
        self.take_terminal_again()
    }

    fn take_terminal_again(&mut self) -> Result<(), Failure> {
        self.terminal.enter().map_err(terminal_failed)?;
        self.on_resized()
    }

    fn tell(&mut self, news: &str) {
        self.news = Some((news.to_owned(), Instant::now() + NEWS_TIME));
        self.dirty = true;
    }

    fn due(&self) -> Option<Instant> {
        let news = self.news.as_ref().map(|(_, until)| *until);
        [self.escape_due, news].into_iter().flatten().min()
    }

    fn on_time(&mut self) -> Result<Option<Leaving>, Failure> {
        let now = Instant::now();
        if self.news.as_ref().is_some_and(|(_, until)| *until <= now) {
            self.news = None;
            self.dirty = true;
        }
        if self.escape_due.is_none_or(|due| due > now) {
            return Ok(None);
        }
        self.escape_due = None;
        let typed = self.chords.flush();
        self.obey(typed)
    }

    fn ending(&self) -> Leaving {
        match (self.attach.result()["ended"].as_str(), &self.view.exit) {
            (Some("exited"), Some(exit)) => Leaving::Exited(exit.clone()),
            (Some("detached"), _) => Leaving::SentAway,
            (_, _) => Leaving::Closed,
        }
    }
}

fn terminal_failed(error: std::io::Error) -> Failure {
    Failure::Other(anyhow::Error::new(error).context("the terminal failed"))
}
