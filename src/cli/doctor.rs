//! `doctor`: checks everything that termgate needs and explains each problem.
//!
//! It changes nothing and starts nothing. A subject is a function from the collected facts to its checks.

mod check;
mod clients;
mod ground;
mod machine;
mod place;
mod running;
mod service;
mod shims;

use clap::Args;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::doctor::check::{Check, Verdict};
use crate::cli::doctor::ground::{DoctorFacts, FoundDaemon};
use crate::cli::exit::CommandExit;
use crate::cli::failure::CliFailure;
use crate::cli::output::CommandReport;

/// Check everything that termgate needs, and explain how to fix each problem
///
/// Ends with 1 if a check failed; a warning is not a failure.
#[derive(Debug, Args)]
pub struct DoctorCommand {}

/// Every subject, in the order of the output.
const SUBJECTS: [fn(&DoctorFacts) -> Vec<Check>; 16] = [
    place::runtime_directory,
    place::socket_paths,
    place::sockets,
    running::daemon,
    held,
    running::writing,
    running::configuration,
    running::mounts,
    place::log,
    machine::terminals,
    machine::descriptors,
    machine::shells,
    machine::terminfo,
    machine::sandbox,
    service::systemd,
    clients::clients,
];

fn held(ground: &DoctorFacts) -> Vec<Check> {
    match &ground.daemon {
        _ if ground.paths.is_err() => Vec::new(),
        FoundDaemon::Running(status) => shims::shims(&ground.held, Some(status)),
        FoundDaemon::Absent | FoundDaemon::Broken(_) => shims::shims(&ground.held, None),
    }
}

impl DoctorCommand {
    pub async fn run(self, context: &Context) -> Result<CommandReport, CliFailure> {
        let ground = DoctorFacts::look(context).await;
        let checks: Vec<Check> = SUBJECTS.iter().flat_map(|subject| subject(&ground)).collect();
        Ok(report(&checks))
    }
}

fn report(checks: &[Check]) -> CommandReport {
    let count = |verdict| checks.iter().filter(|check| check.verdict == verdict).count();
    let (warned, failed) = (count(Verdict::Warn), count(Verdict::Fail));
    let text = checks.iter().map(Check::line).collect::<Vec<_>>().join("\n");
    let data = json!({"checks": checks, "warned": warned, "failed": failed});
    let exit = if failed == 0 { CommandExit::Done } else { CommandExit::Failed };
    CommandReport { exit, ..CommandReport::new(data, text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_no_failure_and_a_failure_is() {
        let fine = Check::ok("a", "fine");
        let odd = Check::warn("b", "odd", "look");
        let wrong = Check::fail("c", "wrong", "mend it");
        assert_eq!(report(&[fine.clone(), odd.clone()]).exit, CommandExit::Done);
        let told = report(&[fine, odd, wrong]);
        assert_eq!(told.exit, CommandExit::Failed);
        assert_eq!((&told.data["warned"], &told.data["failed"]), (&json!(1), &json!(1)));
        assert_eq!(told.data["checks"][2]["advice"], "mend it");
        assert_eq!(told.data["checks"][0], json!({"name": "a", "verdict": "ok", "found": "fine"}));
    }
}
