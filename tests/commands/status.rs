//! `ls --daemon`: the daemon's counters for people, for programs and for Prometheus.

use crate::harness::home::Home;

#[test]
fn people_see_what_the_daemon_is_and_what_it_did() {
    let home = Home::new();
    let daemon = home.daemon();
    home.printed("new --name build -- cat");
    let told = home.printed("ls --daemon");
    let first = told.lines().next().unwrap();
    assert!(first.contains(&format!("pid {}", daemon.pid())), "{told}");
    assert!(told.contains("1 running, 0 ended, 1 created in all"), "{told}");
    assert!(told.contains("writing      on for everything"), "{told}");
    let call = told.lines().find(|line| line.starts_with("create_session")).unwrap();
    assert_eq!(call.split_whitespace().collect::<Vec<_>>(), ["create_session", "ok", "1"]);
}

#[test]
fn programs_get_the_same_in_an_envelope() {
    let home = Home::new();
    let daemon = home.daemon();
    let told = home.envelope("ls --daemon");
    assert_eq!((&told["ok"], &told["data"]["pid"]), (&true.into(), &daemon.pid().into()));
}

#[test]
fn prometheus_gets_text_and_no_envelope() {
    let home = Home::new();
    let _daemon = home.daemon();
    let told = home.printed("ls --daemon --prometheus");
    for line in ["# TYPE termgate_sessions gauge", "termgate_sessions{state=\"running\"} 0"] {
        assert!(told.lines().any(|told| told == line), "{line}: {told}");
    }
    for line in ["ls --prometheus", "ls --daemon --prometheus --json"] {
        assert_eq!(home.run(line).status.code(), Some(2), "{line}");
    }
}

#[test]
fn without_a_daemon_there_is_nothing_to_count() {
    let home = Home::new();
    assert_eq!(home.run("ls --daemon").status.code(), Some(7));
}

#[test]
fn how_long_a_state_lasts_is_told_unless_it_may_have_begun_before_a_restart() {
    let home = Home::new();
    let daemon = home.daemon();
    home.printed("new --name build");
    let in_state = |state: &str| loop {
        let listed = home.envelope("ls");
        let session = &listed["data"]["sessions"][0];
        if session["activity"]["state"] == state {
            return session["state_ms"].clone();
        }
    };
    assert!(in_state("prompt").is_u64());
    daemon.killed();
    let _daemon = home.daemon();
    assert!(in_state("prompt").is_null());
    home.printed("send build cat --enter");
    assert!(in_state("needs_input").is_u64());
    home.printed("keys build C-c");
    assert!(in_state("prompt").is_u64());
}
