//! What the kernel knows before what was written has come, over a terminal in memory.

use super::*;
use crate::core::shell::activity::ActivityState;
use crate::session::pty::{ProcessId, TerminalEvidence};

impl Desk {
    /// A program in front hides what is typed, and reads.
    fn hide(&self) {
        let evidence = self.terminal.evidence();
        let foreground = Some(ProcessId(evidence.leader.0 + 1));
        self.terminal.set_evidence(TerminalEvidence { foreground, echo: false, ..evidence });
        self.terminal.set_reading(Some(true));
    }

    fn state(&self) -> ActivityState {
        self.session.frame().activity.value.state
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_is_asked_for_once_the_whole_question_is_there() {
    let desk = Desk::open();
    desk.terminal.push("[sudo] ");
    desk.hide();
    desk.terminal.set_output_on_its_way(true);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(desk.state(), ActivityState::Running);
    desk.terminal.set_output_on_its_way(false);
    desk.terminal.push("password: ");
    desk.wait_until(|_| desk.state() == ActivityState::SecretPrompt).await;
    assert_eq!(desk.session.frame().lines[0].value.text.trim_end(), "[sudo] password:");
}

#[tokio::test(start_paused = true)]
async fn whoever_follows_the_frames_has_the_newest_one_before_the_kernel_is_asked() {
    let desk = Desk::open();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let (before, mut frames) = (desk.terminal.looks(), desk.session.frames());
    let terminal = desk.terminal.clone();
    let follower = tokio::spawn(async move {
        let shown = |frame: &Arc<Frame>| &*frame.lines[0].value.text == "shown";
        frames.wait_for(shown).await.expect("the session goes on");
        terminal.looks()
    });
    desk.terminal.push("shown");
    assert_eq!(follower.await.expect("no panic"), before);
    desk.wait_until(|terminal| terminal.looks() > before).await;
}

#[tokio::test(start_paused = true)]
async fn it_is_asked_again_when_output_was_on_its_way_that_shows_nothing() {
    let desk = Desk::open();
    desk.terminal.push("password: ");
    desk.hide();
    desk.terminal.set_output_on_its_way(true);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(desk.state(), ActivityState::Running);
    desk.terminal.set_output_on_its_way(false);
    desk.wait_until(|_| desk.state() == ActivityState::SecretPrompt).await;
}

#[tokio::test(start_paused = true)]
async fn whoever_hurries_is_told_of_an_idle_program_once_all_its_output_is_here() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.hide();
    desk.write(typing(&agent(1), "j")).await.expect("the holder writes");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(desk.session.frame().shell.idle_after, None, "nobody asked");
    desk.terminal.set_output_on_its_way(true);
    let (before, _hurry) = (desk.clock.now(), desk.session.hurry());
    desk.write(typing(&agent(1), "j")).await.expect("the holder writes");
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(desk.session.frame().shell.idle_after, None, "its output is on its way");
    desk.terminal.set_output_on_its_way(false);
    desk.terminal.push("moved");
    let told = || desk.session.frame().shell.idle_after.is_some_and(|after| after >= before);
    desk.wait_until(|_| told()).await;
    assert_eq!(&*desk.session.frame().lines[0].value.text, "moved");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_at_once_is_not_waited_for() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.terminal.answer_late();
    desk.hide();
    let _hurry = desk.session.hurry();
    desk.write(typing(&agent(1), "j")).await.expect("the holder writes");
    desk.terminal.push("moved");
    desk.wait_until(|terminal| terminal.unanswered() > 0).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(desk.session.frame().shell.idle_after, None, "its output is on its way");
    desk.terminal.answer_at_once();
    desk.write(typing(&agent(1), "j")).await.expect("the holder writes");
    desk.terminal.push("again");
    desk.wait_until(|_| desk.session.frame().shell.idle_after.is_some()).await;
    let activity = Arc::clone(&desk.session.frame().activity.value);
    let front = activity.foreground.as_ref().map(|it| it.group);
    assert_eq!(front, desk.terminal.evidence().foreground.map(|group| group.0));
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_has_the_kernel_asked_each_second_at_last_and_nobody_never() {
    let desk = Desk::open();
    desk.terminal.push("working");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let before = desk.terminal.looks();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(desk.terminal.looks(), before);
    let _attending = desk.session.attend();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!((59..=61).contains(&(desk.terminal.looks() - before)), "{}", desk.terminal.looks());
    desk.terminal.push("more");
    let before = desk.terminal.looks();
    tokio::time::sleep(Duration::from_secs(5)).await;
    // Four times at once, and every 250 ms from then on.
    assert!((22..=24).contains(&(desk.terminal.looks() - before)), "{}", desk.terminal.looks());
}

#[tokio::test(start_paused = true)]
async fn what_was_seen_counts_once_the_end_of_the_output_is_known() {
    let desk = Desk::open();
    desk.terminal.answer_late();
    desk.terminal.push("password: ");
    desk.hide();
    desk.wait_until(|terminal| terminal.unanswered() > 0).await;
    let looks = desk.terminal.looks();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!((desk.state(), desk.terminal.looks()), (ActivityState::Running, looks));
    desk.terminal.answer();
    desk.wait_until(|_| desk.state() == ActivityState::SecretPrompt).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_seen_before_output_came_or_something_was_typed_does_not_count() {
    let desk = Desk::open();
    desk.acquire(&agent(1)).await.expect("free");
    desk.terminal.answer_late();
    desk.terminal.push("password: ");
    desk.hide();
    desk.wait_until(|terminal| terminal.unanswered() > 0).await;
    desk.terminal.set_reading(Some(false));
    desk.terminal.push("wrong");
    desk.wait_until(|_| desk.session.frame().lines[0].value.text.contains("wrong")).await;
    let evidence = desk.terminal.evidence();
    desk.terminal.set_evidence(TerminalEvidence { echo: true, ..evidence });
    for _ in 0..100 {
        desk.terminal.answer();
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_ne!(desk.state(), ActivityState::SecretPrompt);
    }

    desk.hide();
    desk.terminal.push("password: ");
    desk.wait_until(|terminal| terminal.unanswered() > 0).await;
    desk.write(typing(&agent(1), "secret")).await.expect("the holder writes");
    let evidence = desk.terminal.evidence();
    desk.terminal.set_evidence(TerminalEvidence { echo: true, ..evidence });
    for _ in 0..100 {
        desk.terminal.answer();
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_ne!(desk.state(), ActivityState::SecretPrompt);
    }
}

#[tokio::test(start_paused = true)]
async fn a_program_that_paints_again_and_again_is_looked_at_once_a_frame() {
    let desk = Desk::open();
    let paint = async |frames: u32| {
        for _ in 0..frames {
            desk.terminal.push("x\r\n");
            tokio::time::sleep(Duration::from_millis(16)).await;
        }
    };
    paint(20).await;
    let before = desk.terminal.looks();
    paint(50).await;
    assert_eq!(desk.terminal.looks() - before, 50);

    let before = desk.terminal.looks();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(desk.terminal.looks() - before, 2, "once it is silent it is known what it does");
    paint(1).await;
    assert_eq!(desk.terminal.looks() - before, 4, "twice at once");
}
