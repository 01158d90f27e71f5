//! The bridge: joins a client's two streams with the current daemon.
//!
//! It passes lines on unchanged. When a daemon dies, the client loses only the answers in flight. The next daemon
//! receives the client's state again, but never a request that may have had an effect.

mod memory;
mod message;
mod upstream;

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rmcp::model::ClientJsonRpcMessage;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use crate::core::code::Code;
use crate::transport::bridge::memory::{Broken, ClientState, For, Outgoing, Remembered};
pub use crate::transport::bridge::message::CreationDefaults;
use crate::transport::bridge::message::{BridgedMessage, failed};
pub use crate::transport::bridge::upstream::{Dial, Undialed, Upstream};
use crate::transport::client::reach;
use crate::transport::connection::link::ClientLink;
use crate::transport::framing::lines::{InputLine, LineInput, LineReader};
use crate::transport::framing::{self, MessageRefusal};
use crate::transport::limits::Limits;

/// The largest message any daemon can be configured to accept, in bytes and in structural characters. A daemon rejects
/// smaller messages by its own limit.
const LINE_MAX: usize = 4 * 1024 * 1024;
const TOKENS_MAX: usize = 200_000;
/// How long requests wait for a new daemon. Later requests cause one attempt each.
const AWAY_MAX: Duration = Duration::from_secs(10);
/// How long a daemon may take for its last answers after the client's input has ended. A little more than the daemon's
/// own limit.
const WINDING_UP_MAX: Duration = Duration::from_secs(4);
/// How long to read from a daemon that no longer accepts input.
const LAST_ANSWERS_MAX: Duration = Duration::from_secs(1);
/// How long the client may take to read the last lines.
const CLOSING_MAX: Duration = Duration::from_secs(5);
/// Lines that may wait for the client. Above this, the bridge stops reading from the daemon.
const LINES_WAITING_MAX: usize = 8;

/// Joins a client with `upstream`, and with a daemon that `dial` reaches when the first has gone.
///
/// Returns when the client has hung up, or has ended its input and received its answers.
pub async fn bridge<R, W, G>(
    client: ClientLink<R, W, G>,
    upstream: Upstream,
    dial: impl AsyncFn(Dial) -> Result<Upstream, Undialed>,
    defaults: CreationDefaults,
) where
    R: AsyncRead + Unpin,
    W: AsyncWrite,
    G: Future<Output = ()>,
{
    let (out, waiting) = mpsc::channel(LINES_WAITING_MAX);
    let side = ClientSide {
        lines: LineReader::new(client.reader, &Limits::patient(LINE_MAX)),
        passing: Passing { memory: Mutex::new(ClientState::new()), out, defaults },
        unsent: VecDeque::new(),
        last: None,
    };
    let mut writing = pin!(write_lines(client.writer, waiting));
    tokio::select! {
        () = side.stay_joined(upstream, dial) => {
            // The client may no longer read.
            let _ = timeout(CLOSING_MAX, writing.as_mut()).await;
        }
        () = writing.as_mut() => {}
        () = client.hangup => {}
    }
}

struct ClientSide<R> {
    lines: LineReader<R>,
    passing: Passing,
    /// Lines that no daemon has received completely, or that are sent again.
    unsent: VecDeque<Outgoing>,
    /// The last line that the daemon received.
    last: Option<Outgoing>,
}

/// The side that ended first.
enum Side {
    /// The client has ended its input.
    Client,
    /// The daemon no longer accepts input.
    Daemon {
        /// Whether it closed the connection before it had read everything.
        unread: bool,
    },
}

impl<R: AsyncRead + Unpin> ClientSide<R> {
    async fn stay_joined(
        mut self,
        mut upstream: Upstream,
        dial: impl AsyncFn(Dial) -> Result<Upstream, Undialed>,
    ) {
        let mut replay = None;
        loop {
            match self.pass_on(upstream, replay).await {
                // Unanswered requests had their time to finish.
                Side::Client => return,
                Side::Daemon { unread: true } => self.take_back(),
                Side::Daemon { unread: false } => {}
            }
            tracing::warn!("the daemon has gone");
            let lost = self.on_break();
            self.passing.tell(lost).await;
            match self.find_another(&dial).await {
                Some(another) => upstream = another,
                None => return,
            }
            tracing::info!("connected to a daemon again");
            replay = Some(self.passing.memory().replay().concat());
        }
    }

