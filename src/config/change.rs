//! Compares the running configuration with one that was read again.

use crate::config::Config;
use crate::config::key::{Applies, KEYS, Key, Value};

/// A key whose value has changed.
#[derive(Clone, Debug)]
pub struct Change {
    pub key: &'static Key,
    pub before: Value,
    pub after: Value,
}

impl Config {
    /// Adopts the values from `read` that may change in a running daemon. Returns all differences.
    ///
    /// A value that needs a restart stays unchanged and is returned each time.
    pub fn take_over(&mut self, read: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        for key in KEYS {
            let (before, after) = (key.value(self), key.value(read));
            if before == after {
                continue;
            }
            changes.push(Change { key, before, after });
            if key.applies != Applies::Restart {
                key.set(self, after);
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_change_is_taken_over_and_what_needs_a_restart_is_told_each_time() {
        let mut running = Config::built_in();
        let mut read = Config::built_in();
        read.allow_write = true;
        read.lease.auto = true;
        let names = |changes: Vec<Change>| changes.iter().map(|it| it.key.name).collect::<Vec<_>>();
        assert_eq!(names(running.take_over(&read)), ["allow_write", "lease.auto"]);
        assert!(running.lease.auto && !running.allow_write);
        assert_eq!(names(running.take_over(&read)), ["allow_write"]);
    }
}
