//! Events of a screen that is fed by hand.

use super::*;
use crate::core::frame::{Exit, Size};
use crate::core::screen::{Facts, Origin, Screen, ScreenLimits};
use crate::core::shell::activity::Activity;
use crate::core::shell::commands::mark::MarkNonces;

const NONCE: &str = "5ec2e7";

fn mark(kind: &str) -> String {
    format!("\x1b]133;{kind};nonce={NONCE}\x1b\\")
}

fn prompt() -> String {
    mark("A") + "$ " + &mark("B")
}

fn begins(command: &str) -> String {
    format!("{command}\r\n{}", mark("C"))
}

fn ends(code: i32) -> String {
    mark(&format!("D;{code}")) + &prompt()
}

/// A session whose frames are looked through.
struct Watched {
    screen: Screen,
    facts: Facts,
    frame: Arc<Frame>,
    source: EventSource,
    now: Moment,
    offset: u64,
}

impl Watched {
    fn new() -> Self {
        let size = Size { rows: 10, cols: 40 };
        let mut screen = Screen::new(size, ScreenLimits::default(), Origin::default());
        screen.set_nonces(MarkNonces { own: Some(NONCE.into()), nested: None });
        let now = Moment::from_boot(Duration::from_secs(100));
        let facts = Facts::default();
        let frame = screen.first_frame(now, &facts);
        let source = EventSource::begin(&frame, None);
        Self { screen, facts, frame, source, now, offset: 0 }
    }

    /// Another daemon goes on with the same session.
    fn under_next_daemon(mut self, told: Option<ToldEvents>) -> Self {
        self.source = EventSource::begin(&self.frame, told);
        self
    }

    fn wait(&mut self, time: Duration) -> &mut Self {
        self.now = self.now + time;
        self.source.on_time(self.now, &self.frame);
        self
    }

    fn prints(&mut self, output: &str) -> &mut Self {
        let start = self.offset;
        self.offset += output.len() as u64;
        self.screen.feed(self.now, output.as_bytes());
        let (reports, left_out) = self.screen.take_reports();
        self.source.on_reports(self.now, reports, left_out, (start, self.offset));
        self.publish()
    }

    fn is(&mut self, state: ActivityState) -> &mut Self {
        self.facts.activity = Arc::new(Activity { state, ..Activity::default() });
        self.publish()
    }

    fn publish(&mut self) -> &mut Self {
        if let Some(frame) = self.screen.publish(self.now, &self.facts) {
            self.frame = frame;
        }
        self.source.on_frame(self.now, &self.frame);
        self
    }

    fn told(&mut self) -> Vec<Event> {
        self.source.take()
    }
}

fn started(id: u64, text: &str) -> Event {
    Event::CommandStarted { id: CommandId(id), text: text.into(), by: None }
}

fn ended(id: u64, code: i32) -> Event {
    let evidence = crate::core::shell::activity::Evidence::Osc133;
    Event::CommandEnded { id: CommandId(id), code: Some(code), evidence }
}

#[test]
fn each_command_begins_and_ends_once_also_within_one_frame() {
    let mut watched = Watched::new();
    watched.prints(&prompt());
    assert_eq!(watched.told(), []);
    watched.prints(&begins("make"));
    assert_eq!(watched.told(), [started(1, "make")]);
    watched.prints("all done\r\n");
    assert_eq!(watched.told(), []);
    watched.prints(&ends(2));
    assert_eq!(watched.told(), [ended(1, 2)]);
    watched.prints(&(begins("true") + &ends(0)));
    assert_eq!(watched.told(), [started(2, "true"), ended(2, 0)]);
    watched.publish();
    assert_eq!(watched.told(), []);
}

