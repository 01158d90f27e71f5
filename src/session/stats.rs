//! The few facts of a session that frames do not hold: its name, its observers, its directory, how
//! much its program wrote and what of it was lost, and when its lease expires.
//!
//! The session's task writes them, anybody reads them; none of them decides anything.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::core::frame::Frame;
use crate::core::moment::Moment;
use crate::session::counters::Counter;
use crate::session::records::gaps::Gaps;

const NEVER: u64 = u64::MAX;

/// Facts of one session that frames do not hold.
#[derive(Debug)]
pub struct Live {
    name: Mutex<Arc<str>>,
    lease_expires_ms: AtomicU64,
    /// When somebody last asked the program to stop what it does.
    interrupted_ms: AtomicU64,
    observers: AtomicUsize,
    /// Callers who wait for what only the kernel knows.
    attending: AtomicUsize,
    /// Lets those who send commands go one after the other.
    line: Arc<Semaphore>,
    /// What its program wrote, in bytes.
    pub output_bytes: Counter,
    directory: Mutex<Option<Arc<str>>>,
    gaps: Mutex<Gaps>,
    /// When the screen was found that a daemon before left, and when that had last changed.
    found_still: OnceLock<(Moment, Moment)>,
    /// The output before this offset was there when the session was found.
    unread_until: AtomicU64,
    /// Whether a frame shows all of that.
    caught_up: watch::Sender<bool>,
    /// Counts how often everybody was detached.
    detaches: watch::Sender<u64>,
    /// What of it did not end with the daemon.
    unended: OnceLock<String>,
}

impl Live {
    /// The facts of a new session with this name.
    pub fn new(name: Arc<str>) -> Self {
        Self {
            name: Mutex::new(name),
            lease_expires_ms: AtomicU64::new(NEVER),
            interrupted_ms: AtomicU64::new(NEVER),
            observers: AtomicUsize::new(0),
            attending: AtomicUsize::new(0),
            line: Arc::new(Semaphore::new(1)),
            output_bytes: Counter::default(),
            directory: Mutex::new(None),
            gaps: Mutex::default(),
            found_still: OnceLock::new(),
            unread_until: AtomicU64::new(0),
            caught_up: watch::Sender::new(true),
            detaches: watch::Sender::new(0),
            unended: OnceLock::new(),
        }
    }

    /// What of it did not end with the daemon; none if all did.
    pub fn unended(&self) -> Option<&str> {
        self.unended.get().map(String::as_str)
    }

    /// Notes what of it does not end with the daemon.
    pub fn set_unended(&self, what: String) {
        let _ = self.unended.set(what);
    }

