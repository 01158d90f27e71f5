//! Which sessions a previous daemon left: those whose shims run or have sockets, and those that files stand for.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use crate::core::ids::SessionId;
use crate::session::pty::held::shims::{living_shims, socket_of};
use crate::session::pty::sidecar_files::Remains;
use crate::shim::socket;

/// The sessions whose shims run, read at the first use, after a shim was not found.
#[derive(Debug, Default)]
pub(super) struct Living(OnceLock<Option<BTreeSet<SessionId>>>);

impl Living {
    pub(super) fn has(&self, id: SessionId, directory: &Path) -> bool {
        // If the scan failed, every shim counts as running.
        self.0.get_or_init(|| living_in(directory)).as_ref().is_none_or(|all| all.contains(&id))
    }
}

/// The sessions whose shims run; `None` if the scan failed.
pub(super) fn living_in(directory: &Path) -> Option<BTreeSet<SessionId>> {
    let living = living_shims(directory).inspect_err(
        |error| tracing::warn!(%error, "cannot tell which shims are alive; all are kept"),
    );
    living.ok().map(|living| living.into_keys().collect())
}

/// The sessions with a socket in this directory, a running shim, or a file that stands for them. Files of other sessions are removed,
/// because their shims ended by themselves. If `living` is unknown, nothing is removed.
pub(super) fn sort_out(
    directory: &Path,
    living: Option<BTreeSet<SessionId>>,
) -> io::Result<Vec<SessionId>> {
    let mut ids = living.clone().unwrap_or_default();
    let (mut others, mut unfinished) = (BTreeSet::new(), Vec::new());
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else { continue };
        let parse = |id: &str| id.parse::<SessionId>().ok();
        // Files with other names are not ours.
        ids.extend(Remains::session_of(name).and_then(parse));
        others.extend(Remains::owner(name).and_then(parse));
        unfinished
            .extend(name.strip_prefix('.').and_then(|it| it.strip_suffix(".new")).and_then(parse));
    }
    let Some(living) = living else {
        ids.extend(others);
        return Ok(ids.into_iter().collect());
    };
    // The previous daemon was still starting these shims, and no client knows them. A shim that is still
    // about to listen finds its socket gone and exits.
    for id in unfinished.into_iter().filter(|id| !living.contains(id)) {
        let _ = fs::remove_file(socket::unfinished(&socket_of(directory, id)));
    }
    for id in others.difference(&ids) {
        Remains::beside(&socket_of(directory, *id)).clear();
    }
    Ok(ids.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nobody_can_say_who_lives_every_session_stays_and_nothing_is_removed() {
        let ground = tempfile::tempdir().unwrap();
        let names = ["00000000000a.sock", "00000000000b.session", ".00000000000c.sock.new"];
        for name in names {
            fs::write(ground.path().join(name), "").unwrap();
        }
        let ids = sort_out(ground.path(), None).unwrap();
        assert_eq!(ids, ["00000000000a", "00000000000b"].map(|id| id.parse().unwrap()));
        assert!(names.iter().all(|name| ground.path().join(name).exists()));
        let living = BTreeSet::from(["00000000000a".parse().unwrap()]);
        assert_eq!(sort_out(ground.path(), Some(living)).unwrap(), ids[..1]);
        assert!(!ground.path().join("00000000000b.session").exists());
        // One that ended is there without a socket, and what is beside its file stays.
        let names = ["00000000000d.ended", "00000000000d.notes", "00000000000e.notes"];
        for name in names {
            fs::write(ground.path().join(name), "").unwrap();
        }
        let ids = sort_out(ground.path(), Some(BTreeSet::new())).unwrap();
        assert_eq!(ids, ["00000000000a", "00000000000d"].map(|id| id.parse().unwrap()));
        assert_eq!(names.map(|name| ground.path().join(name).exists()), [true, true, false]);
    }
}