#[test]
fn the_next_daemon_tells_what_is_not_recorded_and_nothing_twice() {
    let mut watched = Watched::new();
    watched.prints(&(prompt() + &begins("make")));
    watched.told();
    // The daemon ends here, having recorded both or only the beginning.
    for (recorded, expected) in [(vec![1], vec![]), (vec![], vec![ended(1, 2)])] {
        let mut told = ToldEvents::default();
        told.add(&ToldEvent::CommandStarted(CommandId(1)));
        recorded.iter().for_each(|id| told.add(&ToldEvent::CommandEnded(CommandId(*id))));
        let mut next = Watched::new();
        next.prints(&(prompt() + &begins("make")));
        let mut next = next.under_next_daemon(Some(told));
        next.prints(&ends(2));
        assert_eq!(next.told(), expected, "{recorded:?}");
        next.prints(&begins("ls"));
        assert_eq!(next.told(), [started(2, "ls")]);
    }
}

#[test]
fn without_records_the_first_frame_counts_as_told() {
    let mut watched = Watched::new();
    watched.prints(&(prompt() + &begins("one") + &ends(0) + &begins("two") + "\x07"));
    let mut next = watched.under_next_daemon(None);
    next.publish();
    assert_eq!(next.told(), []);
    next.prints(&ends(1));
    assert_eq!(next.told(), [ended(2, 1)], "it had not ended");
}

#[test]
fn a_program_needs_input_once_it_has_waited_for_half_a_second() {
    let mut watched = Watched::new();
    watched.is(ActivityState::NeedsInput).wait(Duration::from_millis(499));
    assert_eq!(watched.told(), []);
    assert_eq!(watched.source.due(), Some(watched.now + Duration::from_millis(1)));
    watched.wait(Duration::from_millis(1));
    let needs = |is_secret| Event::NeedsInput { is_secret, program: None };
    assert_eq!(watched.told(), [needs(false)]);
    watched.wait(Duration::from_secs(60)).is(ActivityState::SecretPrompt);
    assert_eq!((watched.told(), watched.source.due()), (vec![], None), "it still waits");
    watched.is(ActivityState::Running).is(ActivityState::SecretPrompt);
    watched.wait(NEEDS_INPUT_AFTER);
    assert_eq!(watched.told(), [needs(true)]);
}

#[test]
fn a_program_that_waits_on_under_the_next_daemon_is_not_told_again() {
    let mut watched = Watched::new();
    watched.is(ActivityState::NeedsInput);
    let mut told = ToldEvents::default();
    told.add(&ToldEvent::NeedsInput);
    let mut next = watched.under_next_daemon(Some(told.clone()));
    next.publish().wait(Duration::from_secs(60));
    assert_eq!(next.told(), []);
    // It has got its input since.
    told.add(&ToldEvent::CommandEnded(CommandId(1)));
    let mut next = next.under_next_daemon(Some(told));
    next.publish().wait(NEEDS_INPUT_AFTER);
    assert_eq!(next.told(), [Event::NeedsInput { is_secret: false, program: None }]);
}

#[test]
fn the_bell_is_told_with_its_count_and_not_more_often_than_programs_may_send() {
    let mut watched = Watched::new();
    watched.prints("\x07\x07");
    assert_eq!(watched.told(), [Event::Bell { count: 2 }]);
    for _ in 0..100 {
        watched.prints("\x07");
    }
    let told = watched.told();
    assert_eq!(told.len(), 9, "ten at once");
    let due = watched.source.due().expect("the last bell is told");
    watched.wait(due.since(watched.now));
    assert_eq!(watched.told(), [Event::Bell { count: 102 }]);
    assert_eq!(watched.source.due(), None);
}

#[test]
fn notifications_keep_their_order_and_those_beyond_the_limit_are_counted() {
    let mut watched = Watched::new();
    for number in 0..13 {
        watched.prints(&format!("\x1b]9;note {number}\x07"));
    }
    let told = watched.told();
    assert_eq!(told.len(), 10);
    let body = |event: &Event| {
        let Event::Notification { body, .. } = event else { panic!("{event:?}") };
        body.clone()
    };
    let bodies: Vec<_> = told.iter().map(body).collect();
    assert_eq!(bodies[..2], ["note 0", "note 1"]);
    watched.wait(ONE_MORE_AFTER);
    let offset = watched.offset;
    assert_eq!(watched.told(), [Event::LeftOut { count: 3, offset }]);
}

