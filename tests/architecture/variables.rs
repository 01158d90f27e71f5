//! Variables: every `TERMGATE_` name that the program reads is one that a configuration knows, so
//! that no daemon refuses to start because of it.

use termgate::config::environment::is_known;

use crate::architecture::source::{Complaint, Source, all, assert_none};

/// The variables of ours that the file names outside of tests and the configuration does not know.
fn unknown_variables(source: &Source) -> Vec<Complaint> {
    let tests: Vec<usize> =
        source.tokens.iter().filter(|token| token.test).map(|token| token.line).collect();
    let mut complaints = Vec::new();
    for (line, text) in source.text.lines().enumerate().map(|(at, text)| (at + 1, text)) {
        let names = text.split('"').skip(1).step_by(2).filter(|it| it.starts_with("TERMGATE_"));
        for name in names.filter(|name| *name != "TERMGATE_" && !is_known(name)) {
            if !source.test && !tests.contains(&line) {
                let problem = format!("{name} is not in config/environment");
                complaints.push(source.complaint(line, problem));
            }
        }
    }
    complaints
}

#[test]
fn every_variable_that_is_read_is_one_that_a_daemon_knows() {
    assert_none(&all().iter().flat_map(unknown_variables).collect::<Vec<_>>());
}

#[test]
fn a_variable_that_a_daemon_does_not_know_is_reported() {
    let text = "const A: &str = \"TERMGATE_SOCKET\";\nconst B: &str = \"TERMGATE_ODD\";\n\
                #[cfg(test)]\nmod tests { const C: &str = \"TERMGATE_EVEN\"; }";
    let complaints = unknown_variables(&Source::parse("cli/new.rs", text));
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    assert_eq!(
        complaints[0].to_string(),
        "src/cli/new.rs:2: TERMGATE_ODD is not in config/environment"
    );
}
