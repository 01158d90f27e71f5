//! What was on screens is found later, whatever became of the daemon.

use std::fs;

use serde_json::json;

use crate::harness::waiting::soon;
use crate::outlive::client::{Client, start};
use crate::outlive::home::Home;

/// The texts of all hits.
async fn found(client: &mut Client, query: &str) -> Vec<String> {
    let results = client.must("search", json!({"query": query})).await;
    let hits = results["hits"].as_array().unwrap();
    hits.iter().map(|hit| hit["snippet"].as_str().unwrap().to_owned()).collect()
}

/// Waits until so many hits are found.
async fn finds(client: &mut Client, query: &str, count: usize) -> Vec<String> {
    let searching = async {
        loop {
            let texts = found(client, query).await;
            if texts.len() == count {
                return texts;
            }
        }
    };
    soon(&format!("{count} hits for {query}"), searching).await
}

/// Everything in the files of the index.
fn stored(home: &Home) -> Vec<u8> {
    fn add(directory: &std::path::Path, all: &mut Vec<u8>) {
        // It is created with the first rows, and SQLite removes files of it.
        for entry in fs::read_dir(directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => add(&path, all),
                false => all.extend(fs::read(path).unwrap_or_default()),
            }
        }
    }
    let [.., (_, state), _, _, _] = home.environment();
    let mut all = Vec::new();
    add(&std::path::Path::new(&state).join("termgate/index"), &mut all);
    all
}

fn has(stored: &[u8], text: &str) -> bool {
    stored.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_on_screens_is_found_after_daemons_were_killed() {
    let home = Home::new();
    home.configure("[sessions]\nkeep_ended_ms = 100\n");
    let mut daemon = home.serve().await;
    let mut client = home.client().await;
    let line = "for n in $(seq 101 300); do echo flamingo-$n; done; exec cat";
    let session = start(&mut client, line).await;
    assert_eq!(finds(&mut client, "flamingo-117", 1).await, ["flamingo-117"]);
    for _ in 0..2 {
        daemon.kill().await;
        daemon = home.serve().await;
        client = home.client().await;
        // Of what left the screen, and of what is on it.
        assert_eq!(finds(&mut client, "flamingo-117", 1).await, ["flamingo-117"]);
        assert_eq!(finds(&mut client, "flamingo-300", 1).await, ["flamingo-300"]);
    }
    let ended = home.run(&format!("kill {}", session.id));
    assert!(ended.status.success(), "{ended:?}");
    // Its screen is lost if the daemon is killed before this, as the session itself is gone soon.
    soon("the last row to be stored", async {
        while !has(&stored(&home), "flamingo-300") {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let only = json!({"query": "flamingo-300", "session": session.id});
    soon("the session to be gone", async {
        while client.must("search", only.clone()).await["hits"][0]["gone"] != true {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(finds(&mut client, "flamingo-117", 1).await, ["flamingo-117"]);
    daemon.kill().await;
    let _daemon = home.serve().await;
    let mut client = home.client().await;
    assert_eq!(finds(&mut client, "flamingo-300", 1).await, ["flamingo-300"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_is_typed_without_echo_is_neither_found_nor_stored() {
    let home = Home::new();
    home.configure("[lease]\nauto = true\n");
    let _daemon = home.serve().await;
    let mut client = home.client().await;
    // It asks once nothing is echoed any more.
    let line = "stty -echo; printf 'Password: '; read secret; stty echo; \
        echo; echo accepted; seq 100; echo welcome";
    let session = start(&mut client, line).await;
    let asks = json!({"session": session.id, "text": "Password:"});
    client.must("wait_for", asks).await;
    let typed = json!({"session": session.id, "text": "xyzzy-plugh", "enter": true});
    client.must("send_text", typed).await;
    finds(&mut client, "welcome", 1).await;
    // All that the session had is stored when its last row is.
    soon("the last row to be stored", async {
        while !has(&stored(&home), "welcome") {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(found(&mut client, "accepted").await, ["accepted"]);
    assert!(found(&mut client, "xyzzy-plugh").await.is_empty());
    assert!(!has(&stored(&home), "xyzzy-plugh"));
}
