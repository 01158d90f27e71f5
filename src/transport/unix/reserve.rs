//! Descriptors held back for the moment when the process has no more.
//!
//! It must not know what they are used for. They are the whole process's, as the limit is, and
//! without them a daemon at its limit could neither turn a client away nor let its operator in.

use std::fs::File;
use std::sync::{Mutex, PoisonError};

/// Enough for a connection, a handle of its peer, a file of `/proc` at a time, and whatever the
/// connection is watched with.
const HELD: usize = 4;

static RESERVE: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// Holds back as many descriptors as are to be had, up to the number we want.
pub(super) fn fill() {
    let mut held = RESERVE.lock().unwrap_or_else(PoisonError::into_inner);
    while held.len() < HELD {
        let Ok(file) = File::open("/dev/null") else { return };
        held.push(file);
    }
}

/// Frees all that is held back, until it is filled again.
pub(super) fn release() {
    RESERVE.lock().unwrap_or_else(PoisonError::into_inner).clear();
}
