//! How many subscriptions a tenant has, and how many it may have.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::core::ids::TenantId;
use crate::core::policy::Standing;
use crate::core::quota::Quota;
use crate::surface::error::SurfaceError;

/// The maximum of subscriptions for the programs inside one session.
const INSIDE_MAX: usize = 16;

const USED_UP: SurfaceError = SurfaceError::Quota("subscriptions");

/// Limits the subscriptions of each tenant and, separately, of its operators. Clones share the count.
#[derive(Clone, Debug)]
pub struct SubscriptionQuota {
    taken: Taken,
    own: TenantId,
    most: Arc<Mutex<Quota>>,
}

type Taken = Arc<Mutex<HashMap<Party, usize>>>;

/// A tenant, and whether its operators are meant.
type Party = (TenantId, bool);

/// The quota of one subscription, returned on drop.
#[derive(Debug)]
pub struct SubscriptionPlace {
    taken: Taken,
    party: Party,
}

impl Drop for SubscriptionPlace {
    fn drop(&mut self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.party) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.party);
            }
        }
    }
}

impl SubscriptionQuota {
    /// Creates the quota for each tenant; `own` is the daemon's tenant.
    pub fn new(own: TenantId, most: Quota) -> Self {
        Self { taken: Arc::default(), own, most: Arc::new(Mutex::new(most)) }
    }

    /// Sets the limits. Existing subscriptions stay.
    pub fn set(&self, most: Quota) {
        *self.most.lock().unwrap_or_else(PoisonError::into_inner) = most;
    }

    /// Takes one place, unless the caller's quota is used up.
    pub fn enter(&self, standing: &Standing) -> Result<SubscriptionPlace, SurfaceError> {
        self.enter_all(standing, 1)?.pop().ok_or(USED_UP)
    }

    /// Takes `wanted` places, unless fewer are left.
    pub fn enter_all(
        &self,
        standing: &Standing,
        wanted: usize,
    ) -> Result<Vec<SubscriptionPlace>, SurfaceError> {
        let party = party(standing);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if self.left(&taken, &party) < wanted {
            return Err(USED_UP);
        }
        if wanted > 0 {
            *taken.entry(party.clone()).or_default() += wanted;
        }
        let place = || SubscriptionPlace { taken: Arc::clone(&self.taken), party: party.clone() };
        Ok(std::iter::repeat_with(place).take(wanted).collect())
    }

    fn left(&self, taken: &HashMap<Party, usize>, party: &Party) -> usize {
        let (tenant, _) = party;
        let most = self.most.lock().unwrap_or_else(PoisonError::into_inner);
        let most = if tenant.is_inside() { INSIDE_MAX } else { most.of(tenant, &self.own) };
        most.saturating_sub(taken.get(party).copied().unwrap_or_default())
    }
}

fn party(standing: &Standing) -> Party {
    (standing.caller.tenant.clone(), standing.is_operator())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::core::caller::{Caller, Kind};
    use crate::core::ids::{ConnectionId, PrincipalId};
    use crate::core::policy::{Door, Reach};

    pub(in crate::mcp) fn standing(tenant: TenantId, door: Door) -> Standing {
        let kind = if door == Door::Operator { Kind::Operator } else { Kind::Agent };
        let caller = Caller {
            principal: PrincipalId::Connection(1),
            connection: ConnectionId(1),
            tenant,
            kind,
            label: Arc::from("someone"),
        };
        Standing::of_member(caller, 1_000, door, Reach::Tenant)
    }

    pub(in crate::mcp) fn agent(uid: u32) -> Standing {
        standing(TenantId::of_uid(uid), Door::Gateway)
    }

    #[test]
    fn each_tenant_has_places_of_its_own_and_gets_them_back() {
        let (own, other) = (agent(1), agent(2));
        let quota = SubscriptionQuota::new(TenantId::of_uid(1), Quota::new(1, 3));
        let place = quota.enter(&own).expect("free");
        assert!(quota.enter(&own).is_err());
        let others: Vec<SubscriptionPlace> =
            std::iter::from_fn(|| quota.enter(&other).ok()).collect();
        assert_eq!(others.len(), 3);
        drop(place);
        assert!(quota.enter(&own).is_ok());
    }

    #[test]
    fn places_are_taken_all_at_once_or_not_at_all() {
        let own = agent(1);
        let quota = SubscriptionQuota::new(TenantId::of_uid(1), Quota::new(3, 0));
        let places = quota.enter_all(&own, 2).expect("three are free");
        assert_eq!(places.len(), 2);
        assert!(quota.enter_all(&own, 2).is_err());
        assert!(quota.enter(&own).is_ok());
    }

    #[test]
    fn operators_and_programs_inside_sessions_have_places_of_their_own() {
        let quota = SubscriptionQuota::new(TenantId::of_uid(1), Quota::new(100, 100));
        let all = |standing: &Standing| -> Vec<SubscriptionPlace> {
            std::iter::from_fn(|| quota.enter(standing).ok()).collect()
        };
        let inside = |number| standing(TenantId::inside(number), Door::Gateway);
        let (first, second) = (all(&inside(1)), all(&inside(2)));
        assert_eq!((first.len(), second.len()), (INSIDE_MAX, INSIDE_MAX));
        let agents = all(&agent(1));
        assert_eq!(agents.len(), 100);
        assert_eq!(all(&standing(TenantId::of_uid(1), Door::Operator)).len(), 100);
    }
}
