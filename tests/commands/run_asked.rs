//! `run` where rules ask: about what it asks, that it can be given up meanwhile, and what it leaves.

use crate::harness::home::{Home, PATH};

/// A home whose daemon asks as the set `careful` does.
fn careful_home() -> Home {
    let home = Home::new();
    let policy = home.configure("").with_file_name("policy.toml");
    std::fs::write(policy, home.printed("policy starter careful")).unwrap();
    home
}

#[test]
fn nobody_is_asked_about_the_callers_own_environment() {
    let home = careful_home();
    let _daemon = home.daemon();
    // The last one is handed on as by `new`.
    for (name, value) in [("FROM_CALLER", "caller"), ("PATH", &*format!("/nowhere:{PATH}"))] {
        let mut command = home.termgate("run -- true");
        let output = command.env(name, value).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{name}: {output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!said.contains("approval:"), "{name}: {said}");
    }
}
