//! The bridge: one client's two streams joined with whichever daemon is there.
//!
//! It must not know how a daemon is found or started, nor what requests do. Lines are passed on as
//! they came. A daemon that dies costs the client the answers in flight and nothing else: the next
//! one hears what the client said once, and no request that may have done anything is sent again.

mod creation;
mod dial;
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
use tokio::time::{Instant, sleep, timeout};

pub use crate::transport::bridge::creation::CreationDefaults;
pub use crate::transport::bridge::dial::{Dial, Undialed};
use crate::transport::bridge::dial::{RETRY_MIN, insist};
use crate::transport::bridge::memory::{Broken, For, Memory, Note, Outgoing};
use crate::transport::bridge::message::{Message, failed};
use crate::transport::bridge::upstream::patient;
pub use crate::transport::bridge::upstream::{JoinError, Upstream};
use crate::transport::connection::link::Link;
use crate::transport::framing::lines::{Input, Line, Lines};
use crate::transport::framing::{self, Refusal};

/// The most that any daemon can be set to take in one message, in bytes and in structural
/// characters; what is less is for the daemon to judge.
const LINE_MAX: usize = 4 * 1024 * 1024;
const TOKENS_MAX: usize = 200_000;
/// How long requests wait for a daemon that has gone; later ones are tried once each.
const AWAY_MAX: Duration = Duration::from_secs(10);
/// How late is looked for another daemon while nobody asks for anything; at first it is soon.
const RETRY_MAX: Duration = Duration::from_secs(5);
/// How long a daemon may take for its last answers once the client has ended its input; a little
/// more than it gives them itself.
const WINDING_UP_MAX: Duration = Duration::from_secs(4);
/// How long is read from a daemon that takes nothing more.
const LAST_ANSWERS_MAX: Duration = Duration::from_secs(1);
/// How long the client may take for the last lines.
const CLOSING_MAX: Duration = Duration::from_secs(5);
/// Lines that may wait for the client; beyond that nothing more is read from the daemon.
const LINES_WAITING_MAX: usize = 8;

/// Joins a client with `upstream`, and with what `dial` reaches when that one has gone, until the
/// client has ended its input and got its answers, or has gone.
pub async fn bridge<R, W, G>(
    client: Link<R, W, G>,
    upstream: Upstream,
    dial: impl AsyncFn(Dial) -> Result<Upstream, Undialed>,
    defaults: CreationDefaults,
) where
    R: AsyncRead + Unpin,
    W: AsyncWrite,
    G: Future<Output = ()>,
{
    let (out, waiting) = mpsc::channel(LINES_WAITING_MAX);
    let side = Client {
        lines: Lines::new(client.reader, &patient(LINE_MAX)),
        out,
        memory: Mutex::new(Memory::new()),
        unsent: VecDeque::new(),
        last: None,
        defaults,
    };
    let mut writing = pin!(write_lines(client.writer, waiting));
    tokio::select! {
        () = side.stay_joined(upstream, dial) => {
            // A client that takes nothing more has no use for it.
            let _ = timeout(CLOSING_MAX, writing.as_mut()).await;
        }
        () = writing.as_mut() => {}
        () = client.hangup => {}
    }
}

/// The client's side of a bridge.
struct Client<R> {
    lines: Lines<R>,
    out: mpsc::Sender<Bytes>,
    memory: Mutex<Memory>,
    /// What no daemon has got as a whole, or is to get again.
    unsent: VecDeque<Outgoing>,
    /// What the daemon got last.
    last: Option<Outgoing>,
    defaults: CreationDefaults,
}

/// How a client and a daemon parted.
enum Parted {
    /// Nothing is left to be done.
    Done,
    /// The daemon has gone.
    Broken,
}

/// Whose end came first.
enum Side {
    /// No line of the client's follows.
    Client,
    /// The daemon takes nothing more.
    Daemon,
}

/// How the passing of lines ended.
struct Ending {
    of: Side,
    /// Whether the daemon closed its end before it had read everything.
    unread: bool,
}

impl<R: AsyncRead + Unpin> Client<R> {
    async fn stay_joined(
        mut self,
        mut upstream: Upstream,
        dial: impl AsyncFn(Dial) -> Result<Upstream, Undialed>,
    ) {
        let mut replay = None;
        loop {
            match self.join(upstream, replay).await {
                Parted::Done => return,
                Parted::Broken => tracing::warn!("the daemon has gone"),
            }
            let lost = self.on_break();
            self.tell(lost).await;
            match self.find_another(&dial).await {
                Some(another) => upstream = another,
                None => return,
            }
            tracing::info!("a daemon is there again");
            replay = Some(self.memory().replay().concat());
        }
    }

