//! What is left when a daemon is stopped: nothing, of however many sessions.

use std::fs;

use serde_json::{Value, json};

use crate::harness::processes::lives;
use crate::outlive::client::start;
use crate::outlive::home::{Home, number_in};

/// More than end one after the other in the time that they all have.
const SESSIONS: usize = 100;

#[tokio::test]
async fn a_daemon_that_is_stopped_leaves_nothing_of_many_sessions() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let mut escaped = Vec::new();
    for number in 0..SESSIONS {
        // Some ignore requests, and some leave their session, lose their parent and clear their environment.
        let line = match number % 10 {
            0 => "trap '' HUP TERM; while :; do sleep 1000; done".to_owned(),
            1 => {
                let file = home.path(&format!("escaped{number}"));
                let line = format!(
                    "(env -i setsid sh -c 'trap \"\" HUP TERM; echo $$ > {}; exec sleep 1001' &); \
                     exec sleep 1000",
                    file.display()
                );
                escaped.push(file);
                line
            }
            _ => "exec sleep 1000".to_owned(),
        };
        start(&mut client, &line).await;
    }
    let mut left = Vec::new();
    for file in escaped {
        left.push(i32::try_from(number_in(&file).await).unwrap());
    }
    let stop = home.run("stop --json");
    let told: Value = serde_json::from_slice(&stop.stdout).unwrap();
    assert_eq!(stop.status.code(), Some(0), "{told}");
    assert_eq!((&told["data"]["left"], &told["data"]["unended"]), (&json!([]), &json!([])));
    assert_eq!(daemon.ends().await.0, Some(0));
    assert!(!left.iter().any(|pid| lives(*pid)), "{left:?}");
    assert_eq!(home.sessions_processes(), Vec::<String>::new());
    assert_eq!(fs::read_dir(home.runtime("h")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_session_that_a_daemon_could_not_end_is_named_and_is_a_failure() {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    let home = Home::new();
    let daemon = home.serve().await;
    let session = start(&mut home.client().await, "exec sleep 1000").await;
    let shim = Pid::from_raw(home.shim(&session.id));
    kill(shim, Signal::SIGSTOP).unwrap();
    daemon.kill().await;
    // The shim stands still, so that this daemon has only its record.
    let daemon = home.serve().await;
    let stop = home.run("stop --json");
    let told: Value = serde_json::from_slice(&stop.stdout).unwrap();
    assert_eq!(stop.status.code(), Some(1), "{told}");
    let [one] = told["data"]["unended"].as_array().unwrap().as_slice() else { panic!("{told}") };
    assert_eq!(one["session"], session.id);
    assert!(one["what"].as_str().unwrap().contains("does not answer"), "{told}");
    assert_eq!(told["data"]["left"], json!([session.id]));
    assert_eq!(daemon.ends().await.0, Some(1));
    kill(shim, Signal::SIGCONT).unwrap();
    let daemon = home.serve().await;
    home.printed("stop");
    assert_eq!(daemon.ends().await.0, Some(0));
    assert!(!lives(session.pid));
}
