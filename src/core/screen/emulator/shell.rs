//! Where on the screen the shell's marks are, and what the session reports of its commands.
//!
//! The list of commands gives them their meaning.

use std::sync::Arc;

use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::vte::ansi::KeyboardModes;
use unicode_width::UnicodeWidthChar;

use crate::core::caller::PrincipalName;
use crate::core::ids::RowNumber;
use crate::core::moment::Moment;
use crate::core::screen::Screen;
use crate::core::screen::emulator::Emulator;
use crate::core::shell::activity::Evidence;
use crate::core::shell::commands::mark::{Mark, MarkKind, MarkNonces};
use crate::core::shell::commands::record::{CommandId, Here, Position};
use crate::core::shell::commands::{Commands, EndsBy, ShellPhase, Submission};

/// What is known about the shell.
#[derive(Clone, Debug, Default)]
pub(crate) struct MarkedShell {
    pub(crate) nonces: MarkNonces,
    /// The machine it runs on.
    pub(crate) host: Option<Arc<str>>,
    /// The principal that typed last.
    pub(crate) typist: Option<PrincipalName>,
    /// The working directory that it last reported.
    pub(crate) directory: Option<Arc<str>>,
    pub(crate) commands: Arc<Commands>,
    /// What keys sent when something was sent to a prompt that nothing marks.
    key_codes: Option<KeyCodes>,
}

/// What programs switch on to get other codes for keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyCodes {
    pub(super) flags: KeyboardModes,
    pub(super) keypad: bool,
}

impl Emulator {
    /// The position of the next character: after the last column when that is full.
    pub(crate) fn position(&self) -> Position {
        let cursor = self.cursor();
        let behind = u16::from(self.term.grid().cursor.input_needs_wrap);
        Position { row: cursor.row, col: cursor.col + behind }
    }

    pub(crate) fn here(&self) -> Here {
        Here {
            position: self.position(),
            top: self.ledger.base_row().plus(self.term.history_size()),
            now: self.now,
            mark: self.ledger.mark(),
        }
    }

    pub(super) fn on_mark(&mut self, params: &str) {
        let read = |nonce: &Option<Arc<str>>| Mark::parse(params, nonce.as_ref()?);
        let Some(mark) = read(&self.shell.nonces.own) else {
            if let Some(mark) = read(&self.shell.nonces.nested) {
                self.on_nested_mark(&mark);
            }
            return;
        };
        let here = self.here();
        let mut commands = std::mem::take(&mut self.shell.commands);
        let ran = commands.phase() == ShellPhase::Running;
        let (by, directory) = (self.shell.typist.clone(), self.shell.directory.clone());
        Arc::make_mut(&mut commands).on_mark(
            mark,
            &here,
            by.as_ref(),
            directory.as_ref(),
            |from| self.text_between(from, here.position),
        );
        let ends = commands.phase() != ShellPhase::Running && ran;
        self.shell.commands = commands;
        self.follow_commands();
        if ends {
            // Whoever asked has ended, and the shell would take the answer for something typed.
            self.answers.take();
            self.clean_screen();
            self.clean_input_modes();
        }
    }

    fn on_nested_mark(&mut self, mark: &Mark) {
        if mark.kind == MarkKind::OutputEnd {
            Arc::make_mut(&mut self.shell.commands).on_told_end();
            self.recordings.note_sign();
        }
        if let MarkKind::Ended(code) = mark.kind {
            let here = self.here();
            Arc::make_mut(&mut self.shell.commands).on_told_code(code, &here);
            if let Some(sent) = self.shell.commands.sent()
                && sent.ends_by != EndsBy::Marks
            {
                self.recordings.note_end(sent.id);
                self.answers.take();
            }
        }
    }

    pub(super) fn on_rows_moved(&mut self) {
        let cursor = self.position();
        Arc::make_mut(&mut self.shell.commands).on_rows_moved(cursor);
    }

    pub(super) fn on_alternate(&mut self) {
        if self.shell.commands.running().is_some_and(|record| !record.full_screen) {
            Arc::make_mut(&mut self.shell.commands).on_alternate();
        }
    }

    /// What stands on the row of the cursor before it, without the output of a command that ended there.
    pub(crate) fn before_cursor(&mut self) -> String {
        let cursor = self.position();
        let ended = self.shell.commands.iter().rev().find(|record| record.finish.is_some());
        let end = ended.and_then(|record| record.to);
        let end = end.filter(|end| end.row == cursor.row && end.col <= cursor.col);
        self.text_between(end.unwrap_or(Position { col: 0, ..cursor }), cursor)
    }

