//! Reads process ancestry from `/proc`: whether a process runs inside a session.
//! A shim adopts orphans, so it stays an ancestor of every process in its session.
//! Nothing here allocates, because a running shim uses it too.

use nix::errno::Errno;

use crate::shim::mark::Depth;
use crate::shim::stat::{ProcessStat, Unseen, seen};

/// How often to retry when the ancestry changes during a walk.
const WALKS_MAX: usize = 3;
/// The most ancestors to walk before the answer is unknown.
const ANCESTORS_MAX: usize = 256;
/// The most nested sessions to walk.
const SESSIONS_MAX: usize = 16;

/// Whether a process runs in a session that `own` is not in.
///
/// `own` is this process, a daemon or a shim; all its descendants count as inside. `own` may itself run in a
/// session. Other programs of that session count as outside. A marked process without a shim above it
/// belonged to a shim that is gone.
///
/// # Errors
/// If the ancestry keeps changing, or part of it cannot be read.
pub fn lives_inside(pid: i32, own: i32) -> Result<bool, Unseen> {
    let marks = Marks::of(pid)?;
    Ok(marks.say_inside() || again(|| inside(pid, own, marks, ProcessStat::look))?)
}

/// Whether a listening process that `own` has connected to runs in a session that `own` is not in.
///
/// Only shims above the process count. The process itself may be a shim, and `own` may have started it.
///
/// # Errors
/// If the ancestry keeps changing, or part of it cannot be read.
pub fn listens_inside(pid: i32, own: i32) -> Result<bool, Unseen> {
    let marks = Marks::of(pid)?;
    Ok(marks.say_inside() || again(|| listener_inside(pid, own, marks, ProcessStat::look))?)
}

/// Retries while the ancestry changes, up to [`WALKS_MAX`] walks.
fn again(look: impl Fn() -> Result<bool, Unseen>) -> Result<bool, Unseen> {
    let mut looks = (0..WALKS_MAX).map(|_| look());
    looks.find(|looked| *looked != Err(Unseen::Gone)).unwrap_or(Err(Unseen::Gone))
}

/// The session depths of two processes.
#[derive(Clone, Copy, Debug)]
struct Marks {
    theirs: Depth,
    own: Depth,
}

impl Marks {
    fn of(pid: i32) -> Result<Self, Unseen> {
        Ok(Self { theirs: Depth::of(pid)?, own: Depth::own()? })
    }

    /// Whether the marks alone say that the other process is inside. No walk can change that, so none is made,
    /// however many ancestors the process has.
    fn say_inside(self) -> bool {
        self.theirs < self.own
    }
}

/// [`lives_inside`] with a given `look`. The ancestry may change between two calls.
fn inside(
    pid: i32,
    own: i32,
    marks: Marks,
    look: impl Fn(i32) -> Result<ProcessStat, Unseen>,
) -> Result<bool, Unseen> {
    if pid == own {
        return Ok(false);
    }
    let home = nearest(pid, |pid, member| pid == own || member.is_shim, &look)?;
    is_apart(home, own, marks, look)
}

fn listener_inside(
    pid: i32,
    own: i32,
    marks: Marks,
    look: impl Fn(i32) -> Result<ProcessStat, Unseen>,
) -> Result<bool, Unseen> {
    is_apart(shim_above(pid, &look)?, own, marks, look)
}

/// Whether a process whose nearest shim is `home` runs in a session that `own` is not in.
///
/// Any process of the user can lower the limit of any other. So the mark of `own` counts only if a shim above
/// `own` confirms it.
fn is_apart(
    home: Option<i32>,
    own: i32,
    marks: Marks,
    look: impl Fn(i32) -> Result<ProcessStat, Unseen>,
) -> Result<bool, Unseen> {
    if home.is_none() {
        return Ok(marks.theirs.is_marked());
    }
    Ok(home != shim_above(own, look)? || marks.say_inside())
}

/// The nearest shim above a process.
fn shim_above(
    pid: i32,
    look: impl Fn(i32) -> Result<ProcessStat, Unseen>,
) -> Result<Option<i32>, Unseen> {
    nearest(look(pid)?.parent, |_, member| member.is_shim, look)
}

/// The outermost shim above a process that is not above `own` too; `None` without one.
///
/// All processes of a session have the same one, even if a program in it imitates a shim. Use it for
/// counting, not for access control.
///
/// # Errors
/// Returns the kernel's error if no file descriptor is left.
pub fn outermost_shim(pid: i32, own: i32) -> Result<Option<i32>, Errno> {
    outermost(pid, own, ProcessStat::look)
}

fn outermost(
    pid: i32,
    own: i32,
    look: impl Fn(i32) -> Result<ProcessStat, Unseen>,
) -> Result<Option<i32>, Errno> {
    let holds = |pid: i32, member: &ProcessStat| pid == own || member.is_shim;
    let around = match seen(look(own))? {
        Some(own) => seen(nearest(own.parent, holds, &look))?.flatten(),
        None => None,
    };
    let (mut at, mut found) = (pid, None);
    for _ in 0..SESSIONS_MAX {
        match seen(nearest(at, holds, &look))?.flatten() {
            Some(home) if home != own && Some(home) != around => {
                found = Some(home);
                let Some(shim) = seen(look(home))? else { break };
                at = shim.parent;
            }
            Some(_) | None => break,
        }
    }
    Ok(found)
}

/// The nearest process for which `is_home` holds: this process or an ancestor.
fn nearest(
    mut pid: i32,
    is_home: impl Fn(i32, &ProcessStat) -> bool,
    look: impl Fn(i32) -> Result<ProcessStat, Unseen>,
) -> Result<Option<i32>, Unseen> {
    let mut youngest = u64::MAX;
    for _ in 0..ANCESTORS_MAX {
        if pid == 0 {
            return Ok(None);
        }
        let member = look(pid)?;
        // A parent is older than its child. A younger one has a reused pid.
        if member.started > youngest {
            return Err(Unseen::Gone);
        }
        if is_home(pid, &member) {
            return Ok(Some(pid));
        }
        (pid, youngest) = (member.parent, member.started);
    }
    Err(Unseen::Gone)
}

#[cfg(test)]
mod tests;
