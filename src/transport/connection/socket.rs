//! The two directions of a Unix socket.
//!
//! Each time a client reads, the kernel would tell a socket that is registered for writing that there is room, and
//! wake the daemon for nothing. So a socket is registered for writing only while it is full.

use std::future::Future as _;
use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::task::coop::poll_proceed;
use tokio::time::{Sleep, sleep};

use crate::session::pty::watch::watch;

/// Splits a connected socket.
///
/// # Errors
/// Returns the kernel's error if the socket cannot be watched.
pub(super) fn split(socket: tokio::net::UnixStream) -> io::Result<(SocketReader, SocketWriter)> {
    let socket = Arc::new(socket.into_std()?);
    #[expect(
        deprecated,
        reason = "sound for a shared socket; its successor would need unsafe code"
    )]
    let reader = AsyncFd::with_interest(Arc::clone(&socket), Interest::READABLE)?;
    Ok((SocketReader(reader), SocketWriter { socket, full: None }))
}

#[derive(Debug)]
pub struct SocketReader(AsyncFd<Arc<UnixStream>>);

impl AsyncRead for SocketReader {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut readable = ready!(self.0.poll_read_ready(context))?;
            let room = buffer.initialize_unfilled();
            match self.0.get_ref().as_ref().read(room) {
                Ok(count) => {
                    // A read that does not fill the buffer has taken all there is.
                    if (1..room.len()).contains(&count) {
                        readable.clear_ready();
                    }
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => readable.clear_ready(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

/// Ends the direction when it is dropped.
#[derive(Debug)]
pub struct SocketWriter {
    socket: Arc<UnixStream>,
    /// Tells of room, if the socket was full when it was last written to.
    full: Option<FullSocket>,
}

#[derive(Debug)]
enum FullSocket {
    Watched(AsyncFd<OwnedFd>),
    /// No descriptor was left for watching.
    Unwatched(Pin<Box<Sleep>>),
}

/// How long a full socket waits that cannot be watched.
const UNWATCHED: Duration = Duration::from_millis(20);

impl FullSocket {
    fn watch(socket: &UnixStream) -> Self {
        match socket.try_clone().and_then(|own| watch(own, Interest::WRITABLE)) {
            Ok(watched) => Self::Watched(watched),
            Err(_) => Self::Unwatched(Box::pin(sleep(UNWATCHED))),
        }
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
        let this = &mut *self;
        // Others of this task have a turn as well, however fast the client reads.
        let turn = ready!(poll_proceed(context));
        loop {
            // What is cleared below is only what was known before the write.
            let room = match &mut this.full {
                Some(FullSocket::Watched(watched)) => {
                    Some(ready!(watched.poll_write_ready(context))?)
                }
                Some(FullSocket::Unwatched(pause)) => {
                    ready!(pause.as_mut().poll(context));
                    None
                }
                None => None,
            };
            match this.socket.as_ref().write_vectored(slices) {
                Ok(count) => {
                    if count == slices.iter().map(|slice| slice.len()).sum::<usize>() {
                        this.full = None;
                    }
                    turn.made_progress();
                    return Poll::Ready(Ok(count));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => match room {
                    Some(mut room) => room.clear_ready(),
                    None => this.full = Some(FullSocket::watch(&this.socket)),
                },
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.socket.shutdown(Shutdown::Write))
    }
}

impl Drop for SocketWriter {
    fn drop(&mut self) {
        // A client that has hung up needs no end.
        let _ = self.socket.shutdown(Shutdown::Write);
    }
}

#[cfg(test)]
mod tests;