    /// Passes lines on in both directions until one side ends. `replay` is sent first, to every daemon after the
    /// first.
    async fn pass_on(&mut self, upstream: Upstream, replay: Option<Vec<u8>>) -> Side {
        let Upstream { mut lines, mut writer } = upstream;
        self.last = None;
        let Self { lines: client, passing, unsent, last } = self;
        let (passing, kept) = (&*passing, (unsent, last));
        // Returns whether the daemon left input unread.
        let receiving = async {
            while let LineInput::Line(line) = lines.next().await {
                if passing.memory().on_received(line.bytes()) == For::Client {
                    passing.tell([line.into_whole()]).await;
                }
            }
            lines.was_reset()
        };
        let mut receiving = pin!(receiving);
        // Answers are read while the replay is sent, because the daemon queues only a few.
        let sending = async {
            if let Some(replay) = replay {
                if writer.write_all(&replay).await.is_err() {
                    return Side::Daemon { unread: false };
                }
                let news = passing.memory().catch_up();
                passing.tell(news).await;
            }
            send_lines(client, &mut writer, kept, passing).await
        };
        let side = tokio::select! {
            biased;
            unread = receiving.as_mut() => return Side::Daemon { unread },
            side = sending => side,
        };
        // Earlier answers of the daemon may still arrive.
        match side {
            Side::Daemon { .. } => {
                Side::Daemon { unread: timeout(LAST_ANSWERS_MAX, receiving).await == Ok(true) }
            }
            Side::Client => {
                drop(writer);
                let _ = timeout(WINDING_UP_MAX, receiving).await;
                Side::Client
            }
        }
    }

    /// Takes back the last request when a daemon closed the connection before it had read everything.
    ///
    /// The unread part is the end of the last line sent, so that line had no effect. If a later line was started, the
    /// state of this one is unknown.
    fn take_back(&mut self) {
        let last = self.last.take().filter(|_| self.unsent.is_empty());
        if let Some(outgoing) = last
            && let Some(id) = outgoing.request()
        {
            self.passing.memory().on_unread(id);
            self.unsent.push_back(outgoing);
        }
    }

    /// Decides what the next daemon receives; returns error answers for all other requests.
    fn on_break(&mut self) -> Vec<Bytes> {
        let mut memory = self.passing.memory();
        let (requests, others): (VecDeque<_>, VecDeque<_>) =
            self.unsent.drain(..).partition(|outgoing| outgoing.request().is_some());
        // As in `take_in`.
        others.into_iter().for_each(|outgoing| memory.on_sent(outgoing));
        let Broken { again, lost } = memory.on_break();
        self.unsent = again.into_iter().chain(requests).collect();
        lost
    }

    /// Waits for a daemon and answers the client meanwhile. Returns `None` when the client ends its input.
    async fn find_another(
        &mut self,
        dial: &impl AsyncFn(Dial) -> Result<Upstream, Undialed>,
    ) -> Option<Upstream> {
        let give_up_at = Instant::now() + AWAY_MAX;
        let insist = async || dial(Dial::ConnectOrStart).await;
        let may_pass = |error: &Undialed| error.code == Code::UpstreamUnavailable;
        let mut looking =
            pin!(reach(async || dial(Dial::Connect).await, Duration::MAX, |_: &Undialed| true));
        loop {
            if !self.unsent.is_empty() {
                match reach(insist, give_up_at - Instant::now(), may_pass).await {
                    Ok(upstream) => return Some(upstream),
                    Err(Undialed { code, reason }) => {
                        tracing::warn!(reason, "no daemon answers");
                        let unsent = std::mem::take(&mut self.unsent);
                        let waiting = unsent.iter().filter_map(Outgoing::request);
                        self.passing.tell(waiting.map(|id| failed(id, code))).await;
                    }
                }
            }
            tokio::select! {
                input = self.lines.next() => match input {
                    LineInput::Line(line) => self.take_in(line).await,
                    LineInput::Refused(refusal) => self.passing.tell([refusal.to_line()]).await,
                    LineInput::End => return None,
                },
                found = looking.as_mut() => return found.ok(),
            }
        }
    }

