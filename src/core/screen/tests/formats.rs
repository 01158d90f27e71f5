//! Snapshots of the second version of the format, which has the commands behind the screen, as they
//! are read and written for ever.
//!
//! Their screens are those of the first version. What stands behind was put together by hand, by the
//! specification of the encoding, and by no program of ours.

use std::collections::VecDeque;

use super::snapshots::{FIRST_FORMAT, assert_same_for_ever};
use super::*;
use crate::core::shell::activity::Evidence;
use crate::core::shell::commands::record::{CommandId, CommandRecord, Finish, Span};
use crate::core::shell::commands::{Commands, EndsBy, SentCommand, ShellPhase};

const SECOND_FORMAT: [&[u8]; 2] =
    [include_bytes!("formats/2-normal.snapshot"), include_bytes!("formats/2-alternate.snapshot")];

/// What is known of a shell.
struct Known {
    commands: Commands,
    directory: Option<Arc<str>>,
    shelved_at: Position,
}

fn at(row: u64, col: u16) -> Position {
    Position { row: RowNumber(row), col }
}

fn span(from: Position, to: Position) -> Span {
    Span { from, to: Some(to) }
}

fn second(number: u64) -> Moment {
    Moment::from_boot(Duration::from_secs(number))
}

fn running(id: u64, text: &str, started: Moment, from: Position) -> CommandRecord {
    CommandRecord::open(CommandId(id), text, started, from)
}

fn ended(code: Option<i32>, evidence: Evidence, at: Moment, mark: u64) -> Option<Finish> {
    Some(Finish { code, evidence, ran: true, at, mark: Watermark(mark) })
}

fn sent(id: u64, ends_by: EndsBy, prompt: &str, typed: &str) -> Option<SentCommand> {
    Some(SentCommand { id: CommandId(id), ends_by, prompt: prompt.into(), typed: typed.into() })
}

fn list<const N: usize>(records: [CommandRecord; N]) -> VecDeque<Arc<CommandRecord>> {
    records.into_iter().map(Arc::new).collect()
}

/// A shell that marks what it does, in the middle of a command.
fn marking() -> Known {
    let nano = Duration::from_nanos(1);
    let make = CommandRecord {
        by: Some("ci#t1".into()),
        finish: ended(Some(0), Evidence::Osc133, second(2), 300),
        spans: vec![span(at(0, 0), at(2, 5))],
        ..running(3, "make -j2", second(1), at(0, 0))
    };
    let printf = CommandRecord {
        directory: Some("/src".into()),
        by: Some("ada".into()),
        finish: ended(Some(130), Evidence::Osc133, second(4) + nano, 301),
        spans: vec![span(at(2, 5), at(3, 0)), span(at(70_000, 2), at(70_001, 300))],
        full_screen: true,
        ..running(4, "printf \"ä\n\"; exit 130", second(3), at(0, 0))
    };
    let unread = Finish {
        code: None,
        evidence: Evidence::Osc133,
        ran: false,
        at: second(5) + 7 * nano,
        mark: Watermark(302),
    };
    let unread = CommandRecord {
        finish: Some(unread),
        spans: vec![span(at(70_001, 0), at(70_002, 0))],
        echo_lines: 1,
        ..running(6, "echo (", second(5), at(0, 0))
    };
    let records = list([make, printf, unread, running(9, "", second(6), at(70_002, 11))]);
    let open = (sent(9, EndsBy::Marks, "$ ", ""), None);
    let last = CommandId(12);
    Known {
        commands: Commands::restored(records, last, ShellPhase::Running, None, open),
        directory: Some("/src/x".into()),
        shelved_at: at(0, 0),
    }
}

/// An interpreter in a shell, and every way in which an end is known.
fn interpreter() -> Known {
    let nano = Moment::from_boot(Duration::from_nanos(1));
    let ls = CommandRecord {
        directory: Some("/".into()),
        finish: ended(Some(-1), Evidence::Kernel, nano, 1),
        spans: vec![span(at(0, 2), at(1, 2))],
        echo_lines: 2,
        ..running(1, "ls", Moment::default(), at(0, 0))
    };
    let sum = CommandRecord {
        by: Some("p#1".into()),
        finish: ended(None, Evidence::Pattern, second(2), 2),
        spans: vec![span(at(1, 2), at(1, 9))],
        echo_lines: 1,
        ..running(2, "1+1", second(1), at(0, 0))
    };
    let idle = CommandRecord {
        finish: ended(None, Evidence::Idle, second(2), 2),
        spans: Vec::new(),
        ..running(3, "x", second(2), at(0, 0))
    };
    let exit = CommandRecord {
        finish: ended(Some(3), Evidence::Exit, second(2), 3),
        spans: vec![span(at(2, 0), at(2, 0))],
        ..running(4, "exit 3", second(2), at(0, 0))
    };
    let by = Some(Arc::from("p#1"));
    let python = CommandRecord {
        by: by.clone(),
        echo_lines: 1,
        ..running(5, "python3", second(3), at(2, 2))
    };
    let call = CommandRecord {
        by,
        echo_lines: 1,
        full_screen: true,
        ..running(6, "f()", second(4), at(3, 4))
    };
    let records = list([ls, sum, idle, exit, python, call]);
    let open = (sent(6, EndsBy::Prompt, ">>> ", "f()"), sent(5, EndsBy::Kernel, "# ", "python3"));
    let reading = Some(at(4, 2));
    Known {
        commands: Commands::restored(records, CommandId(6), ShellPhase::Reading, reading, open),
        directory: None,
        shelved_at: at(4, 4),
    }
}

/// What each of these screens says of its shell.
fn known() -> [Known; 2] {
    [marking(), interpreter()]
}

#[test]
fn the_second_format_is_read_as_it_always_was() {
    let screens = SECOND_FORMAT.into_iter().zip(FIRST_FORMAT).zip(known());
    for ((snapshot, (_, first, rows)), known) in screens {
        let limits = ScreenLimits::default();
        let screen = Screen::restore(snapshot, [rows], limits).unwrap();
        let shell = &screen.emulator.shell;
        assert_eq!(*shell.commands, known.commands);
        assert_eq!((&shell.directory, shell.shelved_at), (&known.directory, known.shelved_at));
        let bare = Screen::restore(first, [rows], limits).unwrap();
        let restored = |screen| Terminal { screen, now: second(1), ..Terminal::new(2, 2) };
        assert_same_for_ever(&mut restored(bare), &mut restored(screen));
    }
}

#[test]
fn the_second_format_is_written_as_it_always_was() {
    let screens = SECOND_FORMAT.into_iter().zip(FIRST_FORMAT).zip(known());
    for ((snapshot, (output, _, _)), known) in screens {
        let mut terminal = Terminal::new(4, 12);
        terminal.now = second(1);
        terminal.feed(output);
        terminal.screen.resize(Size { rows: 3, cols: 12 });
        let shell = &mut terminal.screen.emulator.shell;
        shell.commands = Arc::new(known.commands);
        shell.directory = known.directory;
        shell.shelved_at = known.shelved_at;
        assert_eq!(terminal.screen.checkpoint(RowNumber(0)).snapshot, snapshot);
    }
}