    pub(crate) fn above_cursor(&mut self, rows: usize) -> String {
        let cursor = Position { col: 0, ..self.position() };
        let first = RowNumber(cursor.row.0.saturating_sub(rows as u64));
        self.text_between(Position { row: first, col: 0 }, cursor)
    }

    /// The text on the screen between two positions, with wrapped rows joined.
    fn text_between(&mut self, from: Position, to: Position) -> String {
        self.harvest();
        let (base, mut text) = (self.ledger.base_row(), String::new());
        for row in from.row.0.max(base.0)..=to.row.0 {
            let index = (row - base.0) as i32;
            if index >= i32::from(self.size().rows) {
                break;
            }
            let line = self.draw_row(index as usize).value;
            let first = if row == from.row.0 { from.col } else { 0 };
            let end = if row == to.row.0 { to.col } else { u16::MAX };
            text.push_str(line.text_between(first, end));
            if row == to.row.0 {
                let blanks = end.saturating_sub(line.columns().max(first));
                text.extend(std::iter::repeat_n(' ', blanks.into()));
            } else if !line.wrapped {
                text.push('\n');
            }
        }
        text
    }
}

impl Screen {
    pub fn set_nonces(&mut self, nonces: MarkNonces) {
        self.emulator.shell.nonces = nonces;
    }

    /// Sets the name of this machine, so that directories of other machines are ignored.
    pub fn set_host(&mut self, name: Option<Arc<str>>) {
        self.emulator.shell.host = name;
    }

    pub fn set_typist(&mut self, name: PrincipalName) {
        self.emulator.shell.typist = Some(name);
    }

    pub fn commands(&self) -> &Arc<Commands> {
        &self.emulator.shell.commands
    }

    pub fn number_commands_after(&mut self, id: CommandId) {
        self.change_commands().number_after(id);
    }

    pub fn submit(&mut self, now: Moment, submission: Submission<'_>) -> CommandId {
        // What a shell without marks runs is known to have ended only now.
        if submission.ends_by == EndsBy::Kernel {
            self.emulator.clean_screen();
        }
        let unmarked = submission.ends_by != EndsBy::Marks;
        self.emulator.shell.key_codes = unmarked.then(|| self.emulator.key_codes());
        let here = self.here(now);
        let id = self.change_commands().submit(submission, &here);
        self.emulator.follow_commands();
        id
    }

    /// Forgets a command of which nothing was sent.
    pub fn withdraw(&mut self, id: CommandId) {
        self.change_commands().withdraw(id);
        self.emulator.follow_commands();
    }

    /// Ends the sent command, whose end the shell does not mark.
    pub fn finish_sent(&mut self, now: Moment, evidence: Evidence) {
        let here = self.here(now);
        let prompt = self.commands().sent().map(|sent| Arc::clone(&sent.prompt));
        let before = self.before_cursor();
        // Text before the prompt on its row is the end of the output.
        let shown = prompt.filter(|prompt| before.ends_with(&**prompt));
        let col = shown.map_or(0, |prompt| here.position.col.saturating_sub(columns_of(&prompt)));
        let here = Here { position: Position { col, ..here.position }, ..here };
        self.change_commands().finish_sent(&here, evidence, true);
        self.emulator.follow_commands();
        if let Some(before) = self.emulator.shell.key_codes.take() {
            self.emulator.leave_key_codes(before);
        }
    }

    /// Notes that output was lost, which may have contained marks.
    pub fn on_lost_output(&mut self) {
        self.change_commands().on_lost_output();
    }

    /// Notes that the shell reads a line, starting at the cursor.
    pub fn on_reading(&mut self, now: Moment) {
        let here = self.here(now);
        self.change_commands().on_reading(&here);
        self.emulator.follow_commands();
    }

    /// Ends the command after which the shell showed its prompt without an end mark.
    pub fn on_prompted(&mut self, now: Moment) {
        let here = self.here(now);
        self.change_commands().on_prompted(&here);
        self.emulator.follow_commands();
    }

    /// Ends all commands, because the program of the session ended.
    pub fn end_commands(&mut self, now: Moment, code: Option<i32>) {
        if self.commands().running().is_some() {
            let here = self.here(now);
            self.change_commands().on_exit(&here, code);
            self.emulator.follow_commands();
        }
    }

    fn here(&self, now: Moment) -> Here {
        Here { now, ..self.emulator.here() }
    }

    fn change_commands(&mut self) -> &mut Commands {
        Arc::make_mut(&mut self.emulator.shell.commands)
    }
}

fn columns_of(text: &str) -> u16 {
    let columns: usize = text.chars().filter_map(UnicodeWidthChar::width).sum();
    u16::try_from(columns).unwrap_or(u16::MAX)
}
