//! Tells clients for which there is no room why, before their connection is closed.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::ErrorData;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::surface::error::SurfaceError;
use crate::transport::connection::link::ClientLink;
use crate::transport::framing::lines::{LineInput, LineReader};
use crate::transport::framing::{error_line, find_id};

/// How many clients are told at a time. Others are closed at once.
const AT_ONCE_MAX: usize = 16;

/// How long a client has to make a request that can be answered, and to take the answer.
const TOLD_WITHIN: Duration = Duration::from_secs(1);

/// Tells clients that there is no room for them. Clones share the bound.
#[derive(Clone, Debug)]
pub struct Refusals(Arc<Semaphore>);

impl Default for Refusals {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE_MAX)))
    }
}

impl Refusals {
    /// Answers the client's next request with `quota_exceeded`, since clients show an error only as an answer. To be
    /// called with a link whose lines use no shared memory.
    ///
    /// Does nothing if many clients are told just now, and gives up after a second.
    pub async fn tell<R, W, G>(&self, link: &mut ClientLink<LineReader<R>, W, G>)
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let Ok(_place) = self.0.try_acquire() else { return };
        let telling = async {
            let id = match link.reader.next().await {
                LineInput::Line(line) => find_id(line.bytes()).ok().flatten(),
                LineInput::Refused(_) => None,
                LineInput::End => return,
            };
            let error = ErrorData::from(SurfaceError::Quota("connections"));
            // Who does not take it is not told.
            let _ = link.writer.write_all(&error_line(id.as_ref(), &error)).await;
        };
        // Closed in any case.
        let _ = timeout(TOLD_WITHIN, telling).await;
    }
}
