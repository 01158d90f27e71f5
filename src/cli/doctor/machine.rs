//! The machine's resources: terminals, descriptors, shells, the terminfo entry, and sandboxes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::doctor::check::Check;
use crate::cli::doctor::ground::DoctorFacts;
use crate::session::pty::command::{find_program, user_shell};
use crate::session::pty::sandbox::{self, SandboxError};
use crate::shim::terminal::open_terminal;
use crate::shim::wire::Window;
use crate::transport::unix::limits::hard_descriptor_limit;

/// `doctor` warns when fewer terminals are free.
const TERMINALS_SPARE: u64 = 64;
/// `doctor` warns when the limit is lower: each session and each client takes several descriptors.
const DESCRIPTORS_SPARE: u64 = 4_096;
const SHELLS: [&str; 4] = ["bash", "zsh", "fish", "sh"];
/// The value of `TERM` for programs in sessions.
const TERMINAL: &str = "xterm-256color";
/// The system directories of terminfo entries.
const TERMINFO: [&str; 4] =
    ["/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo", "/usr/lib/terminfo"];

/// Whether a terminal can be opened, and how many more.
pub(super) fn terminals(_ground: &DoctorFacts) -> Vec<Check> {
    const NAME: &str = "terminals";
    if let Err(error) = open_terminal(Window { rows: 24, cols: 80 }) {
        return vec![Check::fail(
            NAME,
            format!("none can be opened: {error}"),
            "See that /dev/pts is mounted, and that /proc/sys/kernel/pty/max is not reached.",
        )];
    }
    let number = |name: &str| {
        let text = fs::read_to_string(Path::new("/proc/sys/kernel/pty").join(name)).ok()?;
        text.trim().parse().ok()
    };
    vec![match (number("nr"), number("max")) {
        (Some(used), Some(max)) => spare_terminals(used, max),
        (None, _) | (_, None) => Check::ok(NAME, "a terminal can be opened"),
    }]
}

fn spare_terminals(used: u64, max: u64) -> Check {
    let found = format!("one was opened; {used} of {max} are in use");
    if max.saturating_sub(used) >= TERMINALS_SPARE {
        return Check::ok("terminals", found);
    }
    Check::warn("terminals", found, "Raise the limit: sysctl kernel.pty.max=4096")
}

/// The descriptor limit of a daemon started here.
pub(super) fn descriptors(_ground: &DoctorFacts) -> Vec<Check> {
    vec![match hard_descriptor_limit() {
        Ok(limit) => spare_descriptors(limit),
        Err(error) => Check::fail(
            "descriptors",
            format!("their limit cannot be read: {error}"),
            "A daemon does not start without it.",
        ),
    }]
}

fn spare_descriptors(limit: u64) -> Check {
    let found = format!("{limit} for a daemon that is started here");
    if limit >= DESCRIPTORS_SPARE {
        return Check::ok("descriptors", found);
    }
    Check::warn(
        "descriptors",
        found,
        "Many sessions and clients need more: raise the hard limit, such as with ulimit -Hn 65536.",
    )
}

/// Which shells are installed, and which one a session starts.
pub(super) fn shells(ground: &DoctorFacts) -> Vec<Check> {
    const NAME: &str = "shells";
    let is_there = |name: &&str| find_program(name, Path::new("/"), &ground.environment).is_ok();
    let there: Vec<&str> = SHELLS.into_iter().filter(is_there).collect();
    let usual = user_shell(&ground.environment);
    let found = format!("{}; a session starts {}", there.join(", "), usual.display());
    if !there.contains(&"sh") {
        let found = format!("no sh in PATH; found {found}");
        return vec![Check::fail(NAME, found, "Install a shell, or set PATH.")];
    }
    let wanted = ground.variable("SHELL").map(PathBuf::from).filter(|wanted| *wanted != usual);
    vec![match wanted {
        Some(wanted) => Check::warn(
            NAME,
            format!("SHELL is {}, which cannot be used; {found}", wanted.display()),
            "Set SHELL to a shell that is there.",
        ),
        None => Check::ok(NAME, found),
    }]
}

/// Whether programs in sessions find the terminfo entry of their terminal.
pub(super) fn terminfo(ground: &DoctorFacts) -> Vec<Check> {
    const NAME: &str = "terminfo";
    let own = ground.variable("TERMINFO").map(PathBuf::from);
    let home = ground.variable("HOME").map(|home| Path::new(home).join(".terminfo"));
    let places = own.into_iter().chain(home).chain(TERMINFO.map(PathBuf::from));
    // Some systems name the directories by the letter, others by its hexadecimal code.
    let mut files =
        places.flat_map(|place| ["x", "78"].map(|part| place.join(part).join(TERMINAL)));
    vec![match files.find(|file| file.is_file()) {
        Some(file) => Check::ok(NAME, file.display().to_string()),
        None => Check::warn(
            NAME,
            format!("{TERMINAL} is nowhere, and full-screen programs will fail"),
            "Install the package ncurses-base, or set TERMINFO.",
        ),
    }]
}

/// Whether sandboxed sessions can be created.
pub(super) fn sandbox(ground: &DoctorFacts) -> Vec<Check> {
    const NAME: &str = "sandbox";
    vec![match sandbox::check(&ground.environment) {
        Ok(maker) => Check::ok(NAME, format!("{} makes sandboxes", maker.display())),
        Err(error @ SandboxError::NotInstalled) => Check::warn(
            NAME,
            error.to_string(),
            "Sessions with --sandbox are refused: install the package bubblewrap.",
        ),
        Err(
            error @ (SandboxError::NotWorking(_)
            | SandboxError::Link(_)
            | SandboxError::Place { .. }
            | SandboxError::NoShim),
        ) => Check::warn(
            NAME,
            error.to_string(),
            "Sessions with --sandbox are refused: allow user namespaces, as \
             `sysctl user.max_user_namespaces` and AppArmor's profile for bwrap say.",
        ),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::check::Verdict;

    #[test]
    fn terminals_that_are_almost_used_up_are_a_warning() {
        assert_eq!(spare_terminals(10, 4_096).verdict, Verdict::Ok);
        assert_eq!(spare_terminals(4_090, 4_096).verdict, Verdict::Warn);
        assert_eq!(spare_terminals(5_000, 4_096).verdict, Verdict::Warn);
    }

    #[test]
    fn few_descriptors_are_a_warning() {
        assert_eq!(spare_descriptors(65_536).verdict, Verdict::Ok);
        assert_eq!(spare_descriptors(1_024).verdict, Verdict::Warn);
    }
}