    /// Passes lines on until the daemon has gone, or all is done.
    async fn join(&mut self, upstream: Upstream, replay: Option<Vec<u8>>) -> Parted {
        let Ending { of, unread } = self.pass_on(upstream, replay).await;
        match of {
            Side::Daemon => {
                if unread {
                    self.take_back();
                }
                Parted::Broken
            }
            // What was not answered now was still waiting when the client had enough of it.
            Side::Client => Parted::Done,
        }
    }

    /// Passes lines on in both directions until one of them ends; `replay` goes before all others,
    /// if the daemon is not the first.
    async fn pass_on(&mut self, upstream: Upstream, replay: Option<Vec<u8>>) -> Ending {
        let Upstream { mut lines, mut writer } = upstream;
        self.last = None;
        let (memory, out) = (&self.memory, &self.out);
        // Says at its end whether the daemon left something unread.
        let receiving = async {
            while let Input::Line(line) = lines.next().await {
                if lock(memory).on_received(line.bytes()) == For::Client {
                    // The writing end outlives this one.
                    let _ = out.send(line.into_whole()).await;
                }
            }
            lines.was_reset()
        };
        let mut receiving = pin!(receiving);
        let (client, kept) = (&mut self.lines, (&mut self.unsent, &mut self.last));
        let passing = Passing { memory, out, defaults: &self.defaults };
        // Its answers are taken meanwhile, for they are more than a daemon keeps for us.
        let sending = async {
            if let Some(replay) = replay {
                if writer.write_all(&replay).await.is_err() {
                    return Side::Daemon;
                }
                let news = lock(memory).catch_up();
                passing.tell(news).await;
            }
            send_lines(client, &mut writer, kept, passing).await
        };
        let of = tokio::select! {
            biased;
            unread = receiving.as_mut() => return Ending { of: Side::Daemon, unread },
            side = sending => side,
        };
        // What the daemon answered before is still on its way.
        let patience = match of {
            Side::Daemon => LAST_ANSWERS_MAX,
            Side::Client => {
                drop(writer);
                WINDING_UP_MAX
            }
        };
        Ending { of, unread: timeout(patience, receiving).await == Ok(true) }
    }

    /// Takes back the last request, when a daemon closed its end before it had read everything.
    ///
    /// The end of what was sent last is then what was not read, so that line had no effect. If a
    /// line after it was begun, nothing is known of this one.
    fn take_back(&mut self) {
        let last = self.last.take().filter(|_| self.unsent.is_empty());
        if let Some(outgoing) = last
            && let Some(id) = outgoing.request()
        {
            self.memory().on_unread(id);
            self.unsent.push_back(outgoing);
        }
    }

    /// Settles what the next daemon gets, and says what the callers of all other requests are
    /// answered.
    fn on_break(&mut self) -> Vec<Bytes> {
        let mut memory = lock(&self.memory);
        let (requests, others): (VecDeque<_>, VecDeque<_>) =
            self.unsent.drain(..).partition(|outgoing| outgoing.request().is_some());
        // As in `take_in`.
        others.into_iter().for_each(|outgoing| memory.on_sent(outgoing));
        let Broken { again, lost } = memory.on_break();
        self.unsent = again.into_iter().chain(requests).collect();
        lost
    }

    /// Waits for a daemon, and meanwhile answers the client in its place; none, when the client has
    /// ended its input.
    async fn find_another(
        &mut self,
        dial: &impl AsyncFn(Dial) -> Result<Upstream, Undialed>,
    ) -> Option<Upstream> {
        let give_up_at = Instant::now() + AWAY_MAX;
        let mut delay = RETRY_MIN;
        loop {
            if !self.unsent.is_empty() {
                match insist(dial, give_up_at).await {
                    Ok(upstream) => return Some(upstream),
                    Err(Undialed { code, reason }) => {
                        tracing::warn!(reason, "no daemon can be reached");
                        let unsent = std::mem::take(&mut self.unsent);
                        let waiting = unsent.iter().filter_map(Outgoing::request);
                        self.tell(waiting.map(|id| failed(id, code))).await;
                    }
                }
            }
            tokio::select! {
                input = self.lines.next() => match input {
                    Input::Line(line) => self.take_in(line).await,
                    Input::Refused(refusal) => self.tell([refusal.to_line()]).await,
                    Input::End => return None,
                },
                () = sleep(delay) => {
                    if let Ok(upstream) = dial(Dial::Connect).await {
                        return Some(upstream);
                    }
                    delay = (delay * 2).min(RETRY_MAX);
                }
            }
        }
    }

