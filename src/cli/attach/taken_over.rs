//! Whether a person took the keyboard over, so that the next daemon is asked for it again.
//!
//! It knows answers and leases, whichever of both comes first, and asks for nothing.

/// The keyboard as one person took it, until it is somebody else's or nobody's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TakenOver {
    #[default]
    No,
    /// The daemon said so; the lease that tells it may still be on its way.
    Granted,
    /// The lease was seen to be this person's.
    Seen,
}

impl TakenOver {
    /// Notes that the daemon gave this person the keyboard.
    pub fn on_granted(&mut self) {
        *self = Self::Granted;
    }

    /// Notes that this person handed it back.
    pub fn on_handed_back(&mut self) {
        *self = Self::No;
    }

    /// Notes whether the lease is this person's, as it was told last.
    pub fn on_lease(&mut self, mine: bool) {
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
        let mut taken = TakenOver::default();
        taken.on_lease(true);
        assert_eq!(taken, TakenOver::No, "typing alone takes nothing over");
        taken.on_granted();
        taken.on_lease(false);
        assert_eq!(taken, TakenOver::Granted, "the lease is on its way");
        taken.on_lease(true);
        taken.on_lease(true);
        assert_eq!(taken, TakenOver::Seen);
        taken.on_lease(false);
        assert_eq!(taken, TakenOver::No);
    }

    #[test]
    fn who_handed_back_has_it_no_more() {
        let mut taken = TakenOver::default();
        taken.on_granted();
        taken.on_handed_back();
        taken.on_lease(true);
        assert_eq!(taken, TakenOver::No);
    }
}
