//! Typing from the command line: what is refused is told with what to run next.

use std::fs;

use crate::harness::home::Home;

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
    home.printed("wait build --text ready --since 0");
    let read = || home.envelope("read build")["data"]["watermark"].as_u64().unwrap();
    let seen = read();
    home.printed("send build first --enter --until-text first");

    let refused = home.run(&format!("send build second --enter --expect {seen}"));
    assert_eq!(refused.status.code(), Some(CONFLICT));
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(told.contains("screen_changed") && told.contains("--expect"), "{told}");

    home.printed(&format!("send build third --enter --expect {}", read()));
    home.printed("wait build --text third --since 0");
    assert!(!home.printed("read build").contains("second"));
}

#[test]
fn the_id_of_a_lease_comes_from_a_file_standard_input_or_the_environment_alone() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name build -- cat");
    let lease = home.printed("lease acquire build --ttl 10m");
    let file = home.path("lease");
    fs::write(&file, &lease).unwrap();
    let code = |mut command: std::process::Command| command.output().unwrap().status.code();

    assert_eq!(home.run("send build x --enter").status.code(), Some(CONFLICT));
    home.printed(&format!("send build from-file --enter --lease-file {}", file.display()));
    let mut from_variable = home.termgate("keys build v a r Enter");
    from_variable.env("TERMGATE_LEASE", lease.trim());
    assert_eq!(code(from_variable), Some(0));
    let mut from_input = home.termgate("call resize session=build cols=90 rows=30 --lease-file -");
    from_input.stdin(fs::File::open(&file).unwrap());
    assert_eq!(code(from_input), Some(0));
    home.printed("wait build --text var --since 0");
    assert!(home.printed("read build").contains("from-file"));

    let shown = home.run(&format!("call resize session=build cols=80 rows=24 lease_id={lease}"));
    assert_eq!(shown.status.code(), Some(2), "{shown:?}");
    assert!(String::from_utf8(shown.stderr).unwrap().contains("--lease-file"));
    home.printed("lease renew build --ttl 5m");
    home.printed("lease release build");
    home.printed("send build free --enter");
}

#[test]
fn no_program_in_a_session_is_told_the_id_of_a_lease() {
    let home = Home::new();
    let with_lease = |line: &str| {
        let mut command = home.termgate(line);
        command.env("TERMGATE_LEASE", "6f1b");
        command.output().unwrap()
    };
    // The daemon that this starts and the session that it creates come from an environment with an id.
    let created = with_lease("new --name build --allow-write -- env");
    assert!(created.status.success(), "{created:?}");
    home.printed("wait build --exit");
    let screen = home.printed("read build");
    assert!(screen.contains("TERMGATE_SESSION") && !screen.contains("6f1b"), "{screen}");
    home.printed("stop");
}

#[test]
fn the_lease_of_another_session_is_named_and_left_alone() {
    const USAGE: i32 = 2;
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name build -- cat");
    home.printed("new --name other -- cat");
    let lease = home.printed("lease acquire build --ttl 90s");
    let with_lease = |line: &str| {
        let mut command = home.termgate(line);
        command.env("TERMGATE_LEASE", lease.trim());
        command.output().unwrap()
    };
    for line in ["send other x", "lease acquire other", "lease renew other", "lease release other"]
    {
        let refused = with_lease(line);
        assert_eq!(refused.status.code(), Some(USAGE), "{line}: {refused:?}");
        let told = String::from_utf8(refused.stderr).unwrap();
        assert!(told.contains("this is the lease of session build"), "{line}: {told}");
    }
    let renewed = with_lease("lease renew build");
    assert_eq!(renewed.status.code(), Some(0), "{renewed:?}");
}
