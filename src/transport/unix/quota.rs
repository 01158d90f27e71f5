//! How many connections and how much input memory each party may use.
//!
//! A ticket counts one connection until it is dropped, so every end of a connection is counted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::core::ids::TenantId;
use crate::core::quota::Quota;
use crate::transport::line_memory::LineMemory;

/// Maximum number of users with open connections.
pub const USERS_MAX: usize = 64;

/// Maximum number of connections of the programs inside one session.
pub const INSIDE_MAX: usize = 8;

/// Maximum number of connections of the approvers of one tenant beyond the tenant's own.
const APPROVERS_MAX: usize = 4;

/// Maximum number of sessions whose programs have open connections; equals the maximum of `sessions.max`.
pub const SESSIONS_MAX: usize = 4_096;

/// A group of clients with a quota of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Party {
    /// The operators of a user, at the operator socket.
    Operators(u32),
    /// The programs of a user, at all other sockets.
    User(u32),
    /// The programs inside the session of the shim with this process number.
    Session(i32),
    /// The members of a tenant of the configuration, each counted for its user as well.
    Tenant(TenantId),
    /// Those of them who may approve calls, where the others have taken all places of the tenant.
    Approvers(TenantId),
}

/// The quotas of each user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Most {
    pub connections: Quota,
    /// Bytes of long incoming lines.
    pub incoming: Quota,
}

impl Most {
    /// Connections and bytes for a party; `own` is the daemon's user.
    fn of(&self, party: &Party, own: u32) -> (usize, usize) {
        let share = |quota: &Quota, uid| if uid == own { quota.own } else { quota.others };
        match party {
            Party::Operators(uid) | Party::User(uid) => {
                (share(&self.connections, *uid), share(&self.incoming, *uid))
            }
            // Their lines are short.
            Party::Session(_) => (INSIDE_MAX, 0),
            // Their lines are counted for their users.
            Party::Approvers(_) => (APPROVERS_MAX, 0),
            Party::Tenant(tenant) => (self.connections.of(tenant, &TenantId::of_uid(own)), 0),
        }
    }
}

/// Counts the open connections of each party. Clones share the count.
#[derive(Clone, Debug)]
pub struct ConnectionQuota {
    own: u32,
    open: Table,
}

type Table = Arc<Mutex<HashMap<Party, Entry>>>;

/// The usage of one party with open connections.
#[derive(Debug)]
struct Entry {
    count: usize,
    incoming: LineMemory,
}

impl ConnectionQuota {
    pub fn new(own: u32) -> Self {
        Self { own, open: Arc::default() }
    }

    /// Admits one more connection of this party. `None` when the party has reached its quota or the table is full.
    pub fn enter(&self, party: Party, most: &Most) -> Option<Ticket> {
        let (connections, incoming) = most.of(&party, self.own);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.has_room(&open, &party) {
            return None;
        }
        let nobody = || Entry { count: 0, incoming: LineMemory::of_bytes(incoming) };
        let entry = open.entry(party.clone()).or_insert_with(nobody);
        if entry.count >= connections {
            return None;
        }
        entry.count += 1;
        entry.incoming.resize(incoming);
        let incoming = entry.incoming.clone();
        Some(Ticket { party, incoming, open: Arc::clone(&self.open) })
    }

    fn has_room(&self, open: &HashMap<Party, Entry>, party: &Party) -> bool {
        if open.contains_key(party) {
            return true;
        }
        let count =
            |is_alike: &dyn Fn(&Party) -> bool| open.keys().filter(|it| is_alike(it)).count();
        match party {
            // Other users cannot block the daemon's own user.
            Party::Operators(uid) | Party::User(uid) if *uid == self.own => true,
            Party::Operators(_) | Party::User(_) => {
                count(&|it| it.is_stranger(self.own)) < USERS_MAX
            }
            Party::Session(_) => count(&Party::is_session) < SESSIONS_MAX,
            // The configuration has only so many.
            Party::Tenant(_) | Party::Approvers(_) => true,
        }
    }
}

impl Party {
    fn is_stranger(&self, own: u32) -> bool {
        match self {
            Self::Operators(uid) | Self::User(uid) => *uid != own,
            Self::Session(_) | Self::Tenant(_) | Self::Approvers(_) => false,
        }
    }

    fn is_session(&self) -> bool {
        matches!(self, Self::Session(_))
    }
}

/// One open connection. Dropping it frees its place.
#[must_use = "the connection counts only as long as its ticket lives"]
#[derive(Debug)]
pub struct Ticket {
    party: Party,
    incoming: LineMemory,
    open: Table,
}

impl Ticket {
    pub fn party(&self) -> Party {
        self.party.clone()
    }

    /// The party's memory for long lines.
    pub fn incoming(&self) -> LineMemory {
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
