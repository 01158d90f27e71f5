//! The mark on every process of a session: its session number and nesting depth.
//! The mark is the hard limit of RLIMIT_LOCKS, which the kernel no longer enforces. Children inherit it,
//! every process can read it, and raising it needs privilege.
//! So it survives a process that leaves its session, loses its shim or clears its environment.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::setsid;

use crate::shim::stat::{Unseen, read};

/// The low bits of the limit hold the session number; the bits above hold the depth.
const SESSION_BITS: u32 = 48;
/// The depth of a process without a limit. Each nested session is one lower.
const NOBODY: u64 = 0x7fff;
/// Larger than the whole `/proc/PID/limits` file.
const TABLE_MAX: usize = 4_096;
/// The start of the RLIMIT_LOCKS line.
const LINE: &[u8] = b"Max file locks";

/// Marks this process and its descendants with this session number.
///
/// Makes system calls only, so it may run between fork and exec. A process whose depth cannot go lower stays
/// unmarked.
///
/// # Errors
/// Returns the kernel's error.
pub fn set(session: u64) -> io::Result<()> {
    let (_, own) = getrlimit(Resource::RLIMIT_LOCKS)?;
    let Depth(own) = Depth::of_limit(own);
    let Some(below) = own.checked_sub(1).filter(|below| *below > 0) else { return Ok(()) };
    let limit = below << SESSION_BITS | session & ((1 << SESSION_BITS) - 1);
    Ok(setrlimit(Resource::RLIMIT_LOCKS, limit, limit)?)
}

/// Has the process of a command lead a kernel session and a group of its own, and carry this mark with its descendants.
#[allow(unsafe_code)]
pub fn mark_command(command: &mut Command, session: u64) {
    let lead = move || {
        setsid()?;
        set(session)
    };
    // SAFETY: it makes system calls only.
    unsafe { command.pre_exec(lead) };
}

/// The session depth of a process. A deeper process has a lower value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Depth(u64);

impl Depth {
    /// The depth of a process. Does not allocate.
    ///
    /// # Errors
    /// If the process cannot be read.
    pub fn of(pid: i32) -> Result<Self, Unseen> {
        limit_of(pid).map(Self::of_limit)
    }

    /// The depth of this process, cached after the first call.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub fn own() -> Result<Self, Unseen> {
        static OWN: OnceLock<Depth> = OnceLock::new();
        match OWN.get() {
            Some(own) => Ok(*own),
            None => {
                let found = Self::of(std::process::id().cast_signed())?;
                Ok(*OWN.get_or_init(|| found))
            }
        }
    }

    /// Whether the process has any limit: a session's mark, or a limit that a program has set.
    pub fn is_marked(self) -> bool {
        self.0 < NOBODY
    }

    #[cfg(test)]
    pub(super) fn in_sessions(sessions: u64) -> Self {
        Self(NOBODY - sessions)
    }

    fn of_limit(limit: u64) -> Self {
        // A process without a limit has the highest depth value.
        Self((limit >> SESSION_BITS).min(NOBODY))
    }
}

/// The session number in the mark of a process; `None` without a mark.
///
/// A process can lower its limit and so name another session. It gains nothing: it is killed when that
/// session ends.
pub fn session_of(pid: i32) -> Option<u64> {
    let limit = limit_of(pid).ok()?;
    let depth = Depth::of_limit(limit);
    (depth.0 > 0 && depth.is_marked()).then_some(limit & ((1 << SESSION_BITS) - 1))
}

/// The session number in the mark of a process that lies deeper than this one, and so certainly in a session.
pub fn deeper_session_of(pid: i32) -> Option<u64> {
    let limit = limit_of(pid).ok()?;
    (Depth::of_limit(limit) < Depth::own().ok()?).then_some(limit & ((1 << SESSION_BITS) - 1))
}

