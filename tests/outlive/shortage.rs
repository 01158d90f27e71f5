//! A daemon that cannot start another session says why and what to do, leaves nothing of it behind, and
//! goes on.

use std::fs;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::processes::PROGRAM;
use crate::harness::waiting::{SAFETY, within};
use crate::outlive::client::{Client, listed, start};
use crate::outlive::home::Home;

/// Enough for a daemon, its client and some sessions; one after the other, so that the last one that is
/// missing is not always missing for the same thing.
const DESCRIPTORS: std::ops::Range<usize> = 96..108;
/// More sessions than that is enough for.
const SESSIONS_MAX: usize = 64;
/// How soon nothing is left of what was ended.
const CLEARED: Duration = Duration::from_secs(3);

async fn create(client: &mut Client) -> Result<String, Value> {
    let asked = json!({"command": "sh", "args": ["-c", "exec sleep 1000"], "lease": false});
    let created = client.call("create_session", asked).await.unwrap()?;
    Ok(created["session"]["id"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_daemon_without_descriptors_says_so_and_creates_sessions_again_once_it_has_some() {
    for most in DESCRIPTORS {
        run_short_of(most).await;
    }
}

async fn run_short_of(most: usize) {
    let home = Home::new();
    let daemon = home.serve_with_limit(&format!("-n {most}")).await;
    let mut client = home.client().await;
    let mut created = Vec::new();
    let refused = loop {
        match create(&mut client).await {
            Ok(id) => created.push(id),
            Err(refused) => break refused,
        }
        assert!(created.len() < SESSIONS_MAX, "it has more descriptors than it may");
    };
    assert_eq!(refused["error_code"], "quota_exceeded", "{most}: {refused}");
    assert!(refused["hint"].as_str().unwrap().contains("ulimit -Hn"), "{refused}");
    let shims = || {
        let lines = home.sessions_processes();
        lines.into_iter().filter(|line| line.contains(" shim ")).count()
    };
    within(CLEARED, "nothing of it to be left", || shims() == created.len()).await;
    assert!(created.len() > 1, "some were created");
    for id in created.iter().take(2) {
        assert_eq!(listed(&mut client, id).await["state"], "running");
        for _ in 0..2 {
            // It ends first, and then is forgotten.
            let killed = json!({"session": id, "action": "kill"});
            client.must("manage_session", killed).await;
        }
    }
    let again = create(&mut client).await.expect("two have made room");
    assert_eq!(listed(&mut client, &again).await["state"], "running");
    daemon.kill().await;
}

/// Clients that came in before the next one was hung up on.
async fn crowd(home: &Home, most: usize) -> Vec<Client> {
    let mut crowd = Vec::new();
    while let Ok(client) = Client::connect(&home.gateway().path).await {
        crowd.push(client);
        assert!(crowd.len() < most, "it has more descriptors than it may");
    }
    crowd
}

#[tokio::test]
async fn a_daemon_without_descriptors_answers_its_operator_and_can_be_stopped() {
    for most in DESCRIPTORS.step_by(3) {
        let home = Home::new();
        let daemon = home.serve_with_limit(&format!("-n {most}")).await;
        start(&mut home.client().await, "exec sleep 1000").await;
        let crowd = crowd(&home, most).await;
        assert!(crowd.len() > 8, "{} came in", crowd.len());
        for _ in 0..3 {
            home.printed("ls");
        }
        home.printed("stop");
        let (status, log) = daemon.ends().await;
        assert_eq!(status, Some(0), "{log}");
    }
}

/// Creates sessions until the daemon has no more room, or there are so many.
async fn create_many(client: &mut Client, most: usize) -> Vec<String> {
    let mut created = Vec::new();
    while created.len() < most {
        match create(client).await {
            Ok(id) => created.push(id),
            Err(_) => break,
        }
    }
    created
}

/// The sessions that run and that the daemon has.
async fn running(client: &mut Client) -> Vec<String> {
    let listed = client.must("list_sessions", json!({"state": "running"})).await;
    let all = listed["sessions"].as_array().unwrap().iter();
    let all = all.filter(|one| one["activity"]["evidence"] != "silent");
    let mut ids: Vec<_> = all.map(|one| one["id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn a_daemon_has_descriptors_for_all_sessions_of_one_that_had_as_few() {
    for most in DESCRIPTORS.step_by(4) {
        let home = Home::new();
        let mut daemon = home.serve_with_limit(&format!("-n {most}")).await;
        let mut created = create_many(&mut home.client().await, SESSIONS_MAX).await;
        created.sort();
        for _ in 0..3 {
            daemon.kill().await;
            daemon = home.serve_with_limit(&format!("-n {most}")).await;
            assert_eq!(running(&mut home.client().await).await, created, "{most}");
        }
        daemon.kill().await;
    }
}

#[tokio::test]
async fn a_daemon_with_fewer_descriptors_than_its_sessions_need_serves_what_it_can_and_says_so() {
    const MANY: usize = 12;
    /// Whose descriptors are enough for another session and for what must stay free.
    const ENDED: usize = 3;
    let home = Home::new();
    let daemon = home.serve().await;
    let mut created = create_many(&mut home.client().await, MANY).await;
    created.sort();
    assert_eq!(created.len(), MANY);
    daemon.kill().await;

    let daemon = home.serve_with_limit("-n 82").await;
    let mut client = home.client().await;
    let found = running(&mut client).await;
    assert!(!found.is_empty() && found.len() < MANY, "{found:?}");
    assert!(found.iter().all(|id| created.contains(id)), "{found:?}");
    let left = created.iter().find(|id| !found.contains(id)).unwrap();
    assert_eq!(listed(&mut client, left).await["activity"]["evidence"], "silent");
    let doctor = home.run("doctor --json");
    let doctor: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let checks = doctor["data"]["checks"].as_array().unwrap();
    let told: Vec<_> = checks.iter().filter(|check| check["name"] == "shims").collect();
    assert_eq!(told.len(), MANY - found.len(), "{told:?}");
    for check in told {
        let advice = check["advice"].as_str().unwrap();
        assert!(advice.contains("of 82 descriptors") && advice.contains("kill -USR1"), "{check}");
    }

    // Room is made, and another one is found without anybody's doing.
    for id in found.iter().take(ENDED) {
        for _ in 0..2 {
            let killed = json!({"session": id, "action": "kill"});
            client.must("manage_session", killed).await;
        }
    }
    let left: Vec<_> = found[ENDED..].to_vec();
    let until = tokio::time::Instant::now() + SAFETY;
    while running(&mut client).await.len() <= left.len() {
        assert!(tokio::time::Instant::now() < until, "waited in vain for another session");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (_, log) = {
        daemon.signal(Signal::SIGKILL);
        daemon.ends().await
    };
    assert!(log.contains("no file descriptors are left for these sessions"), "{log}");

    // Nothing was ended for want of descriptors.
    let daemon = home.serve().await;
    assert_eq!(running(&mut home.client().await).await.len(), MANY - ENDED);
    daemon.kill().await;
}

#[tokio::test]
async fn directories_that_were_removed_are_made_again_with_the_next_session() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    fs::remove_dir(home.runtime("h")).unwrap();
    fs::remove_dir(home.runtime("s")).unwrap();
    let session = start(&mut client, "exec sleep 1000").await;
    let door = home.runtime(&format!("s/{}.sock", session.id));
    assert!(door.exists(), "it has doors as any other");
    daemon.kill().await;
    let daemon = home.serve().await;
    let there = listed(&mut home.client().await, &session.id).await;
    assert_eq!((&there["pid"], &there["state"]), (&session.pid.into(), &"running".into()));
    daemon.kill().await;
}

#[tokio::test]
async fn what_stands_in_the_place_of_the_directory_of_shims_is_named() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let place = home.runtime("h");
    fs::remove_dir(&place).unwrap();
    fs::write(&place, "").unwrap();
    let refused = create(&mut client).await.unwrap_err();
    assert_eq!(refused["error_code"], "storage_error", "{refused}");
    assert!(refused["message"].as_str().unwrap().contains(place.to_str().unwrap()), "{refused}");
    fs::remove_file(&place).unwrap();
    create(&mut client).await.expect("it is made again");
    daemon.kill().await;
}

/// Where only so many terminals may exist; `mount` needs no privilege in a namespace of one's own.
const FEW_TERMINALS: &str = "mount -t devpts -o newinstance,max=3,mode=600,ptmxmode=666 devpts /dev/pts \
     && mount --bind /dev/pts/ptmx /dev/ptmx";

#[tokio::test]
async fn where_there_are_no_terminals_left_a_session_is_refused_and_nothing_of_it_is_left() {
    let home = Home::new();
    let within_namespace = |line: &str| {
        let mut command = home.command("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", line, PROGRAM]);
        command
    };
    if !within_namespace(FEW_TERMINALS).status().is_ok_and(|ended| ended.success()) {
        // `tests/run` names this among what is not there.
        eprintln!("not tested: nobody may mount anything here");
        return;
    }
    let line = format!("{FEW_TERMINALS} && exec \"$0\" serve --allow-write");
    let mut daemon = home.start(within_namespace(&line));
    daemon.is_ready().await;
    let mut client = home.client().await;
    let mut created = Vec::new();
    let refused = loop {
        match create(&mut client).await {
            Ok(id) => created.push(id),
            Err(refused) => break refused,
        }
        assert!(created.len() <= 3, "there are more terminals than there may be");
    };
    assert_eq!(refused["error_code"], "quota_exceeded", "{refused}");
    assert_eq!(created.len(), 3, "{refused}");
    within(CLEARED, "nothing of it to be left", || home.shims().len() == created.len()).await;
    for _ in 0..2 {
        let killed = json!({"session": created[0], "action": "kill"});
        client.must("manage_session", killed).await;
    }
    create(&mut client).await.expect("one is free again");
    daemon.kill().await;
}
