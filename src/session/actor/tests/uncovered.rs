//! Commands that are sent to a shell with marks between two checkpoints.

use super::checkpoints::restored;
use super::running_commands::NONCE;
use super::*;
use crate::core::frame::Frame;
use crate::core::shell::commands::record::{CommandId, CommandRecord};
use crate::core::shell::commands::{EndsBy, ShellPhase};
use crate::session::pty::{Note, TerminalEvidence};
use crate::session::tests::faults;

fn mark(mark: &str) -> String {
    format!("\x1b]133;{mark};nonce={NONCE}\x1b\\")
}

fn prompt() -> String {
    format!("{}$ {}", mark("A"), mark("B"))
}

/// What a shell writes for a command with this output.
fn ran(text: &str, output: &str, code: i32) -> String {
    format!("{text}\r\n{}{output}\r\n{}{}", mark("C"), mark(&format!("D;{code}")), prompt())
}

/// A session, and all that its program has written.
struct Story {
    desk: Desk,
    written: String,
}

impl Story {
    /// A shell that waits at its first prompt, which the newest checkpoint shows.
    async fn begin() -> Self {
        let opening = OpeningState::empty(SIZE, ScreenLimits::default());
        let desk = Desk::open_marked(opening, Some(NONCE));
        let story = Self { desk, written: String::new() };
        let story = story.write(&prompt()).await;
        story.desk.wait_until(|terminal| terminal.checkpoints().len() == 2).await;
        story
    }

    async fn write(mut self, output: &str) -> Self {
        self.desk.terminal.push(output);
        self.written.push_str(output);
        // It has been read then.
        tokio::time::sleep(Duration::from_millis(1)).await;
        self
    }

    async fn send(&self, text: &str) -> CommandId {
        self.desk.send_command_that_ends_by(EndsBy::Marks, text).await
    }

    fn noted(&self) -> CommandsRecord {
        let note = self.desk.terminal.note(Note::Commands).expect("there is one from the start");
        CommandsRecord::from_note(&note).expect("just written")
    }

    /// The session of a daemon that finds what this one left, once it shows all of the output, of which so
    /// much is not there any more.
    async fn found_without(&self, lost: usize) -> Self {
        let kept = self.desk.terminal.checkpoints().last().expect("there is one").offset;
        let screen = restored(&self.desk.terminal);
        let empty = OpeningState::empty(SIZE, ScreenLimits::default());
        let opening = OpeningState { screen, offset: kept, found: true, ..empty };
        let mut commands = self.noted();
        commands.cover(opening.screen.commands().last());
        let desk = Desk::open_noted(opening, Some(NONCE), commands);
        let (gone, there) = self.written.split_at(kept as usize + lost);
        desk.terminal.lose(gone);
        desk.terminal.push(there);
        tokio::time::sleep(Duration::from_millis(50)).await;
        Self { desk, written: self.written.clone() }
    }

    async fn found(&self) -> Self {
        self.found_without(0).await
    }

    fn frame(&self) -> Arc<Frame> {
        self.desk.session.frame()
    }

    fn commands(&self) -> Vec<CommandRecord> {
        self.frame().commands.value.iter().map(|record| (**record).clone()).collect()
    }
}

/// What does not depend on when the output was read.
fn about(record: &CommandRecord) -> (u64, String, Option<String>, Option<Option<i32>>, u16) {
    let by = record.by.as_ref().map(ToString::to_string);
    let code = record.finish.map(|finish| finish.code);
    (record.id.0, record.text.to_string(), by, code, record.echo_lines)
}

#[tokio::test(start_paused = true)]
async fn a_command_at_a_marked_prompt_is_noted_before_its_first_byte_goes_out() {
    let story = Story::begin().await;
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (terminal, list) = (story.desk.terminal.clone(), Arc::clone(&seen));
    story.desk.terminal.on_note(move |note, bytes| {
        if note == Note::Commands {
            let noted = CommandsRecord::from_note(bytes).expect("just written").uncovered;
            let texts = noted.iter().map(|one| one.submission().text.to_owned());
            list.lock().unwrap().push((texts.collect::<Vec<_>>(), terminal.written().len()));
        }
    });
    story.send("make").await;
    assert_eq!(*seen.lock().unwrap(), [(vec!["make".to_owned()], 0)]);
    assert_eq!(story.desk.terminal.checkpoints().len(), 2, "the note is enough");
}

