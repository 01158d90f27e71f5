//! What a session keeps for the next daemon, over a terminal in memory.

use std::sync::Mutex;

use super::*;
use crate::core::ids::RowNumber;
use crate::core::shell::commands::EndsBy;
use crate::core::shell::commands::record::{CommandId, CommandRecord};
use crate::session::command::CommandOrder;
use crate::session::pty::{Note, TerminalCheckpoint};
use crate::session::records::commands::CommandsRecord;

/// The screen that the next daemon makes of the newest checkpoint.
pub(super) fn restored(terminal: &FakeTerminal) -> Screen {
    let kept = terminal.checkpoints();
    let rows = kept.iter().map(|checkpoint| checkpoint.rows.clone());
    let newest = kept.last().expect("one was handed over");
    Screen::restore(&newest.snapshot, rows, ScreenLimits::default()).expect("it can be read")
}

fn shown(screen: &mut Screen) -> Arc<Frame> {
    screen.first_frame(Moment::default(), &Facts::default())
}

fn text(frame: &Frame) -> Vec<String> {
    frame.lines.iter().map(|line| line.value.text.trim_end().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_is_handed_over_when_the_terminal_needs_the_room() {
    let desk = Desk::open();
    desk.terminal.ask_for_checkpoints(3);
    desk.terminal.push("abcdef");
    desk.wait_until(|terminal| terminal.checkpoints().len() == 2).await;
    let offsets: Vec<u64> = desk.terminal.checkpoints().iter().map(|one| one.offset).collect();
    assert_eq!(offsets, [0, 6], "one before anybody sees the session, one when it is owed");
}

#[tokio::test(start_paused = true)]
async fn output_is_kept_once_it_has_been_silent_for_a_second() {
    let desk = Desk::open();
    for _ in 0..3 {
        desk.terminal.push("x\r\n");
        desk.wait_until(|_| desk.session.frame().cursor.value.row > RowNumber(0)).await;
        tokio::time::sleep(Duration::from_millis(600)).await;
        assert_eq!(desk.terminal.checkpoints().len(), 1, "it is not silent yet");
    }
    desk.wait_until(|terminal| terminal.checkpoints().len() == 2).await;
    let newest: TerminalCheckpoint = desk.terminal.checkpoints().remove(1);
    assert_eq!((newest.offset, newest.quiet), (9, true));
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(desk.terminal.checkpoints().len(), 2, "nothing more happened");
}

#[tokio::test(start_paused = true)]
async fn output_that_is_never_silent_is_kept_every_few_seconds() {
    let desk = Desk::open();
    for _ in 0..60 {
        desk.terminal.push("x\r\n");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let kept = desk.terminal.checkpoints();
    assert!((5..=8).contains(&kept.len()), "{} checkpoints in 30 s", kept.len());
    let newest = kept.last().unwrap().offset;
    assert!(newest >= 3 * (60 - 14), "{newest} is older than seven seconds");
    assert!(kept.iter().all(|checkpoint| !checkpoint.quiet));
}

#[tokio::test(start_paused = true)]
async fn the_next_daemon_finds_screen_and_history() {
    let desk = Desk::open();
    let lines: Vec<String> = (0..12).map(|number| format!("line {number}")).collect();
    desk.terminal.push(lines[..9].join("\r\n"));
    desk.wait_until(|terminal| terminal.checkpoints().len() == 2).await;
    desk.terminal.push(format!("\r\n{}", lines[9..].join("\r\n")));
    desk.wait_until(|terminal| terminal.checkpoints().len() == 3).await;
    let before = desk.session.frame();
    let mut screen = restored(&desk.terminal);
    let after = shown(&mut screen);
    assert_eq!(text(&after), lines[7..]);
    assert_eq!(after.base_row, before.base_row);
    assert!(after.watermark > before.watermark);
    assert_eq!((after.history.first(), after.history.end()), (RowNumber(0), RowNumber(7)));
}

#[tokio::test(start_paused = true)]
async fn history_that_takes_too_much_room_is_handed_over_again_in_the_next_silence() {
    let desk = Desk::open();
    desk.terminal.set_loose(true);
    desk.terminal.ask_for_checkpoints(30);
    desk.terminal.push("a\r\n".repeat(12));
    desk.wait_until(|terminal| terminal.checkpoints().len() == 3).await;
    let kept = desk.terminal.checkpoints();
    assert_eq!((kept[1].quiet, kept[1].whole), (false, false), "the program waits for this one");
    assert_eq!((kept[2].quiet, kept[2].whole), (true, true));
    assert_eq!(kept[2].rows, kept[1].rows, "all rows of history");

    desk.terminal.set_loose(false);
    desk.terminal.push("b\r\n");
    desk.wait_until(|terminal| terminal.checkpoints().len() == 4).await;
    assert!(!desk.terminal.checkpoints()[3].whole);
}

#[tokio::test(start_paused = true)]
async fn a_size_and_a_cleared_history_are_kept_at_once() {
    let desk = Desk::open();
    desk.terminal.push("a\r\nb\r\nc\r\nd\r\ne\r\nf\r\ng");
    desk.wait_until(|terminal| terminal.checkpoints().len() == 2).await;
    let clear = ManageOrder {
        caller: agent(1),
        act: Act::ClearHistory,
        fresh: fresh(),
        over_any_lease: false,
        bound: None,
    };
    desk.session.permitted_manage(clear, Accepted::nothing()).await.expect("free");
    let resize = ResizeOrder {
        caller: agent(1),
        presented: None,
        take: TakeRule::ForThisCall(fresh()),
        size: Size { rows: 4, cols: 20 },
        dry_run: false,
    };
    desk.session.permitted_resize(resize, Accepted::nothing()).await.expect("free");
    assert_eq!(desk.terminal.checkpoints().len(), 4);
    let mut screen = restored(&desk.terminal);
    assert_eq!(screen.size(), Size { rows: 4, cols: 20 });
    // Only the row that the smaller screen pushed out is history.
    let frame = shown(&mut screen);
    assert_eq!((frame.history.first(), frame.history.end()), (RowNumber(2), RowNumber(3)));
}

#[tokio::test(start_paused = true)]
async fn no_frame_is_published_that_a_restart_could_count_again() {
    let desk = Desk::open();
    desk.terminal.refuse_checkpoints(true);
    desk.terminal.push("x");
    desk.wait_until(|_| desk.session.frame().cursor.value.col > 0).await;
    let first: TerminalCheckpoint = desk.terminal.checkpoints().remove(0);
    let mut screen = Screen::restore(&first.snapshot, [first.rows], ScreenLimits::default())
        .expect("it can be read");
    assert!(shown(&mut screen).watermark > desk.session.frame().watermark);
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_that_was_not_taken_is_tried_again() {
    let desk = Desk::open();
    desk.terminal.refuse_checkpoints(true);
    desk.terminal.push("x");
    tokio::time::sleep(Duration::from_secs(5)).await;
    desk.terminal.refuse_checkpoints(false);
    desk.wait_until(|terminal| terminal.checkpoints().len() == 2).await;
    assert_eq!(desk.terminal.checkpoints()[1].offset, 1);
}

#[tokio::test(start_paused = true)]
async fn a_query_that_was_answered_before_is_not_answered_again() {
    let query = "\x1b[5n";
    let empty = OpeningState::empty(SIZE, ScreenLimits::default());
    let desk = Desk::open_at(OpeningState { answered: query.len() as u64, ..empty });
    desk.terminal.push(format!("{query}then {query}"));
    desk.wait_until(|terminal| !terminal.written().is_empty()).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(desk.terminal.written(), b"\x1b[0n");
}

impl Desk {
    /// Sends a command to a shell that tells no marks.
    async fn send_command(&self, text: &str) -> CommandId {
        self.send_command_that_ends_by(EndsBy::Kernel, text).await
    }

    /// Sends a command with a lease that is taken for this call.
    pub(super) async fn send_command_that_ends_by(&self, ends_by: EndsBy, text: &str) -> CommandId {
        let command = CommandOrder {
            text: text.to_owned(),
            typed: text.to_owned(),
            ends_by,
            provision: None,
            interrupts: false,
        };
        let take = TakeRule::ForThisCall(fresh());
        let order = WriteOrder { command: Some(command), take, ..typing(&agent(1), text) };
        let written = self.write(order).await.expect("the shell reads");
        written.command.expect("it is a command").id
    }

    async fn at_a_prompt() -> Self {
        let desk = Self::open();
        desk.terminal.push("# ");
        desk.until_shown("#").await;
        desk
    }

    pub(super) async fn until_ended(&self, id: CommandId) -> CommandRecord {
        let mut frames = self.session.frames();
        loop {
            let frame = Arc::clone(&frames.borrow_and_update());
            let record = frame.commands.value.get(id).filter(|record| record.finish.is_some());
            if let Some(record) = record {
                return (**record).clone();
            }
            frames.changed().await.expect("the session lives");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_is_kept_before_its_first_byte_goes_out() {
    let desk = Desk::at_a_prompt().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (terminal, list) = (desk.terminal.clone(), Arc::clone(&seen));
    desk.terminal.on_note(move |note, bytes| {
        if note == Note::Commands {
            let last = CommandsRecord::from_note(bytes).expect("just written").last;
            list.lock().unwrap().push((last, terminal.written().len()));
        }
    });
    let id = desk.send_command("make").await;
    // First the note: a checkpoint alone would say that it was sent.
    assert_eq!(*seen.lock().unwrap(), [(id, 0)]);
    let kept = restored(&desk.terminal);
    assert_eq!(
        kept.commands().sent().map(|sent| (sent.id, sent.ends_by)),
        Some((id, EndsBy::Kernel))
    );
    assert_eq!(kept.commands().get(id), desk.session.frame().commands.value.get(id));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_command_is_kept_right_after_it_was_told() {
    let desk = Desk::at_a_prompt().await;
    let id = desk.send_command("make").await;
    desk.terminal.push("make\r\nout\r\n# ");
    let told = desk.until_ended(id).await;
    let told_at = desk.clock.now();
    let is_kept = |terminal: &FakeTerminal| {
        restored(terminal).commands().get(id).is_some_and(|record| **record == told)
    };
    desk.wait_until(is_kept).await;
    assert!(desk.clock.now().since(told_at) < Duration::from_millis(20));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_command_is_kept_also_while_output_goes_on() {
    let desk = Desk::at_a_prompt().await;
    let id = desk.send_command("make").await;
    desk.terminal.push("make\r\nout\r\n# ");
    desk.until_ended(id).await;
    let told_at = desk.clock.now();
    let is_kept = |desk: &Desk| !restored(&desk.terminal).commands().is_open(id);
    while !is_kept(&desk) && desk.clock.now().since(told_at) < Duration::from_secs(1) {
        desk.terminal.push("background\r\n");
        tokio::time::sleep(Duration::from_millis(4)).await;
    }
    assert!(desk.clock.now().since(told_at) < Duration::from_millis(30));
}

#[tokio::test(start_paused = true)]
async fn a_command_that_follows_at_once_is_kept_together_with_the_end_before() {
    let desk = Desk::at_a_prompt().await;
    let id = desk.send_command("make").await;
    desk.terminal.push("make\r\nout\r\n# ");
    desk.until_ended(id).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let before = desk.terminal.checkpoints().len();
    let next = desk.send_command("test").await;
    assert_eq!(desk.terminal.checkpoints().len(), before + 1);
    let kept = restored(&desk.terminal);
    let is_open = |id| kept.commands().is_open(id);
    assert_eq!((is_open(id), is_open(next)), (false, true));
}

#[tokio::test(start_paused = true)]
async fn the_number_of_a_command_is_kept_also_when_no_checkpoint_is_taken() {
    let desk = Desk::at_a_prompt().await;
    desk.terminal.refuse_checkpoints(true);
    let id = desk.send_command("make").await;
    let note = desk.terminal.note(Note::Commands).expect("there is one from the beginning");
    assert_eq!(CommandsRecord::from_note(&note).expect("just written").last, id);
}
