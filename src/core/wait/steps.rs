//! Counts work in steps, so that long work can pause and resume later.

/// The remaining steps of one slice of work.
#[derive(Debug)]
pub(super) struct Steps {
    given: usize,
    left: usize,
}

impl Steps {
    pub(super) fn new(given: usize) -> Self {
        Self { given, left: given }
    }

    /// Spends this many steps, even if fewer are left.
    pub(super) fn spend(&mut self, steps: usize) {
        self.left = self.left.saturating_sub(steps);
    }

    /// Pays as many of the owed steps as are left, and returns how many. Do the work once all are paid.
    pub(super) fn pay(&mut self, owed: usize) -> usize {
        let paid = owed.min(self.left);
        self.left -= paid;
        paid
    }

    pub(super) fn are_spent(&self) -> bool {
        self.left == 0
    }

    /// How many of the given steps were taken.
    pub(super) fn taken(&self) -> usize {
        self.given - self.left
    }
}
