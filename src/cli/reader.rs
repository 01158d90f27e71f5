//! Detects that standard output was closed.
//!
//! A command that prints seldom would otherwise notice only at the next line: `top | head` would wait
//! for a change.

use std::io;
use std::os::fd::AsFd;

use tokio::io::Interest;

use crate::session::pty::watch::watch;

/// Completes when the reader of standard output is gone. It never completes when that cannot happen, as
/// with a file.
///
/// # Panics
/// Outside a runtime.
pub async fn gone() {
    let stdout = io::stdout().as_fd().try_clone_to_owned();
    // The kernel cannot watch regular files.
    let Ok(stdout) = stdout.and_then(|stdout| watch(stdout, Interest::ERROR)) else {
        return std::future::pending().await;
    };
    if stdout.ready(Interest::ERROR).await.is_err() {
        // The runtime is shutting down, and ends this task with it.
        std::future::pending().await
    }
}
