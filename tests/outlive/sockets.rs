//! A socket of the daemon that somebody removes is there again, and nobody who is connected notices.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use serde_json::json;

use crate::harness::waiting::until;
use crate::outlive::client::{Client, start};
use crate::outlive::home::Home;

#[tokio::test]
async fn a_socket_that_is_removed_is_made_again_as_it_was() {
    let home = Home::new();
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let session = start(&mut client, "exec cat").await;
    for name in ["gateway.sock", "gateway.ro.sock", "operator.sock"] {
        let path = home.runtime(name);
        // Once more after it was made again.
        for _ in 0..2 {
            fs::remove_file(&path).unwrap();
            until(name, || path.exists()).await;
            let made = fs::symlink_metadata(&path).unwrap();
            assert!(made.file_type().is_socket(), "{name}");
            assert_eq!(made.mode() & 0o777, 0o600, "{name}");
            let mut again = Client::find(&path).await;
            again.must("list_sessions", json!({"session": session.id})).await;
        }
    }
    client.must("read_screen", json!({"session": session.id})).await;
    home.printed("stop");
    assert_eq!(daemon.ends().await.0, Some(0));
    assert!(!home.runtime("gateway.sock").exists());
}

#[tokio::test]
async fn what_lies_in_the_place_of_a_removed_socket_is_waited_for_and_left_alone() {
    let home = Home::new();
    let daemon = home.serve().await;
    let path = home.runtime("gateway.sock");
    let mut operator = Client::find(&home.runtime("operator.sock")).await;
    fs::remove_file(&path).unwrap();
    until("the socket", || path.exists()).await;
    // A rename leaves no moment without a file there.
    fs::write(home.path("file"), "mine").unwrap();
    fs::rename(home.path("file"), &path).unwrap();
    until("a word of it", || daemon.said().contains("is not a socket")).await;
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    operator.must("list_sessions", json!({})).await;
    fs::remove_file(&path).unwrap();
    Client::find(&path).await;
    daemon.kill().await;
}
