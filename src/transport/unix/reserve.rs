//! File descriptors kept in reserve for the moment when the process reaches its limit.
//!
//! Without them, a daemon at its limit could neither reject a client nor accept its operator.

use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Enough for two operators. Each needs a connection and a descriptor to watch it; the lookup needs a process handle
/// and a file of `/proc`.
const HELD: usize = 6;

static RESERVE: Mutex<Reserve> = Mutex::new(Reserve { held: Vec::new(), lent: 0 });

#[derive(Debug)]
struct Reserve {
    held: Vec<File>,
    /// How many callers use the reserve now. It is refilled only when this is zero.
    lent: usize,
}

/// Opens descriptors until the reserve is full; returns `false` when the process has too few left.
pub(super) fn fill() -> bool {
    let mut reserve = lock();
    while reserve.lent == 0 && reserve.held.len() < HELD {
        let Ok(file) = File::open("/dev/null") else { break };
        reserve.held.push(file);
    }
    reserve.held.len() == HELD
}

/// Frees the reserve until the returned value is dropped.
pub fn lend() -> Lent {
    let mut reserve = lock();
    reserve.lent += 1;
    reserve.held.clear();
    Lent(())
}

/// Keeps the reserve free; dropping the last one refills it.
#[must_use = "it is held back again as soon as this is dropped"]
#[derive(Debug)]
pub struct Lent(());

impl Drop for Lent {
    fn drop(&mut self) {
        lock().lent -= 1;
        fill();
    }
}

fn lock() -> MutexGuard<'static, Reserve> {
    RESERVE.lock().unwrap_or_else(PoisonError::into_inner)
}
