//! What whoever owns a screen tells it of the shell on it, and the commands that it has seen.
//!
//! Where things are on the screen is added here; what follows for the commands they know themselves.

use std::sync::Arc;

use unicode_width::UnicodeWidthChar;

use crate::core::moment::Moment;
use crate::core::screen::Screen;
use crate::core::shell::activity::{Evidence, prompts};
use crate::core::shell::commands::record::{CommandId, Here, Position};
use crate::core::shell::commands::{Commands, Submission};

impl Screen {
    /// Says by what the shell that was started is known, so that its marks are believed.
    pub fn set_nonce(&mut self, nonce: Option<Arc<str>>) {
        self.emulator.shell_mut().nonce = nonce;
    }

    /// Says what this machine is called, so that directories of another are not taken for ours.
    pub fn set_host(&mut self, name: Option<Arc<str>>) {
        self.emulator.shell_mut().host = name;
    }

    /// Notes who typed last.
    pub fn set_typist(&mut self, name: Arc<str>) {
        self.emulator.shell_mut().typist = Some(name);
    }

    /// The commands that ran.
    pub fn commands(&self) -> &Arc<Commands> {
        &self.emulator.shell().commands
    }

    /// Gives no command that is still to come this number or a lower one.
    pub fn number_commands_after(&mut self, id: CommandId) {
        self.change_commands().number_after(id);
    }

    /// Notes that a command is sent now.
    pub fn submit(&mut self, now: Moment, submission: Submission<'_>) -> CommandId {
        let here = Here { now, ..self.emulator.here() };
        self.change_commands().submit(submission, &here)
    }

    /// Ends the command that was sent, whose end the shell does not mark.
    pub fn finish_sent(&mut self, now: Moment, evidence: Evidence) {
        let here = Here { now, ..self.emulator.here() };
        let prompt = self.commands().sent().map(|sent| Arc::clone(&sent.prompt));
        let before = self.before_cursor();
        // What stands before the prompt on its row is the last of the output.
        let known = prompt.filter(|prompt| !prompt.is_empty() || !prompts(&before));
        let shown = known.filter(|prompt| before.ends_with(&**prompt));
        let col = shown.map_or(0, |prompt| here.position.col.saturating_sub(columns_of(&prompt)));
        let here = Here { position: Position { col, ..here.position }, ..here };
        self.change_commands().finish_sent(&here, None, evidence, true);
    }

    /// Notes whether something was typed that was not sent as a command, and may not have been read.
    pub fn set_typed_ahead(&mut self, typed_ahead: bool) {
        if self.commands().typed_ahead() != typed_ahead {
            self.change_commands().set_typed_ahead(typed_ahead);
        }
    }

    /// Notes that output was lost in which the shell may have told of commands.
    pub fn on_lost_output(&mut self) {
        self.change_commands().on_lost_output();
    }

    /// Notes that the shell reads a line from the cursor on.
    pub fn on_reading(&mut self, now: Moment) {
        let here = Here { now, ..self.emulator.here() };
        self.change_commands().on_reading(&here);
    }

    /// Ends what the shell showed its prompt after without ending it by a mark.
    pub fn on_prompted(&mut self, now: Moment) {
        let here = Here { now, ..self.emulator.here() };
        self.change_commands().on_prompted(&here);
    }

    /// Ends all commands, because the program of the session ended.
    pub fn end_commands(&mut self, now: Moment, code: Option<i32>) {
        if self.commands().running().is_some() {
            let here = Here { now, ..self.emulator.here() };
            self.change_commands().on_exit(&here, code);
        }
    }

    fn change_commands(&mut self) -> &mut Commands {
        Arc::make_mut(&mut self.emulator.shell_mut().commands)
    }
}

/// How many columns a text takes.
fn columns_of(text: &str) -> u16 {
    let columns: usize = text.chars().filter_map(UnicodeWidthChar::width).sum();
    u16::try_from(columns).unwrap_or(u16::MAX)
}
