//! Waits while the shim of the attached session does not answer.
//!
//! The terminal keeps its last picture. Input is kept for the program, as it is without a daemon.

use std::pin::pin;
use std::time::Duration;

use crate::cli::attach::bar::Bar;
use crate::cli::attach::client::{Carried, Leaving, TYPED_MAX, terminal_failed};
use crate::cli::attach::layout::status_bar;
use crate::cli::attach::prefix_key::{ChordCommand, TypedPart};
use crate::cli::attach::status::silent;
use crate::cli::attach::terminal::{Hint, Terminal, TerminalEvent, TerminalSignals};
use crate::cli::attach::unanswered::Batch;
use crate::cli::daemon::{DaemonClient, SILENCE_LOOK};
use crate::cli::failure::CliFailure;

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
        daemon: &DaemonClient,
        terminal: &mut Terminal,
        signals: &mut TerminalSignals,
    ) -> Option<Result<Leaving, CliFailure>> {
        let mut ahead = Ahead::default();
        let ended = self.wait(daemon, terminal, signals, &mut ahead).await;
        if !ahead.bytes.is_empty() {
            self.unanswered.add(Batch { bytes: ahead.bytes, resize: true });
        }
        ended
    }

    async fn wait(
        &mut self,
        daemon: &DaemonClient,
        terminal: &mut Terminal,
        signals: &mut TerminalSignals,
        ahead: &mut Ahead,
    ) -> Option<Result<Leaving, CliFailure>> {
        let (session, mut silent) = (self.session.clone(), false);
        let mut typed = [0; TYPED_MAX];
        let mut looking = pin!(daemon.is_silent(&session, Duration::ZERO));
        loop {
            if silent && !terminal.is_behind() {
                self.say_silent(terminal, ahead);
            }
            tokio::select! {
                looked = &mut looking => match looked {
                    Ok(true) => {
                        silent = true;
                        looking.set(daemon.is_silent(&session, SILENCE_LOOK));
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
                    Ok(TerminalEvent::Typed(count)) => if self.leaves(&typed[..count], ahead) {
                        return Some(Ok(Leaving::Detached));
                    },
                    Ok(TerminalEvent::Flushed) => {}
                    // The person closed the window.
                    Ok(TerminalEvent::Gone) | Err(_) => return Some(Ok(Leaving::Detached)),
                },
            }
        }
    }

    fn say_silent(&self, terminal: &mut Terminal, ahead: &Ahead) {
        let text = silent(&self.name, ahead.full, terminal.room().cols);
        if let Some(bar) = status_bar(&Bar::plain(text), terminal.room()) {
            terminal.paint_last_row(&bar);
        }
    }

    /// Handles input, and returns whether the person leaves.
    fn leaves(&mut self, typed: &[u8], ahead: &mut Ahead) -> bool {
        for typed in self.chords.feed(typed) {
            match typed {
                TypedPart::Order(ChordCommand::Detach) => return true,
                TypedPart::Bytes(bytes) if bytes.contains(&INTERRUPT) => return true,
                TypedPart::Bytes(bytes) if self.scrollback.is_none() => {
                    ahead.full |= ahead.bytes.len() + bytes.len() > AHEAD_MAX;
                    if !ahead.full {
                        ahead.bytes.extend(bytes);
                    }
                }
                TypedPart::Bytes(_)
                | TypedPart::Aside(_)
                | TypedPart::Pointer(_)
                | TypedPart::Order(
                    ChordCommand::TakeOver
                    | ChordCommand::HandBack
                    | ChordCommand::Scrollback
                    | ChordCommand::Approve
                    | ChordCommand::Deny
                    | ChordCommand::Unknown,
                ) => {}
            }
        }
        false
    }
}
