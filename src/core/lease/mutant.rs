//! Bugs that can be switched on, each a mistake that comparable systems made.
//!
//! The model test must notice every one of them; outside tests none can be on, and the compiler
//! drops the questions.

/// A mistake to make on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// The check stands beside the write: bytes that passed it go out after the lease ended.
    CheckThenWrite,
    /// A call that fails renews all the same.
    RenewOnFailure,
    /// A release forgets those who wait.
    LostWaiter,
    /// Epochs start over whenever the session is free.
    EpochReset,
    /// Expiry is left to timers instead of being judged by the clock at the check.
    ExpiryByTimer,
    /// Whoever asks is taken for the holder.
    LeaseNotBoundToPrincipal,
    /// A kept lease that moved still serves whoever shows its id.
    MovedLeaseServesBoth,
    /// What sends no bytes needs no lease.
    UngatedResize,
    /// Whether writing is switched on is not asked.
    ReadOnlyIgnored,
    /// What was queued still goes out when a person takes the keyboard.
    TypesBehindQueue,
    /// A lease comes back with the epoch it had.
    ResumesOldEpoch,
    /// The time of a lease runs while it is suspended.
    SuspendedTimeRuns,
    /// Whoever has a lease back may write without a look at the screen.
    ResumesBlindly,
    /// A lease hangs on one connection of its holder alone.
    LastUsedCounts,
    /// Anybody may type while a person has taken the keyboard over.
    TakeOverIgnored,
    /// The next daemon goes on with the epochs of the one before.
    EpochKeptOnRestart,
    /// After a restart, the session goes to whoever asks first.
    ReclaimIgnored,
    /// A lease of a daemon before is taken back by whoever shows its id, of whatever tenant.
    ReclaimedByAnyTenant,
    /// A write that a daemon before has made is made again.
    WrittenAgainAfterRestart,
}

#[cfg(test)]
thread_local! {
    static ON: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}

/// Whether this mistake is to be made.
#[cfg(test)]
pub(crate) fn is(mutant: Mutant) -> bool {
    ON.get() == Some(mutant)
}

/// Whether this mistake is to be made.
#[cfg(not(test))]
pub(crate) const fn is(_: Mutant) -> bool {
    false
}

/// Makes this mistake on this thread from now on, or none.
#[cfg(test)]
pub(crate) fn set(mutant: Option<Mutant>) {
    ON.set(mutant);
}
