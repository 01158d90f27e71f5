//! Whether the installed MCP clients have termgate configured and can find it.

use crate::cli::doctor::check::Check;
use crate::cli::doctor::ground::DoctorFacts;
use crate::cli::install::client::{ClientSighting, Knowledge, sightings};
use crate::cli::install::entry_format::NAME;
use crate::cli::install::place::Surroundings;
use crate::wire::word;

const CHECK: &str = "clients";

/// One check for each client that seems installed; a single one when there is none.
pub(super) fn clients(_: &DoctorFacts) -> Vec<Check> {
    let around = match Surroundings::of_process() {
        Ok(around) => around,
        Err(error) => return vec![Check::warn(CHECK, error.to_string(), "Set HOME.")],
    };
    let seen = sightings(&around, NAME);
    if seen.is_empty() {
        return vec![Check::ok(CHECK, "no supported MCP client found")];
    }
    seen.iter().map(|sighting| told(sighting, &around.shown(&sighting.file))).collect()
}

fn told(sighting: &ClientSighting, file: &str) -> Check {
    let title = sighting.client.title;
    let scope = word(&sighting.scope);
    let install = format!("termgate install --client {} --scope {scope}", sighting.client.name);
    match &sighting.knowledge {
        Knowledge::Starts { program, there: true } => {
            Check::ok(CHECK, format!("{title} starts {}", program.display()))
        }
        Knowledge::Starts { program, there: false } => Check::fail(
            CHECK,
            format!("{title} starts {}, which is not there ({file})", program.display()),
            format!("To correct it, run: {install}"),
        ),
        Knowledge::Other => Check::warn(
            CHECK,
            format!("{title} has an entry `{NAME}` that starts no program ({file})"),
            format!("To replace it, run: {install}"),
        ),
        Knowledge::Unknown => {
            Check::ok(CHECK, format!("{title} does not know termgate; to hook it up: {install}"))
        }
        Knowledge::Unreadable(why) => {
            Check::warn(CHECK, format!("{file} of {title}: {why}"), "Correct that file by hand.")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::cli::doctor::check::Verdict;
    use crate::cli::install::client::McpClient;
    use crate::cli::install::place::InstallScope;

    fn check(knowledge: Knowledge) -> Check {
        let client = McpClient::named("zed").unwrap();
        let file = PathBuf::from("/f");
        told(&ClientSighting { client, scope: InstallScope::Project, file, knowledge }, "/f")
    }

    #[test]
    fn a_client_that_starts_what_is_gone_fails_with_the_command_that_mends_it() {
        let program = Path::new("/gone/termgate").to_owned();
        let gone = check(Knowledge::Starts { program: program.clone(), there: false });
        assert_eq!(gone.verdict, Verdict::Fail);
        let advice = gone.advice.unwrap();
        assert!(advice.ends_with("termgate install --client zed --scope project"), "{advice}");
        assert_eq!(check(Knowledge::Starts { program, there: true }).verdict, Verdict::Ok);
    }

    #[test]
    fn a_client_that_does_not_know_termgate_is_nothing_to_worry_about() {
        assert_eq!(check(Knowledge::Unknown).verdict, Verdict::Ok);
        assert_eq!(check(Knowledge::Other).verdict, Verdict::Warn);
        assert_eq!(check(Knowledge::Unreadable("no".to_owned())).verdict, Verdict::Warn);
    }
}
