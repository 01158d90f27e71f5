//! What is wrong on a command line is named as it was typed there.

use std::fs;

use crate::commands::run::text;
use crate::commands::seat::{Seat, until_holder};
use crate::harness::home::Home;

/// The exit codes of a wrong command line, where another holds the lease, and without a daemon.
const USAGE: i32 = 2;
const LEASE_CONFLICT: i32 = 4;
const UNREACHABLE: i32 = 7;

#[test]
fn an_error_names_the_flag_and_not_the_parameter_of_the_call() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name build -- cat");
    for (line, told) in [
        ("wait build --pattern (", "termgate: --pattern: the pattern does not compile"),
        ("watch build --rate 0", "termgate: --rate: 0 is not within 1 to 1000"),
        ("keys build Entr", "termgate: KEYS: unknown key \"Entr\" (did you mean Enter?)"),
        ("history build --count 0", "termgate: --count: 0 is not within"),
        ("history build --tail 501", "termgate: --tail: 501 is not within"),
        ("new --cwd /nowhere", "termgate: --cwd: /nowhere is not a directory"),
        ("new -- /nowhere/program", "termgate: CMD: program not found: \"/nowhere/program\""),
        ("lease release build --hand-to ada", "does not hold the lease"),
    ] {
        let refused = home.run(line);
        assert!(text(&refused.stderr).contains(told), "{line}: {refused:?}");
    }
    for line in ["new --rows -1", "send build x --wait -1s", "history build --tail -5"] {
        let refused = home.run(line);
        let told = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(USAGE), "{line}: {refused:?}");
        assert!(told.contains("` takes no negative value") && !told.contains("'-- -"), "{told}");
    }
    assert!(text(&home.run("send build -1").stderr).contains("'-- -1'"));
    let unknown = home.run("allow-write on --tenant foo");
    let told = "termgate: --tenant: there is no tenant `foo`: write a user as uid:1000; tenants.toml names none";
    assert!(text(&unknown.stderr).starts_with(told), "{unknown:?}");
    let refused = home.run("history build --count 0");
    assert_eq!(refused.status.code(), Some(USAGE));
    assert!(!text(&refused.stderr).contains("hint:"), "{refused:?}");
    // At the level of the protocol, parameters are what was typed.
    let called = home.run("call read_history session=build count=0");
    assert!(text(&called.stderr).starts_with("termgate: count: 0 is not"), "{called:?}");
    let programs = home.run("history build --count 0 --json");
    let answer: serde_json::Value = serde_json::from_slice(&programs.stdout).unwrap();
    assert_eq!(answer["data"]["details"]["parameter"], "count", "{answer}");
}

#[test]
fn who_waited_in_vain_for_a_lease_is_told_how_long() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name build -- cat");
    let mut seat = Seat::attach(&home, "build");
    seat.until_status("free: type to take the keyboard");
    seat.types("\x1ct");
    until_holder(&home, "human");
    let refused = home.run("lease acquire build --wait 20ms");
    let told = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(LEASE_CONFLICT), "{told}");
    assert!(told.starts_with("termgate: waited "), "{told}");
    let at_once = home.run("lease acquire build");
    let told = text(&at_once.stderr);
    assert!(!told.contains("waited"), "{told}");
}

#[test]
fn a_lease_that_is_released_without_its_id_is_named() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name build -- cat");
    let lease = home.printed("lease acquire build");
    assert_eq!(home.printed("lease renew build"), lease);
    let released = home.run("lease release build");
    assert!(text(&released.stderr).contains(lease.trim()), "{released:?}");
    home.printed("lease acquire build");
    let released = home.envelope("lease release build");
    assert!(released["data"]["lease_id"].is_string(), "{released}");
}

#[test]
fn a_file_that_cannot_be_read_and_a_wrong_lease_id_are_named() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name build -- cat");
    let file = home.path("lease");
    fs::write(&file, "mistake\n").unwrap();
    let missing = "/nowhere/file: No such file or directory";
    for (line, told) in [
        ("send build x --lease-file /nowhere/file", missing),
        ("call read_screen --json-args /nowhere/file", missing),
        (&format!("send build x --lease-file {}", file.display()), "\"mistake\" is not a lease id"),
    ] {
        let refused = home.run(line);
        assert_eq!(refused.status.code(), Some(USAGE), "{line}: {refused:?}");
        assert!(text(&refused.stderr).contains(told), "{line}: {refused:?}");
    }
}

