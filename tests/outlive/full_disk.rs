//! Nothing that sessions outlive their daemon by is written to a disk.
//!
//! The user's directories are on a file system of a few pages that somebody fills up again whenever
//! anything of it gets free.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::disk::Disk;
use crate::harness::waiting::until;
use crate::outlive::client::{Client, start};
use crate::outlive::home::Home;
use crate::outlive::journal;
use crate::outlive::storm::{GivesWay, Storm};

const KILLS: usize = 100;
/// The size of the disk, in KiB.
const SMALL: u64 = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_holds_with_a_full_disk() {
    let ground = tempfile::Builder::new().prefix("tgd").tempdir().unwrap();
    let Some(disk) = Disk::mount(ground.path(), SMALL).await else {
        // `tests/run` names this among what is not there.
        eprintln!("not tested: nobody may mount anything here");
        return;
    };
    let home = Home::with_root(|_| disk.path.join("user"));
    // Nothing is written to a terminal that cannot be recorded, so the journal has room.
    home.keep_state_at(&home.path("state"));
    home.configure(journal::SETTINGS);
    let filling = disk.fill();
    let (mut storm, daemon) = Storm::begin(&home).await;
    let daemon = storm.rage(daemon, KILLS, GivesWay::Killed).await;
    let room = fs::write(disk.path.join("more"), [0; 4096]).unwrap_err();
    assert_eq!(room.kind(), ErrorKind::StorageFull);
    storm.settle(daemon).await;
    filling.abort();
    assert!(filling.await.unwrap_err().is_cancelled());
}

async fn type_x(client: &mut Client, session: &str) -> Result<Value, Value> {
    client.call("send_text", json!({"session": session, "text": "x"})).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_typed_while_the_disk_of_the_journal_is_full_and_all_goes_on_after() {
    let ground = tempfile::Builder::new().prefix("tgd").tempdir().unwrap();
    let Some(disk) = Disk::mount(ground.path(), SMALL).await else {
        eprintln!("not tested: nobody may mount anything here");
        return;
    };
    let home = Home::new();
    home.keep_state_at(&disk.path.join("state"));
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let session = start(&mut client, "exec cat").await;
    let id = session.id.as_str();
    client.must("acquire_lease", json!({"session": id})).await;
    assert_eq!(type_x(&mut client, id).await.unwrap()["written"], 1);
    let filling = disk.fill();
    // What is left of the last page takes some records.
    let refused = loop {
        if let Err(error) = type_x(&mut client, id).await {
            break error;
        }
    };
    assert_eq!(refused["error_code"], "storage_error", "{refused}");
    // The terminal may show later what it took.
    let shown = json!({"session": id, "text": "xx", "since": 0});
    assert_eq!(client.must("wait_for", shown).await["outcome"], "matched");
    // Operators are never refused for that.
    home.printed("allow-write off");
    home.printed("allow-write on");
    filling.abort();
    assert!(filling.await.unwrap_err().is_cancelled());
    fs::remove_file(disk.filling()).unwrap();
    client.must("acquire_lease", json!({"session": id})).await;
    assert_eq!(type_x(&mut client, id).await.unwrap()["written"], 1);
    let late = home.printed("journal show --act set_write");
    assert!(late.lines().count() == 3, "{late}");
    let verified = home.printed("journal verify");
    assert!(verified.contains("all hashes match"), "{verified}");
    home.printed("stop");
    assert_eq!(daemon.ends().await.0, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_goes_on_with_the_whole_screen_after_its_disk_was_full() {
    let ground = tempfile::Builder::new().prefix("tgd").tempdir().unwrap();
    let Some(disk) = Disk::mount(ground.path(), SMALL).await else {
        eprintln!("not tested: nobody may mount anything here");
        return;
    };
    let home = Home::new();
    home.keep_state_at(&disk.path.join("state"));
    home.configure("[recording]\nalways = true\n");
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let (one, other) = (home.path("one"), home.path("other"));
    let wait = |gate: &Path| format!("until test -e {}; do sleep 0.01; done", gate.display());
    let line = format!(
        "echo first; {}; seq 1 2000; echo second; {}; echo third; exec cat",
        wait(&one),
        wait(&other)
    );
    let session = start(&mut client, &line).await;
    let id = session.id.as_str();
    client.must("wait_for", json!({"session": id, "text": "first", "since": 0})).await;
    let filling = disk.fill();
    // A file that is written anew would use the room of its own that it gave back.
    let more = disk.path.join("more");
    let grows = || {
        let mut file = OpenOptions::new().create(true).append(true).open(&more)?;
        file.write_all(&[0; 4096])
    };
    until("a full disk", || grows().is_err()).await;
    fs::write(&one, "").unwrap();
    client.must("wait_for", json!({"session": id, "text": "second", "since": 0})).await;
    filling.abort();
    assert!(filling.await.unwrap_err().is_cancelled());
    fs::remove_file(disk.filling()).unwrap();
    fs::remove_file(&more).unwrap();
    fs::write(&other, "").unwrap();
    client.must("wait_for", json!({"session": id, "text": "third", "since": 0})).await;
    let screen = client.must("read_screen", json!({"session": id})).await;
    let shown = screen["text"].as_str().unwrap().trim_end().to_owned();
    let exported = || home.printed(&format!("record export {id}"));
    until("the rest to be recorded", || exported().trim_end().ends_with(&shown)).await;
    let replayed = home.printed(&format!("replay --json {id}"));
    assert!(replayed.contains("missing"), "{replayed}");
    daemon.kill().await;
}
