//! Both directions over real sockets.

use std::future::poll_fn;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::*;

/// More than the kernel takes of a client that reads nothing.
const MANY: usize = 4 << 20;

fn pair() -> (SocketReader, SocketWriter, tokio::net::UnixStream) {
    let (near, far) = tokio::net::UnixStream::pair().unwrap();
    let (reader, writer) = split(near).unwrap();
    (reader, writer, far)
}

/// Waits for what the kernel does, but not for ever.
async fn within_time<F: Future>(waiting: F) -> F::Output {
    timeout(Duration::from_secs(20), waiting).await.unwrap()
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

#[tokio::test]
async fn all_bytes_arrive_at_a_client_that_reads_late_and_in_pieces() {
    let (_reader, mut writer, mut far) = pair();
    let sent = pattern(MANY);
    let expected = sent.clone();
    let writing = tokio::spawn(async move {
        writer.write_all(&sent).await.unwrap();
        writer
    });
    let mut received = Vec::new();
    while received.len() < MANY {
        let mut piece = vec![0; 100_000];
        let count = within_time(far.read(&mut piece)).await.unwrap();
        received.extend_from_slice(&piece[..count]);
    }
    assert!(received == expected);
    drop(within_time(writing).await.unwrap());
    assert_eq!(within_time(far.read(&mut [0])).await.unwrap(), 0, "the direction has ended");
}

#[tokio::test]
async fn it_is_watched_for_room_only_while_it_is_full() {
    let (_reader, mut writer, mut far) = pair();
    writer.write_all(b"short").await.unwrap();
    assert!(writer.full.is_none());

    let bytes = pattern(MANY);
    let slice = [IoSlice::new(&bytes)];
    let mut written = 0;
    let blocked = poll_fn(|context| {
        loop {
            match Pin::new(&mut writer).poll_write_vectored(context, &slice) {
                Poll::Ready(Ok(count)) => written += count,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Ready(Ok(())),
            }
        }
    });
    blocked.await.unwrap();
    assert!(written > 0 && writer.full.is_some());

    let mut rest = vec![0; 5 + written];
    within_time(far.read_exact(&mut rest)).await.unwrap();
    within_time(writer.write_all(b"again")).await.unwrap();
    assert!(writer.full.is_none());
    let mut again = [0; 5];
    within_time(far.read_exact(&mut again)).await.unwrap();
    assert_eq!(&again, b"again");
}

#[tokio::test]
async fn one_that_cannot_be_watched_is_tried_again() {
    let (_reader, mut writer, mut far) = pair();
    writer.full = Some(FullSocket::Unwatched(Box::pin(sleep(UNWATCHED))));
    let sent = pattern(MANY);
    let expected = sent.clone();
    let writing = tokio::spawn(async move { writer.write_all(&sent).await });
    let mut received = vec![0; MANY];
    within_time(far.read_exact(&mut received)).await.unwrap();
    assert!(received == expected);
    within_time(writing).await.unwrap().unwrap();
}

#[tokio::test]
async fn others_have_a_turn_while_a_client_reads_as_fast_as_it_is_written_to() {
    let (_reader, mut writer, far) = pair();
    let writing = async {
        loop {
            writer.write_all(b"x").await.unwrap();
            let mut read = [0; 1];
            assert_eq!(far.try_read(&mut read).unwrap_or(1), 1);
        }
    };
    tokio::select! {
        biased;
        () = writing => {}
        () = tokio::task::yield_now() => {}
    }
}

#[tokio::test]
async fn what_comes_in_pieces_is_read_and_then_the_end() {
    let (mut reader, _writer, mut far) = pair();
    let reading = tokio::spawn(async move {
        let mut all = Vec::new();
        let mut piece = [0; 64];
        loop {
            match reader.read(&mut piece).await.unwrap() {
                0 => return all,
                count => all.extend_from_slice(&piece[..count]),
            }
        }
    });
    let sent = pattern(1_000);
    for piece in sent.chunks(77) {
        far.write_all(piece).await.unwrap();
        tokio::task::yield_now().await;
    }
    far.shutdown().await.unwrap();
    assert!(within_time(reading).await.unwrap() == sent);
}

#[tokio::test]
async fn a_client_that_is_gone_takes_nothing() {
    let (_reader, mut writer, far) = pair();
    drop(far);
    let error = within_time(writer.write_all(&pattern(MANY))).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}
