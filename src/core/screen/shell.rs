//! Lets the session report what it knows about its shell, and adds the position on the screen.

use std::sync::Arc;

use unicode_width::UnicodeWidthChar;

use crate::core::moment::Moment;
use crate::core::screen::Screen;
use crate::core::shell::activity::Evidence;
use crate::core::shell::commands::record::{CommandId, Here, Position};
use crate::core::shell::commands::{Commands, Submission};

impl Screen {
    /// Sets the nonce that the shell's marks must carry.
    pub fn set_nonce(&mut self, nonce: Option<Arc<str>>) {
        self.emulator.shell_mut().nonce = nonce;
    }

    /// Sets the name of this machine, so that directories of other machines are ignored.
    pub fn set_host(&mut self, name: Option<Arc<str>>) {
        self.emulator.shell_mut().host = name;
    }

    /// Sets the principal that typed last.
    pub fn set_typist(&mut self, name: Arc<str>) {
        self.emulator.shell_mut().typist = Some(name);
    }

    pub fn commands(&self) -> &Arc<Commands> {
        &self.emulator.shell().commands
    }

    /// Gives every later command a number above this one.
    pub fn number_commands_after(&mut self, id: CommandId) {
        self.change_commands().number_after(id);
    }

    pub fn submit(&mut self, now: Moment, submission: Submission<'_>) -> CommandId {
        let here = Here { now, ..self.emulator.here() };
        self.change_commands().submit(submission, &here)
    }

    /// Ends the sent command, whose end the shell does not mark.
    pub fn finish_sent(&mut self, now: Moment, evidence: Evidence) {
        let here = Here { now, ..self.emulator.here() };
        let prompt = self.commands().sent().map(|sent| Arc::clone(&sent.prompt));
        let before = self.before_cursor();
        // Text before the prompt on its row is the end of the output.
        let shown = prompt.filter(|prompt| before.ends_with(&**prompt));
        let col = shown.map_or(0, |prompt| here.position.col.saturating_sub(columns_of(&prompt)));
        let here = Here { position: Position { col, ..here.position }, ..here };
        self.change_commands().finish_sent(&here, None, evidence, true);
    }

    /// Notes that output was lost, which may have contained marks.
    pub fn on_lost_output(&mut self) {
        self.change_commands().on_lost_output();
    }

    /// Notes that the shell reads a line, starting at the cursor.
    pub fn on_reading(&mut self, now: Moment) {
        let here = Here { now, ..self.emulator.here() };
        self.change_commands().on_reading(&here);
    }

    /// Ends the command after which the shell showed its prompt without an end mark.
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

fn columns_of(text: &str) -> u16 {
    let columns: usize = text.chars().filter_map(UnicodeWidthChar::width).sum();
    u16::try_from(columns).unwrap_or(u16::MAX)
}
