//! Handles the person's input: executes orders and sends everything else to the program.

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cli::attach::client::Desk;
use crate::cli::attach::exit::Leaving;
use crate::cli::attach::notice::Ground;
use crate::cli::attach::pointer::Report;
use crate::cli::attach::prefix_key::{Order, Typed};
use crate::cli::attach::requests::Asked;
use crate::cli::attach::scrollback::{Scrollback, moves};
use crate::cli::attach::taken_over::TakenOver;
use crate::cli::attach::unanswered::{Batch, Number};
use crate::cli::failure::Failure;
use crate::mcp::attach::{HAND_BACK_METHOD, INPUT_METHOD, TAKE_OVER_METHOD};

impl Desk<'_> {
    pub(super) fn on_typed(&mut self, bytes: &[u8]) -> Result<Option<Leaving>, Failure> {
        let typed = self.carried.chords.feed(bytes);
        self.flush_due = self.carried.chords.patience().map(|time| Instant::now() + time);
        self.dirty = true;
        self.obey(typed)
    }

    pub(super) fn obey(&mut self, typed: Vec<Typed>) -> Result<Option<Leaving>, Failure> {
        let mut batch = Batch::default();
        for typed in typed {
            match typed {
                Typed::Bytes(bytes) if self.carried.scrollback.is_some() => self.look(&bytes)?,
                Typed::Bytes(bytes) => self.put(&mut batch, &bytes, true)?,
                // It goes with typed input, or when the person already has the keyboard.
                Typed::Aside(bytes) if self.is_typing() || !batch.bytes.is_empty() => {
                    batch.bytes.extend(bytes);
                }
                Typed::Aside(_) => {}
                Typed::Pointer(report) => {
                    if let Some(bytes) = self.aim(report) {
                        // The session keeps its size, so that the pointer's cell stays valid.
                        self.put(&mut batch, &bytes, false)?;
                    }
                }
                Typed::Order(order) => {
                    self.send(std::mem::take(&mut batch))?;
                    if let Some(leaving) = self.follow(order)? {
                        return Ok(Some(leaving));
                    }
                }
            }
        }
        self.send(batch)?;
        Ok(None)
    }

    fn follow(&mut self, order: Order) -> Result<Option<Leaving>, Failure> {
        match order {
            Order::Detach => return Ok(Some(Leaving::Detached)),
            Order::TakeOver => self.ask_for_keyboard()?,
            Order::HandBack => {
                self.carried.taken_over.on_handed_back();
                self.ask(Asked::HandBack, HAND_BACK_METHOD, &self.named())?;
            }
            Order::Scrollback => self.look_back()?,
            Order::Unknown => self.tell("unknown key, C-\\ ? lists them", Ground::News),
        }
        Ok(None)
    }

    /// The bytes of a pointer report for the program.
    fn aim(&mut self, report: Report) -> Option<Vec<u8>> {
        if self.carried.scrollback.is_some() {
            return None;
        }
        let bytes = self.pointer.aim(report, &self.window, self.view.modes.mouse_encoding)?;
        // Moving the pointer across the window does not take the keyboard from an agent.
        (!report.hovers() || self.is_typing()).then_some(bytes)
    }

    /// Whether this person has the keyboard, or will have it once the pending requests are answered.
    fn is_typing(&self) -> bool {
        let mine = !self.me.is_empty() && self.view.lease.holder.by == self.me;
        self.carried.scrollback.is_none() && (mine || self.requests.is_typing())
    }

    /// Adds bytes to the batch. It sends the batch first when `resize` differs.
    fn put(&mut self, batch: &mut Batch, bytes: &[u8], resize: bool) -> Result<(), Failure> {
        if batch.resize != resize {
            self.send(std::mem::take(batch))?;
            batch.resize = resize;
        }
        batch.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn send(&mut self, batch: Batch) -> Result<(), Failure> {
        if batch.bytes.is_empty() {
            return Ok(());
        }
        if self.requests.is_stuck() {
            let text = "the daemon does not answer and what you type is lost; C-\\ d leaves";
            self.tell(text, Ground::Silence);
            return Ok(());
        }
        let number = self.carried.unanswered.add(batch);
        self.ask_to_type(number)
    }

    /// Repeats the requests that the last daemon did not answer, and reports lost input.
    pub(super) fn go_on(&mut self) -> Result<(), Failure> {
        let lost = self.carried.unanswered.lose(Instant::now());
        if lost > 0 {
            let text = format!("up to {lost} bytes that you typed did not reach the program");
            self.tell(text, Ground::News);
        }
        if self.carried.taken_over != TakenOver::No {
            self.ask_for_keyboard()?;
        }
        self.carried
            .unanswered
            .numbers()
            .into_iter()
            .try_for_each(|number| self.ask_to_type(number))
    }

    pub(super) fn ask_to_type(&mut self, number: Number) -> Result<(), Failure> {
        match self.carried.unanswered.request(number, self.attach.id()) {
            Some(params) => self.ask(Asked::Typing(number), INPUT_METHOD, &params),
            None => Ok(()),
        }
    }

    fn ask_for_keyboard(&mut self) -> Result<(), Failure> {
        self.ask(Asked::TakeOver, TAKE_OVER_METHOD, &self.named())
    }

    /// The parameters of a request that only names the attachment.
    fn named(&self) -> Value {
        json!({"attach": self.attach.id()})
    }

    fn look_back(&mut self) -> Result<(), Failure> {
        self.carried.scrollback = Some(Scrollback::above(self.view.base_row, self.room().rows));
        self.ask_for_history()
    }

    fn look(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        for step in moves(bytes) {
            let stays = self.carried.scrollback.as_mut().is_some_and(|back| back.go(step));
            if !stays {
                self.carried.scrollback = None;
                return Ok(());
            }
        }
        self.ask_for_history()
    }
}
