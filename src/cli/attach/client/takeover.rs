//! Whether the person took over the keyboard, from the daemon's answers and the deltas of the lease.

/// Whether the person took over the keyboard and still has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TakeoverState {
    #[default]
    No,
    /// The daemon granted it; the lease's delta may still be pending.
    Granted,
    /// A delta showed the person's lease.
    Seen,
}

impl TakeoverState {
    /// Notes that the daemon gave this person the keyboard.
    pub(super) fn on_granted(&mut self) {
        *self = Self::Granted;
    }

    pub(super) fn on_handed_back(&mut self) {
        *self = Self::No;
    }

    /// Notes whether the latest lease is this person's.
    pub(super) fn on_lease(&mut self, mine: bool) {
        *self = match (*self, mine) {
            (Self::No, _) | (Self::Seen, false) => Self::No,
            (Self::Granted, false) => Self::Granted,
            (Self::Granted | Self::Seen, true) => Self::Seen,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_took_over_has_it_until_the_lease_is_told_to_be_anothers() {
        let mut taken = TakeoverState::default();
        taken.on_lease(true);
        assert_eq!(taken, TakeoverState::No, "typing alone takes nothing over");
        taken.on_granted();
        taken.on_lease(false);
        assert_eq!(taken, TakeoverState::Granted, "the lease is on its way");
        taken.on_lease(true);
        taken.on_lease(true);
        assert_eq!(taken, TakeoverState::Seen);
        taken.on_lease(false);
        assert_eq!(taken, TakeoverState::No);
    }

    #[test]
    fn who_handed_back_has_it_no_more() {
        let mut taken = TakeoverState::default();
        taken.on_granted();
        taken.on_handed_back();
        taken.on_lease(true);
        assert_eq!(taken, TakeoverState::No);
    }
}
