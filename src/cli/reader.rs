//! Whether anybody still reads what a command prints.
//!
//! It knows nothing of what is printed. Whoever prints seldom would otherwise learn only with the next
//! line that nobody wants it: `top | head` would wait for a change.

use std::io;
use std::os::fd::AsFd;

use tokio::io::Interest;

use crate::session::pty::watch::watch;

/// Completes when nobody reads standard output any more; never where that cannot happen, as with a
/// file.
///
/// # Panics
/// Outside a runtime.
pub async fn gone() {
    let stdout = io::stdout().as_fd().try_clone_to_owned();
    // The kernel watches no files.
    let Ok(stdout) = stdout.and_then(|stdout| watch(stdout, Interest::ERROR)) else {
        return std::future::pending().await;
    };
    if stdout.ready(Interest::ERROR).await.is_err() {
        // The runtime ends, and with it whoever waits here.
        std::future::pending().await
    }
}
