//! A value of the core in the hands of a session's task: should it fail, it is replaced.

use std::ops::{Deref, DerefMut};

#[cfg(test)]
use crate::session::tests::faults;

/// A part of a session that its task calls; tests let any of these calls fail.
#[derive(Debug)]
pub(super) struct Part<T>(T);

impl<T> From<T> for Part<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T> Deref for Part<T> {
    type Target = T;

    fn deref(&self) -> &T {
        #[cfg(test)]
        faults::pass();
        &self.0
    }
}

impl<T> DerefMut for Part<T> {
    fn deref_mut(&mut self) -> &mut T {
        #[cfg(test)]
        faults::pass();
        &mut self.0
    }
}
