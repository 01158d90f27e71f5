//! Of daemons that start at the same moment exactly one has the sessions.

use crate::outlive::client::{listed, start};
use crate::outlive::home::{Home, first_to_end};

const ROUNDS: usize = 100;

#[tokio::test]
async fn of_two_daemons_that_start_at_once_one_finds_the_sessions_and_the_other_says_so() {
    let home = Home::new();
    let first = home.serve().await;
    let session = start(&mut home.client().await, "echo ready; exec sleep 1000").await;
    first.kill().await;
    for _ in 0..ROUNDS {
        let (one, other) = (home.spawn(""), home.spawn(""));
        let (loser, mut winner) = first_to_end(one, other).await;
        let (code, said) = loser.ends().await;
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(&format!("another daemon is running as process {}", winner.pid())));
        winner.is_ready().await;
        let there = listed(&mut home.client().await, &session.id).await;
        assert_eq!((&there["pid"], &there["state"]), (&session.pid.into(), &"running".into()));
        winner.kill().await;
    }
}
