//! The processes that hold the terminals of sessions, and whether the daemon goes on with each.
//!
//! It asks no holder anything, since whoever connects to one takes its session over.

use std::fs;
use std::path::Path;

use crate::cli::doctor::check::Check;
use crate::cli::doctor::ground::{Found, Ground};
use crate::config::paths::RuntimePaths;
use crate::core::ids::SessionId;
use crate::holder::WORD;
use crate::session::pty::ProcessId;
use crate::session::pty::processes::is_stopped;

const NAME: &str = "holders";

/// A session whose terminal is held, or was.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    session: SessionId,
    /// Who holds it; none when that process is gone.
    by: Option<ProcessId>,
    stopped: bool,
    /// Whether a daemon has opened the session's doors.
    claimed: bool,
}

/// Which sessions are held, and what is odd about any of them.
pub(super) fn holders(ground: &Ground) -> Vec<Check> {
    let Ok(paths) = &ground.paths else { return Vec::new() };
    judge(&held(paths), matches!(ground.daemon, Found::Running(_)))
}

fn judge(held: &[Held], runs: bool) -> Vec<Check> {
    let mut checks = Vec::new();
    for Held { session, by, stopped, claimed } in held {
        checks.extend(match by {
            Some(pid) if *stopped => Some(Check::warn(
                NAME,
                format!("process {pid}, which holds session {session}, stands still"),
                format!("If it was not meant to be stopped, run: kill -CONT {pid}"),
            )),
            Some(pid) if runs && !claimed => Some(Check::warn(
                NAME,
                format!("process {pid} holds session {session}, which the daemon does not have"),
                format!(
                    "The daemon's log says why. `termgate upgrade` tries again; to end its programs, \
                     run: kill -9 {pid}"
                ),
            )),
            None if runs => Some(Check::warn(
                NAME,
                format!("nobody holds session {session} any more"),
                "Its holder was killed; the next daemon clears up what it left.",
            )),
            Some(_) | None => None,
        });
    }
    if !checks.is_empty() {
        return checks;
    }
    vec![match (held.len(), runs) {
        (0, _) => Check::ok(NAME, "none"),
        (count, true) => Check::ok(NAME, format!("{count}, each of a session of the daemon")),
        (count, false) => {
            Check::ok(NAME, format!("{count}, whose sessions wait for the next daemon"))
        }
    }]
}

fn held(paths: &RuntimePaths) -> Vec<Held> {
    let holders = holders_below(&paths.holders());
    let entries = fs::read_dir(paths.holders()).into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| session_of(entry.file_name().to_str()?));
    ids.map(|session| {
        let by = holders.iter().find(|(of, _)| *of == session).map(|(_, pid)| *pid);
        let stopped = by.is_some_and(is_stopped);
        Held { session, by, stopped, claimed: paths.session(session).exists() }
    })
    .collect()
}

/// Who holds a terminal at a socket in this directory, by the command lines of all processes.
fn holders_below(directory: &Path) -> Vec<(SessionId, ProcessId)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let holder = |entry: fs::DirEntry| {
        let pid = ProcessId(entry.file_name().to_str()?.parse().ok()?);
        let line = fs::read_to_string(entry.path().join("cmdline")).ok()?;
        let mut words = line.split('\0').skip(1);
        let path = words.next().filter(|word| *word == WORD).and_then(|_| words.next())?;
        let name = Path::new(path).strip_prefix(directory).ok()?;
        Some((session_of(name.to_str()?)?, pid))
    };
    entries.filter_map(holder).collect()
}

fn session_of(file: &str) -> Option<SessionId> {
    file.strip_suffix(".sock")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::check::Verdict;

    fn one(by: Option<i32>, stopped: bool, claimed: bool) -> Held {
        let session = "0123456789ab".parse().unwrap();
        Held { session, by: by.map(ProcessId), stopped, claimed }
    }

    #[test]
    fn a_holder_that_no_session_claims_is_told_while_a_daemon_runs() {
        let told = judge(&[one(Some(7), false, false)], true);
        assert_eq!(told[0].verdict, Verdict::Warn);
        assert!(told[0].found.contains("process 7 holds session 0123456789ab"), "{told:?}");
        assert_eq!(judge(&[one(Some(7), false, false)], false)[0].verdict, Verdict::Ok);
        assert_eq!(judge(&[one(Some(7), false, true)], true)[0].verdict, Verdict::Ok);
    }

    #[test]
    fn a_holder_that_was_stopped_or_killed_is_told() {
        let stopped = judge(&[one(Some(7), true, true)], true);
        assert!(stopped[0].advice.as_ref().unwrap().contains("kill -CONT 7"), "{stopped:?}");
        let killed = judge(&[one(None, false, true)], true);
        assert_eq!(killed[0].verdict, Verdict::Warn);
        assert_eq!(judge(&[], true)[0].found, "none");
    }
}
