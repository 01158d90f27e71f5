//! The shims of sessions, and whether the daemon serves each session.
//!
//! It connects to no shim, since a connection takes the session over.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::cli::doctor::check::Check;
use crate::config::paths::RuntimePaths;
use crate::core::ids::SessionId;
use crate::session::pty::ProcessId;
use crate::session::pty::held::shims::living_shims;
use crate::session::pty::processes::{is_stopped, told_of};
use crate::wire::status::DaemonStatus;

const NAME: &str = "shims";

/// A session that has or had a shim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeldSession {
    session: SessionId,
    /// The shim; none when that process is gone.
    by: Option<ProcessId>,
    stopped: bool,
    /// Whether a daemon has opened the session's sockets.
    claimed: bool,
    /// Whether the shim has a socket by which a new daemon finds it.
    socket: bool,
}

/// How many sessions have shims, and what is wrong with any of them, by the status of the daemon that runs.
pub(super) fn shims(held: &[HeldSession], daemon: Option<&DaemonStatus>) -> Vec<Check> {
    let Some(status) = daemon else { return judge(held, Runs::No) };
    let pid = i32::try_from(status.pid).ok();
    judge(held, Runs::Yes(pid.and_then(|pid| DescriptorShortage::of(ProcessId(pid)))))
}

/// Returns what `look` sees once the state is stable. A session that is just starting or ending looks
/// lost for a moment. A problem counts if it is in the first look and lasts.
pub(super) async fn settled(
    mut look: impl FnMut() -> Vec<HeldSession>,
    runs: bool,
) -> Vec<HeldSession> {
    /// Longer than it takes to create a session on a busy machine.
    const PATIENCE: Duration = Duration::from_secs(2);
    const EVERY: Duration = Duration::from_millis(100);
    let is_odd = |one: &HeldSession| !one.socket || runs && (!one.claimed || one.by.is_none());
    let first = look();
    let until = Instant::now() + PATIENCE;
    let mut seen = first.clone();
    while seen.iter().any(is_odd) && Instant::now() < until {
        sleep(EVERY).await;
        seen = look();
    }
    seen.retain(|one| !is_odd(one) || first.contains(one));
    seen
}

/// Whether a daemon runs, and its shortage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runs {
    No,
    Yes(Option<DescriptorShortage>),
}

/// A daemon with hardly any descriptor left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DescriptorShortage {
    pid: ProcessId,
    open: usize,
    limit: usize,
}

impl DescriptorShortage {
    /// With about this many free descriptors, a daemon stops taking over sessions.
    const SPARE_MAX: usize = 32;

    fn of(pid: ProcessId) -> Option<Self> {
        let limits = told_of(pid, "limits")?;
        let limit = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
        let limit = limit.split_whitespace().next()?.parse().ok()?;
        // The size of the directory is readable even when its entries are not.
        let open = fs::metadata(format!("/proc/{pid}/fd")).ok()?.len();
        let open = usize::try_from(open).ok().filter(|open| *open > 0)?;
        (open + Self::SPARE_MAX >= limit).then_some(Self { pid, open, limit })
    }

    fn advice(self) -> String {
        let Self { pid, open, limit } = self;
        format!(
            "The daemon has {open} of {limit} descriptors open, and none for it. It is found \
             when sessions that have ended are removed (`termgate kill` does); or run \
             `kill -USR1 {pid}`, which leaves all sessions as they are, and start the daemon with a \
             higher hard limit (ulimit -Hn, LimitNOFILE=)."
        )
    }
}

