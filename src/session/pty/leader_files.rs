//! The files in `/proc` of the process that leads a session. They stay open, since opening them takes most of the time of
//! a look.

use std::borrow::Cow;

use crate::session::pty::ProcessId;
use crate::session::pty::processes::{PAGE, told_in};
use crate::shim::stat::{ProcessFile, StatFile};

#[derive(Debug)]
pub struct LeaderFiles {
    stat: StatFile,
    name: ProcessFile,
    line: ProcessFile,
}

impl LeaderFiles {
    /// `None` if the process has ended, or is not the one that started then, in clock ticks since boot.
    pub fn open(leader: ProcessId, started: u64) -> Option<Self> {
        let stat = StatFile::open(leader.0).ok()?;
        let of = |what| ProcessFile::open(leader.0, what).ok();
        let files = Self { stat, name: of("comm")?, line: of("cmdline")? };
        // Its first file answers only while it runs, so the others are of the same process.
        files.stat.look().is_ok_and(|found| found.started == started).then_some(files)
    }

    /// The group in front of its terminal; `None` if there is none, or the process has ended.
    pub fn foreground(&self) -> Option<ProcessId> {
        let leader = self.stat.look().ok()?;
        Some(ProcessId(leader.foreground)).filter(|group| group.0 > 0)
    }
}

/// The name of a process, by the open files if it is their process.
pub fn name_of<'a>(
    process: ProcessId,
    files: Option<&LeaderFiles>,
    page: &'a mut [u8; PAGE],
) -> Option<Cow<'a, str>> {
    told(files.map(|it| &it.name), (process, "comm"), page)
}

/// The command line of a process, by the open files if it is their process.
pub fn line_of<'a>(
    process: ProcessId,
    files: Option<&LeaderFiles>,
    page: &'a mut [u8; PAGE],
) -> Option<Cow<'a, str>> {
    told(files.map(|it| &it.line), (process, "cmdline"), page)
}

fn told<'a>(
    open: Option<&ProcessFile>,
    (process, what): (ProcessId, &str),
    page: &'a mut [u8; PAGE],
) -> Option<Cow<'a, str>> {
    match open {
        Some(file) => file.look(page).ok().map(String::from_utf8_lossy),
        None => told_in(process, what, page),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::session::pty::processes::Process;

    #[test]
    fn they_tell_what_the_process_runs_now_and_nothing_once_it_is_gone() {
        let mut sh = Command::new("sh");
        let sh = sh.args(["-c", "read x; exec sleep 1000"]).stdin(Stdio::piped());
        let mut child = sh.spawn().unwrap();
        let process = Process::find(ProcessId(child.id().try_into().unwrap())).unwrap();
        assert!(LeaderFiles::open(process.pid, process.started + 1).is_none());
        let files = LeaderFiles::open(process.pid, process.started).unwrap();
        let name = || {
            name_of(process.pid, Some(&files), &mut [0; PAGE]).map(|it| it.trim_end().to_owned())
        };
        let line = || line_of(process.pid, Some(&files), &mut [0; PAGE]).map(Cow::into_owned);
        while line().unwrap().split('\0').next() != Some("sh") {
            std::thread::yield_now();
        }
        assert_eq!(name().unwrap(), "sh");
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        // The kernel sets the words a moment after the name.
        while name().unwrap() != "sleep" || line().unwrap().is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(line().unwrap().split_terminator('\0').collect::<Vec<_>>(), ["sleep", "1000"]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((name(), line(), files.foreground()), (None, None, None));
    }
}
