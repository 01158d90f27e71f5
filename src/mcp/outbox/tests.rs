//! The outbox against sockets that take only a few bytes, or none.
//!
//! It must not depend on time: every step is polled by hand or ends by itself.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

use super::*;

const REPLIES_UNSENT_MAX: usize = 768 * 1024;

fn line(text: &str) -> Bytes {
    Bytes::from(format!("{text}\n"))
}

fn segments(text: &str) -> Segments {
    [Bytes::copy_from_slice(text.as_bytes()), Bytes::new(), Bytes::from_static(b"\n")]
}

fn is_ready<F: Future>(future: Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Closes the outbox and gives back all it still sends.
async fn rest(outbox: &Outbox) -> String {
    let (near, mut far) = tokio::io::duplex(1 << 20);
    outbox.close();
    outbox.write_to(near).await.unwrap();
    let mut sent = String::new();
    far.read_to_string(&mut sent).await.unwrap();
    sent
}

#[tokio::test]
async fn replies_go_before_pushes_that_wait() {
    let outbox = Outbox::default();
    let lane = outbox.lane();
    let _first = outbox.push(&lane, None, segments("push 1"));
    let _second = outbox.push(&lane, None, segments("push 2"));
    outbox.reply(None, line("reply 1")).unwrap();
    outbox.reply(None, line("reply 2")).unwrap();
    assert_eq!(rest(&outbox).await, "reply 1\nreply 2\npush 1\npush 2\n");
}

#[tokio::test]
async fn a_reply_goes_before_pushes_that_a_slow_client_keeps_waiting() {
    let outbox = Outbox::default();
    let (near, far) = tokio::io::duplex(4);
    let lane = outbox.lane();
    let _begun = outbox.push(&lane, None, segments("begun push"));
    let _waiting = outbox.push(&lane, None, segments("waiting push"));
    let mut writing = pin!(outbox.write_to(near));
    assert!(is_ready(writing.as_mut()).is_none());
    outbox.reply(None, line("reply")).unwrap();
    outbox.close();
    let mut lines = BufReader::new(far).lines();
    let reading = async {
        let mut read = Vec::new();
        for _ in 0..3 {
            read.push(lines.next_line().await.unwrap().unwrap());
        }
        read
    };
    let (read, written) = tokio::join!(reading, writing);
    written.unwrap();
    assert_eq!(read, ["begun push", "reply", "waiting push"]);
}

#[tokio::test]
async fn the_parts_of_a_line_are_sent_as_one() {
    let outbox = Outbox::default();
    let shared = Bytes::from_static(b",\"rows\":[]}\n");
    let parts = [Bytes::from_static(b"{\"observe\":"), Bytes::from_static(b"7"), shared];
    let _receipt = outbox.push(&outbox.lane(), None, parts);
    assert_eq!(rest(&outbox).await, "{\"observe\":7,\"rows\":[]}\n");
}

#[tokio::test]
async fn a_receipt_comes_when_the_last_byte_is_taken() {
    let outbox = Outbox::default();
    let (near, mut far) = tokio::io::duplex(4);
    let mut receipt = pin!(outbox.push(&outbox.lane(), None, segments("12345")));
    let mut writing = pin!(outbox.write_to(near));
    assert!(is_ready(writing.as_mut()).is_none());
    assert_eq!(is_ready(receipt.as_mut()), None);
    far.read_exact(&mut [0; 4]).await.unwrap();
    assert!(is_ready(writing.as_mut()).is_none());
    assert_eq!(is_ready(receipt.as_mut()), Some(Delivery::Written));
}

#[tokio::test]
async fn a_closed_lane_sends_nothing_that_has_not_begun() {
    let outbox = Outbox::default();
    let (near, mut far) = tokio::io::duplex(4);
    let (ended, other) = (outbox.lane(), outbox.lane());
    let begun = outbox.push(&ended, None, segments("begun"));
    let waiting = outbox.push(&ended, None, segments("waiting"));
    let _others = outbox.push(&other, None, segments("other"));
    let mut writing = pin!(outbox.write_to(near));
    assert!(is_ready(writing.as_mut()).is_none());
    ended.close();
    assert_eq!(waiting.await, Delivery::Dropped);
    assert_eq!(outbox.push(&ended, None, segments("late")).await, Delivery::Dropped);
    outbox.close();
    let mut sent = String::new();
    let reading = async {
        far.read_to_string(&mut sent).await.unwrap();
    };
    let (written, begun, ()) = tokio::join!(writing, begun, reading);
    written.unwrap();
    assert_eq!(begun, Delivery::Written);
    assert_eq!(sent, "begun\nother\n");
    assert_eq!(outbox.unsent_bytes(), 0);
}

#[tokio::test]
async fn room_is_given_back_when_the_reply_is_written() {
    let outbox = Outbox::default();
    let (first, second) = (RequestId::Number(1), RequestId::Number(2));
    outbox.expect(first.clone());
    outbox.expect(second.clone());
    let room = outbox.room(REPLIES_UNSENT_MAX).await;
    outbox.attach(&first, room);
    let mut waiting = pin!(outbox.room(1));
    assert!(is_ready(waiting.as_mut()).is_none());
    outbox.reply(Some(&first), Bytes::from(vec![b'\n'; REPLIES_UNSENT_MAX])).unwrap();
    assert!(is_ready(waiting.as_mut()).is_none());
    let (near, _far) = tokio::io::duplex(2 * REPLIES_UNSENT_MAX);
    let mut writing = pin!(outbox.write_to(near));
    assert!(is_ready(writing.as_mut()).is_none());
    assert!(is_ready(waiting.as_mut()).is_some());
}

#[tokio::test]
async fn room_too_much_is_given_back_when_the_reply_is_queued() {
    let outbox = Outbox::default();
    let id = RequestId::Number(1);
    outbox.expect(id.clone());
    let room = outbox.room(REPLIES_UNSENT_MAX).await;
    outbox.attach(&id, room);
    outbox.reply(Some(&id), line("short")).unwrap();
    assert!(is_ready(pin!(outbox.room(REPLIES_UNSENT_MAX - 1024))).is_some());
    assert!(is_ready(pin!(outbox.room(REPLIES_UNSENT_MAX))).is_none());
}

#[tokio::test]
async fn a_reply_without_room_takes_what_there_is() {
    let outbox = Outbox::default();
    outbox.reply(None, Bytes::from(vec![b'\n'; REPLIES_UNSENT_MAX - 1024])).unwrap();
    assert!(is_ready(pin!(outbox.room(1025))).is_none());
    assert!(is_ready(pin!(outbox.room(1024))).is_some());
}

#[tokio::test]
async fn room_for_a_request_that_was_cancelled_is_given_back() {
    let outbox = Outbox::default();
    let id = RequestId::Number(1);
    outbox.expect(id.clone());
    let attached = outbox.room(REPLIES_UNSENT_MAX).await;
    outbox.attach(&id, attached);
    outbox.forget(&id);
    let late = outbox.room(REPLIES_UNSENT_MAX).await;
    outbox.attach(&id, late);
    assert!(is_ready(pin!(outbox.room(REPLIES_UNSENT_MAX))).is_some());
}

#[tokio::test]
async fn pushes_cannot_take_the_room_of_replies() {
    let outbox = Outbox::default();
    let _pushes = outbox.push_room(usize::MAX).await;
    assert!(is_ready(pin!(outbox.push_room(1))).is_none());
    assert!(is_ready(pin!(outbox.room(REPLIES_UNSENT_MAX))).is_some());
}

#[tokio::test]
async fn reading_is_relieved_when_half_of_the_replies_are_written() {
    let outbox = Outbox::default();
    assert!(is_ready(pin!(outbox.relieved())).is_some());
    outbox.reply(None, Bytes::from(vec![b'\n'; REPLIES_UNSENT_MAX / 2 + 1])).unwrap();
    let mut relieved = pin!(outbox.relieved());
    assert!(is_ready(relieved.as_mut()).is_none());
    let (near, _far) = tokio::io::duplex(1);
    assert!(is_ready(pin!(outbox.write_to(near))).is_none());
    assert!(is_ready(relieved.as_mut()).is_some());
}

#[tokio::test]
async fn an_abandoned_outbox_keeps_nobody_waiting() {
    let outbox = Outbox::default();
    outbox.reply(None, Bytes::from(vec![b'\n'; REPLIES_UNSENT_MAX])).unwrap();
    let push = outbox.push(&outbox.lane(), None, segments("push"));
    let mut room = pin!(outbox.room(1));
    let mut relieved = pin!(outbox.relieved());
    assert!(is_ready(room.as_mut()).is_none());
    assert!(is_ready(relieved.as_mut()).is_none());
    outbox.abandon();
    assert_eq!(push.await, Delivery::Dropped);
    assert!(is_ready(room.as_mut()).is_some());
    assert!(is_ready(relieved.as_mut()).is_some());
    assert_eq!(outbox.unsent_bytes(), 0);
    assert_eq!(outbox.reply(None, line("late")), Err(Closed));
}

#[tokio::test]
async fn a_socket_that_breaks_ends_the_outbox() {
    let outbox = Outbox::default();
    let (near, far) = tokio::io::duplex(4);
    drop(far);
    let push = outbox.push(&outbox.lane(), None, segments("push"));
    assert!(outbox.write_to(near).await.is_err());
    assert_eq!(push.await, Delivery::Dropped);
    assert_eq!(outbox.reply(None, line("late")), Err(Closed));
}

/// Counts how often a writer was woken.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Wakes {
    fn poll<F: Future>(self: &Arc<Self>, future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(&Waker::from(Arc::clone(self))))
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn a_push_that_the_socket_takes_at_once_wakes_no_writer() {
    let (outbox, wakes) = (Outbox::default(), Arc::<Wakes>::default());
    let (near, mut far) = tokio::io::duplex(64);
    let mut writing = pin!(outbox.write_to(near));
    assert!(wakes.poll(writing.as_mut()).is_pending());
    let mut receipt = pin!(outbox.push(&outbox.lane(), None, segments("push")));
    assert_eq!(is_ready(receipt.as_mut()), Some(Delivery::Written));
    assert_eq!(wakes.count(), 0);
    let mut sent = [0; 5];
    far.read_exact(&mut sent).await.unwrap();
    assert_eq!(&sent, b"push\n");
}

#[tokio::test]
async fn the_writer_sends_what_the_socket_does_not_take_at_once() {
    let (outbox, wakes) = (Outbox::default(), Arc::<Wakes>::default());
    let (near, mut far) = tokio::io::duplex(4);
    let mut writing = pin!(outbox.write_to(near));
    assert!(wakes.poll(writing.as_mut()).is_pending());
    let _first = outbox.push(&outbox.lane(), None, segments("first"));
    assert_eq!(wakes.count(), 1);
    // The writer waits for the socket, so nobody else writes.
    assert!(wakes.poll(writing.as_mut()).is_pending());
    let _second = outbox.push(&outbox.lane(), None, segments("second"));
    outbox.close();
    let mut sent = String::new();
    let (written, read) = tokio::join!(writing, far.read_to_string(&mut sent));
    written.unwrap();
    read.unwrap();
    assert_eq!(sent, "first\nsecond\n");
}

#[tokio::test]
async fn only_an_idle_connection_takes_a_line_without_room() {
    let outbox = Outbox::default();
    let lane = outbox.lane();
    let parts = segments("push");
    assert!(outbox.push_if_idle(&lane, parts.each_ref()).is_none(), "it has no writer");
    let (near, _far) = tokio::io::duplex(8);
    let mut writing = pin!(outbox.write_to(near));
    assert!(is_ready(writing.as_mut()).is_none());
    let receipt = outbox.push_if_idle(&lane, parts.each_ref()).unwrap();
    assert!(matches!(receipt, PushReceipt::Known(Delivery::Written)));
    let begun = outbox.push_if_idle(&lane, parts.each_ref()).unwrap();
    assert!(matches!(begun, PushReceipt::Awaited(_)));
    assert!(outbox.push_if_idle(&lane, parts.each_ref()).is_none(), "a line is unsent");
}

#[tokio::test]
async fn a_socket_that_breaks_when_a_line_is_added_ends_the_writer() {
    let (outbox, wakes) = (Outbox::default(), Arc::<Wakes>::default());
    let (near, far) = tokio::io::duplex(64);
    let mut writing = pin!(outbox.write_to(near));
    assert!(wakes.poll(writing.as_mut()).is_pending());
    drop(far);
    let push = outbox.push(&outbox.lane(), None, segments("push"));
    assert_eq!(wakes.count(), 1);
    assert!(writing.await.is_err());
    assert_eq!(push.await, Delivery::Dropped);
}