fn judge(held: &[HeldSession], daemon: Runs) -> Vec<Check> {
    let (runs, shortage) = match daemon {
        Runs::No => (false, None),
        Runs::Yes(shortage) => (true, shortage),
    };
    let mut checks = Vec::new();
    for HeldSession { session, by, stopped, claimed, socket } in held {
        checks.extend(match by {
            // The shim listens again when the daemon that has the session ends.
            Some(_) if !socket && runs && *claimed => None,
            Some(pid) if !socket => Some(Check::warn(
                NAME,
                format!(
                    "process {pid} holds session {session}, and no daemon finds it, since its socket \
                     was removed"
                ),
                format!(
                    "It listens again within 30 s where its directory is there, and a daemon finds it \
                     then; to end its programs, run: kill -9 {pid}"
                ),
            )),
            Some(pid) if *stopped => Some(Check::warn(
                NAME,
                format!("process {pid}, which holds session {session}, is suspended"),
                format!("If it was not meant to be stopped, run: kill -CONT {pid}"),
            )),
            Some(pid) if runs && !claimed => Some(Check::warn(
                NAME,
                format!("process {pid} holds session {session}, which the daemon does not have"),
                shortage.map_or_else(
                    || {
                        format!(
                            "The daemon's log says why. `termgate upgrade` tries again; to end its \
                             programs, run: kill -9 {pid}"
                        )
                    },
                    DescriptorShortage::advice,
                ),
            )),
            None if runs => Some(Check::warn(
                NAME,
                format!("session {session} has no shim"),
                "Its shim was killed; the next daemon clears up what it left.",
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

/// The sessions with shims or sockets at this moment.
pub(super) fn held(paths: &RuntimePaths) -> Vec<HeldSession> {
    // Reads the sockets first. Otherwise a shim that ends meanwhile would seem to have none.
    let entries = fs::read_dir(paths.shims()).into_iter().flatten().flatten();
    let found: BTreeSet<_> =
        entries.filter_map(|entry| session_of(entry.file_name().to_str()?)).collect();
    let shims = living_shims(&paths.shims()).unwrap_or_default();
    let sessions: BTreeSet<_> = found.iter().chain(shims.keys()).copied().collect();
    let held = |session| {
        let by = shims.get(&session).copied();
        let stopped = by.is_some_and(is_stopped);
        let claimed = paths.session(session).exists();
        HeldSession { session, by, stopped, claimed, socket: found.contains(&session) }
    };
    sessions.into_iter().map(held).collect()
}

fn session_of(file: &str) -> Option<SessionId> {
    file.strip_suffix(".sock")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::check::Verdict;

    const YES: Runs = Runs::Yes(None);

    fn one(by: Option<i32>, stopped: bool, claimed: bool) -> HeldSession {
        let session = "0123456789ab".parse().unwrap();
        HeldSession { session, by: by.map(ProcessId), stopped, claimed, socket: true }
    }

    #[test]
    fn a_shim_that_no_session_claims_is_told_while_a_daemon_runs() {
        let told = judge(&[one(Some(7), false, false)], YES);
        assert_eq!(told[0].verdict, Verdict::Warn);
        assert!(told[0].found.contains("process 7 holds session 0123456789ab"), "{told:?}");
        assert_eq!(judge(&[one(Some(7), false, false)], Runs::No)[0].verdict, Verdict::Ok);
        assert_eq!(judge(&[one(Some(7), false, true)], YES)[0].verdict, Verdict::Ok);
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_is_being_created_or_ends_is_looked_at_again() {
        let new = HeldSession { socket: false, ..one(Some(7), false, false) };
        let listens = one(Some(7), false, false);
        let ended = one(None, false, true);
        let mut looks =
            [vec![new, ended], vec![listens], vec![one(Some(7), false, true)]].into_iter();
        let seen = settled(|| looks.next().expect("all is well"), true).await;
        assert_eq!(seen, [one(Some(7), false, true)]);
        // Without a daemon nobody opens doors.
        let waits = settled(|| vec![one(Some(7), false, false)], false).await;
        assert_eq!(judge(&waits, Runs::No)[0].verdict, Verdict::Ok);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_odd_stays_so_and_what_has_just_come_is_not_told() {
        let odd = one(Some(7), false, false);
        let mut pid = 7;
        let look = || {
            pid += 1;
            vec![
                odd.clone(),
                HeldSession {
                    session: "ba9876543210".parse().unwrap(),
                    ..one(Some(pid), false, false)
                },
            ]
        };
        let seen = settled(look, true).await;
        assert_eq!(seen, [odd]);
        assert_eq!(judge(&seen, YES)[0].verdict, Verdict::Warn);
    }

    #[test]
    fn a_shim_that_was_stopped_or_killed_is_told() {
        let stopped = judge(&[one(Some(7), true, true)], YES);
        assert!(stopped[0].advice.as_ref().unwrap().contains("kill -CONT 7"), "{stopped:?}");
        let killed = judge(&[one(None, false, true)], YES);
        assert_eq!(killed[0].verdict, Verdict::Warn);
        assert_eq!(judge(&[], YES)[0].found, "none");
    }

    #[test]
    fn a_shim_whose_socket_was_removed_is_told_unless_a_daemon_has_its_session() {
        let gone = |claimed| HeldSession { socket: false, ..one(Some(7), false, claimed) };
        assert_eq!(judge(&[gone(true)], YES)[0].verdict, Verdict::Ok);
        for runs in [YES, Runs::No] {
            let lost = &judge(&[gone(false)], runs)[0];
            assert_eq!(lost.verdict, Verdict::Warn);
            let advice = lost.advice.as_ref().unwrap();
            assert!(advice.contains("30 s") && advice.contains("kill -9 7"), "{lost:?}");
        }
    }

    #[test]
    fn a_session_for_which_the_daemon_has_no_descriptors_is_told_with_what_to_do() {
        let short = DescriptorShortage { pid: ProcessId(9), open: 60, limit: 64 };
        let told = &judge(&[one(Some(7), false, false)], Runs::Yes(Some(short)))[0];
        let advice = told.advice.as_ref().unwrap();
        assert!(advice.contains("60 of 64") && advice.contains("kill -USR1 9"), "{told:?}");
    }
}
