//! Typing from the command line: what is refused is told with what to run next.

use std::fs;

use crate::commands::harness::Home;

/// The exit code of whoever may not write now.
const CONFLICT: i32 = 4;

#[test]
fn text_is_typed_only_onto_the_screen_that_was_read() {
    let home = Home::new();
    let _daemon = home.daemon();
    // Without an echo each line appears once, so that the screen stands still after it.
    let script = home.path("quiet");
    fs::write(&script, "stty -echo; echo ready; exec cat").unwrap();
    home.printed(&format!("new --name build -- sh {}", script.display()));
    home.printed("wait build --pattern ready --since 0");
    let read = || home.envelope("read build")["data"]["watermark"].as_u64().unwrap();
    let seen = read();
    home.printed("send build first --enter --until-pattern first");

    let refused = home.run(&format!("send build second --enter --expect {seen}"));
    assert_eq!(refused.status.code(), Some(CONFLICT));
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(told.contains("screen_changed") && told.contains("--expect"), "{told}");

    home.printed(&format!("send build third --enter --expect {}", read()));
    home.printed("wait build --pattern third --since 0");
    assert!(!home.printed("read build").contains("second"));
}
