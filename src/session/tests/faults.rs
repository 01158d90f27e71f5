//! Failures on purpose: tests let a session's task fail at any of its calls.
//!
//! They are counted per thread, so that no test meets those of another.

use std::cell::Cell;
use std::panic::resume_unwind;

thread_local! {
    /// How many calls go well before those that fail, and how many fail.
    static DUE: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// What a call fails with.
#[derive(Debug)]
pub(in crate::session) struct Fault;

/// Lets so many calls go well from now on, and fail those that follow.
pub(in crate::session) fn set(after: usize, times: usize) {
    DUE.set(Some((after, times)));
}

/// Lets every call go well again; says whether any failed.
pub(in crate::session) fn clear() -> bool {
    DUE.take().is_none_or(|(after, _)| after == 0)
}

/// A call that may fail.
pub(in crate::session) fn pass() {
    match DUE.get() {
        None => {}
        Some((0, times)) => {
            DUE.set((times > 1).then_some((0, times - 1)));
            // It is none to be written about, as a panic is.
            resume_unwind(Box::new(Fault));
        }
        Some((after, times)) => DUE.set(Some((after - 1, times))),
    }
}
