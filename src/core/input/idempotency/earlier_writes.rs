//! Writes that a daemon before has made, so that asking for one of them again has no second effect.
//!
//! It knows them by stamps alone: whoever keeps a stamp and the bytes that went out under it need not
//! know who wrote, nor what.

use std::hash::Hasher;
use std::time::Duration;

use crate::core::fnv::Fnv;
use crate::core::ids::{LeaseId, PrincipalId, TenantId};
use crate::core::input::idempotency::IdempotencyKey;
use crate::core::moment::Moment;
use crate::core::shell::commands::record::CommandId;

/// Names a write with an idempotency key beyond the daemon that makes it.
///
/// It stands for the tenant, the lease and the key; the last four bytes stand for what was to be written, the
/// first bit says whether a person typed it. The holder's number is no part of it: the next daemon gives that
/// number to another holder. Nobody gains by a collision: only those who may write know the lease, and a
/// person's keys spoil only its own typing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WriteStamp(pub [u8; 16]);

impl WriteStamp {
    /// How many bytes stand for the call, without what was to be written.
    const CALL_BYTES: usize = 12;
    /// The bit of the first byte that tells what people type from what agents write.
    const PERSONS: u8 = 0x80;

    pub fn new(tenant: &TenantId, lease: LeaseId, key: &IdempotencyKey) -> Self {
        let mut stamp = Self::of(&[tenant.as_str().as_bytes(), &[0], lease.0.as_bytes()], key);
        stamp.0[0] &= !Self::PERSONS;
        stamp
    }

    pub fn of_person(tenant: &TenantId, key: &IdempotencyKey) -> Self {
        let mut stamp = Self::of(&[tenant.as_str().as_bytes(), &[1]], key);
        stamp.0[0] |= Self::PERSONS;
        stamp
    }

    /// What the daemon that makes a write itself knows it by, whatever lease its principal has by then.
    pub fn of_principal(principal: PrincipalId, key: &IdempotencyKey) -> Self {
        let kind = match principal {
            PrincipalId::Connection(_) => 0,
            PrincipalId::Token(_) => 1,
        };
        Self::of(&[&[2, kind], &principal.number().to_be_bytes()], key)
    }

    /// Whether a person typed it. What people type and what agents write are remembered apart, so that
    /// neither makes the other forgotten.
    pub fn is_persons(&self) -> bool {
        self.0[0] & Self::PERSONS != 0
    }

    fn of(parts: &[&[u8]], key: &IdempotencyKey) -> Self {
        let mut hash = Fnv::default();
        parts.iter().for_each(|part| hash.write(part));
        hash.write(key.text().as_bytes());
        let mut bytes = hash.hash().to_be_bytes();
        let what = key.fingerprint().to_be_bytes();
        bytes[Self::CALL_BYTES..].copy_from_slice(&what[what.len() / 2..]);
        Self(bytes)
    }

    fn is_of_call_of(&self, other: &Self) -> bool {
        self.0[..Self::CALL_BYTES] == other.0[..Self::CALL_BYTES]
    }
}

/// A write that a daemon before has made, or this one before its session's task failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormerWrite {
    pub stamp: WriteStamp,
    /// The stamp of its principal; none of a daemon before, whose principals have other numbers now.
    pub own: Option<WriteStamp>,
    /// How many of its bytes the terminal took.
    pub taken: usize,
    /// How many bytes it had, where that is known.
    pub length: Option<usize>,
    /// What it sent, where that was a command and is known.
    pub command: Option<CommandId>,
}

/// What is known of a write that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core::input) enum FormerRecall {
    New,
    Made(FormerWrite),
    Conflict,
}

/// The writes that daemons before have made.
#[derive(Debug, Default)]
pub(in crate::core::input) struct FormerWrites {
    writes: Vec<FormerWrite>,
    /// From when on they are forgotten.
    until: Moment,
}

impl FormerWrites {
    /// All of these, which come oldest first, for as long as results are kept.
    pub(in crate::core::input) fn new(
        now: Moment,
        writes: Vec<FormerWrite>,
        kept_for: Duration,
    ) -> Self {
        Self { writes, until: now + kept_for }
    }

    pub(in crate::core::input) fn writes(&self) -> &[FormerWrite] {
        &self.writes
    }

    /// What is known of a write with this stamp, its own or that of its principal, at this moment.
    pub(in crate::core::input) fn recall(&self, now: Moment, stamp: &WriteStamp) -> FormerRecall {
        let forgotten = now >= self.until;
        let of_call = |write: &FormerWrite| {
            let mut known = [Some(write.stamp), write.own].into_iter().flatten();
            known.find(|known| known.is_of_call_of(stamp))
        };
        let known = self.writes.iter().rev().find_map(|write| Some((write, of_call(write)?)));
        match known.filter(|_| !forgotten) {
            None => FormerRecall::New,
            Some((write, known)) if known == *stamp => FormerRecall::Made(*write),
            Some(_) => FormerRecall::Conflict,
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_boot(Duration::from_secs(seconds))
    }

    fn stamp(tenant: u32, lease: u128, name: &str, fingerprint: u64) -> WriteStamp {
        let key = IdempotencyKey::new(name, fingerprint).unwrap();
        WriteStamp::new(&TenantId::of_uid(tenant), LeaseId(Uuid::from_u128(lease)), &key)
    }

    fn memory(count: usize) -> FormerWrites {
        let write = |number: usize| FormerWrite {
            stamp: stamp(1, 1, &number.to_string(), 7),
            own: None,
            taken: number,
            length: None,
            command: Some(CommandId(number as u64)),
        };
        FormerWrites::new(at(0), (0..count).map(write).collect(), Duration::from_secs(300))
    }

    #[test]
    fn a_stamp_is_of_one_tenant_one_lease_and_one_key() {
        let known = stamp(1, 1, "a", 7);
        assert_eq!(known, stamp(1, 1, "a", 7));
        for other in [stamp(2, 1, "a", 7), stamp(1, 2, "a", 7), stamp(1, 1, "b", 7)] {
            assert!(!known.is_of_call_of(&other));
        }
        assert!(known.is_of_call_of(&stamp(1, 1, "a", 8)) && known != stamp(1, 1, "a", 8));
        let of_person =
            WriteStamp::of_person(&TenantId::of_uid(1), &IdempotencyKey::new("a", 7).unwrap());
        assert!(!of_person.is_of_call_of(&known));
        assert!(of_person.is_persons() && !known.is_persons());
    }

    #[test]
    fn what_was_made_before_is_known_for_five_minutes_by_what_was_to_be_written() {
        let memory = memory(3);
        let known = stamp(1, 1, "2", 7);
        let made = |taken| match memory.recall(at(299), &known) {
            FormerRecall::Made(write) => {
                (write.taken, write.command) == (taken, Some(CommandId(taken as u64)))
            }
            FormerRecall::New | FormerRecall::Conflict => false,
        };
        assert!(made(2));
        assert_eq!(memory.recall(at(300), &known), FormerRecall::New);
        assert_eq!(memory.recall(at(0), &stamp(1, 1, "2", 8)), FormerRecall::Conflict);
        assert_eq!(memory.recall(at(0), &stamp(1, 1, "3", 7)), FormerRecall::New);
    }

    #[test]
    fn all_that_a_daemon_left_are_known() {
        // So many of agents and as many of people.
        let memory = memory(128);
        let kept = memory.recall(at(0), &stamp(1, 1, "0", 7));
        assert!(matches!(kept, FormerRecall::Made(FormerWrite { taken: 0, .. })), "{kept:?}");
    }
}
