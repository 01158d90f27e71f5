//! Waits while the shim of the attached session does not answer.
//!
//! The terminal keeps its last picture. Input is kept for the program, as it is without a daemon.

use std::pin::pin;
use std::time::Duration;

use crate::cli::attach::client::{Carried, TYPED_MAX, terminal_failed};
use crate::cli::attach::exit::Leaving;
use crate::cli::attach::layout::status_bar;
use crate::cli::attach::prefix_key::{Order, Typed};
use crate::cli::attach::signals::{Hint, Signals};
use crate::cli::attach::terminal::{Terminal, Turn};
use crate::cli::attach::unanswered::Batch;
use crate::cli::daemon::Daemon;
use crate::cli::failure::Failure;
use crate::cli::silence::{LOOK, is_silent};

/// The most bytes of input that are kept during the silence.
const AHEAD_MAX: usize = TYPED_MAX;
/// The byte for C-c, unless the terminal uses another encoding.
const INTERRUPT: u8 = 3;

/// Input typed during the silence.
#[derive(Debug, Default)]
struct Ahead {
    bytes: Vec<u8>,
    /// Whether further input was dropped.
    full: bool,
}

impl Carried {
    /// Waits until the session's shim answers. Returns how the attachment ended instead, if it did.
    pub async fn outlast_silence(
        &mut self,
        daemon: &Daemon,
        terminal: &mut Terminal,
        signals: &mut Signals,
    ) -> Option<Result<Leaving, Failure>> {
        let mut ahead = Ahead::default();
        let ended = self.wait(daemon, terminal, signals, &mut ahead).await;
        if !ahead.bytes.is_empty() {
            self.unanswered.add(Batch { bytes: ahead.bytes, resize: true });
        }
        ended
    }

    async fn wait(
        &mut self,
        daemon: &Daemon,
        terminal: &mut Terminal,
        signals: &mut Signals,
        ahead: &mut Ahead,
    ) -> Option<Result<Leaving, Failure>> {
        let (session, mut silent) = (self.session.clone(), false);
        let mut typed = [0; TYPED_MAX];
        let mut looking = pin!(is_silent(daemon, &session, Duration::ZERO));
        loop {
            if silent && !terminal.is_behind() {
                self.say_silent(terminal, ahead);
            }
            tokio::select! {
                looked = &mut looking => match looked {
                    Ok(true) => {
                        silent = true;
                        looking.set(is_silent(daemon, &session, LOOK));
                    }
                    Ok(false) => return None,
                    Err(error) => return Some(Err(error)),
                },
                signal = signals.next() => match signal {
                    Hint::Leave => return Some(Ok(Leaving::Detached)),
                    Hint::Resized => terminal.resize(),
                    Hint::Stop => if let Err(error) = terminal.stop_for_a_while() {
                        return Some(Err(terminal_failed(error)));
                    },
                    Hint::GoesOn => if let Err(error) = terminal.enter() {
                        return Some(Err(terminal_failed(error)));
                    },
                },
                turn = terminal.turn(&mut typed, silent) => match turn {
                    Ok(Turn::Typed(count)) => if self.leaves(&typed[..count], ahead) {
                        return Some(Ok(Leaving::Detached));
                    },
                    Ok(Turn::Flushed) => {}
                    // The person closed the window.
                    Ok(Turn::Gone) | Err(_) => return Some(Ok(Leaving::Detached)),
                },
            }
        }
    }

    fn say_silent(&self, terminal: &mut Terminal, ahead: &Ahead) {
        let lost = if ahead.full { ", and what you type is lost" } else { "" };
        let text =
            format!("{} | its terminal does not answer{lost} | waiting, C-c leaves", self.name);
        if let Some(bar) = status_bar(&text, terminal.room()) {
            terminal.paint_last_row(&bar);
        }
    }

    /// Handles input, and returns whether the person leaves.
    fn leaves(&mut self, typed: &[u8], ahead: &mut Ahead) -> bool {
        for typed in self.chords.feed(typed) {
            match typed {
                Typed::Order(Order::Detach) => return true,
                Typed::Bytes(bytes) if bytes.contains(&INTERRUPT) => return true,
                Typed::Bytes(bytes) if self.scrollback.is_none() => {
                    ahead.full |= ahead.bytes.len() + bytes.len() > AHEAD_MAX;
                    if !ahead.full {
                        ahead.bytes.extend(bytes);
                    }
                }
                Typed::Bytes(_)
                | Typed::Aside(_)
                | Typed::Pointer(_)
                | Typed::Order(
                    Order::TakeOver | Order::HandBack | Order::Scrollback | Order::Unknown,
                ) => {}
            }
        }
        false
    }
}
