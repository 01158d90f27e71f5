//! The way to a server, whatever is behind it: messages to send, messages that come, and an end.

pub mod http;
pub mod lines;
pub mod process;
mod socket;

use std::path::PathBuf;

use crate::mount::fence::EpochGate;
use crate::mount::link::http::HttpExchange;
use crate::mount::link::http::client::HttpServer;
use crate::mount::link::lines::{FromServer, Lines, NotReading};
use crate::mount::link::process::{ServerProcess, ServerProgram};
use crate::mount::link::socket::SocketStream;
use crate::mount::log::ServerLog;

/// Where a server is.
#[derive(Clone, Debug)]
pub enum ServerAddress {
    Program(ServerProgram),
    Socket(PathBuf),
    Http(HttpServer),
}

/// A server that was started or connected to. Dropping this ends it at once.
#[derive(Debug)]
pub struct ServerLink {
    lines: Lines,
    carrier: Carrier,
}

/// What carries the messages.
#[derive(Debug)]
enum Carrier {
    Process(ServerProcess),
    Socket(SocketStream),
    Http(HttpExchange),
}

impl Carrier {
    async fn how_it_ended(&mut self) -> String {
        match self {
            Self::Process(process) => process.how_it_ended().await,
            Self::Socket(_) | Self::Http(_) => "it ended".to_owned(),
        }
    }
}

impl ServerLink {
    /// Starts a server, or connects to one.
    ///
    /// # Errors
    /// Why that failed.
    pub async fn open(address: &ServerAddress, log: &ServerLog) -> Result<Self, String> {
        let (lines, carrier) = match address {
            ServerAddress::Program(program) => {
                let (lines, process) = ServerProcess::start(program, log).await?;
                (lines, Carrier::Process(process))
            }
            ServerAddress::Socket(path) => {
                let connected = SocketStream::connect(path).await;
                let (lines, stream) = connected
                    .map_err(|error| format!("cannot connect to {}: {error}", path.display()))?;
                (lines, Carrier::Socket(stream))
            }
            ServerAddress::Http(server) => {
                let (lines, exchange) = HttpExchange::open(server, log)?;
                (lines, Carrier::Http(exchange))
            }
        };
        Ok(Self { lines, carrier })
    }

    /// The process of a server that was started.
    pub fn pid(&self) -> Option<u32> {
        match &self.carrier {
            Carrier::Process(process) => process.pid(),
            Carrier::Socket(_) | Carrier::Http(_) => None,
        }
    }

    /// Sends a line. It is written when the server reads.
    ///
    /// # Errors
    /// [`NotReading`] if too much waits already.
    pub fn send(&self, line: Vec<u8>) -> Result<(), NotReading> {
        self.lines.send(line, None)
    }

    /// The same, unless this gate is closed before the line is begun.
    ///
    /// # Errors
    /// [`NotReading`] if too much waits already.
    pub fn send_through(&self, line: Vec<u8>, gate: EpochGate) -> Result<(), NotReading> {
        self.lines.send(line, Some(gate))
    }

    /// Sends a call, through a gate as [`ServerLink::send_through`] if it has one. Over HTTP it has these headers.
    ///
    /// # Errors
    /// [`NotReading`] if too much waits already.
    pub fn send_call(
        &self,
        line: Vec<u8>,
        gate: Option<EpochGate>,
        headers: Vec<(String, String)>,
    ) -> Result<(), NotReading> {
        self.lines.send_with(line, gate, headers)
    }

    /// What comes next. Cancelling this loses nothing.
    pub async fn next(&mut self) -> FromServer {
        match self.lines.next().await {
            Some(read) => read,
            None => FromServer::Closed(self.carrier.how_it_ended().await),
        }
    }

    /// The last line that a server which was started wrote to standard error.
    pub fn last_line(&self) -> Option<String> {
        match &self.carrier {
            Carrier::Process(process) => process.last_line(),
            Carrier::Socket(_) | Carrier::Http(_) => None,
        }
    }

    /// Ends the server or the connection, in bounded time.
    pub async fn end(self) {
        match self.carrier {
            Carrier::Process(process) => process.end(self.lines).await,
            Carrier::Socket(stream) => drop(stream),
            Carrier::Http(exchange) => exchange.end().await,
        }
    }
}
