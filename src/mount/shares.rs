//! What each client has of what the clients of a server share, so that none can have all of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::core::ids::{PrincipalId, TenantId};

/// Who has a share. All of a tenant that is not the daemon's own have one together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MountClient {
    /// A connection, or the owner of a token.
    One(PrincipalId),
    Tenant(TenantId),
}

/// How many of one thing each client has.
#[derive(Debug, Default)]
pub struct ClientShares(Mutex<BTreeMap<MountClient, usize>>);

impl ClientShares {
    /// Takes one more for this client; `None` if it has `most`.
    pub fn take(self: &Arc<Self>, client: &MountClient, most: usize) -> Option<ClientShare> {
        let mut taken = self.lock();
        let has = taken.get(client).copied().unwrap_or_default();
        if has >= most {
            return None;
        }
        taken.insert(client.clone(), has + 1);
        drop(taken);
        Some(ClientShare { of: Arc::clone(self), client: client.clone() })
    }

    /// Whether a client has any.
    pub fn has(&self, client: &MountClient) -> bool {
        self.lock().contains_key(client)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<MountClient, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a client has, until this is dropped.
#[derive(Debug)]
#[must_use = "it is given back when it is dropped"]
pub struct ClientShare {
    of: Arc<ClientShares>,
    client: MountClient,
}

impl Drop for ClientShare {
    fn drop(&mut self) {
        let mut taken = self.of.lock();
        if let Some(has) = taken.get_mut(&self.client) {
            *has -= 1;
            if *has == 0 {
                taken.remove(&self.client);
            }
        }
    }
}
