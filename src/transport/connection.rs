//! One connection of one client: messages in, messages out, in order and within bounds.
//!
//! It must not know which tools exist. One task reads, runs the calls of tools and writes; the MCP
//! library answers everything else, in tasks of its own.

mod in_flight;
mod incoming;
mod intake;
mod library;
pub mod link;
mod reading;

use std::future::Future;
use std::sync::Arc;

use rmcp::ServerHandler;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use crate::mcp::call::CallHandler;
use crate::mcp::connection::Connection;
use crate::transport::connection::in_flight::InFlight;
use crate::transport::connection::library::Library;
use crate::transport::connection::link::Link;
use crate::transport::connection::reading::Reading;
use crate::transport::framing::lines::Lines;
use crate::transport::limits::Limits;

/// Serves one client until it has gone or ended its input and got its answers.
///
/// When this returns, and also when it is dropped, everything of the connection is over: its tokens
/// are cancelled, its outbox is closed.
pub async fn serve<H, R, W, G>(
    handler: H,
    link: Link<Lines<R>, W, G>,
    connection: Arc<Connection>,
    limits: &Limits,
) where
    H: ServerHandler + CallHandler,
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send,
    G: Future<Output = ()> + Send,
{
    let over = Over(connection.clone());
    let Link { reader: lines, writer, hangup } = link;
    let handler = Arc::new(handler);
    let in_flight = InFlight::new(connection.outbox.clone(), limits);
    let (library, wire) = Library::new(connection.clone(), in_flight.clone());
    let answering = async {
        wire.run(Arc::clone(&handler)).await;
        connection.outbox.close();
        // The client gets its last answers if it reads them, and no more than this time for it.
        let _ = timeout(limits.closing, connection.gone.cancelled()).await;
        connection.gone.cancel();
    };
    let reading = async {
        let ends = (in_flight, library);
        let reading = Reading::new(&*handler, lines, connection.clone(), ends, limits);
        connection.gone.run_until_cancelled(reading.run()).await;
    };
    let writing = async {
        let written = connection.gone.run_until_cancelled(connection.outbox.write_to(writer)).await;
        if let Some(Err(error)) = written {
            tracing::debug!(connection = connection.id.0, %error, "the client takes nothing more");
        }
        connection.gone.cancel();
        connection.outbox.abandon();
    };
    let watching = async {
        connection.gone.run_until_cancelled(hangup).await;
        connection.gone.cancel();
    };
    // In this order, so that what the reading side answers is written before the task sleeps.
    tokio::join!(biased; answering, reading, writing, watching);
    drop(over);
}

/// Ends everything of a connection, in whatever way its service ends.
struct Over(Arc<Connection>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.gone.cancel();
        self.0.outbox.abandon();
    }
}

#[cfg(test)]
mod tests;