    /// Takes a line while no daemon is connected. Keeps a request, and rejects invalid lines as a daemon would.
    async fn take_in(&mut self, line: InputLine) {
        let bytes = line.bytes();
        let checked = framing::check(bytes, TOKENS_MAX);
        if let Err(refusal) = checked.and_then(|()| framing::parse::<ClientJsonRpcMessage>(bytes)) {
            self.passing.tell([refusal.to_line()]).await;
            return;
        }
        let Some(outgoing) = self.passing.prepare(line).await else { return };
        match outgoing.note {
            Remembered::Request(..) => self.unsent.push_back(outgoing),
            // The referenced requests ended with the daemon. Only the client's readiness is kept.
            Remembered::Initialized | Remembered::Cancelled(_) | Remembered::Nothing => {
                self.passing.memory().on_sent(outgoing);
            }
        }
    }
}

/// The state for lines between client and daemon.
struct Passing {
    memory: Mutex<ClientState>,
    out: mpsc::Sender<Bytes>,
    defaults: CreationDefaults,
}

impl Passing {
    fn memory(&self) -> MutexGuard<'_, ClientState> {
        // A panic cannot leave these plain values half changed.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prepares a line for the daemon. `None` when it would become too long.
    async fn prepare(&self, line: InputLine) -> Option<Outgoing> {
        let message = BridgedMessage::read(line.bytes());
        let filled = message.as_ref().and_then(|message| self.defaults.fill(line.bytes(), message));
        let id = message.as_ref().and_then(|message| message.id.clone());
        let note = message.map_or(Remembered::Nothing, |message| Remembered::of(&message));
        match filled {
            Some(filled) if filled.len() > LINE_MAX => {
                let refusal = MessageRefusal::TooLarge { id, bytes_max: LINE_MAX };
                self.tell([refusal.to_line()]).await;
                None
            }
            Some(line) => Some(Outgoing { line, note }),
            None => Some(Outgoing { line: line.into_whole(), note }),
        }
    }

    /// Sends lines to the client.
    async fn tell(&self, lines: impl IntoIterator<Item = Bytes>) {
        for line in lines {
            // The writer lives longer than this future.
            let _ = self.out.send(line).await;
        }
    }
}

/// Sends the client's lines to the daemon, after those that an earlier daemon did not receive.
///
/// Keeps the line being sent in `unsent` and the last one sent in `last`.
async fn send_lines<R: AsyncRead + Unpin>(
    lines: &mut LineReader<R>,
    writer: &mut OwnedWriteHalf,
    (unsent, last): (&mut VecDeque<Outgoing>, &mut Option<Outgoing>),
    passing: &Passing,
) -> Side {
    loop {
        while let Some(outgoing) = unsent.front() {
            if writer.write_all(&outgoing.line).await.is_err() {
                return Side::Daemon { unread: false };
            }
            // A partly written line stays queued: no daemon has read it.
            if let Some(outgoing) = unsent.pop_front() {
                passing.memory().on_sent(outgoing.clone());
                *last = Some(outgoing);
            }
        }
        match lines.next().await {
            LineInput::Line(line) => unsent.extend(passing.prepare(line).await),
            LineInput::Refused(refusal) => passing.tell([refusal.to_line()]).await,
            LineInput::End => return Side::Client,
        }
    }
}

/// Writes lines until the channel ends or the client stops reading.
async fn write_lines<W: AsyncWrite>(writer: W, mut lines: mpsc::Receiver<Bytes>) {
    let mut writer = pin!(writer);
    while let Some(line) = lines.recv().await {
        let written = writer.write_all(&line).await;
        // Lines that are ready together share a flush.
        if written.is_err() || (lines.is_empty() && writer.flush().await.is_err()) {
            return;
        }
    }
    // No reader is left for this error.
    let _ = writer.flush().await;
}

#[cfg(test)]
mod tests;
