//! What goes with a command, and with a caller that goes before it has its answer.

use std::sync::Weak;

use super::*;
use crate::core::shell::commands::EndsBy;
use crate::session::command::{CommandOrder, Provision, Written};
use crate::session::pty::signal::Signal;
use crate::session::pty::{ProcessId, TerminalEvidence};

impl Desk {
    /// Sends a command whose caller gives it up before the terminal has taken it.
    async fn give_up(&self, command: CommandOrder) {
        self.terminal.limit_writes(Some(0));
        let sending = self.write(sending(command));
        assert!(tokio::time::timeout(Duration::from_millis(100), sending).await.is_err());
        self.terminal.limit_writes(None);
        self.wait_until(|terminal| !terminal.written().is_empty()).await;
    }

    async fn send(&self, command: CommandOrder) -> Written {
        self.write(sending(command)).await.expect("the holder writes")
    }
}

fn sending(command: CommandOrder) -> WriteOrder {
    WriteOrder { command: Some(command), ..typing(&agent(1), "x") }
}

fn command() -> CommandOrder {
    CommandOrder {
        text: "x".to_owned(),
        typed: "x".to_owned(),
        ends_by: EndsBy::Kernel,
        provision: None,
        interrupts: false,
    }
}

/// A command that needs something, and a look at whether that is still there.
fn needing() -> (CommandOrder, Weak<()>) {
    let needed = Arc::new(());
    let looked_at = Arc::downgrade(&needed);
    (CommandOrder { provision: Some(Provision::of(needed)), ..command() }, looked_at)
}

#[tokio::test(start_paused = true)]
async fn what_a_command_needs_is_there_until_it_has_ended_also_when_its_caller_has_gone() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    let (command, needed) = needing();
    desk.give_up(command).await;
    assert!(needed.upgrade().is_some(), "the shell may have yet to read it");
    desk.terminal.exit(Exit::Code(0));
    desk.wait_until(|_| needed.upgrade().is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_command_needs_goes_with_a_command_that_is_refused() {
    let desk = Desk::open();
    let (command, needed) = needing();
    let refused = desk.write(sending(command)).await.expect_err("nobody holds the lease");
    assert!(matches!(lease_error(refused), LeaseError::Required));
    assert!(needed.upgrade().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_command_is_interrupted_when_its_caller_goes_before_the_answer() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.give_up(CommandOrder { interrupts: true, ..command() }).await;
    desk.wait_until(|terminal| terminal.signals() == [Signal::Interrupt]).await;
}

#[tokio::test(start_paused = true)]
async fn a_command_goes_on_when_its_interrupt_was_not_asked_for_or_was_disarmed() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.give_up(command()).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(desk.terminal.signals(), []);

    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    let written = desk.send(CommandOrder { interrupts: true, ..command() }).await;
    written.interrupt.expect("asked for").disarm();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(desk.terminal.signals(), []);
}

#[tokio::test(start_paused = true)]
async fn a_command_goes_on_when_its_caller_is_sent_away() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    let written = desk.send(CommandOrder { interrupts: true, ..command() }).await;
    desk.session.spare_commands();
    drop(written);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(desk.terminal.signals(), []);
}

/// How long the kernel is asked for whom there is to be interrupted next, at the least.
const STRIKES_WITHIN: Duration = Duration::from_secs(10);

impl Desk {
    fn bring_to_front(&self, group: i32) {
        let evidence = self.terminal.evidence();
        let foreground = Some(ProcessId(group));
        self.terminal.set_evidence(TerminalEvidence { foreground, echo: false, ..evidence });
    }
}

