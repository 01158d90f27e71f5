//! Limits the call rate of each tenant with a token bucket.
//!
//! A bucket is stored as the moment at which it will be full, so that it needs no updates while idle and
//! cannot overflow.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::core::ids::TenantId;
use crate::core::moment::Moment;
use crate::core::quota::Quota;

/// The most tenants, besides the daemon's own, that are tracked at the same time.
pub const TENANTS_MAX: usize = 64;

/// The time over which a full bucket's calls are allowed.
const BUCKET: Duration = Duration::from_secs(1);

/// The retry time for a caller that finds the table of tenants full.
const TABLE_FULL_RETRY: Duration = Duration::from_secs(1);

/// The buckets of all tenants.
///
/// A tenant may make its share of one second at once, and more as its bucket refills. A share of zero
/// means no limit.
#[derive(Clone, Debug)]
pub struct CallRates {
    own: TenantId,
    per_second: Quota,
    own_bucket: Bucket,
    /// One bucket for all programs inside sessions, so that they take no other tenant's place.
    inside: Bucket,
    others: BTreeMap<TenantId, Bucket>,
}

/// The error for too many calls; retry after this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooOften {
    pub retry_after: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    full_at: Moment,
}

impl CallRates {
    /// Starts with full buckets; `own` is the daemon's tenant.
    pub fn new(own: TenantId, per_second: Quota) -> Self {
        Self {
            own,
            per_second,
            own_bucket: Bucket::default(),
            inside: Bucket::default(),
            others: BTreeMap::new(),
        }
    }

    /// Sets new shares; calls already counted stay counted.
    pub fn set(&mut self, per_second: Quota) {
        self.per_second = per_second;
    }

    /// Counts one call.
    ///
    /// # Errors
    /// [`TooOften`] when the tenant's bucket is empty, or when too many other tenants call.
    pub fn take(&mut self, now: Moment, tenant: &TenantId) -> Result<(), TooOften> {
        let per_second = self.per_second.of(tenant, &self.own);
        if per_second == 0 {
            return Ok(());
        }
        if *tenant == self.own {
            return self.own_bucket.take(now, per_second);
        }
        if tenant.is_inside() {
            return self.inside.take(now, per_second);
        }
        if !self.others.contains_key(tenant) && self.others.len() >= TENANTS_MAX {
            self.others.retain(|_, bucket| bucket.full_at > now);
            if self.others.len() >= TENANTS_MAX {
                return Err(TooOften { retry_after: TABLE_FULL_RETRY });
            }
        }
        self.others.entry(tenant.clone()).or_default().take(now, per_second)
    }
}

