//! A daemon may give way at any moment, and nobody who uses its sessions loses anything.

use crate::outlive::home::Home;
use crate::outlive::journal;
use crate::outlive::storm::{GivesWay, Storm};

const ROUNDS: usize = 100;

async fn storm(how: GivesWay) {
    let home = Home::new();
    home.configure(journal::SETTINGS);
    let (mut storm, daemon) = Storm::begin(&home).await;
    let daemon = storm.rage(daemon, ROUNDS, how).await;
    storm.settle(daemon).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_written_twice_when_daemons_are_killed_at_any_moment() {
    storm(GivesWay::Killed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_written_twice_when_daemons_stand_still_at_any_moment_and_go_on_later() {
    storm(GivesWay::StandingStill).await;
}
