//! The two directions of a connection and the signal that its client has hung up.
//!
//! Sockets, pipes and tests differ only here.

use std::fmt;
use std::future::{Future, pending};
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;

use tokio::io::{AsyncRead, Interest, Stdin, Stdout};
use tokio::net::UnixStream;

use crate::session::pty::watch::watch;
use crate::transport::connection::socket::{self, SocketReader, SocketWriter};
use crate::transport::framing::lines::LineReader;
use crate::transport::limits::Limits;

pub struct ClientLink<R, W, G> {
    pub reader: R,
    pub writer: W,
    /// Completes when the client stops reading, even while nothing is read from it.
    pub hangup: G,
}

impl<R: AsyncRead + Unpin, W, G> ClientLink<R, W, G> {
    /// Splits the input into lines within these limits.
    pub fn in_lines(self, limits: &Limits) -> ClientLink<LineReader<R>, W, G> {
        let Self { reader, writer, hangup } = self;
        ClientLink { reader: LineReader::new(reader, limits), writer, hangup }
    }
}

impl<R, W, G> fmt::Debug for ClientLink<R, W, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientLink").finish_non_exhaustive()
    }
}

/// Links a reader and a writer without hang-up detection.
pub fn plain<R, W>(reader: R, writer: W) -> ClientLink<R, W, impl Future<Output = ()> + Send> {
    ClientLink { reader, writer, hangup: pending() }
}

/// Links standard input and output.
pub fn stdio() -> ClientLink<Stdin, Stdout, impl Future<Output = ()> + Send> {
    let output = std::io::stdout();
    // A socket and a pipe report the end in different ways; a file never ends.
    let (socket, pipe) = (end(&output, Interest::PRIORITY), end(&output, Interest::ERROR));
    let hangup = async move {
        tokio::select! {
            () = or_never(socket) => {}
            () = or_never(pipe) => {}
        }
    };
    ClientLink { reader: tokio::io::stdin(), writer: tokio::io::stdout(), hangup }
}

pub type UnixLink = ClientLink<SocketReader, SocketWriter, Hangup>;

/// Completes when a client has hung up.
pub type Hangup = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Watches a Unix socket for the hang-up of its client.
pub fn watch_hangup(stream: &UnixStream) -> io::Result<Hangup> {
    Ok(Box::pin(end(stream, Interest::PRIORITY)?))
}

/// Links a Unix socket, watched by `hangup`.
///
/// # Errors
/// Returns the kernel's error if the socket cannot be watched.
pub fn unix(stream: UnixStream, hangup: Hangup) -> io::Result<UnixLink> {
    let (reader, writer) = socket::split(stream)?;
    Ok(ClientLink { reader, writer, hangup })
}

async fn or_never(end: io::Result<impl Future<Output = ()>>) {
    match end {
        Ok(end) => end.await,
        Err(_) => pending().await,
    }
}

/// Waits for the end of a descriptor without reading from it.
///
/// * A watch for urgent data only also reports EPOLLHUP, which Linux always includes. It reports neither readable
///   bytes nor a client that closed one direction.
/// * A watch for errors only reports EPOLLERR, which a pipe has when its reader is gone.
fn end<F: AsFd>(
    descriptor: &F,
    interest: Interest,
) -> io::Result<impl Future<Output = ()> + Send + use<F>> {
    let watched = watch(descriptor.as_fd().try_clone_to_owned()?, interest)?;
    Ok(async move {
        loop {
            match watched.ready(interest).await {
                Ok(guard) if guard.ready().is_read_closed() || guard.ready().is_error() => return,
                Ok(mut guard) => guard.clear_ready(),
                Err(_) => return,
            }
        }
    })
}
