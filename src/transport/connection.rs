//! One connection of one client: messages in and out, in order and within limits.
//!
//! One task reads, runs tool calls and writes. The MCP library answers all other requests in its own tasks.

mod in_flight;
mod intake;
mod library;
pub mod link;
mod reading;
mod socket;

use std::future::Future;
use std::sync::Arc;

use rmcp::ServerHandler;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use crate::mcp::call::CallHandler;
use crate::mcp::connection::Connection;
use crate::transport::connection::in_flight::InFlight;
use crate::transport::connection::library::Library;
use crate::transport::connection::link::ClientLink;
use crate::transport::connection::reading::RequestReader;
use crate::transport::framing::lines::LineReader;
use crate::transport::limits::Limits;

/// Serves one client until it hangs up, or has ended its input and received its answers.
///
/// When this returns or is dropped, all cancellation tokens of the connection are cancelled and its outbox is closed.
pub async fn serve<H, R, W, G>(
    handler: H,
    link: ClientLink<LineReader<R>, W, G>,
    connection: Arc<Connection>,
    limits: &Limits,
) where
    H: ServerHandler + CallHandler,
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + 'static,
    G: Future<Output = ()> + Send,
{
    let over = EndOnDrop(connection.clone());
    let ClientLink { reader: lines, writer, hangup } = link;
    let handler = Arc::new(handler);
    let in_flight = InFlight::new(connection.outbox.clone(), limits);
    let (library, wire) = Library::new(connection.clone(), in_flight.clone());
    let answering = async {
        wire.run(Arc::clone(&handler)).await;
        connection.outbox.close();
        // The client has this long to read its last answers.
        let _ = timeout(limits.closing, connection.gone.cancelled()).await;
        connection.gone.cancel();
    };
    let reading = async {
        let ends = (in_flight, library);
        let reading = RequestReader::new(&*handler, lines, connection.clone(), ends, limits);
        connection.gone.run_until_cancelled(reading.run()).await;
    };
    let writing = async {
        let written = connection.gone.run_until_cancelled(connection.outbox.write_to(writer)).await;
        if let Some(Err(error)) = written {
            tracing::debug!(connection = connection.id.0, %error, "the client reads no more");
        }
        connection.gone.cancel();
        connection.outbox.abandon();
    };
    let watching = async {
        connection.gone.run_until_cancelled(hangup).await;
        connection.gone.cancel();
    };
    // In this order, the answers of the reading side are written before the task sleeps.
    tokio::join!(biased; answering, reading, writing, watching);
    drop(over);
}

/// Ends the connection on drop.
struct EndOnDrop(Arc<Connection>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.gone.cancel();
        self.0.outbox.abandon();
    }
}

#[cfg(test)]
mod tests;
