//! Handles the person's input: executes orders and sends everything else to the program.

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cli::attach::client::takeover::TakeoverState;
use crate::cli::attach::client::{Desk, Leaving};
use crate::cli::attach::notice::NoticeReason;
use crate::cli::attach::pointer::PointerReport;
use crate::cli::attach::prefix_key::{ChordCommand, TypedPart};
use crate::cli::attach::requests::Purpose;
use crate::cli::attach::scrollback::{Move, Scrollback};
use crate::cli::attach::unanswered::{Batch, Number};
use crate::cli::failure::CliFailure;
use crate::core::counted::counted;
use crate::core::keys::modes::MouseReporting;
use crate::mcp::attach::{HAND_BACK_METHOD, INPUT_METHOD, TAKE_OVER_METHOD};

impl Desk<'_> {
    pub(super) fn on_typed(&mut self, bytes: &[u8]) -> Result<Option<Leaving>, CliFailure> {
        let typed = self.carried.chords.feed(bytes);
        self.flush_due = self.carried.chords.patience().map(|time| Instant::now() + time);
        self.dirty = true;
        self.obey(typed)
    }

    pub(super) fn obey(&mut self, typed: Vec<TypedPart>) -> Result<Option<Leaving>, CliFailure> {
        let mut batch = Batch::default();
        for typed in typed {
            match typed {
                TypedPart::Bytes(bytes) if self.carried.scrollback.is_some() => {
                    self.look(&bytes)?
                }
                TypedPart::Bytes(bytes) => self.put(&mut batch, &bytes, true)?,
                // It goes with typed input, or when the person already has the keyboard.
                TypedPart::Aside(bytes) if self.is_typing() || !batch.bytes.is_empty() => {
                    batch.bytes.extend(bytes);
                }
                TypedPart::Aside(_) => {}
                TypedPart::Pointer(report) if self.turns_wheel(report) => {
                    self.send(std::mem::take(&mut batch))?;
                    self.turn_wheel(report.wheel_rows().unwrap_or_default())?;
                }
                TypedPart::Pointer(report) => {
                    if let Some(bytes) = self.aim(report) {
                        // The session keeps its size, so that the pointer's cell stays valid.
                        self.put(&mut batch, &bytes, false)?;
                    }
                }
                TypedPart::Order(order) => {
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

    fn follow(&mut self, order: ChordCommand) -> Result<Option<Leaving>, CliFailure> {
        match order {
            ChordCommand::Detach => return Ok(Some(Leaving::Detached)),
            ChordCommand::TakeOver => self.ask_for_keyboard()?,
            ChordCommand::HandBack => {
                self.carried.taken_over.on_handed_back();
                self.ask(Purpose::HandBack, HAND_BACK_METHOD, &self.named())?;
            }
            ChordCommand::Scrollback => self.look_back()?,
            ChordCommand::Approve => self.decide(true)?,
            ChordCommand::Deny => self.decide(false)?,
            ChordCommand::Unknown => {
                let text = format!("unknown key, {} ? lists them", self.carried.options.prefix);
                self.tell(text, NoticeReason::News);
            }
        }
        Ok(None)
    }

    /// The bytes of a pointer report for the program.
    fn aim(&mut self, report: PointerReport) -> Option<Vec<u8>> {
        if self.carried.scrollback.is_some() || !self.program_reads_pointer() {
            return None;
        }
        let bytes = self.pointer.aim(report, &self.window, self.view.modes.mouse_encoding)?;
        // Moving the pointer across the window does not take the keyboard from an agent.
        (!report.hovers() || self.is_typing()).then_some(bytes)
    }

    fn program_reads_pointer(&self) -> bool {
        self.view.modes.mouse != MouseReporting::Off
    }

    /// Whether the report moves the person's view. The program gets the wheel only from who types.
    fn turns_wheel(&self, report: PointerReport) -> bool {
        let for_program = self.program_reads_pointer() && self.is_typing();
        report.wheel_rows().is_some() && !for_program
    }

    /// Moves in history, which the wheel also opens and, at its end, leaves.
    fn turn_wheel(&mut self, rows: i64) -> Result<(), CliFailure> {
        let top = self.view.base_row + u64::from(self.window.top());
        match &mut self.carried.scrollback {
            Some(back) if rows > 0 && back.is_at_end() => self.carried.scrollback = None,
            Some(back) => {
                back.go(Move::Rows(rows));
            }
            None if rows < 0 && top > 0 => {
                let top = top.saturating_add_signed(rows);
                self.carried.scrollback = Some(Scrollback::from_row(top, self.room().rows));
            }
            None => return Ok(()),
        }
        self.ask_for_history()
    }

    /// Whether this person has the keyboard, or will have it once the pending requests are answered.
    fn is_typing(&self) -> bool {
        let mine = !self.me.is_empty() && self.view.is_held_by(&self.me);
        self.carried.scrollback.is_none() && (mine || self.requests.is_typing())
    }

    /// Adds bytes to the batch. It sends the batch first when `resize` differs.
    fn put(&mut self, batch: &mut Batch, bytes: &[u8], resize: bool) -> Result<(), CliFailure> {
        if batch.resize != resize {
            self.send(std::mem::take(batch))?;
            batch.resize = resize;
        }
        batch.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn send(&mut self, batch: Batch) -> Result<(), CliFailure> {
        if batch.bytes.is_empty() {
            return Ok(());
        }
        if self.requests.is_stuck() {
            let leave = format!("{} d leaves", self.carried.options.prefix);
            let text = format!("not typed: the daemon does not answer; {leave}");
            self.tell(text, NoticeReason::Silence);
            return Ok(());
        }
        let number = self.carried.unanswered.add(batch);
        self.ask_to_type(number)
    }

    /// Repeats the requests that the last daemon did not answer, and reports lost input.
    pub(super) fn go_on(&mut self) -> Result<(), CliFailure> {
        let lost = self.carried.unanswered.lose(Instant::now());
        if lost > 0 {
            let lost = counted(lost, "byte");
            let text = format!("up to {lost} that you typed did not reach the program");
            self.tell(text, NoticeReason::News);
        }
        if self.carried.taken_over != TakeoverState::No {
            self.ask_for_keyboard()?;
        }
        self.carried
            .unanswered
            .numbers()
            .into_iter()
            .try_for_each(|number| self.ask_to_type(number))
    }

    pub(super) fn ask_to_type(&mut self, number: Number) -> Result<(), CliFailure> {
        match self.carried.unanswered.request(number, self.attach.id()) {
            Some(params) => self.ask(Purpose::Typing(number), INPUT_METHOD, &params),
            None => Ok(()),
        }
    }

    fn ask_for_keyboard(&mut self) -> Result<(), CliFailure> {
        self.ask(Purpose::TakeOver, TAKE_OVER_METHOD, &self.named())
    }

    /// The parameters of a request that only names the attachment.
    fn named(&self) -> Value {
        json!({"attach": self.attach.id()})
    }

    fn look_back(&mut self) -> Result<(), CliFailure> {
        self.carried.scrollback = Some(Scrollback::above(self.view.base_row, self.room().rows));
        self.ask_for_history()
    }

    fn look(&mut self, bytes: &[u8]) -> Result<(), CliFailure> {
        self.notice.take_if(|notice| notice.is_of_search());
        let stays = self.carried.scrollback.as_mut().is_some_and(|back| back.on_typed(bytes));
        if !stays {
            self.carried.scrollback = None;
            return Ok(());
        }
        self.ask_to_search()?;
        self.ask_for_history()
    }
}
