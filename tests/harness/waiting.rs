//! Waiting for what must come: never a fixed time, and never for ever.

use std::path::Path;
use std::time::Duration;

use tokio::time::{sleep, timeout};

/// How long a test waits for what must come; only a broken program ever lets it pass.
pub(crate) const SAFETY: Duration = Duration::from_secs(30);

/// The time between two looks at a condition that nobody reports.
pub(crate) const LOOK: Duration = Duration::from_millis(2);

/// Waits for what must happen, but not for ever.
pub(crate) async fn soon<F: Future>(what: &str, waiting: F) -> F::Output {
    timeout(SAFETY, waiting).await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

/// Looks until a condition holds.
pub(crate) async fn until(what: &str, holds: impl FnMut() -> bool) {
    within(SAFETY, what, holds).await;
}

/// Looks until a condition holds, and no longer than `patience`.
pub(crate) async fn within(patience: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let looking = async {
        while !holds() {
            sleep(LOOK).await;
        }
    };
    timeout(patience, looking).await.unwrap_or_else(|_| panic!("waited in vain for {what}"));
}

/// Reads the line that a program writes into a file, once it is whole.
pub(crate) async fn line_in(path: &Path) -> String {
    let read = || std::fs::read_to_string(path).unwrap_or_default();
    until(&format!("a line in {}", path.display()), || read().ends_with('\n')).await;
    read().trim().to_owned()
}
