//! How many connections each user may have open.
//!
//! It knows nothing of sockets: a ticket is taken before a connection is served and given back when
//! it is dropped, so that no way of ending a connection can forget to count.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::core::quota::Quota;

/// Users that have connections at the same time.
pub const USERS_MAX: usize = 64;

/// Counts the open connections of each user; clones count together.
#[derive(Clone, Debug)]
pub struct ConnectionQuota {
    own: u32,
    open: Arc<Mutex<HashMap<u32, usize>>>,
}

impl ConnectionQuota {
    /// A quota for a daemon of the user `own`.
    pub fn new(own: u32) -> Self {
        Self { own, open: Arc::default() }
    }

    /// Lets one more connection of this user in, of so many; none when the user, or the table, is
    /// full.
    pub fn enter(&self, uid: u32, most: Quota) -> Option<Ticket> {
        let most = if uid == self.own { most.own } else { most.others };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // The daemon's own user never stands behind strangers.
        if uid != self.own && !open.contains_key(&uid) && open.len() >= USERS_MAX {
            return None;
        }
        let count = open.entry(uid).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Ticket { uid, open: Arc::clone(&self.open) })
    }
}

/// One open connection; dropping it makes room for the next.
#[must_use = "the connection counts only as long as its ticket lives"]
#[derive(Debug)]
pub struct Ticket {
    uid: u32,
    open: Arc<Mutex<HashMap<u32, usize>>>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.uid) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.uid);
            }
        }
    }
}

#[cfg(test)]
mod tests;
