//! Work counted in steps, so that whoever has to be done soon can stop in the middle and go on later.

/// How many steps may still be taken before somebody else has a turn.
#[derive(Debug)]
pub(super) struct Steps {
    given: usize,
    left: usize,
}

impl Steps {
    pub(super) fn new(given: usize) -> Self {
        Self { given, left: given }
    }

    /// Notes that so many were taken, also where they were more than there were left.
    pub(super) fn spend(&mut self, steps: usize) {
        self.left = self.left.saturating_sub(steps);
    }

    /// Takes so many of what work costs as there are left; the work may be done once all was paid.
    pub(super) fn pay(&mut self, owed: usize) -> usize {
        let paid = owed.min(self.left);
        self.left -= paid;
        paid
    }

    pub(super) fn are_spent(&self) -> bool {
        self.left == 0
    }

    /// How many were taken of those that were given.
    pub(super) fn taken(&self) -> usize {
        self.given - self.left
    }
}
