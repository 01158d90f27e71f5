//! `termgate journal`, as an operator uses it who looks back.

use std::fs;

use serde_json::Value;

use crate::harness::home::Home;

/// The records that a command prints with `--json`.
fn records(home: &Home, line: &str) -> Vec<Value> {
    let printed = home.printed(&format!("{line} --json"));
    let data = |line: &str| serde_json::from_str::<Value>(line).unwrap()["data"].clone();
    printed.lines().map(data).collect()
}

/// Two sessions, of which one was typed in.
fn work(home: &Home) -> [String; 2] {
    ["one", "two"].map(|name| home.printed(&format!("new --name {name} -- cat")).trim().to_owned())
}

#[test]
fn acts_are_shown_by_session_person_kind_and_time() {
    let home = Home::new();
    let _daemon = home.daemon();
    let [one, two] = work(&home);
    home.printed("send one hello");
    home.printed("send two other");
    for name in [&one, "one"] {
        let shown = records(&home, &format!("journal show --session {name}"));
        let acts: Vec<_> = shown.iter().filter_map(|record| record["act"].as_str()).collect();
        assert_eq!(acts, ["create_session", "text"]);
        assert!(!shown.iter().any(|record| record["session"] == *two), "{shown:?}");
    }
    let newest = records(&home, "journal show --session one --tail 1");
    assert_eq!((&newest[0]["text"], newest.len()), (&"hello".into(), 2), "an act and its outcome");
    let typed = records(&home, "journal show --act text");
    assert_eq!(typed.iter().filter(|record| record["kind"] == "intent").count(), 2);
    assert_eq!(records(&home, "journal show --act text --by nobody"), Vec::<Value>::new());
    assert_eq!(records(&home, "journal show --act text --by termgate --since 1h").len(), 4);
    assert!(home.printed("journal show --act text").contains("hello"));
}

#[test]
fn following_prints_acts_of_one_session_as_they_are_recorded() {
    let home = Home::new();
    let _daemon = home.daemon();
    work(&home);
    let printed = home.path("printed");
    let mut command = home.termgate("journal follow --session one --act text");
    let file = fs::File::create(&printed).unwrap();
    let mut following = command.stdout(file).spawn().unwrap();
    let shown = || fs::read_to_string(&printed).unwrap();
    // What is typed before it looks is not followed.
    while !shown().contains("hello") {
        home.printed("send two other");
        home.printed("send one hello");
    }
    while !shown().contains(": done") {
        home.printed("ls");
    }
    following.kill().unwrap();
    following.wait().unwrap();
    assert!(!shown().contains("other"), "{}", shown());
}

#[test]
fn a_noted_hash_and_an_export_verify_until_something_is_changed() {
    let home = Home::new();
    let _daemon = home.daemon();
    work(&home);
    home.printed("send one hello");
    let verified = home.printed("journal verify");
    let noted = verified.lines().last().unwrap().strip_prefix("last record: ").unwrap();
    home.printed("send one more");
    home.printed(&format!("journal verify --expect {noted}"));
    let (number, hash) = noted.split_once(':').unwrap();
    let other = format!("{number}:{}", hash.chars().rev().collect::<String>());
    let refused = home.run(&format!("journal verify --expect {other}"));
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("has another hash"));
    let unknown = home.run(&format!("journal verify --expect 9999:{hash}"));
    assert_eq!(unknown.status.code(), Some(1));

    let export = home.path("export.jsonl");
    let exported = home.printed("journal export");
    fs::write(&export, &exported).unwrap();
    let line = format!("journal verify {}", export.display());
    assert!(home.printed(&line).contains("all hashes match"));
    fs::write(&export, exported.replace("hello", "jello")).unwrap();
    let found = home.run(&line);
    assert_eq!(found.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&found.stderr).contains("its hash does not cover"));
}

#[test]
fn without_input_the_journal_keeps_lengths_and_long_inputs_hashes() {
    let home = Home::new();
    home.configure("journal.keep_input = false\n");
    let _daemon = home.daemon();
    work(&home);
    home.printed("send one hello");
    home.printed("send one a-text-of-more-than-16-bytes");
    let exported = home.printed("journal export");
    assert!(!exported.contains("hello") && !exported.contains("of-more-than"), "{exported}");
    let typed = records(&home, "journal show --act text");
    let sizes: Vec<_> = typed.iter().filter_map(|record| record["bytes"].as_u64()).collect();
    assert_eq!(sizes, [5, 28]);
    let hashed = |record: &&Value| record["sha256"].is_string();
    assert_eq!(typed.iter().filter(hashed).count(), 1);
}
