//! The fan-out over sockets in memory. Frames are published by hand, and only the fan-out has a task.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncReadExt, DuplexStream};

use super::*;
use crate::core::frame::Size;
use crate::core::frame::delta::View;
use crate::core::moment::Moment;
use crate::core::screen::{Facts, Origin, Screen, ScreenLimits};

/// A screen without a program.
struct Painter {
    screen: Screen,
    frames: watch::Sender<Arc<Frame>>,
}

impl Painter {
    /// Publishes a frame with this text, and lets the fan-out run.
    async fn paint(&mut self, text: &str) {
        self.screen.feed(Moment::default(), text.as_bytes());
        let frame = self.screen.publish(Moment::default(), &Facts::default());
        self.frames.send_replace(frame.expect("the text changes the screen"));
        yield_now().await;
    }

    /// An observer that has seen the newest frame.
    fn progress(&self) -> ObserverProgress {
        let frame = self.frames.borrow();
        let (seen, told) = (Some(frame.watermark), Some(frame.base_row));
        ObserverProgress { start: DeltaStart { since: seen, view: View::default(), told }, seen }
    }
}

fn session(rows: u16, cols: u16) -> (Painter, FanOut, Arc<Tally>) {
    let size = Size { rows, cols };
    let mut screen = Screen::new(size, ScreenLimits::default(), Origin::default());
    let first = screen.first_frame(Moment::default(), &Facts::default());
    let (frames, tally) = (watch::Sender::new(first), Arc::<Tally>::default());
    let deltas = SessionDeltas::new(SessionId::from_random(uuid::Uuid::nil()));
    let fan_out = FanOut::start(deltas, frames.subscribe(), Arc::clone(&tally));
    (Painter { screen, frames }, fan_out, tally)
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// A connection whose writer sleeps, and the client's end.
fn connect(room: usize) -> (DeltaLane, impl Future<Output = io::Result<()>>, DuplexStream) {
    let outbox = Outbox::default();
    let (near, far) = tokio::io::duplex(room);
    let lane = DeltaLane { lane: outbox.lane(), outbox, head: Bytes::from_static(b"{") };
    let outbox = lane.outbox.clone();
    let mut writing = Box::pin(async move { outbox.write_to(near).await });
    assert!(poll(writing.as_mut()).is_pending());
    (lane, writing, far)
}

async fn read(client: &mut DuplexStream) -> String {
    let mut line = vec![0; 1 << 16];
    let length = client.read(&mut line).await.unwrap();
    String::from_utf8(line[..length].to_vec()).unwrap()
}

#[tokio::test]
async fn each_frame_reaches_all_and_wakes_none_of_them() {
    let (mut painter, fan_out, tally) = session(4, 20);
    let (one, _writing_one, mut client_one) = connect(1 << 16);
    let (two, _writing_two, mut client_two) = connect(1 << 16);
    let mut following_one = pin!(fan_out.follow(one, painter.progress()));
    let mut following_two = pin!(fan_out.follow(two, painter.progress()));
    assert!(poll(following_one.as_mut()).is_pending());
    assert!(poll(following_two.as_mut()).is_pending());
    for text in ["first", "second"] {
        painter.paint(text).await;
        let line = read(&mut client_one).await;
        assert!(line.starts_with("{,\"session\":") && line.contains(text), "{line}");
        assert_eq!(read(&mut client_two).await, line);
    }
    assert!(poll(following_one).is_pending() && poll(following_two).is_pending());
    assert_eq!((tally.deltas.get(), tally.skipped.get()), (4, 0));
}

#[tokio::test]
async fn an_observer_whose_socket_is_full_continues_itself_and_delays_no_other() {
    let (mut painter, fan_out, tally) = session(4, 20);
    let (slow, writing, mut slow_client) = connect(8);
    let (fast, _writing, mut fast_client) = connect(1 << 16);
    let progress = painter.progress();
    let mut following_slow = pin!(fan_out.follow(slow, progress.clone()));
    let mut following_fast = pin!(fan_out.follow(fast, painter.progress()));
    assert!(poll(following_slow.as_mut()).is_pending());
    assert!(poll(following_fast.as_mut()).is_pending());
    painter.paint("first").await;
    painter.paint("second").await;
    assert!(read(&mut fast_client).await.contains("second"));
    let Poll::Ready(Some(resumed)) = poll(following_slow) else { panic!("it was not resumed") };
    assert_eq!(resumed.progress.seen, progress.seen);
    let SentDelta { frame, receipt } = resumed.sent.expect("the first delta is on its way");
    assert_eq!(Some(frame.watermark), progress.seen.map(|seen| Watermark(seen.0 + 1)));
    let reading = async {
        let mut all = String::new();
        while !all.ends_with('\n') {
            all += &read(&mut slow_client).await;
        }
        all
    };
    let (all, delivery) = tokio::select! {
        both = async { tokio::join!(reading, receipt) } => both,
        _ = writing => panic!("the connection ended"),
    };
    assert_eq!(delivery, Delivery::Written);
    assert!(all.contains("first") && !all.contains("second"), "{all}");
    assert_eq!(tally.deltas.get(), 2);
}

#[tokio::test]
async fn an_observer_that_has_missed_a_frame_does_not_wait_for_the_next() {
    let (mut painter, fan_out, _) = session(4, 20);
    let (lane, _writing, _client) = connect(1 << 16);
    let before = painter.progress();
    painter.paint("text").await;
    let resumed = poll(pin!(fan_out.follow(lane.clone(), before)));
    assert!(matches!(resumed, Poll::Ready(Some(Resumed { sent: None, .. }))));
    assert!(poll(pin!(fan_out.follow(lane, painter.progress()))).is_pending());
}

#[tokio::test]
async fn a_large_delta_is_left_to_the_task_of_its_observer() {
    let (mut painter, fan_out, _) = session(100, 400);
    let (lane, _writing, _client) = connect(1 << 20);
    let mut following = pin!(fan_out.follow(lane, painter.progress()));
    assert!(poll(following.as_mut()).is_pending());
    painter.paint(&"x".repeat(100 * 400)).await;
    assert!(matches!(poll(following), Poll::Ready(Some(Resumed { sent: None, .. }))));
}

#[tokio::test]
async fn nobody_waits_for_a_session_that_was_removed_or_is_kept_by_an_observer_that_left() {
    let (painter, fan_out, _) = session(4, 20);
    let (lane, _writing, _client) = connect(1 << 16);
    let waiting = || fan_out.followers.lock().waiting.len();
    let mut left = Box::pin(fan_out.follow(lane.clone(), painter.progress()));
    assert!(poll(left.as_mut()).is_pending());
    assert_eq!(waiting(), 1);
    drop(left);
    assert_eq!(waiting(), 0);
    let mut following = pin!(fan_out.follow(lane.clone(), painter.progress()));
    assert!(poll(following.as_mut()).is_pending());
    let progress = painter.progress();
    drop(painter);
    yield_now().await;
    assert!(matches!(poll(following), Poll::Ready(None)));
    assert!(matches!(poll(pin!(fan_out.follow(lane, progress))), Poll::Ready(None)));
}

#[test]
fn neighbours_have_no_frame_between_them() {
    assert_eq!(between(Watermark(7), Watermark(8)), 0);
    assert_eq!(between(Watermark(7), Watermark(7)), 0);
    assert_eq!(between(Watermark(7), Watermark(11)), 3);
}