    /// Its name, unique among the sessions of its tenant.
    pub fn name(&self) -> Arc<str> {
        Arc::clone(&self.name.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Gives it another name, and tells the one before.
    pub fn set_name(&self, name: Arc<str>) -> Arc<str> {
        std::mem::replace(&mut *self.name.lock().unwrap_or_else(PoisonError::into_inner), name)
    }

    /// When the lease expires unless it is renewed; none while the session is free.
    pub fn lease_expires_at(&self) -> Option<Moment> {
        moment(&self.lease_expires_ms)
    }

    /// Notes when the lease expires.
    pub fn set_lease_expires_at(&self, at: Option<Moment>) {
        set_moment(&self.lease_expires_ms, at);
    }

    /// When somebody last sent a signal, or a key that the terminal makes one of; none if nobody did.
    pub fn interrupted_at(&self) -> Option<Moment> {
        moment(&self.interrupted_ms)
    }

    /// Notes that a signal was sent.
    pub fn set_interrupted_at(&self, now: Moment) {
        set_moment(&self.interrupted_ms, Some(now));
    }

    /// Notes that the terminal took these bytes.
    pub fn on_typed(&self, now: Moment, bytes: &[u8]) {
        /// C-c, C-z and C-\\, as terminals are set.
        const SIGNALS: [u8; 3] = [0x03, 0x1a, 0x1c];
        if bytes.iter().any(|byte| SIGNALS.contains(byte)) {
            self.set_interrupted_at(now);
        }
    }

    /// The directory that the program last said it is in; a claim, good for display only.
    pub fn directory(&self) -> Option<Arc<str>> {
        self.directory.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes the directory that the program says it is in.
    pub fn set_directory(&self, directory: &str) {
        let directory = Some(Arc::from(directory));
        *self.directory.lock().unwrap_or_else(PoisonError::into_inner) = directory;
    }

    /// The output that was lost.
    pub fn gaps(&self) -> Gaps {
        self.gaps.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes which output was lost.
    pub fn set_gaps(&self, gaps: Gaps) {
        *self.gaps.lock().unwrap_or_else(PoisonError::into_inner) = gaps;
    }

    /// Notes that the screen of the first frame, which is of the moment `found`, last changed at
    /// `since`, where that is known.
    pub fn set_found_still(&self, found: Moment, since: Option<Moment>) {
        if let Some(since) = since {
            let _ = self.found_still.set((found, since));
        }
    }

    /// Notes where the output ends that was there when the session was found, and from where on the screen
    /// has not seen it.
    pub fn set_unread(&self, from: u64, until: u64) {
        self.unread_until.store(until, Ordering::Relaxed);
        self.caught_up.send_replace(from >= until);
    }

    /// Whether the screen has by this offset seen all output that was there when the session was found, and
    /// no frame shows that yet.
    pub fn catches_up(&self, offset: u64) -> bool {
        !*self.caught_up.borrow() && self.unread_until.load(Ordering::Relaxed) <= offset
    }

    /// Notes that a frame shows all output that was there when the session was found, or that ever will be.
    pub fn set_caught_up(&self) {
        self.caught_up.send_if_modified(|caught_up| !std::mem::replace(caught_up, true));
    }

    /// Waits until a frame shows all output that was there when the session was found.
    pub async fn caught_up(&self) {
        // It fails only when the sender is gone, which is kept here.
        let _ = self.caught_up.subscribe().wait_for(|caught_up| *caught_up).await;
    }

    /// When the screen last changed that a frame shows, be it with a daemon before.
    pub fn changed_at(&self, frame: &Frame) -> Moment {
        match self.found_still.get() {
            Some((found, since)) if *found == frame.screen_changed_at => *since,
            Some(_) | None => frame.screen_changed_at,
        }
    }

    /// Ends the views of all who are attached.
    pub fn detach_all(&self) {
        self.detaches.send_modify(|count| *count += 1);
    }

    /// Changes whenever all who are attached are to leave.
    pub fn detaches(&self) -> watch::Receiver<u64> {
        self.detaches.subscribe()
    }

    /// How many observers are fed deltas.
    pub fn observers(&self) -> usize {
        self.observers.load(Ordering::Relaxed)
    }

    /// Whether somebody waits for what only the kernel knows, so that it has to be asked.
    pub fn attended(&self) -> bool {
        self.attending.load(Ordering::Relaxed) > 0
    }
}

fn moment(millis: &AtomicU64) -> Option<Moment> {
    let millis = millis.load(Ordering::Relaxed);
    (millis != NEVER).then(|| Moment::from_boot(Duration::from_millis(millis)))
}

fn set_moment(millis: &AtomicU64, at: Option<Moment>) {
    let at = at.map_or(NEVER, |at| at.since_boot().as_millis() as u64);
    millis.store(at, Ordering::Relaxed);
}

/// Has the kernel asked now and then for as long as it is kept.
#[derive(Debug)]
pub struct Attending(Arc<Live>);

impl Attending {
    /// Begins; the session's task has to be woken once after it.
    pub(in crate::session) fn start(live: Arc<Live>) -> Self {
        live.attending.fetch_add(1, Ordering::Relaxed);
        Self(live)
    }
}

impl Drop for Attending {
    fn drop(&mut self) {
        self.0.attending.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts one observer for as long as it is kept.
#[derive(Debug)]
pub struct Observing(Arc<Live>);

impl Observing {
    /// Counts one more observer.
    pub fn start(live: Arc<Live>) -> Self {
        live.observers.fetch_add(1, Ordering::Relaxed);
        Self(live)
    }
}

impl Drop for Observing {
    fn drop(&mut self) {
        self.0.observers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A place in the line of those who send commands, for as long as it is kept.
#[derive(Debug)]
#[must_use = "the next one goes on when this is dropped"]
pub struct Place {
    // None only of a line that was closed, which nobody does.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Place {
    /// Waits behind those who began to wait before.
    pub(in crate::session) async fn take(live: &Live) -> Self {
        Self { _permit: Arc::clone(&live.line).acquire_owned().await.ok() }
    }
}