    /// Takes a line while no daemon is there: keeps a request, and refuses what a daemon would.
    async fn take_in(&mut self, line: Line) {
        let bytes = line.bytes();
        let checked = framing::check(bytes, TOKENS_MAX);
        if let Err(refusal) = checked.and_then(|()| framing::parse::<ClientJsonRpcMessage>(bytes)) {
            self.tell([refusal.to_line()]).await;
            return;
        }
        let passing = Passing { memory: &self.memory, out: &self.out, defaults: &self.defaults };
        let Some(outgoing) = passing.prepare(line).await else { return };
        match outgoing.note {
            Note::Request(..) => self.unsent.push_back(outgoing),
            // What it speaks of has gone with the daemon, save that the client is ready.
            Note::Initialized | Note::Cancelled(_) | Note::Nothing => {
                self.memory().on_sent(outgoing);
            }
        }
    }

    async fn tell(&self, lines: impl IntoIterator<Item = Bytes>) {
        let Self { memory, out, defaults, .. } = self;
        Passing { memory, out, defaults }.tell(lines).await;
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        lock(&self.memory)
    }
}

/// What a line passes on its way to the daemon.
struct Passing<'a> {
    memory: &'a Mutex<Memory>,
    out: &'a mpsc::Sender<Bytes>,
    defaults: &'a CreationDefaults,
}

impl Passing<'_> {
    /// Makes a line ready to be sent; none, when it would be too long for a daemon.
    async fn prepare(&self, line: Line) -> Option<Outgoing> {
        let message = Message::read(line.bytes());
        let filled = message.as_ref().and_then(|message| self.defaults.fill(line.bytes(), message));
        let id = message.as_ref().and_then(|message| message.id.clone());
        let note = message.map_or(Note::Nothing, |message| Note::of(&message));
        match filled {
            Some(filled) if filled.len() > LINE_MAX => {
                let refusal = Refusal::TooLarge { id, bytes_max: LINE_MAX };
                self.tell([refusal.to_line()]).await;
                None
            }
            Some(line) => Some(Outgoing { line, note }),
            None => Some(Outgoing { line: line.into_whole(), note }),
        }
    }

    /// Tells the client something in the daemon's place.
    async fn tell(&self, lines: impl IntoIterator<Item = Bytes>) {
        for line in lines {
            // The writing end outlives this one.
            let _ = self.out.send(line).await;
        }
    }
}

/// Passes the client's lines on to the daemon, first of all those that another daemon did not get,
/// and keeps the one on its way and the last.
async fn send_lines<R: AsyncRead + Unpin>(
    lines: &mut Lines<R>,
    writer: &mut OwnedWriteHalf,
    (unsent, last): (&mut VecDeque<Outgoing>, &mut Option<Outgoing>),
    passing: Passing<'_>,
) -> Side {
    loop {
        while let Some(outgoing) = unsent.front() {
            if writer.write_all(&outgoing.line).await.is_err() {
                return Side::Daemon;
            }
            // A line that was not written to its end stays here: no daemon has read it.
            if let Some(outgoing) = unsent.pop_front() {
                lock(passing.memory).on_sent(outgoing.clone());
                *last = Some(outgoing);
            }
        }
        match lines.next().await {
            Input::Line(line) => unsent.extend(passing.prepare(line).await),
            Input::Refused(refusal) => passing.tell([refusal.to_line()]).await,
            Input::End => return Side::Client,
        }
    }
}

/// Writes lines until there are no more or the client takes none.
async fn write_lines<W: AsyncWrite>(writer: W, mut lines: mpsc::Receiver<Bytes>) {
    let mut writer = pin!(writer);
    while let Some(line) = lines.recv().await {
        let written = writer.write_all(&line).await;
        // Lines that follow at once are flushed together.
        if written.is_err() || (lines.is_empty() && writer.flush().await.is_err()) {
            return;
        }
    }
    // Nobody is left to hear that it failed.
    let _ = writer.flush().await;
}

fn lock(memory: &Mutex<Memory>) -> MutexGuard<'_, Memory> {
    // What is remembered are plain values that no panic can leave half changed.
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
