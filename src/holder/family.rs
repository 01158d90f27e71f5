//! Who came of whom, as `/proc` shows it: whether a process lives inside a session.
//!
//! It knows no socket and allocates nothing, since a holder that runs asks, too. A holder adopts
//! whoever its program leaves behind, so it stays above all that came of it, whichever daemon
//! there is and whatever they did to leave.

use std::ffi::CStr;
use std::io::Write;

use nix::fcntl::{AT_FDCWD, OFlag, openat};
use nix::sys::stat::Mode;

use crate::holder::{COMM, mark};

/// How often a family that changes while it is looked at is looked at again.
const WALKS_MAX: usize = 3;
/// How many ancestors a process may have before nobody can say where it lives.
const ANCESTORS_MAX: usize = 256;
/// How many sessions in each other are looked through.
const SESSIONS_MAX: usize = 16;
/// Room for a `stat` line.
const STAT_MAX: usize = 1_024;

/// One process, as it was when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    pub parent: i32,
    /// In clock ticks since boot.
    pub started: u64,
    /// Whether it is called as a holder is. Whoever imitates one is taken for one, which costs it and its
    /// children rights and gives none.
    pub holds: bool,
}

impl Member {
    /// Looks a process up; none when it is not there or cannot be read. What the process does with its
    /// own memory cannot make this wait.
    pub fn find(pid: i32) -> Option<Self> {
        let mut room = [0; STAT_MAX];
        parse(read(pid, "stat", &mut room)?)
    }
}

/// Whether a process lives in a session in which `own` does not live itself; none when its family
/// kept changing, or a part of it cannot be seen.
///
/// `own` is a daemon or a holder, and all that came of it lives inside. It may itself live in a session,
/// whose programs are its neighbours and not its affair. Who carries the mark of a session came of a
/// holder that may be gone.
pub fn lives_inside(pid: i32, own: i32) -> Option<bool> {
    if mark::is_on(pid)? {
        return Some(true);
    }
    (0..WALKS_MAX).find_map(|_| inside(pid, own, Member::find))
}

/// Whether a process that listens, and that `own` has connected with, lives in a session in which `own`
/// does not live; none as above.
///
/// A holder above it counts, and neither itself, which may be one, nor `own`, which may have started it.
pub fn listens_inside(pid: i32, own: i32) -> Option<bool> {
    if mark::is_on(pid)? {
        return Some(true);
    }
    (0..WALKS_MAX).find_map(|_| {
        let holder_above = |pid| {
            let parent = Member::find(pid)?.parent;
            nearest(parent, |_, member| member.holds, Member::find)
        };
        let Some(home) = holder_above(pid)? else { return Some(false) };
        Some(holder_above(own).flatten() != Some(home))
    })
}

/// The same by what `find` tells of a family that may change meanwhile.
fn inside(pid: i32, own: i32, find: impl Fn(i32) -> Option<Member>) -> Option<bool> {
    if pid == own {
        return Some(false);
    }
    let is_home = |pid: i32, member: &Member| pid == own || member.holds;
    let Some(home) = nearest(pid, is_home, &find)? else { return Some(false) };
    if home == own {
        return Some(true);
    }
    let around = match find(own) {
        Some(own) => nearest(own.parent, |_, member| member.holds, &find)?,
        None => None,
    };
    Some(around != Some(home))
}

/// The outermost holder that a process came of and that `own` did not; none where there is none left.
///
/// Whoever came of one session has the same one, whatever imitates a holder within it. Good for counting,
/// not for rights.
pub fn outermost_holder(pid: i32, own: i32) -> Option<i32> {
    outermost(pid, own, Member::find)
}

fn outermost(pid: i32, own: i32, find: impl Fn(i32) -> Option<Member>) -> Option<i32> {
    let holds = |pid: i32, member: &Member| pid == own || member.holds;
    let around = find(own).and_then(|own| nearest(own.parent, holds, &find).flatten());
    let (mut at, mut found) = (pid, None);
    for _ in 0..SESSIONS_MAX {
        match nearest(at, holds, &find).flatten() {
            Some(home) if home != own && Some(home) != around => {
                found = Some(home);
                at = find(home)?.parent;
            }
            Some(_) | None => break,
        }
    }
    found
}

/// The nearest process for which `is_home` holds, at or above this one.
fn nearest(
    mut pid: i32,
    is_home: impl Fn(i32, &Member) -> bool,
    find: impl Fn(i32) -> Option<Member>,
) -> Option<Option<i32>> {
    let mut youngest = u64::MAX;
    for _ in 0..ANCESTORS_MAX {
        if pid == 0 {
            return Some(None);
        }
        let member = find(pid)?;
        // Nobody is younger than their child: the number was given to another one meanwhile.
        if member.started > youngest {
            return None;
        }
        if is_home(pid, &member) {
            return Some(Some(pid));
        }
        (pid, youngest) = (member.parent, member.started);
    }
    None
}

/// Reads what the kernel says of a process, as far as there is room.
pub(super) fn read<'a>(pid: i32, what: &str, room: &'a mut [u8]) -> Option<&'a [u8]> {
    // Also what ends the path.
    let mut path = [0; 32];
    write!(path.as_mut_slice(), "/proc/{pid}/{what}").ok()?;
    let path = CStr::from_bytes_until_nul(&path).ok()?;
    // Not `open`, which is another call on some systems, and none that a holder may make.
    let file = openat(AT_FDCWD, path, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty()).ok()?;
    let length = nix::unistd::read(&file, room).ok()?;
    Some(&room[..length])
}

/// Which of the fields behind the name say who the parent is, and when the process started.
const PARENT: usize = 1;
const STARTED: usize = 19;

/// Reads a `stat` line. The program's name stands in brackets and may hold anything, so it ends at the
/// last closing one, and the fields count from there.
fn parse(stat: &[u8]) -> Option<Member> {
    let bracket = stat.iter().rposition(|byte| *byte == b')')?;
    let name = stat[..bracket].splitn(2, |byte| *byte == b'(').nth(1)?;
    let mut fields = str::from_utf8(&stat[bracket + 1..]).ok()?.split_ascii_whitespace();
    let parent = fields.nth(PARENT)?.parse().ok()?;
    let started = fields.nth(STARTED - PARENT - 1)?.parse().ok()?;
    Some(Member { parent, started, holds: name == COMM.to_bytes() })
}

#[cfg(test)]
mod tests;
