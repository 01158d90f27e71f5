//! Facts about a session that frames do not contain: name, observers, working directory, output size, gaps,
//! what was typed and the end of the lease.
//! The session's task writes them; any thread can read them.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::core::frame::Frame;
use crate::core::ids::PrincipalId;
use crate::core::moment::Moment;
use crate::core::session_users::SessionUsers;
use crate::core::shell::line_so_far::LineSoFar;
use crate::session::records::Gaps;
use crate::session::row_followers::RowFollowers;
use crate::session::scrolled_rows::ScrolledRows;

const NEVER: u64 = u64::MAX;

#[derive(Debug)]
pub struct Live {
    name: Mutex<Arc<str>>,
    lease_expires_ms: AtomicU64,
    observers: AtomicUsize,
    /// The number of callers that wait for facts from the kernel.
    attending: AtomicUsize,
    /// The number of callers that wait for an idle program.
    hurrying: AtomicUsize,
    pub row_followers: Arc<RowFollowers>,
    /// For the search index.
    pub scrolled_rows: ScrolledRows,
    /// Serializes callers that send commands.
    line: Arc<Semaphore>,
    pub output_bytes: EventCounter,
    /// Characters that were left out of the screen because nobody would see them.
    invisible: AtomicU64,
    directory: Mutex<Option<Arc<str>>>,
    gaps: Mutex<Gaps>,
    typed: Mutex<LineSoFar>,
    users: Mutex<SessionUsers>,
    /// The name of the file that records the session.
    recording: Mutex<Option<Arc<str>>>,
    /// When the session entered the state of its newest frame, if that is known.
    state_since_ms: AtomicU64,
    /// When the session was taken over from a previous daemon.
    found_at: OnceLock<Moment>,
    /// When a screen of a previous daemon was found, and when that screen had last changed.
    found_still: OnceLock<(Moment, Moment)>,
    /// The end of the output that was pending when the session was found.
    unread_until: AtomicU64,
    /// Whether a frame shows all pending output.
    caught_up: watch::Sender<bool>,
    /// Counts how often all people were detached.
    detaches: watch::Sender<u64>,
    /// The part of the session that did not end with the daemon.
    unended: OnceLock<String>,
}

impl Live {
    pub fn new(name: Arc<str>) -> Self {
        Self {
            name: Mutex::new(name),
            lease_expires_ms: AtomicU64::new(NEVER),
            observers: AtomicUsize::new(0),
            attending: AtomicUsize::new(0),
            hurrying: AtomicUsize::new(0),
            row_followers: Arc::default(),
            scrolled_rows: ScrolledRows::default(),
            line: Arc::new(Semaphore::new(1)),
            output_bytes: EventCounter::default(),
            invisible: AtomicU64::new(0),
            directory: Mutex::new(None),
            state_since_ms: AtomicU64::new(NEVER),
            found_at: OnceLock::new(),
            gaps: Mutex::default(),
            typed: Mutex::new(LineSoFar::unknown()),
            users: Mutex::default(),
            recording: Mutex::default(),
            found_still: OnceLock::new(),
            unread_until: AtomicU64::new(0),
            caught_up: watch::Sender::new(true),
            detaches: watch::Sender::new(0),
            unended: OnceLock::new(),
        }
    }

    /// The part of the session that did not end with the daemon; `None` if all ended.
    pub fn unended(&self) -> Option<&str> {
        self.unended.get().map(String::as_str)
    }

    pub fn set_unended(&self, what: String) {
        let _ = self.unended.set(what);
    }

