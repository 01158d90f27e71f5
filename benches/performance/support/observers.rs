//! Observers: connections that are sent what a session shows.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::ensure;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

/// What is said: the greeting, and what is to be observed.
const SAID: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"observer","version":"0"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":2,"method":"termgate/observe","params":{"session":"SESSION","lane":"LANE"}}"#,
    "\n",
);
/// How long nothing may come.
const SILENT_MAX: Duration = Duration::from_secs(20);

/// Observes a session with so much of what scrolled off, and reads the first delta, which is what the
/// session shows already.
///
/// # Errors
/// When none comes.
pub(crate) fn observe(
    socket: &Path,
    session: &str,
    lane: &str,
) -> anyhow::Result<BufReader<UnixStream>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(SAID.replace("SESSION", session).replace("LANE", lane).as_bytes())?;
    stream.set_read_timeout(Some(SILENT_MAX))?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while !line.contains("termgate/delta") {
        line.clear();
        ensure!(reader.read_line(&mut line)? > 0, "the daemon has gone");
        ensure!(!line.contains(r#""error":"#), "observing failed: {line}");
    }
    Ok(reader)
}

/// What was read from all sockets of a crowd.
#[derive(Debug, Default)]
struct Received {
    lines: AtomicU64,
    bytes: AtomicU64,
}

/// Many sockets whose lines one thread reads, counts and throws away until this is dropped.
#[derive(Debug)]
pub(crate) struct Crowd {
    sockets: Arc<Vec<UnixStream>>,
    received: Arc<Received>,
}

impl Crowd {
    /// So many observers of a session.
    ///
    /// # Errors
    /// When observing fails.
    pub(crate) fn observe(socket: &Path, session: &str, count: usize) -> anyhow::Result<Self> {
        let one = |_| Ok(observe(socket, session, "foreground")?.into_inner());
        Self::read((0..count).map(one).collect::<anyhow::Result<_>>()?)
    }

    /// Reads these.
    ///
    /// # Errors
    /// What the kernel said.
    pub(crate) fn read(sockets: Vec<UnixStream>) -> anyhow::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        for (index, socket) in sockets.iter().enumerate() {
            epoll.add(socket, EpollEvent::new(EpollFlags::EPOLLIN, index as u64))?;
        }
        let (sockets, received) = (Arc::new(sockets), Arc::new(Received::default()));
        let crowd = Self { sockets: Arc::clone(&sockets), received: Arc::clone(&received) };
        std::thread::spawn(move || received.read_all(&epoll, &sockets));
        Ok(crowd)
    }

    /// How many lines and bytes were read.
    pub(crate) fn received(&self) -> (u64, u64) {
        let Received { lines, bytes } = &*self.received;
        (lines.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed))
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        // The thread then reads the end of each.
        for socket in self.sockets.iter() {
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }
}

impl Received {
    fn read_all(&self, epoll: &Epoll, sockets: &[UnixStream]) {
        let (mut open, mut room) = (sockets.len(), vec![0; 64 * 1024]);
        let mut events = [EpollEvent::empty(); 64];
        while open > 0 {
            let count = epoll.wait(&mut events, EpollTimeout::NONE).unwrap_or(0);
            for event in &events[..count] {
                let mut socket = &sockets[event.data() as usize];
                let read = socket.read(&mut room).unwrap_or(0);
                if read == 0 {
                    let _ = epoll.delete(socket);
                    open -= 1;
                }
                let lines = room[..read].iter().filter(|byte| **byte == b'\n').count();
                self.lines.fetch_add(lines as u64, Ordering::Relaxed);
                self.bytes.fetch_add(read as u64, Ordering::Relaxed);
            }
        }
    }
}
