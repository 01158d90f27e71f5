//! Descriptors held back for the moment when the process has no more.
//!
//! It must not know what they are used for. They are the whole process's, as the limit is, and
//! without them a daemon at its limit could neither turn a client away nor let its operator in.

use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Enough for two operators: for each a connection and what it is watched with, and while it is looked
/// up a handle of its process and a file of `/proc`.
const HELD: usize = 6;

static RESERVE: Mutex<Reserve> = Mutex::new(Reserve { held: Vec::new(), lent: 0 });

#[derive(Debug)]
struct Reserve {
    held: Vec<File>,
    /// How many use it now; nobody takes back what they need.
    lent: usize,
}

/// Holds back as many descriptors as are to be had, up to the number we want; `false` when those are
/// not all.
pub(super) fn fill() -> bool {
    let mut reserve = lock();
    while reserve.lent == 0 && reserve.held.len() < HELD {
        let Ok(file) = File::open("/dev/null") else { break };
        reserve.held.push(file);
    }
    reserve.held.len() == HELD
}

/// Frees all that is held back, until what this gives back is dropped.
pub fn lend() -> Lent {
    let mut reserve = lock();
    reserve.lent += 1;
    reserve.held.clear();
    Lent(())
}

/// The use of what is held back.
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