#[test]
fn an_empty_command_is_refused_in_a_session_and_without_one() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name build -- cat");
    for words in [&["build", ""][..], &["build", " "], &["--", ""]] {
        let refused = home.termgate("run").args(words).output().unwrap();
        assert_eq!(refused.status.code(), Some(USAGE), "{words:?}: {refused:?}");
        assert!(text(&refused.stderr).contains("nothing to run"), "{words:?}: {refused:?}");
    }
}

#[test]
fn rows_that_are_not_there_are_noted() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name build -- cat");
    let none = home.run("history build --from 100");
    assert!(none.status.success() && none.stdout.is_empty(), "{none:?}");
    assert!(text(&none.stderr).starts_with("no rows"), "{none:?}");
}

#[test]
fn a_misspelt_session_is_answered_with_the_nearest_name_that_is_seen() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name build -- cat");
    let told = |line: &str| text(&home.run(line).stderr).to_owned();
    let near = told("read biuld");
    assert!(near.contains("no session `biuld`; did you mean `build`?"), "{near}");
    let none = told("read deploy");
    assert!(none.contains("no session `deploy` ("), "nothing resembles it: {none}");
}

#[test]
fn a_daemon_that_was_not_wanted_is_no_advice() {
    let home = Home::new();
    for line in ["stop", "upgrade", "new --no-spawn", "ls --socket /nowhere/operator.sock"] {
        let told = home.run(line);
        assert_eq!(told.status.code(), Some(UNREACHABLE), "{line}");
        assert!(!text(&told.stderr).contains("hint:"), "{line}: {told:?}");
    }
    for line in ["ls", "new"] {
        let told = home.termgate(line).env("TERMGATE_AUTOSTART", "0").output().unwrap();
        assert_eq!(told.status.code(), Some(UNREACHABLE), "{line}");
        assert!(!text(&told.stderr).contains("hint:"), "{line}: {told:?}");
    }
    let mut misplaced = home.termgate("ls");
    let misplaced = misplaced.env("TERMGATE_RUNTIME_DIR", "relative").output().unwrap();
    assert_eq!(misplaced.status.code(), Some(USAGE), "{misplaced:?}");
    assert!(text(&home.run("ls").stderr).contains("`termgate new` starts one"));
}

#[test]
fn every_mistake_of_a_configuration_is_shown_when_no_daemon_starts() {
    let home = Home::new();
    let file = home.configure("mistake = 1\n[lease]\nother = 2\n");
    let failed = home.run("new");
    let told = text(&failed.stderr);
    let lines: Vec<&str> = told.lines().collect();
    let at = |line: u8, key: &str| format!("{}:{line}:1: {key}: unknown key", file.display());
    let first = "termgate: the configuration has 2 problems (invalid_configuration)";
    assert_eq!(lines[0], first, "{told}");
    assert!(lines[1].starts_with(&at(1, "mistake")), "{told}");
    assert!(lines[2].starts_with(&at(3, "lease.other")), "{told}");
    assert_eq!((lines.len(), failed.status.code()), (3, Some(USAGE)), "{told}");
    assert_eq!(home.envelope("new")["error_code"], "invalid_configuration");
}

#[test]
fn a_line_for_other_shells_is_printed_in_sessions_alone() {
    let home = Home::new();
    let outside = home.run("integrate bash");
    assert_eq!(outside.status.code(), Some(2), "{outside:?}");
    assert!(String::from_utf8_lossy(&outside.stderr).contains("in a session of termgate"));
    let nonce = "0123456789abcdef0123456789abcdef";
    let inside = |nonce: &str, line: &str| {
        home.termgate(line).env("TERMGATE_NESTED_NONCE", nonce).output().unwrap()
    };
    for shell in ["bash", "zsh", "fish", "sh"] {
        let line = String::from_utf8(inside(nonce, &format!("integrate {shell}")).stdout).unwrap();
        assert!(
            line.starts_with(' ') && line.contains(nonce) && line.lines().count() == 1,
            "{line}"
        );
    }
    let json = inside(nonce, "integrate sh --json").stdout;
    let told: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(told["data"]["shell"], "sh");
    // What is no nonce goes into no line.
    assert_eq!(inside("$(reboot)", "integrate bash").status.code(), Some(2));
}
