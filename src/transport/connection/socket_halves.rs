//! The two directions of a Unix socket, registered for reading only.
//!
//! A client that reads an answer makes room, which the kernel tells everybody who waits for room to write. Nobody
//! waits for it unless the socket is full, and each time would cost a system call and wake a worker.

use std::future::Future;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{Shutdown, shutdown};
use nix::sys::uio::writev;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::UnixStream;
use tokio::task::coop::poll_proceed;
use tokio::time::{Sleep, sleep};

/// After what time a full socket is tried again that nothing can tell of.
const TRIED_AGAIN: Duration = Duration::from_millis(10);

/// Splits a socket. Dropping the writer ends its direction.
///
/// # Errors
/// Returns the kernel's error when the socket cannot be registered again.
pub fn split(stream: UnixStream) -> io::Result<(SocketReader, SocketWriter)> {
    let socket = Arc::new(registered(stream.into_std()?.into(), Interest::READABLE)?);
    let reader = SocketReader { socket: Arc::clone(&socket) };
    Ok((reader, SocketWriter { socket, room: None }))
}

#[expect(deprecated, reason = "sound for an `OwnedFd`; its successor would need unsafe code")]
fn registered(socket: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(socket, interest)
}

#[derive(Debug)]
pub struct SocketReader {
    socket: Arc<AsyncFd<OwnedFd>>,
}

impl AsyncRead for SocketReader {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.socket.poll_read_ready(context))?;
            let wanted = into.remaining();
            match nix::unistd::read(self.socket.get_ref(), into.initialize_unfilled()) {
                Ok(read) => {
                    // There is no more. What comes now is told again.
                    if (1..wanted).contains(&read) {
                        ready.clear_ready();
                    }
                    into.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(Errno::EAGAIN) => ready.clear_ready(),
                Err(Errno::EINTR) => {}
                Err(errno) => return Poll::Ready(Err(errno.into())),
            }
        }
    }
}

#[derive(Debug)]
pub struct SocketWriter {
    socket: Arc<AsyncFd<OwnedFd>>,
    /// What is waited for while the socket is full.
    room: Option<RoomWatch>,
}

#[derive(Debug)]
enum RoomWatch {
    Told(AsyncFd<OwnedFd>),
    /// No descriptor is left to be told by.
    Later(Pin<Box<Sleep>>),
}

impl RoomWatch {
    fn of(socket: &AsyncFd<OwnedFd>) -> Self {
        let again = socket.get_ref().try_clone();
        match again.and_then(|again| registered(again, Interest::WRITABLE)) {
            Ok(told) => Self::Told(told),
            Err(_) => Self::Later(Box::pin(sleep(TRIED_AGAIN))),
        }
    }

    /// Waits until there may be room.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Told(told) => ready!(told.poll_write_ready(context))?.clear_ready(),
            Self::Later(sleep) => {
                ready!(sleep.as_mut().poll(context));
                sleep.set(tokio::time::sleep(TRIED_AGAIN));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for SocketWriter {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // A client that reads fast must not keep its task for itself.
        let turn = ready!(poll_proceed(context));
        loop {
            match writev(self.socket.get_ref(), slices) {
                Ok(written) => {
                    self.room = None;
                    turn.made_progress();
                    return Poll::Ready(Ok(written));
                }
                Err(Errno::EAGAIN) => {}
                Err(Errno::EINTR) => continue,
                Err(errno) => return Poll::Ready(Err(errno.into())),
            }
            let Self { socket, room } = &mut *self;
            ready!(room.get_or_insert_with(|| RoomWatch::of(socket)).poll(context))?;
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(shutdown(self.socket.as_raw_fd(), Shutdown::Write).map_err(io::Error::from))
    }
}

impl Drop for SocketWriter {
    fn drop(&mut self) {
        // The client may be gone.
        let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Write);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn pair() -> (SocketReader, SocketWriter, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        let (reader, writer) = split(near).unwrap();
        (reader, writer, far)
    }

    #[tokio::test]
    async fn what_is_written_in_pieces_of_any_size_arrives_in_both_directions() {
        let (mut reader, mut writer, far) = pair();
        let (mut far_reader, mut far_writer) = far.into_split();
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|byte| byte as u8).collect();
        let (there, back) = (bytes.clone(), bytes.clone());
        let sending = async {
            writer.write_all(&there).await.unwrap();
            drop(writer);
        };
        let answering = async {
            for piece in back.chunks(7_777) {
                far_writer.write_all(piece).await.unwrap();
            }
            drop(far_writer);
        };
        let (mut received, mut answered) = (Vec::new(), Vec::new());
        let (_, _, one, other) = tokio::join!(
            sending,
            answering,
            far_reader.read_to_end(&mut received),
            reader.read_to_end(&mut answered)
        );
        assert_eq!((one.unwrap(), other.unwrap()), (bytes.len(), bytes.len()));
        assert!(received == bytes && answered == bytes);
    }

    #[tokio::test]
    async fn room_is_waited_for_only_while_there_is_none() {
        let (_reader, mut writer, far) = pair();
        writer.write_all(b"short").await.unwrap();
        assert!(writer.room.is_none());
        let mut far = far.into_std().unwrap();
        let long = vec![b'x'; 4_000_000];
        let writing = writer.write_all(&long);
        let reading = tokio::task::spawn_blocking(move || {
            far.set_nonblocking(false).unwrap();
            let mut all = vec![0; 4_000_005];
            far.read_exact(&mut all).map(|()| far)
        });
        writing.await.unwrap();
        assert!(reading.await.unwrap().is_ok() && writer.room.is_none());
    }

    #[tokio::test]
    async fn without_a_descriptor_for_it_room_is_looked_for_again() {
        let (_reader, mut writer, far) = pair();
        let long = vec![b'x'; 4_000_000];
        writer.room = Some(RoomWatch::Later(Box::pin(sleep(TRIED_AGAIN))));
        let mut far = far;
        let mut all = vec![0; long.len()];
        let (written, read) = tokio::join!(writer.write_all(&long), far.read_exact(&mut all));
        assert!(written.is_ok() && read.is_ok() && all == long);
    }

    #[tokio::test]
    async fn whoever_waits_for_room_hears_that_nobody_reads_any_more() {
        let (_reader, mut writer, far) = pair();
        let long = vec![b'x'; 4_000_000];
        let ending = async {
            tokio::task::yield_now().await;
            drop(far);
        };
        let (written, ()) = tokio::join!(writer.write_all(&long), ending);
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
