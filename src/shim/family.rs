//! Who came of whom, as `/proc` shows it: whether a process lives inside a session.
//!
//! It knows no socket and allocates nothing, since a shim that runs asks, too. A shim adopts
//! whoever its program leaves behind, so it stays above all that came of it, whichever daemon
//! there is and whatever they did to leave.

use nix::errno::Errno;

use crate::shim::mark::Depth;
use crate::shim::stat::{ProcessStat, Unseen, seen};

/// How often a family that changes while it is looked at is looked at again.
const WALKS_MAX: usize = 3;
/// How many ancestors a process may have before nobody can say where it lives.
const ANCESTORS_MAX: usize = 256;
/// How many sessions in each other are looked through.
const SESSIONS_MAX: usize = 16;

/// Whether a process lives in a session in which `own` does not live itself.
///
/// `own` is this process, a daemon or a shim, and all that came of it lives inside. It may itself live in a
/// session, whose programs are its neighbours and not its affair. A process that carries a mark and has no
/// shim above it came of a shim that is gone.
///
/// # Errors
/// When its family kept changing, or a part of it cannot be seen.
pub fn lives_inside(pid: i32, own: i32) -> Result<bool, Unseen> {
    let marks = Marks::of(pid)?;
    again(|| inside(pid, own, marks, ProcessStat::look))
}

/// Whether a process that listens, and that `own` has connected with, lives in a session in which `own`
/// does not live.
///
/// A shim above it counts, and neither itself, which may be one, nor `own`, which may have started it.
///
/// # Errors
/// As above.
pub fn listens_inside(pid: i32, own: i32) -> Result<bool, Unseen> {
    let marks = Marks::of(pid)?;
    again(|| listener_inside(pid, own, marks, ProcessStat::look))
}

/// Looks again where a family changed while it was looked at.
fn again(look: impl Fn() -> Result<bool, Unseen>) -> Result<bool, Unseen> {
    let mut looks = (0..WALKS_MAX).map(|_| look());
    looks.find(|looked| *looked != Err(Unseen::Gone)).unwrap_or(Err(Unseen::Gone))
}

/// How deep two processes lie, as their marks say.
#[derive(Clone, Copy, Debug)]
struct Marks {
    theirs: Depth,
    own: Depth,
}

impl Marks {
    fn of(pid: i32) -> Result<Self, Unseen> {
        Ok(Self { theirs: Depth::of(pid)?, own: Depth::own()? })
    }
}

/// The same by what `look` tells of a family that may change meanwhile.
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

/// Whether a process with this home lives in a session in which `own` does not live.
///
/// Any process of the user can lower the limit of any other. So the mark of `own` counts only where a shim
/// above it shows that it has one.
fn is_apart(
    home: Option<i32>,
    own: i32,
    marks: Marks,
    look: impl Fn(i32) -> Result<ProcessStat, Unseen>,
) -> Result<bool, Unseen> {
    if home.is_none() {
        return Ok(marks.theirs.is_marked());
    }
    Ok(home != shim_above(own, look)? || marks.theirs < marks.own)
}

/// The nearest shim that a process came of.
fn shim_above(
    pid: i32,
    look: impl Fn(i32) -> Result<ProcessStat, Unseen>,
) -> Result<Option<i32>, Unseen> {
    nearest(look(pid)?.parent, |_, member| member.is_shim, look)
}

/// The outermost shim that a process came of and that `own` did not; none where there is none left.
///
/// Whoever came of one session has the same one, whatever imitates a shim within it. Good for counting,
/// not for rights.
///
/// # Errors
/// What the kernel said when no descriptor was left to look with.
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

/// The nearest process for which `is_home` holds, at or above this one.
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
        // Nobody is younger than their child: the number was given to another one meanwhile.
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