fn limit_of(pid: i32) -> Result<u64, Unseen> {
    let mut room = [0; TABLE_MAX];
    hard_limit(read(pid, "limits", &mut room)?).ok_or(Unseen::Gone)
}

/// Reads the hard limit from the text of `/proc/PID/limits`.
fn hard_limit(table: &[u8]) -> Option<u64> {
    let mut lines = table.split(|byte| *byte == b'\n');
    let line = lines.find_map(|line| line.strip_prefix(LINE))?;
    let word = str::from_utf8(line).ok()?.split_ascii_whitespace().nth(1)?;
    if word == "unlimited" { Some(u64::MAX) } else { word.parse().ok() }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Stdio};

    use super::*;

    const SESSION: u64 = 0x0123_4567_89ab;

    /// A process that carries marks of these sessions, the one in the other.
    #[allow(unsafe_code)]
    fn marked(sessions: &'static [u64], line: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", line]).stdin(Stdio::piped()).stdout(Stdio::piped());
        // SAFETY: it makes system calls only.
        unsafe {
            command.pre_exec(|| sessions.iter().try_for_each(|session| set(*session)));
        }
        command.spawn().unwrap()
    }

    fn end(mut child: Child) {
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    fn pid(child: &Child) -> i32 {
        child.id().cast_signed()
    }

    /// The number that a child says.
    fn said(child: &mut Child) -> i32 {
        use std::io::{BufRead, BufReader};

        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        line.trim().parse().unwrap()
    }

    #[test]
    fn whoever_came_of_a_session_carries_its_mark_whatever_it_did_to_leave() {
        let leaves = "env -i setsid sh -c 'echo $$; read -r end' <&3 &";
        let mut child = marked(&[SESSION], &format!("exec 3<&0; {leaves} read -r end"));
        let left = said(&mut child);
        for one in [pid(&child), left] {
            assert!(Depth::of(one).unwrap() < Depth::own().unwrap());
            assert_eq!(session_of(one), Some(SESSION));
            assert_eq!(deeper_session_of(one), Some(SESSION));
        }
        end(child);
    }

    #[test]
    fn a_session_in_a_session_lies_deeper() {
        let (outer, inner) =
            (marked(&[SESSION], "read -r end"), marked(&[SESSION, 7], "read -r end"));
        let depths = [&outer, &inner].map(|child| Depth::of(pid(child)).unwrap());
        assert_eq!(depths[0].0, depths[1].0 + 1);
        assert_eq!(session_of(pid(&inner)), Some(7));
        end(outer);
        end(inner);
    }

    #[test]
    fn this_process_lies_as_deep_as_it_does_and_nobody_is_not_known() {
        let own = std::process::id().cast_signed();
        assert_eq!((Depth::of(own), deeper_session_of(own)), (Depth::own(), None));
        assert_eq!((Depth::of(i32::MAX), session_of(i32::MAX)), (Err(Unseen::Gone), None));
    }

    #[test]
    fn a_limit_is_read_from_its_own_line() {
        let table = |words: &str| {
            format!(
                "Limit  Soft Limit  Hard Limit  Units\nMax file locks  {words}  locks \nMax x 1 2\n"
            )
        };
        assert_eq!(hard_limit(table("5 6").as_bytes()), Some(6));
        assert_eq!(hard_limit(table("unlimited unlimited").as_bytes()), Some(u64::MAX));
        assert_eq!(hard_limit(b"Max open files 1 2 files\n"), None);
        assert_eq!(hard_limit(b""), None);
    }

    #[test]
    fn who_lowers_the_limit_stays_inside() {
        for limit in [0, 1, SESSION, (NOBODY - 1) << SESSION_BITS] {
            assert!(Depth::of_limit(limit).is_marked(), "{limit}");
        }
        for limit in [u64::MAX, i64::MAX.cast_unsigned()] {
            assert!(!Depth::of_limit(limit).is_marked(), "no limit, as some say it: {limit}");
        }
    }
}
