//! The running daemon, what it allows, and the configuration for the next one.

use std::env;
use std::path::Path;

use crate::cli::doctor::check::Check;
use crate::cli::doctor::ground::{DoctorFacts, FoundDaemon};
use crate::cli::status::switches;
use crate::config::problem::Problem;
use crate::config::sources::{ConfigSource, Layer, Sources};
use crate::core::counted::counted;
use crate::session::pty::ProcessId;
use crate::session::pty::environment::SESSION_MARK;
use crate::session::pty::processes::is_stopped;
use crate::surface::TOOL_NAMES;
use crate::transport::unix::lock::DaemonLock;
use crate::wire::mount::MountWire;

/// Whether a daemon answers, and whether it has this program's version.
pub(super) fn daemon(ground: &DoctorFacts) -> Vec<Check> {
    const NAME: &str = "daemon";
    if ground.variable(SESSION_MARK).is_some() {
        return vec![Check::fail(
            NAME,
            "this is a program inside a session, and those can do nothing through the daemon",
            "Run termgate outside.",
        )];
    }
    let at = ground.socket.as_deref().unwrap_or(Path::new("")).display();
    vec![match &ground.daemon {
        FoundDaemon::Running(status) => {
            same_version((&status.version, status.pid), env!("CARGO_PKG_VERSION"))
        }
        FoundDaemon::Absent => Check::warn(
            NAME,
            format!("none runs at {at}"),
            "`termgate new` starts one, and so does `termgate serve`.",
        ),
        FoundDaemon::Broken(why) => match stopped_daemon(ground) {
            Some(pid) => Check::fail(
                NAME,
                format!("process {pid} is the daemon, but is suspended"),
                format!(
                    "Run: kill -CONT {pid}; or end it with kill -9 {pid}, and the next daemon finds \
                     its sessions."
                ),
            ),
            None => Check::fail(
                NAME,
                format!("{why}, at {at}"),
                "If it was killed, `termgate new` or `termgate serve` starts another; else see the \
                 log.",
            ),
        },
    }]
}

/// The daemon's process, if it is stopped.
fn stopped_daemon(ground: &DoctorFacts) -> Option<i32> {
    let paths = ground.paths.as_ref().ok()?;
    DaemonLock::owner(&paths.lock()).filter(|pid| is_stopped(ProcessId(*pid)))
}

fn same_version((theirs, pid): (&str, u32), ours: &str) -> Check {
    const NAME: &str = "daemon";
    if theirs == ours {
        return Check::ok(NAME, format!("{theirs} runs as process {pid}"));
    }
    Check::warn(
        NAME,
        format!("version {theirs} runs as process {pid}, and this is {ours}"),
        "Restart it when its sessions may end: termgate stop, then termgate serve.",
    )
}

/// Whether the servers of mounts work, those that have been started.
pub(super) fn mounts(ground: &DoctorFacts) -> Vec<Check> {
    const NAME: &str = "mounts";
    let odd = ground.mounts.iter().filter_map(|MountWire { name, problem, changed, .. }| {
        let told = match problem {
            Some(problem) => (format!("{name} does not work: {problem}"), "log"),
            None if *changed => (format!("{name} has changed its tools"), "tools"),
            None => return None,
        };
        let (found, command) = told;
        Some(Check::warn(NAME, found, format!("Run: termgate mounts {command} {name}")))
    });
    let odd: Vec<Check> = odd.collect();
    match ground.mounts.len() {
        0 => Vec::new(),
        all if odd.is_empty() => vec![Check::ok(NAME, counted(all, "server").to_string())],
        _ => odd,
    }
}

/// Whether the daemon allows writing.
pub(super) fn writing(ground: &DoctorFacts) -> Vec<Check> {
    const NAME: &str = "writing";
    let FoundDaemon::Running(status) = &ground.daemon else { return Vec::new() };
    let told = switches(&status.write);
    if !status.write.on.is_empty() {
        return vec![Check::ok(NAME, told)];
    }
    vec![Check::warn(
        NAME,
        format!("{told}: clients only watch"),
        "To let them write, run: termgate allow-write on",
    )]
}

/// Whether a daemon started here can read its configuration.
pub(super) fn configuration(ground: &DoctorFacts) -> Vec<Check> {
    const NAME: &str = "configuration";
    let Ok(directory) = env::current_dir() else {
        return vec![Check::warn(NAME, "the current directory is gone", "Go to another one.")];
    };
    let sources = Sources::new(None, &directory, &ground.environment, TOOL_NAMES);
    let effective = match sources.load() {
        Ok(effective) => effective,
        Err(error) => {
            let advice = "No daemon starts until this is fixed; `termgate config check` lists every problem.";
            return vec![Check::fail(NAME, error.to_string(), advice)];
        }
    };
    let mut checks: Vec<Check> = sources.files().iter().filter_map(unread).collect();
    let advice = "Nothing needs to be done: what holds without that file stays in force.";
    let noted = |note: &Problem| Check::warn(NAME, note.to_string(), advice);
    checks.extend(effective.notes.iter().map(noted));
    if !checks.is_empty() {
        return checks;
    }
    let there: Vec<_> = sources.files().into_iter().filter(|file| file.path.exists()).collect();
    if there.is_empty() {
        return vec![Check::ok(NAME, "no file; defaults apply")];
    }
    let fine = |file: ConfigSource| Check::ok(NAME, format!("{} is fine", file.path.display()));
    there.into_iter().map(fine).collect()
}

/// A check about a `config.toml` beside this file. Many programs use that name, but termgate does not
/// read it.
fn unread(source: &ConfigSource) -> Option<Check> {
    let misnamed = source.path.with_file_name("config.toml");
    if source.layer == Layer::Project || !misnamed.exists() {
        return None;
    }
    let found = format!("{} is not read", misnamed.display());
    let advice = format!("If it is meant for termgate, call it {}.", source.path.display());
    Some(Check::warn("configuration", found, advice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::check::Verdict;

    #[test]
    fn a_daemon_of_another_version_is_told() {
        let theirs = ("0.9.0", 7);
        assert_eq!(same_version(theirs, "0.9.0").verdict, Verdict::Ok);
        let other = same_version(theirs, "1.0.0");
        assert_eq!(other.verdict, Verdict::Warn);
        assert!(other.found.contains("0.9.0") && other.found.contains("1.0.0"), "{other:?}");
    }
}