    pub fn name(&self) -> Arc<str> {
        Arc::clone(&self.name.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Renames the session and returns the previous name.
    pub fn set_name(&self, name: Arc<str>) -> Arc<str> {
        std::mem::replace(&mut *self.name.lock().unwrap_or_else(PoisonError::into_inner), name)
    }

    /// The name of the file that records the session; `None` if none does.
    pub fn recording(&self) -> Option<Arc<str>> {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_recording(&self, file: Option<Arc<str>>) {
        *self.recording.lock().unwrap_or_else(PoisonError::into_inner) = file;
    }

    /// When the lease expires unless it is renewed; `None` while the session is free.
    pub fn lease_expires_at(&self) -> Option<Moment> {
        moment(&self.lease_expires_ms)
    }

    pub fn set_lease_expires_at(&self, at: Option<Moment>) {
        set_moment(&self.lease_expires_ms, at);
    }

    /// The program's working directory as the program last reported it. It is unverified, so use it for
    /// display only.
    pub fn directory(&self) -> Option<Arc<str>> {
        self.directory.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_directory(&self, directory: &str) {
        let directory = Some(Arc::from(directory));
        *self.directory.lock().unwrap_or_else(PoisonError::into_inner) = directory;
    }

    /// When the session entered the state that its newest frame shows. `None` while it may have been in that state
    /// under a previous daemon.
    pub fn state_since(&self) -> Option<Moment> {
        moment(&self.state_since_ms)
    }

    /// Records that the session begins, in this daemon or, if it was found, in an earlier one.
    pub fn begin_state(&self, now: Moment, found: bool) {
        if found {
            let _ = self.found_at.set(now);
        } else {
            set_moment(&self.state_since_ms, Some(now));
        }
    }

    /// Records that a frame shows another state than the one before.
    pub fn on_state_change(&self, now: Moment, frame: &Frame) {
        // What this daemon finds out first about a screen that stands still may have been so before.
        let seen = |found: &Moment| *self.caught_up.borrow() && frame.screen_changed_at > *found;
        let known = self.found_at.get().is_none_or(seen);
        set_moment(&self.state_since_ms, known.then_some(now));
    }

    /// How many characters were left out of the screen because nobody would see them, in this daemon.
    pub fn invisible(&self) -> u64 {
        self.invisible.load(Ordering::Relaxed)
    }

    pub(in crate::session) fn set_invisible(&self, count: u64) {
        self.invisible.store(count, Ordering::Relaxed);
    }

    pub fn gaps(&self) -> Gaps {
        self.gaps.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_gaps(&self, gaps: Gaps) {
        *self.gaps.lock().unwrap_or_else(PoisonError::into_inner) = gaps;
    }

    /// The line that is being typed, as of the newest frame or a little before: read it before the frame.
    pub fn typed(&self) -> LineSoFar {
        self.typed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(in crate::session) fn set_typed(&self, line: &LineSoFar) {
        let mut typed = self.typed.lock().unwrap_or_else(PoisonError::into_inner);
        if *typed != *line {
            typed.clone_from(line);
        }
    }

    /// Who has had the lease, in this daemon.
    pub fn users(&self) -> SessionUsers {
        *self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::session) fn note_holder(&self, holder: PrincipalId) {
        self.users.lock().unwrap_or_else(PoisonError::into_inner).on_holder(holder);
    }

    /// Records that the first frame's screen, of the moment `found`, last changed at `since`, if that is
    /// known.
    pub fn set_found_still(&self, found: Moment, since: Option<Moment>) {
        if let Some(since) = since {
            let _ = self.found_still.set((found, since));
        }
    }

    /// Records the pending output: the screen has processed all before `from`, and the output ends at
    /// `until`.
    pub fn set_unread(&self, from: u64, until: u64) {
        self.unread_until.store(until, Ordering::Relaxed);
        self.caught_up.send_replace(from >= until);
    }

    /// Whether the screen has processed all pending output at this offset, but no frame shows that yet.
    pub fn catches_up(&self, offset: u64) -> bool {
        !*self.caught_up.borrow() && self.unread_until.load(Ordering::Relaxed) <= offset
    }

    pub fn set_caught_up(&self) {
        self.caught_up.send_if_modified(|caught_up| !std::mem::replace(caught_up, true));
    }

    pub async fn caught_up(&self) {
        // The wait fails only without a sender, and `self` owns the sender.
        let _ = self.caught_up.subscribe().wait_for(|caught_up| *caught_up).await;
    }

    /// When the screen in a frame last changed, even if a previous daemon saw that change.
    pub fn changed_at(&self, frame: &Frame) -> Moment {
        match self.found_still.get() {
            Some((found, since)) if *found == frame.screen_changed_at => *since,
            Some(_) | None => frame.screen_changed_at,
        }
    }

    pub fn detach_all(&self) {
        self.detaches.send_modify(|count| *count += 1);
    }

    /// Changes each time all people are to detach.
    pub fn detaches(&self) -> watch::Receiver<u64> {
        self.detaches.subscribe()
    }

    pub fn observers(&self) -> usize {
        self.observers.load(Ordering::Relaxed)
    }

    /// Counts one observer.
    pub fn observe(self: &Arc<Self>) -> Participation {
        Participation::start(self, |live| &live.observers)
    }

    /// Makes the task ask the kernel regularly. The caller must wake the session's task once afterwards.
    pub(in crate::session) fn attend(self: &Arc<Self>) -> Participation {
        Participation::start(self, |live| &live.attending)
    }

    /// Makes the task look for an idle program.
    pub(in crate::session) fn hurry(self: &Arc<Self>) -> Participation {
        Participation::start(self, |live| &live.hurrying)
    }

    /// Whether a caller waits for facts from the kernel, so that the task must ask.
    pub fn attended(&self) -> bool {
        self.attending.load(Ordering::Relaxed) > 0
    }

    /// Whether a caller waits for the program in front to be idle.
    pub fn hurried(&self) -> bool {
        self.hurrying.load(Ordering::Relaxed) > 0
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

/// Counts one who attends, hurries or observes while this exists.
#[derive(Debug)]
pub struct Participation {
    live: Arc<Live>,
    counter: fn(&Live) -> &AtomicUsize,
}

impl Participation {
    fn start(live: &Arc<Live>, counter: fn(&Live) -> &AtomicUsize) -> Self {
        counter(live).fetch_add(1, Ordering::Relaxed);
        Self { live: Arc::clone(live), counter }
    }
}

impl Drop for Participation {
    fn drop(&mut self) {
        (self.counter)(&self.live).fetch_sub(1, Ordering::Relaxed);
    }
}

/// A place in the queue of callers that send commands. Dropping it admits the next caller.
#[derive(Debug)]
#[must_use = "the next one goes on when this is dropped"]
pub struct CommandTurn {
    // `None` only after the semaphore was closed, which never happens.
    _permit: Option<OwnedSemaphorePermit>,
}

impl CommandTurn {
    /// Waits behind earlier callers.
    pub(in crate::session) async fn take(live: &Live) -> Self {
        Self { _permit: Arc::clone(&live.line).acquire_owned().await.ok() }
    }
}

#[derive(Debug, Default)]
pub struct EventCounter(AtomicU64);

impl EventCounter {
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Totals over all sessions of a daemon, including removed ones.
#[derive(Debug, Default)]
pub struct Counters {
    pub sessions_created: EventCounter,
    pub leases_granted: EventCounter,
    pub frames_published: EventCounter,
    pub output_bytes: EventCounter,
    pub input_bytes: EventCounter,
}