#[test]
fn what_a_daemon_before_told_of_the_output_is_not_told_again() {
    let note = "\x1b]777;notify;build;done\x07";
    let mut watched = Watched::new();
    watched.prints(note);
    let [Event::Notification { offset, .. }] = watched.told()[..] else { panic!("one") };
    let mut told = ToldEvents::default();
    told.add(&ToldEvent::Sent { offset });
    let mut again = Watched::new().under_next_daemon(Some(told));
    assert_eq!(again.source.told_bytes(4), offset - 4);
    again.prints(note);
    assert_eq!(again.told(), []);
    again.prints(note);
    let offset = 2 * note.len() as u64;
    let (title, body) = (Some("build".to_owned()), "done".to_owned());
    assert_eq!(again.told(), [Event::Notification { title, body, offset }]);
}

#[test]
fn of_progress_the_newest_is_told() {
    let mut watched = Watched::new();
    for percent in 0..=100 {
        watched.prints(&format!("\x1b]9;4;1;{percent}\x07"));
    }
    assert_eq!(watched.told().len(), 10);
    watched.wait(ONE_MORE_AFTER);
    let offset = watched.offset;
    let progress = TaskProgress::Running(100);
    assert_eq!(watched.told(), [Event::Progress { progress, offset }]);
}

#[test]
fn the_end_of_a_session_is_told_once_over_all_daemons() {
    let mut watched = Watched::new();
    watched.facts.exit = Some(Exit::Code(3));
    watched.publish().publish();
    assert_eq!(watched.told(), [Event::SessionEnded { exit: Exit::Code(3) }]);
    let mut told = ToldEvents::default();
    told.add(&ToldEvent::SessionEnded);
    let mut next = watched.under_next_daemon(Some(told));
    next.publish();
    assert_eq!(next.told(), []);
}

#[test]
fn of_several_in_one_piece_of_output_each_is_told_and_the_last_one_covers_the_piece() {
    let mut watched = Watched::new();
    watched.prints("before");
    let start = watched.offset;
    watched.prints("\x1b]7;file:///tmp\x07\x1b]9;one\x07\x1b]9;4;1;50\x07\x1b]9;two\x07");
    let (end, note) = (watched.offset, |body: &str, offset| Event::Notification {
        title: None,
        body: body.to_owned(),
        offset,
    });
    let progress = Event::Progress { progress: TaskProgress::Running(50), offset: end };
    assert_eq!(watched.told(), [note("one", start), progress, note("two", end)]);
}

#[test]
fn what_does_not_fit_into_the_queue_of_reports_is_counted() {
    let mut watched = Watched::new();
    watched.prints(&"\x1b]9;x\x07".repeat(1_000));
    assert_eq!(watched.told().len(), 10);
    watched.wait(ONE_MORE_AFTER);
    let offset = watched.offset;
    assert_eq!(watched.told(), [Event::LeftOut { count: 990, offset }]);
}

#[test]
fn the_bell_of_another_emulator_is_heard_although_it_counts_from_the_beginning() {
    let mut watched = Watched::new();
    watched.prints("\x07\x07\x07");
    watched.told();
    let size = Size { rows: 10, cols: 40 };
    watched.screen = Screen::new(size, ScreenLimits::default(), Origin::default());
    watched.frame = watched.screen.first_frame(watched.now, &watched.facts);
    watched.source.on_frame(watched.now, &watched.frame.clone());
    watched.prints("\x07");
    assert_eq!(watched.told(), [Event::Bell { count: 1 }]);
}