/// A program whose caller gave it up, and which was interrupted once.
async fn given_up() -> Desk {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.bring_to_front(2_000);
    desk.give_up(CommandOrder { interrupts: true, ..command() }).await;
    desk.wait_until(|terminal| terminal.signals().len() == 1).await;
    desk
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_to_the_front_next_is_interrupted_while_the_holder_is_the_same() {
    let desk = given_up().await;
    desk.bring_to_front(3_000);
    desk.wait_until(|terminal| terminal.signals().len() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn whoever_is_next_is_interrupted_once_all_output_from_before_is_known_to_be_here() {
    let desk = given_up().await;
    desk.terminal.answer_late();
    desk.bring_to_front(3_000);
    desk.wait_until(|terminal| terminal.unanswered() > 0).await;
    tokio::time::sleep(STRIKES_WITHIN).await;
    assert_eq!(desk.terminal.signals().len(), 1);
    for _ in 0..1_000 {
        desk.terminal.answer();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(desk.terminal.signals().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_the_holder_writes_after_an_interrupt_is_not_interrupted() {
    let desk = given_up().await;
    desk.write(typing(&agent(1), "sleep 100\n")).await.expect("it has the lease");
    desk.bring_to_front(3_000);
    tokio::time::sleep(STRIKES_WITHIN).await;
    assert_eq!(desk.terminal.signals().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_next_holders_program_is_not_interrupted() {
    let desk = given_up().await;
    desk.session.permitted_preempt(&agent(9)).await.expect("there");
    desk.acquire(&agent(2)).await.expect("free");
    desk.bring_to_front(3_000);
    tokio::time::sleep(STRIKES_WITHIN).await;
    assert_eq!(desk.terminal.signals().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_interrupted_any_more_once_writing_is_switched_off() {
    let desk = given_up().await;
    desk.session.set_window(WriteWindow::Closed);
    desk.bring_to_front(3_000);
    tokio::time::sleep(STRIKES_WITHIN).await;
    assert_eq!(desk.terminal.signals().len(), 1);
}

/// What the shell's marks carry.
pub(super) const NONCE: &str = "0123456789abcdef0123456789abcdef";

impl Desk {
    /// A session whose shell marks its prompt, and waits there for a command.
    async fn open_at_marked_prompt() -> Self {
        let opening = OpeningState::empty(SIZE, ScreenLimits::default());
        let desk = Self::open_marked(opening, Some(NONCE));
        desk.push_mark("A");
        desk.terminal.push("$ ");
        desk.push_mark("B");
        desk.until_shown("$").await;
        desk
    }

    fn push_mark(&self, mark: &str) {
        self.terminal.push(format!("\x1b]133;{mark};nonce={NONCE}\x1b\\"));
    }

    /// Sends a command with a lease that is taken for this call, whose caller then waits for its end.
    async fn run(&self, ends_by: EndsBy) -> Written {
        let command = CommandOrder { ends_by, interrupts: true, ..command() };
        let take = TakeRule::ForThisCall(fresh());
        let order = WriteOrder { take, keep_alive: true, ..sending(command) };
        self.write(order).await.expect("free")
    }

    async fn until_waited_for(&self) {
        let mut frames = self.session.frames();
        frames.wait_for(|frame| frame.lease.value.waiters == 1).await.expect("alive");
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_that_is_given_up_is_interrupted_before_its_lease_passes_on() {
    let desk = Desk::open();
    let running = desk.run(EndsBy::Kernel).await;
    let caller = agent(2);
    let waiting = desk.acquire_within(&caller, Duration::from_secs(60));
    let giving_up = async {
        desk.until_waited_for().await;
        drop(running);
    };
    tokio::join!(waiting, giving_up).0.expect("its turn");
    assert_eq!(desk.terminal.signals(), [Signal::Interrupt]);
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_command_that_is_given_up_stays_until_its_shell_can_be_interrupted() {
    let desk = Desk::open_at_marked_prompt().await;
    let running = desk.run(EndsBy::Marks).await;
    let caller = agent(2);
    let waiting = desk.acquire_within(&caller, Duration::from_secs(60));
    let giving_up = async {
        desk.until_waited_for().await;
        drop(running);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(desk.terminal.signals(), [], "the shell would drop a part of the line");
        assert_eq!(desk.session.frame().lease.value.waiters, 1);
        desk.push_mark("C");
        desk.until_lease(true).await;
    };
    tokio::join!(waiting, giving_up).0.expect("its turn");
    assert_eq!(desk.terminal.signals(), [Signal::Interrupt]);
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_command_that_cannot_be_interrupted_passes_on_after_ten_seconds() {
    let desk = Desk::open_at_marked_prompt().await;
    let running = desk.run(EndsBy::Marks).await;
    let caller = agent(2);
    let waiting = desk.acquire_within(&caller, Duration::from_secs(60));
    let giving_up = async {
        desk.until_waited_for().await;
        drop(running);
        tokio::time::sleep(Duration::from_secs(9)).await;
        assert_eq!(desk.session.frame().lease.value.waiters, 1);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(desk.session.frame().lease.value.waiters, 0, "it does not wait for ever");
    };
    tokio::join!(waiting, giving_up).0.expect("its turn");
    desk.push_mark("C");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(desk.terminal.signals(), [], "another one has the lease");
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_the_task_gives_up_no_command() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.terminal.limit_writes(Some(0));
    let command = CommandOrder { interrupts: true, ..command() };
    let writing = desk.write(sending(command));
    let failing = async {
        desk.wait_until(|_| desk.session.frame().commands.value.last().0 == 1).await;
        crate::session::tests::faults::set(0, 1);
        desk.session.set_window(WriteWindow::Open);
    };
    let (written, ()) = tokio::join!(writing, failing);
    assert!(matches!(written, Err(SessionError::Restarted)), "{written:?}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(crate::session::tests::faults::clear(), "it failed");
    assert_eq!(desk.terminal.signals(), []);
}
