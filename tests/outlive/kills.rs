//! A daemon may be killed at any moment, and nobody who uses its sessions loses anything.

use crate::outlive::home::Home;
use crate::outlive::storm::Storm;

const KILLS: usize = 100;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_written_twice_when_daemons_are_killed_at_any_moment() {
    let home = Home::new();
    let (mut storm, daemon) = Storm::begin(&home).await;
    let daemon = storm.rage(daemon, KILLS).await;
    storm.settle(daemon).await;
}
