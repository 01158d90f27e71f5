//! Records where on the screen the shell's marks are. The list of commands gives them their meaning.

use std::sync::Arc;

use alacritty_terminal::grid::Dimensions;

use crate::core::screen::emulator::Emulator;
use crate::core::shell::commands::Commands;
use crate::core::shell::commands::mark::Mark;
use crate::core::shell::commands::output::columns;
use crate::core::shell::commands::record::{Here, Position};

/// What is known about the shell.
#[derive(Clone, Debug, Default)]
pub(crate) struct MarkedShell {
    /// The value that its marks carry; none when it was not asked to mark anything.
    pub(crate) nonce: Option<Arc<str>>,
    /// The machine it runs on.
    pub(crate) host: Option<Arc<str>>,
    /// The principal that typed last.
    pub(crate) typist: Option<Arc<str>>,
    /// The working directory that it last reported.
    pub(crate) directory: Option<Arc<str>>,
    pub(crate) commands: Arc<Commands>,
    /// The cursor position of the normal screen while the alternate one is shown.
    pub(crate) shelved_at: Position,
}

impl Emulator {
    pub(crate) fn shell(&self) -> &MarkedShell {
        &self.shell
    }

    pub(crate) fn shell_mut(&mut self) -> &mut MarkedShell {
        &mut self.shell
    }

    /// The position of the next character: after the last column when that is full.
    pub(crate) fn position(&self) -> Position {
        let cursor = self.cursor();
        let behind = u16::from(self.term.grid().cursor.input_needs_wrap);
        Position { row: cursor.row, col: cursor.col + behind }
    }

    /// Notes that the cursor moved up and that a running command now writes above its output.
    pub(super) fn on_raised(&mut self) {
        if !self.alternate() {
            let row = self.cursor().row;
            if self.shell.commands.raised(row).is_some() {
                Arc::make_mut(&mut self.shell.commands).on_raised(row);
            }
        }
    }

    /// Notes that the whole screen was cleared.
    pub(super) fn on_cleared(&mut self) {
        if !self.alternate() {
            let top = self.here().top;
            Arc::make_mut(&mut self.shell.commands).on_cleared(top);
        }
    }

    /// The current position, time and watermark.
    pub(crate) fn here(&self) -> Here {
        Here {
            position: self.position(),
            top: self.ledger.base_row().plus(self.term.history_size()),
            now: self.now,
            mark: self.ledger.mark(),
        }
    }

    pub(super) fn on_mark(&mut self, params: &str) {
        let Some(nonce) = &self.shell.nonce else { return };
        let Some(mark) = Mark::parse(params, nonce) else { return };
        let here = self.here();
        let mut commands = std::mem::take(&mut self.shell.commands);
        let (by, directory) = (self.shell.typist.clone(), self.shell.directory.clone());
        Arc::make_mut(&mut commands).on_mark(
            mark,
            &here,
            by.as_ref(),
            directory.as_ref(),
            |from| self.text_between(from, here.position),
        );
        self.shell.commands = commands;
    }

    /// Runs `work`, which renumbers the rows from the cursor on.
    pub(super) fn renumbering(&mut self, work: impl FnOnce(&mut Self)) {
        let before = self.position();
        work(self);
        self.on_renumbered(before);
    }

    pub(super) fn on_renumbered(&mut self, before: Position) {
        let after = self.position();
        Arc::make_mut(&mut self.shell.commands).on_renumbered(before, after);
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
        let end = ended.and_then(|record| record.spans.last()?.to);
        let end = end.filter(|end| end.row == cursor.row && end.col <= cursor.col);
        self.text_between(end.unwrap_or(Position { col: 0, ..cursor }), cursor)
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
            text.push_str(columns(&line, first, end));
            if row == to.row.0 {
                let shown = line.glyphs().last().map_or(0, |glyph| glyph.column + glyph.columns);
                let blanks = end.saturating_sub(shown.max(first));
                text.extend(std::iter::repeat_n(' ', blanks.into()));
            } else if !line.wrapped {
                text.push('\n');
            }
        }
        text
    }
}