impl Bucket {
    fn take(&mut self, now: Moment, per_second: usize) -> Result<(), TooOften> {
        let token = BUCKET / u32::try_from(per_second).unwrap_or(u32::MAX);
        let emptied = now.until(self.full_at) + token;
        if emptied > BUCKET {
            return Err(TooOften { retry_after: emptied - BUCKET });
        }
        self.full_at = now + emptied;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: u32 = 1_000;
    const OTHER: u32 = 1_001;

    fn rates(own: usize, others: usize) -> CallRates {
        CallRates::new(TenantId::of_uid(OWN), Quota::new(own, others))
    }

    fn at(millis: u64) -> Moment {
        Moment::from_boot(Duration::from_secs(100) + Duration::from_millis(millis))
    }

    /// Calls until it is too often, `most` times at most; says how many calls were taken.
    fn exhaust(rates: &mut CallRates, now: Moment, uid: u32, most: usize) -> usize {
        (0..most).take_while(|_| rates.take(now, &TenantId::of_uid(uid)).is_ok()).count()
    }

    #[test]
    fn a_tenant_may_call_at_once_as_often_as_in_a_second_and_no_more() {
        for per_second in [1, 3, 7, 10, 999, 1_000] {
            let mut rates = rates(per_second, per_second);
            assert_eq!(exhaust(&mut rates, at(0), OWN, 5_000), per_second, "{per_second}");
            assert_eq!(exhaust(&mut rates, at(0), OTHER, 5_000), per_second, "{per_second}");
        }
    }

    #[test]
    fn tokens_come_back_one_by_one() {
        let mut rates = rates(10, 1);
        assert_eq!(exhaust(&mut rates, at(0), OWN, 100), 10);
        assert_eq!(exhaust(&mut rates, at(99), OWN, 100), 0);
        assert_eq!(exhaust(&mut rates, at(100), OWN, 100), 1);
        assert_eq!(exhaust(&mut rates, at(350), OWN, 100), 2);
        assert_eq!(exhaust(&mut rates, at(60_000), OWN, 100), 10);
    }

    #[test]
    fn who_calls_too_often_is_told_when_the_next_call_is_taken() {
        let mut rates = rates(10, 1);
        let own = TenantId::of_uid(OWN);
        exhaust(&mut rates, at(0), OWN, 10);
        let refused = rates.take(at(30), &own);
        assert_eq!(refused, Err(TooOften { retry_after: Duration::from_millis(70) }));
        assert_eq!(rates.take(at(100), &own), Ok(()));
    }

    #[test]
    fn a_refused_call_costs_nothing() {
        let mut rates = rates(10, 1);
        exhaust(&mut rates, at(0), OWN, 10);
        for _ in 0..1_000 {
            assert!(rates.take(at(50), &TenantId::of_uid(OWN)).is_err());
        }
        assert_eq!(exhaust(&mut rates, at(100), OWN, 100), 1);
    }

    #[test]
    fn a_share_of_zero_is_no_limit() {
        let mut rates = rates(0, 1);
        assert_eq!(exhaust(&mut rates, at(0), OWN, 100_000), 100_000);
        assert_eq!(exhaust(&mut rates, at(0), OTHER, 100), 1);
    }

    #[test]
    fn one_tenant_takes_nothing_from_another() {
        let mut rates = rates(2, 2);
        assert_eq!(exhaust(&mut rates, at(0), OTHER, 100), 2);
        assert_eq!(exhaust(&mut rates, at(0), OTHER + 1, 100), 2);
        assert_eq!(exhaust(&mut rates, at(0), OWN, 100), 2);
    }

    #[test]
    fn other_tenants_are_limited_in_number_and_never_keep_the_own_one_out() {
        let mut rates = rates(2, 2);
        let first = 2_000;
        let many = TENANTS_MAX as u32;
        for uid in first..first + many {
            assert_eq!(exhaust(&mut rates, at(0), uid, 1), 1);
        }
        assert_eq!(exhaust(&mut rates, at(0), first + many, 1), 0);
        assert_eq!(exhaust(&mut rates, at(0), OWN, 1), 1);
        assert_eq!(rates.others.len(), TENANTS_MAX);
        // Whose bucket is full again is forgotten.
        assert_eq!(exhaust(&mut rates, at(500), first + many, 1), 1);
        assert_eq!(rates.others.len(), 1);
    }

    #[test]
    fn programs_inside_sessions_have_one_bucket_and_take_nobodys_place() {
        let mut rates = rates(2, 2);
        let many = i32::try_from(TENANTS_MAX).unwrap();
        let taken =
            (0..2 * many).filter(|number| rates.take(at(0), &TenantId::inside(*number)).is_ok());
        assert_eq!(taken.count(), 2);
        assert_eq!(exhaust(&mut rates, at(0), OTHER, 10), 2);
    }

    #[test]
    fn another_share_counts_from_the_next_call_on() {
        let mut rates = rates(1, 1);
        assert_eq!(exhaust(&mut rates, at(0), OWN, 100), 1);
        rates.set(Quota::new(0, 0));
        assert_eq!(exhaust(&mut rates, at(0), OWN, 100), 100);
    }
}
