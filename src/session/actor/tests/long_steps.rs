//! What takes long in a session, on the only worker there is: another task goes on meanwhile.

use std::sync::Mutex;
use std::sync::mpsc::sync_channel;

use super::*;
use crate::session::pty::TerminalCheckpoint;

/// More cells than a worker processes itself.
const LARGE: Size = Size { rows: 200, cols: 200 };

/// Runs this as a task of a runtime with one worker.
fn on_the_only_worker(work: impl Future<Output = ()> + Send + 'static) {
    let mut one = tokio::runtime::Builder::new_multi_thread();
    let runtime = one.worker_threads(1).enable_time().build().expect("a runtime");
    let worked = runtime.spawn(work);
    runtime.block_on(worked).expect("no panic");
}

/// Whether a task that begins here ends while this thread does nothing else.
fn another_task_goes_on() -> bool {
    let (tell, told) = sync_channel(1);
    tokio::spawn(async move { tell.send(()) });
    told.recv_timeout(Duration::from_secs(30)).is_ok()
}

/// What was found out, each time that there was something to find out.
#[derive(Clone, Default)]
struct Found(Arc<Mutex<Vec<bool>>>);

impl Found {
    /// The same twice: to ask, and to look with.
    fn shared() -> (Self, Self) {
        let found = Self::default();
        (found.clone(), found)
    }

    fn look(&self) {
        let found = another_task_goes_on();
        self.0.lock().unwrap().push(found);
    }

    #[track_caller]
    fn assert_always(&self) {
        let found = self.0.lock().unwrap();
        assert!(!found.is_empty() && found.iter().all(|went_on| *went_on), "{found:?}");
    }
}

#[test]
fn another_task_goes_on_during_a_step_of_a_large_session() {
    on_the_only_worker(async {
        let desk = Desk::open_at(OpeningState::empty(LARGE, ScreenLimits::default()));
        let (found, looking) = Found::shared();
        desk.terminal.on_note(move |_, _| looking.look());
        desk.acquire(&agent(1)).await.expect("free");
        found.assert_always();
    });
}

#[test]
fn another_task_goes_on_while_a_long_history_is_kept() {
    const ROWS: u64 = 2_000;
    on_the_only_worker(async {
        let desk = Desk::open();
        let (found, looking) = Found::shared();
        desk.terminal.on_commit(move |checkpoint| {
            if checkpoint.end_row.0 >= ROWS {
                looking.look();
            }
        });
        let lines = "x\r\n".repeat(ROWS as usize + usize::from(SIZE.rows));
        desk.terminal.ask_for_checkpoints(lines.len() as u64 - 1);
        desk.terminal.push(lines);
        let kept = |one: &TerminalCheckpoint| one.end_row.0 >= ROWS;
        desk.wait_until(|terminal| terminal.checkpoints().iter().any(kept)).await;
        found.assert_always();
    });
}
