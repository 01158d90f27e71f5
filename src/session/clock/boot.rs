//! Deadlines on boot time, served by one kernel timer and one task.
//! The timer is set only for the earliest deadline and unset without any, so that an idle daemon sleeps.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::JoinHandle;

use crate::core::moment::Moment;

/// The most deadlines at once.
pub const DEADLINES_MAX: usize = 65_536;

/// How often a waiter retries when the table is full.
const FULL_RETRY: Duration = Duration::from_secs(1);

/// A moment that never arrives, within the range of the kernel's timers.
const FARTHEST: Duration = Duration::from_secs(u32::MAX as u64);

/// This moment on the machine's boot clock.
pub fn now() -> Moment {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_BOOTTIME)
        .expect("every kernel this runs on has a boot clock");
    Moment::from_boot(Duration::from(time))
}

/// The pending deadlines, and the task that serves them.
#[derive(Debug)]
pub struct BootTimers {
    shared: Arc<TimerShared>,
    task: JoinHandle<()>,
}

impl BootTimers {
    /// Makes the timer and starts its task on the current runtime.
    pub fn start() -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = watch(TimerFd::new(ClockId::CLOCK_BOOTTIME, flags)?)?;
        let shared = Arc::new(TimerShared { timer, table: Mutex::new(Deadlines::default()) });
        let task = tokio::spawn(serve(Arc::clone(&shared)));
        Ok(Self { shared, task })
    }

    /// Waits until `deadline`. Dropping the future discards the deadline.
    pub async fn sleep_until(&self, deadline: Moment) {
        while (Sleep { shared: &self.shared, deadline, serial: None }).await == Slept::TableFull {
            let left = now().until(deadline);
            tokio::time::sleep(left.min(FULL_RETRY)).await;
        }
    }
}

impl Drop for BootTimers {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[allow(unsafe_code)]
fn watch(timer: TimerFd) -> io::Result<AsyncFd<Descriptor>> {
    // SAFETY: the timer owns the open descriptor, and moves into the watch, which never gives it away.
    let watched = unsafe { AsyncFd::register_with_interest(Descriptor(timer), Interest::READABLE) };
    Ok(watched?)
}

#[derive(Debug)]
struct Descriptor(TimerFd);

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

#[derive(Debug)]
struct TimerShared {
    timer: AsyncFd<Descriptor>,
    table: Mutex<Deadlines>,
}

impl TimerShared {
    fn table(&self) -> MutexGuard<'_, Deadlines> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn arm(&self, deadline: Moment) {
        let at = Expiration::OneShot(TimeSpec::from(deadline.since_boot().min(FARTHEST)));
        let set = self.timer.get_ref().0.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME);
        // The kernel refuses only invalid times and descriptors.
        debug_assert_eq!(set, Ok(()));
    }
}

/// The waiters by deadline. Serial numbers separate equal deadlines.
#[derive(Debug, Default)]
struct Deadlines {
    waiting: BTreeMap<(Moment, u64), Waker>,
    next_serial: u64,
    /// The deadline that the kernel timer is set for. A discarded deadline leaves it unchanged: one needless
    /// wake-up costs less than a system call for each.
    armed: Option<Moment>,
}

impl Deadlines {
    fn insert(&mut self, deadline: Moment, waker: Waker) -> Option<u64> {
        if self.waiting.len() >= DEADLINES_MAX {
            return None;
        }
        let serial = self.next_serial;
        self.next_serial += 1;
        self.waiting.insert((deadline, serial), waker);
        Some(serial)
    }

    /// The deadline to set the timer for, if the timer is not already set for one as early.
    fn rearm(&mut self) -> Option<Moment> {
        let (first, _) = *self.waiting.first_key_value()?.0;
        if self.armed.is_some_and(|armed| armed <= first) {
            return None;
        }
        self.armed = Some(first);
        self.armed
    }

    /// Moves the waiters whose deadline has passed to `due`.
    fn take_due(&mut self, now: Moment, due: &mut Vec<Waker>) {
        self.armed = None;
        while let Some(first) = self.waiting.first_entry().filter(|first| first.key().0 <= now) {
            due.push(first.remove());
        }
    }
}

async fn serve(shared: Arc<TimerShared>) {
    let mut due = Vec::new();
    while let Ok(mut ready) = shared.timer.readable().await {
        // The result does not matter: the current time decides which waiters are due.
        let _ = shared.timer.get_ref().0.wait();
        ready.clear_ready();
        let mut table = shared.table();
        table.take_due(now(), &mut due);
        if let Some(next) = table.rearm() {
            shared.arm(next);
        }
        drop(table);
        due.drain(..).for_each(Waker::wake);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slept {
    Through,
    TableFull,
}

struct Sleep<'a> {
    shared: &'a TimerShared,
    deadline: Moment,
    serial: Option<u64>,
}

impl Future for Sleep<'_> {
    type Output = Slept;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Slept> {
        if now() >= self.deadline {
            return Poll::Ready(Slept::Through);
        }
        let mut table = self.shared.table();
        if let Some(serial) = self.serial {
            table.waiting.remove(&(self.deadline, serial));
        }
        let serial = table.insert(self.deadline, context.waker().clone());
        if let Some(next) = table.rearm() {
            self.shared.arm(next);
        }
        drop(table);
        self.serial = serial;
        if serial.is_none() { Poll::Ready(Slept::TableFull) } else { Poll::Pending }
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        if let Some(serial) = self.serial {
            self.shared.table().waiting.remove(&(self.deadline, serial));
        }
    }
}

#[cfg(test)]
mod tests;
