//! What a process has open, counted by kind.

use std::collections::BTreeMap;
use std::fs;

use crate::harness::waiting::until;

/// How many there are of each kind.
pub(crate) type Kinds = BTreeMap<String, usize>;

/// What a shim may keep for its session, however old that is, and of which a daemon may have one
/// open for each.
const KEPT: [(&str, usize); 2] = [("/memfd:termgate-history", 64), ("/memfd:termgate-screen", 2)];

/// What each daemon has, and may not have had yet: the search index with the first rows, its writer and one reader, and
/// the watches of its lock, its tokens and its three sockets.
const OF_DAEMON: [(&str, usize); 2] = [("/index-", 2), ("anon_inode:inotify", 8)];

/// What a process has open now.
pub(crate) fn open_in(pid: i32) -> Kinds {
    let mut kinds = Kinds::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).unwrap() {
        if let Ok(target) = fs::read_link(entry.unwrap().path()) {
            *kinds.entry(kind_of(&target.display().to_string())).or_default() += 1;
        }
    }
    kinds
}

/// A target without what only tells it from others of its kind.
fn kind_of(target: &str) -> String {
    let name = target.split(['[', ' ']).next().unwrap_or_default();
    name.replace(|part: char| part.is_ascii_digit(), "")
}

/// Waits until a process has no more open of any kind than `before`, save for what may be kept.
pub(crate) async fn are_no_more(pid: i32, before: &Kinds, sessions: usize) {
    let excess = || {
        let mut excess = open_in(pid);
        excess.retain(|kind, count| {
            let kept = KEPT.iter().find(|(name, _)| kind.starts_with(name));
            let own = OF_DAEMON.iter().find(|(name, _)| kind.contains(name));
            let allowed = kept.map(|(_, max)| max * sessions).or(own.map(|(_, max)| *max));
            *count > allowed.unwrap_or_default().max(before.get(kind).copied().unwrap_or_default())
        });
        excess
    };
    let what = format!("process {pid} to have no more open than {before:?}");
    let mut last = Kinds::new();
    let settled = || {
        let now = excess();
        if now != last {
            eprintln!("process {pid} has too much open: {now:?}");
            last.clone_from(&now);
        }
        now.is_empty()
    };
    until(&what, settled).await;
}
