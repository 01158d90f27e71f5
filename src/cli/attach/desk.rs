//! One person at one session, from sitting down to leaving: everything that may happen, one thing
//! after the other, in one task.
//!
//! What is to be seen and what keys mean is decided elsewhere; here it is only brought about.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::cli::attach::canvas::Room;
use crate::cli::attach::chord::{Chords, Order, Typed};
use crate::cli::attach::leaving::Leaving;
use crate::cli::attach::requests::{Answered, Asked, Requests};
use crate::cli::attach::room_told::RoomTold;
use crate::cli::attach::scene::{Window, history, room_for_session};
use crate::cli::attach::scrollback::{Scrollback, moves};
use crate::cli::attach::signals::{Hint, Signals};
use crate::cli::attach::status::{CHORDS, Status};
use crate::cli::attach::terminal::{Terminal, Turn};
use crate::cli::attach::view::View;
use crate::cli::daemon::Daemon;
use crate::cli::failure::Failure;
use crate::mcp::attach::{HAND_BACK_METHOD, INPUT_METHOD, SIZE_METHOD, TAKE_OVER_METHOD};
use crate::transport::client::{ClientError, Observation};

/// How long a lone Escape waits for what could make it the beginning of a sequence.
const ESCAPE_TIME: Duration = Duration::from_millis(15);
/// How long the status line shows news.
const NEWS_TIME: Duration = Duration::from_secs(5);
/// How many bytes are read from the person at once.
const TYPED_MAX: usize = 4096;

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
    requests: Requests,
    room_told: RoomTold,
    name: String,
    /// What others call this person, once the daemon said so.
    me: String,
    view_only: bool,
    read_only: bool,
    dirty: bool,
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
            requests: Requests::default(),
            room_told: RoomTold::default(),
            name: String::new(),
            me: String::new(),
            view_only,
            read_only: false,
            dirty: false,
        }
    }

    /// Gives the terminal back; says at which session this was, by id and name.
    pub fn leave(mut self) -> (String, String) {
        self.terminal.leave();
        if let Some(name) = self.attach.result()["name"].as_str() {
            name.clone_into(&mut self.name);
        }
        if self.name.is_empty() {
            self.name.clone_from(&self.view.session);
        }
        (std::mem::take(&mut self.view.session), std::mem::take(&mut self.name))
    }

    /// Shows the session and passes on what is typed until one of both ends.
    ///
    /// # Errors
    /// What the daemon answered instead, or that it or the terminal went away.
    pub async fn sit(&mut self, signals: &mut Signals) -> Result<Leaving, Failure> {
        let mut typed = [0; TYPED_MAX];
        loop {
            if self.dirty && !self.terminal.is_behind() {
                self.paint();
            }
            let due = self.due();
            let reading = !self.requests.is_full();
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
                    None => return Ok(Leaving::of_end(self.attach.result(), self.view.exit.as_ref())?),
                },
                Some(answered) = self.requests.next() => self.on_answer(answered)?,
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
            watching: self.watching(),
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

    fn watching(&self) -> Option<&'static str> {
        if self.view_only {
            Some("watching only")
        } else {
            self.read_only.then_some("read-only until `termgate allow-write on`")
        }
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
                Typed::Order(Order::TakeOver) => {
                    self.ask(Asked::Keyboard, TAKE_OVER_METHOD, &self.named())?;
                }
                Typed::Order(Order::HandBack) => {
                    self.ask(Asked::Manners, HAND_BACK_METHOD, &self.named())?;
                }
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
        self.scrollback.is_none() && (mine || self.requests.is_typing())
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.requests.is_stuck() {
            self.tell("the daemon does not answer and what you type is lost; C-\\ d leaves");
            return Ok(());
        }
        let data = STANDARD.encode(bytes);
        let params = json!({"attach": self.attach.id(), "data": data});
        self.ask(Asked::Keyboard, INPUT_METHOD, &params)
    }

    /// The parameters of a request that says nothing but for whom it is.
    fn named(&self) -> Value {
        json!({"attach": self.attach.id()})
    }

    fn look_back(&mut self) -> Result<(), Failure> {
        self.scrollback = Some(Scrollback::above(self.view.base_row, self.room().rows));
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
        Ok(self.requests.send(self.daemon.client(), asked, method, params)?)
    }

    fn on_answer(&mut self, answered: Answered) -> Result<(), Failure> {
        let Answered { asked, answer } = answered;
        self.dirty = true;
        // What follows a lone Escape may have been left unread meanwhile.
        self.escape_due = self.escape_due.map(|_| Instant::now() + ESCAPE_TIME);
        match answer {
            Ok(answer) => self.on_success(asked, answer)?,
            // The attachment itself ends by this, too.
            Err(ClientError::Closed) => return Ok(()),
            Err(error) => self.on_refusal(asked, &error),
        }
        if asked == Asked::Room {
            let news = self.room_told.on_answer(self.room());
            return self.tell_room(news);
        }
        Ok(())
    }

    fn on_success(&mut self, asked: Asked, mut answer: Value) -> Result<(), Failure> {
        match asked {
            Asked::Keyboard => {
                self.read_only = false;
                if let Some(me) = answer["you"].as_str() {
                    me.clone_into(&mut self.me);
                }
            }
            Asked::Manners | Asked::Room => {}
            Asked::About => self.on_about(&answer["structuredContent"]["sessions"][0]),
            Asked::History => {
                let told = answer["structuredContent"].take();
                let goes_on = self.scrollback.as_mut().is_some_and(|back| back.take(told));
                if goes_on {
                    return self.ask_for_history();
                }
            }
        }
        Ok(())
    }

    fn on_refusal(&mut self, asked: Asked, error: &ClientError) {
        self.tell(&error.to_string());
        match (asked, error) {
            (Asked::Keyboard, ClientError::Refused { data: Some(data), .. }) => {
                self.read_only |= data["error_code"] == "read_only";
            }
            (Asked::History, _) => self.scrollback = None,
            (Asked::Keyboard | Asked::Manners | Asked::Room | Asked::About, _) => {}
        }
    }

    fn on_about(&mut self, session: &Value) {
        session["name"].as_str().unwrap_or(&self.view.session).clone_into(&mut self.name);
        self.read_only = session["write_allowed"] == false;
    }

    fn on_resized(&mut self) -> Result<(), Failure> {
        self.terminal.resize();
        self.dirty = true;
        let room = self.room();
        let news = self.room_told.on_room(room);
        self.tell_room(news)?;
        match &mut self.scrollback {
            Some(back) => {
                back.resize(room.rows);
                self.ask_for_history()
            }
            None => Ok(()),
        }
    }

    /// The room for the session here.
    fn room(&self) -> Room {
        room_for_session(self.terminal.room())
    }

    fn tell_room(&mut self, room: Option<Room>) -> Result<(), Failure> {
        let Some(Room { rows, cols }) = room else { return Ok(()) };
        let params = json!({"attach": self.attach.id(), "cols": cols, "rows": rows});
        self.ask(Asked::Room, SIZE_METHOD, &params)
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
        let escape = self.escape_due.filter(|_| !self.requests.is_full());
        [escape, news, self.requests.deadline()].into_iter().flatten().min()
    }

    fn on_time(&mut self) -> Result<Option<Leaving>, Failure> {
        let now = Instant::now();
        if self.news.as_ref().is_some_and(|(_, until)| *until <= now) {
            self.news = None;
            self.dirty = true;
        }
        self.requests.on_time(now);
        if self.requests.is_full() || self.escape_due.is_none_or(|due| due > now) {
            return Ok(None);
        }
        self.escape_due = None;
        let typed = self.chords.flush();
        self.obey(typed)
    }
}

/// The failure that an error of the system with this terminal is.
pub fn terminal_failed(error: std::io::Error) -> Failure {
    Failure::Other(anyhow::Error::new(error).context("the terminal failed"))
}