#[tokio::test(start_paused = true)]
async fn the_next_daemon_knows_commands_that_were_sent_between_two_checkpoints() {
    for output in ["", "sleep 9\r\n", &format!("sleep 9\r\n{}zzz", mark("C"))] {
        let mut story = Story::begin().await;
        for (text, output, code) in [("make", "made", 0), ("test", "bad\r\nworse", 2)] {
            story.send(text).await;
            story = story.write(&ran(text, output, code)).await;
        }
        let running = story.send("sleep 9").await;
        story = story.write(output).await;
        assert_eq!(restored(&story.desk.terminal).commands().last(), CommandId(0));
        let found = story.found().await;
        let [before, after] = [&story, &found].map(|story| story.commands());
        assert_eq!(before.len(), 3);
        assert!(before.iter().map(about).eq(after.iter().map(about)), "{before:?}\n{after:?}");
        let positions = |records: &[CommandRecord]| {
            records
                .iter()
                .map(|record| (record.from, record.to, record.started))
                .collect::<Vec<_>>()
        };
        assert_eq!(positions(&before), positions(&after));
        let phase = |story: &Story| story.frame().commands.value.phase();
        assert_eq!(phase(&story), phase(&found));
        assert!(found.frame().commands.value.is_open(running));
        let rest = format!("{}\r\n{}{}", mark("C"), mark("D;7"), prompt());
        let found = found.write(&rest).await;
        let ended = found.desk.until_ended(running).await;
        assert_eq!(ended.finish.and_then(|finish| finish.code), Some(7));
    }
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_is_killed_while_it_reads_again_leaves_the_note_to_the_next() {
    let mut story = Story::begin().await;
    story.send("make").await;
    story = story.write(&ran("make", "made", 0)).await;
    let running = story.send("test").await;
    let opening = OpeningState {
        screen: restored(&story.desk.terminal),
        offset: story.desk.terminal.checkpoints().last().expect("there is one").offset,
        ..OpeningState::empty(SIZE, ScreenLimits::default())
    };
    // It has read nothing yet when it is killed.
    let second = Desk::open_noted(opening, Some(NONCE), story.noted());
    let note = second.terminal.note(Note::Commands).expect("it is kept at once");
    let note = CommandsRecord::from_note(&note).expect("just written");
    // The first was sent where that checkpoint ends, and is in the next one.
    assert_eq!(restored(&second.terminal).commands().last(), CommandId(1));
    assert!(note.uncovered.iter().eq(story.noted().uncovered.iter().skip(1)));
    assert_eq!((note.uncovered.len(), note.last), (1, running));
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_takes_the_place_of_the_notes() {
    let mut story = Story::begin().await;
    story.send("make").await;
    story = story.write(&ran("make", "made", 0)).await;
    story.desk.wait_until(|terminal| terminal.checkpoints().len() == 3).await;
    assert_eq!(restored(&story.desk.terminal).commands().last(), CommandId(1));
    story.send("test").await;
    let noted = story.noted().uncovered;
    assert_eq!(noted.iter().map(|one| one.id().0).collect::<Vec<_>>(), [2]);
}

#[tokio::test(start_paused = true)]
async fn a_note_that_a_checkpoint_covers_brings_no_command_back_when_that_cannot_be_read() {
    let mut story = Story::begin().await;
    let id = story.send("make").await;
    story = story.write(&ran("make", "made", 0)).await;
    story.desk.wait_until(|terminal| terminal.checkpoints().len() == 3).await;
    let note = story.noted();
    assert!(note.uncovered.is_empty(), "the shim is told as well");
    let offset = story.written.len() as u64;
    let blank = OpeningState { offset, ..OpeningState::empty(SIZE, ScreenLimits::default()) };
    let desk = Desk::open_noted(blank, Some(NONCE), note);
    assert_eq!(desk.session.frame().commands.value.iter().count(), 0);
    desk.terminal.lose(&story.written);
    desk.terminal.push(format!("{}{}", mark("C"), "typed"));
    tokio::time::sleep(Duration::from_millis(50)).await;
    let after = desk.session.frame().commands.value.last();
    assert_eq!(after, CommandId(id.0 + 1), "no number is given twice");
}

#[tokio::test(start_paused = true)]
async fn of_two_commands_in_one_gap_neither_gets_the_code_of_the_other() {
    let mut story = Story::begin().await;
    for text in ["make", "test"] {
        story.send(text).await;
        story = story.write(&ran(text, "done", 4)).await;
    }
    let lost = story.written.len() - prompt().len() - mark("D;4").len();
    let kept = prompt().len();
    let found = story.found_without(lost - kept).await;
    let codes = found.commands();
    let codes = codes.iter().map(|one| (one.id.0, one.finish.and_then(|finish| finish.code)));
    assert_eq!(codes.collect::<Vec<_>>(), [(1, None), (2, Some(4))]);
}

#[tokio::test(start_paused = true)]
async fn of_a_command_whose_beginning_is_lost_the_number_and_the_text_are_known() {
    let mut story = Story::begin().await;
    let id = story.send("make").await;
    story = story.write(&ran("make", "made", 3)).await;
    let found = story.found_without(ran("make", "made", 3).len()).await;
    let known = found.commands();
    assert_eq!(known.iter().map(|one| (one.id, &*one.text)).collect::<Vec<_>>(), [(id, "make")]);
    assert_eq!(known[0].finish.and_then(|finish| finish.code), None, "nobody knows it");
    assert_eq!(found.desk.session.frame().commands.value.last(), id);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_goes_on_with_the_command_that_was_sent() {
    let mut story = Story::begin().await;
    let id = story.send("make").await;
    story = story.write(&format!("make\r\n{}half", mark("C"))).await;
    faults::set(0, 1);
    story.desk.session.set_window(WriteWindow::Open);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(faults::clear(), "it failed");
    assert!(story.frame().commands.value.is_open(id));
    let story = story.write(&format!("\r\n{}{}", mark("D;5"), prompt())).await;
    let ended = story.desk.until_ended(id).await;
    assert_eq!(ended.finish.and_then(|finish| finish.code), Some(5));
}

#[tokio::test(start_paused = true)]
async fn what_no_output_tells_again_is_kept_whole() {
    let mut story = Story::begin().await;
    // The end of its prompt is missing, and the kernel tells that the shell reads.
    let edits = TerminalEvidence { canonical: false, ..story.desk.terminal.evidence() };
    story.desk.terminal.set_evidence(edits);
    story = story.write(&format!("\r\n{}$ ", mark("A"))).await;
    let reads = |frame: &Arc<Frame>| frame.commands.value.phase() == ShellPhase::Reading;
    story.desk.session.frames().wait_for(reads).await.expect("the session lives");
    let before = story.desk.terminal.checkpoints().len();
    story.send("test").await;
    assert_eq!(story.desk.terminal.checkpoints().len(), before + 1);
    assert!(story.noted().uncovered.is_empty());
}
