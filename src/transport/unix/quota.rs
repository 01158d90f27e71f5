//! What each party may have open: connections, and memory for what comes in through them.
//!
//! It knows nothing of sockets: a ticket is taken before a connection is served and given back when
//! it is dropped, so that no way of ending a connection can forget to count.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::core::quota::Quota;
use crate::transport::line_memory::Share;

/// Users that have connections at the same time.
pub const USERS_MAX: usize = 64;

/// Connections of the programs inside one session.
pub const INSIDE_MAX: usize = 8;

/// Sessions whose programs have connections at the same time: as many as `sessions.max` can be.
pub const SESSIONS_MAX: usize = 4_096;

/// Who shares what there is: each party has its own, which no other counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Party {
    /// The operators of a user, at their door.
    Operators(u32),
    /// The programs of a user, at all other doors.
    User(u32),
    /// The programs inside the session of this shim.
    Session(i32),
}

/// What each user may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Most {
    pub connections: Quota,
    /// Bytes of long lines that come in.
    pub incoming: Quota,
}

impl Most {
    /// Connections and bytes for a party, where `own` is the daemon's user.
    fn of(self, party: Party, own: u32) -> (usize, usize) {
        let share = |quota: Quota, uid| if uid == own { quota.own } else { quota.others };
        match party {
            Party::Operators(uid) | Party::User(uid) => {
                (share(self.connections, uid), share(self.incoming, uid))
            }
            // They have nothing long to say.
            Party::Session(_) => (INSIDE_MAX, 0),
        }
    }
}

/// Counts the open connections of each party; clones count together.
#[derive(Clone, Debug)]
pub struct ConnectionQuota {
    own: u32,
    open: Table,
}

type Table = Arc<Mutex<HashMap<Party, Entry>>>;

/// One party that is here.
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

    /// Lets one more connection of this party in, of so many; none when the party, or the table, is
    /// full.
    pub fn enter(&self, party: Party, most: Most) -> Option<Ticket> {
        let (connections, incoming) = most.of(party, self.own);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.has_room(&open, party) {
            return None;
        }
        let nobody = || Entry { count: 0, incoming: Share::of_bytes(incoming) };
        let entry = open.entry(party).or_insert_with(nobody);
        if entry.count >= connections {
            return None;
        }
        entry.count += 1;
        entry.incoming.resize(incoming);
        let incoming = entry.incoming.clone();
        Some(Ticket { party, incoming, open: Arc::clone(&self.open) })
    }

    /// Whether the table has room for another connection of this party.
    fn has_room(&self, open: &HashMap<Party, Entry>, party: Party) -> bool {
        if open.contains_key(&party) {
            return true;
        }
        let count = |is_alike: &dyn Fn(Party) -> bool| {
            open.keys().filter(|party| is_alike(**party)).count()
        };
        match party {
            // The daemon's own user never stands behind strangers.
            Party::Operators(uid) | Party::User(uid) if uid == self.own => true,
            Party::Operators(_) | Party::User(_) => {
                count(&|it| it.is_stranger(self.own)) < USERS_MAX
            }
            Party::Session(_) => count(&Party::is_session) < SESSIONS_MAX,
        }
    }
}

impl Party {
    fn is_stranger(self, own: u32) -> bool {
        match self {
            Self::Operators(uid) | Self::User(uid) => uid != own,
            Self::Session(_) => false,
        }
    }

    fn is_session(self) -> bool {
        matches!(self, Self::Session(_))
    }
}

/// One open connection; dropping it makes room for the next.
#[must_use = "the connection counts only as long as its ticket lives"]
#[derive(Debug)]
pub struct Ticket {
    party: Party,
    incoming: Share,
    open: Table,
}

impl Ticket {
    /// Who has it.
    pub fn party(&self) -> Party {
        self.party
    }

    /// The party's memory for long lines.
    pub fn incoming(&self) -> Share {
        self.incoming.clone()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = open.get_mut(&self.party) {
            entry.count -= 1;
            if entry.count == 0 {
                open.remove(&self.party);
            }
        }
    }
}

#[cfg(test)]
mod tests;
