//! How far an export has come, for a person at a terminal.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use crate::cli::output::{CommandOutput, OutputForm};
use crate::core::moment::Moment;
use crate::session::clock::Clock;

/// How long to show nothing, and how often to show something.
const QUIET: Duration = Duration::from_secs(1);
const SHOWN_EVERY: Duration = Duration::from_millis(200);

/// One line on standard error that is painted again and again. Dropping it removes the line.
#[derive(Debug)]
pub(super) struct ExportProgress<'a> {
    /// `None` where nobody would see it.
    clock: Option<&'a Clock>,
    due: Moment,
    is_shown: bool,
}

impl<'a> ExportProgress<'a> {
    pub(super) fn begin(output: &'a CommandOutput) -> Self {
        let is_seen = output.form() == OutputForm::People && io::stderr().is_terminal();
        if !is_seen {
            return Self::unseen();
        }
        let clock = output.clock();
        Self { clock: Some(clock), due: clock.now() + QUIET, is_shown: false }
    }

    /// Shows nothing.
    pub(super) fn unseen() -> Self {
        Self { clock: None, due: Moment::default(), is_shown: false }
    }

    /// Shows a text if it is time to.
    pub(super) fn show(&mut self, text: impl FnOnce() -> String) {
        let Some(clock) = self.clock else { return };
        let now = clock.now();
        if now < self.due {
            return;
        }
        (self.due, self.is_shown) = (now + SHOWN_EVERY, true);
        // A closed standard error cannot be reported.
        let _ = write!(io::stderr(), "\r\x1b[K{}", text());
    }
}

impl Drop for ExportProgress<'_> {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
