//! One more hop before a server on pipes: a process that moves bytes between it and a Unix socket.
//!
//! It knows no protocol. A thread for each direction waits in the kernel, so that nothing is cheaper.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::thread;

use crate::support::agent::Agent;
use crate::support::echo::Served;
use crate::support::placement::Placement;
use crate::support::tool_server;

/// The argument that makes the bench such a process.
const SERVE: &str = "--hop";

/// Starts one with a server of tools behind it, and greets the server.
///
/// # Errors
/// Why they do not run.
pub(crate) fn start(placement: Placement) -> anyhow::Result<(Served, Agent)> {
    let (served, stream) = Served::start(placement, SERVE, 0)?;
    Ok((served, Agent::greet(stream)?))
}

/// Serves one connection, if that is what this process was started for.
///
/// # Errors
/// Why it cannot serve.
pub(crate) fn serve_if_asked() -> anyhow::Result<bool> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, asked, socket, _] = arguments.as_slice() else { return Ok(false) };
    if asked != SERVE {
        return Ok(false);
    }
    let client = UnixListener::bind(socket)?.accept()?.0;
    let (_process, said, asked) = tool_server::start()?;
    let requests = OwnedFd::from(client.try_clone()?);
    thread::spawn(move || pump(requests, asked));
    pump(said, client.into())?;
    Ok(true)
}

fn pump(from: OwnedFd, to: OwnedFd) -> io::Result<()> {
    let (mut from, mut to) = (File::from(from), File::from(to));
    let mut bytes = [0; 64 * 1024];
    loop {
        match from.read(&mut bytes)? {
            0 => return Ok(()),
            count => to.write_all(&bytes[..count])?,
        }
    }
}
