//! A server that listens on a Unix socket: one connection, one message per line.

use std::io;
use std::path::Path;

use tokio::net::UnixStream;
use tokio::task::JoinSet;

use crate::mount::link::lines::{Lines, read_lines, write_lines};

/// A connection. Dropping it closes it.
#[derive(Debug)]
pub(super) struct SocketStream {
    _halves: JoinSet<()>,
}

impl SocketStream {
    pub(super) async fn connect(path: &Path) -> io::Result<(Lines, Self)> {
        let (reader, writer) = UnixStream::connect(path).await?.into_split();
        let (lines, unwritten, read) = Lines::new();
        let mut halves = JoinSet::new();
        halves.spawn(write_lines(writer, unwritten));
        halves.spawn(read_lines(reader, read));
        Ok((lines, Self { _halves: halves }))
    }
}
