//! Reads process facts from `/proc/PID/stat` and the files beside it.
//! Nothing here allocates, because a running shim uses it too.

use std::ffi::CStr;
use std::io::Write;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, openat};
use nix::sys::stat::Mode;
use nix::sys::uio::pread;

use crate::shim::COMM;

/// The buffer for a `stat` line, in bytes.
const STAT_MAX: usize = 1_024;

/// A process at the moment when it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessStat {
    /// Whether the process has the name of a shim. An impostor counts as one; that only takes rights from it
    /// and its children.
    pub is_shim: bool,
    /// The kernel's letter: `R` runs, `T` and `t` are stopped, `Z` is a zombie.
    pub state: u8,
    pub parent: i32,
    pub group: i32,
    pub session: i32,
    /// The foreground process group of its terminal; not positive without a terminal.
    pub foreground: i32,
    /// In clock ticks since boot.
    pub started: u64,
}

/// Why a process cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unseen {
    /// The process or an ancestor is gone, keeps changing or is not readable.
    Gone,
    /// No file descriptor is left. This says nothing about the process.
    Shortage(Errno),
}

impl From<Errno> for Unseen {
    fn from(errno: Errno) -> Self {
        let is_shortage = [Errno::EMFILE, Errno::ENFILE].contains(&errno);
        if is_shortage { Self::Shortage(errno) } else { Self::Gone }
    }
}

/// Turns a missing process into `None`.
///
/// # Errors
/// Returns the kernel's error if no file descriptor is left.
pub fn seen<T>(looked: Result<T, Unseen>) -> Result<Option<T>, Errno> {
    match looked {
        Ok(seen) => Ok(Some(seen)),
        Err(Unseen::Gone) => Ok(None),
        Err(Unseen::Shortage(errno)) => Err(errno),
    }
}

impl ProcessStat {
    /// Reads a process. Memory operations of that process cannot delay the read.
    pub fn look(pid: i32) -> Result<Self, Unseen> {
        let mut room = [0; STAT_MAX];
        Self::parse(read(pid, "stat", &mut room)?).ok_or(Unseen::Gone)
    }

    /// As [`ProcessStat::look`]; `None` for any error.
    pub fn find(pid: i32) -> Option<Self> {
        Self::look(pid).ok()
    }

    /// Parses a `stat` line. The program's name stands in parentheses and may contain any byte, so the fields
    /// count from the last closing one.
    fn parse(stat: &[u8]) -> Option<Self> {
        let bracket = stat.iter().rposition(|byte| *byte == b')')?;
        let name = stat[..bracket].splitn(2, |byte| *byte == b'(').nth(1)?;
        let mut fields = str::from_utf8(&stat[bracket + 1..]).ok()?.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let mut number = || fields.next()?.parse().ok();
        let (parent, group, session, _terminal) = (number()?, number()?, number()?, number()?);
        let foreground = number()?;
        let started = fields.nth(13)?.parse().ok()?;
        let is_shim = name == COMM.to_bytes();
        Some(Self { is_shim, state, parent, group, session, foreground, started })
    }
}

/// A file of one process, to be read again and again. It stays that of this process.
#[derive(Debug)]
pub struct ProcessFile(OwnedFd);

impl ProcessFile {
    pub fn open(pid: i32, what: &str) -> Result<Self, Unseen> {
        open(pid, what).map(Self)
    }

    /// Reads it as it is now, in a single read. Longer content is cut off.
    pub fn look<'a>(&self, room: &'a mut [u8]) -> Result<&'a [u8], Unseen> {
        let length = pread(&self.0, room, 0)?;
        Ok(&room[..length])
    }
}

/// The `stat` file of one process, to be read again and again. It stays that of this process.
#[derive(Debug)]
pub struct StatFile(ProcessFile);

impl StatFile {
    pub fn open(pid: i32) -> Result<Self, Unseen> {
        ProcessFile::open(pid, "stat").map(Self)
    }

    /// Reads the process as it is now.
    pub fn look(&self) -> Result<ProcessStat, Unseen> {
        ProcessStat::parse(self.0.look(&mut [0; STAT_MAX])?).ok_or(Unseen::Gone)
    }
}

/// Reads a file of a process in a single read, so that it shows one moment. Longer content is cut off.
pub fn read<'a>(pid: i32, what: &str, room: &'a mut [u8]) -> Result<&'a [u8], Unseen> {
    let length = nix::unistd::read(&open(pid, what)?, room)?;
    Ok(&room[..length])
}

fn open(pid: i32, what: &str) -> Result<OwnedFd, Unseen> {
    // The zeros also terminate the path.
    let mut path = [0; 48];
    write!(path.as_mut_slice(), "/proc/{pid}/{what}").map_err(|_| Unseen::Gone)?;
    let path = CStr::from_bytes_until_nul(&path).map_err(|_| Unseen::Gone)?;
    // `open` is a different system call on some systems, and the seccomp filter does not allow it.
    Ok(openat(AT_FDCWD, path, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `stat` line with this name and state, and a different number in each field that is read.
    fn stat(name: &str, state: &str) -> Vec<u8> {
        let between = ["0"; 13].join(" ");
        format!("42 ({name}) {state} 7 40 30 1025 41 {between} 999 0 0").into_bytes()
    }

    fn parsed(name: &str, state: &str) -> ProcessStat {
        ProcessStat::parse(&stat(name, state)).unwrap()
    }

    #[test]
    fn a_stat_line_is_read_by_its_fields() {
        let expected = ProcessStat {
            is_shim: false,
            state: b'S',
            parent: 7,
            group: 40,
            session: 30,
            foreground: 41,
            started: 999,
        };
        assert_eq!(parsed("bash", "S"), expected);
    }

    #[test]
    fn a_program_cannot_pretend_by_its_name() {
        for name in ["x) Z 1 1 1", "x\n43 (y) Z 1", ") (", "x) \u{ff} 1 2 (y"] {
            let found = parsed(name, "R");
            assert_eq!((found.parent, found.state, found.started), (7, b'R', 999), "{name:?}");
        }
    }

    #[test]
    fn a_shim_is_known_by_what_it_is_called() {
        for (name, is_shim) in [
            ("termgate-shim", true),
            ("termgate", false),
            ("termgate-shim)", false),
            ("(termgate-shim", false),
            ("", false),
        ] {
            assert_eq!(parsed(name, "S").is_shim, is_shim, "{name}");
        }
    }

    #[test]
    fn a_broken_stat_line_is_no_process() {
        for broken in ["", "42", "42 (sh", "42 (sh) S 1 2", "x (sh) S 1 2 3", "7 x) S 3"] {
            assert_eq!(ProcessStat::parse(broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn this_process_and_its_parent_are_found() {
        let own = std::process::id().cast_signed();
        let found = ProcessStat::find(own).unwrap();
        assert_eq!(found.parent, std::os::unix::process::parent_id().cast_signed());
        assert!(!found.is_shim && found.started > 0);
        assert!(ProcessStat::find(found.parent).unwrap().started <= found.started);
        assert_eq!(ProcessStat::find(i32::MAX), None);
    }

    #[test]
    fn a_file_that_is_kept_open_tells_of_its_process_as_it_is_now_and_of_no_other() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let file = StatFile::open(child.id().cast_signed()).unwrap();
        let alive = file.look().unwrap();
        assert_eq!(file.look().map(|again| again.started), Ok(alive.started));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(file.look(), Err(Unseen::Gone));
    }
}
