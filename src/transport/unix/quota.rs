//! What each user may have open: connections, and memory for what comes in through them.
//!
//! It knows nothing of sockets: a ticket is taken before a connection is served and given back when
//! it is dropped, so that no way of ending a connection can forget to count.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::core::quota::Quota;
use crate::transport::line_memory::Share;

/// Users that have connections at the same time.
pub const USERS_MAX: usize = 64;

/// What each user may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Most {
    pub connections: Quota,
    /// Bytes of long lines that come in.
    pub incoming: Quota,
}

/// Counts the open connections of each user; clones count together.
#[derive(Clone, Debug)]
pub struct ConnectionQuota {
    own: u32,
    open: Table,
}

type Table = Arc<Mutex<HashMap<u32, Entry>>>;

/// One user who is here.
#[derive(Debug)]
struct Entry {
    count: usize,
    incoming: Share,
}

impl ConnectionQuota {
    /// A quota for a daemon of the user `own`.
    pub fn new(own: u32) -> Self {
        Self { own, open: Arc::default() }
    }

    /// Lets one more connection of this user in, of so many; none when the user, or the table, is
    /// full.
    pub fn enter(&self, uid: u32, most: Most) -> Option<Ticket> {
        let share = |quota: Quota| if uid == self.own { quota.own } else { quota.others };
        let (most, incoming) = (share(most.connections), share(most.incoming));
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // The daemon's own user never stands behind strangers.
        if uid != self.own && !open.contains_key(&uid) && open.len() >= USERS_MAX {
            return None;
        }
        let nobody = || Entry { count: 0, incoming: Share::of_bytes(incoming) };
        let entry = open.entry(uid).or_insert_with(nobody);
        if entry.count >= most {
            return None;
        }
        entry.count += 1;
        entry.incoming.resize(incoming);
        let incoming = entry.incoming.clone();
        Some(Ticket { uid, incoming, open: Arc::clone(&self.open) })
    }
}

/// One open connection; dropping it makes room for the next.
#[must_use = "the connection counts only as long as its ticket lives"]
#[derive(Debug)]
pub struct Ticket {
    uid: u32,
    incoming: Share,
    open: Table,
}

impl Ticket {
    /// The user's memory for long lines.
    pub fn incoming(&self) -> Share {
        self.incoming.clone()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = open.get_mut(&self.uid) {
            entry.count -= 1;
            if entry.count == 0 {
                open.remove(&self.uid);
            }
        }
    }
}

#[cfg(test)]
mod tests;
