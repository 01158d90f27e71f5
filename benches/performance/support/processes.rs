//! What the kernel counts of processes: how long they ran, how often they were switched, what memory
//! they have.
//!
//! It knows nothing of what they are.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Add;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// The daemon whose runtime directory this is.
///
/// # Errors
/// When there is none.
pub(crate) fn daemon(runtime: &Path) -> anyhow::Result<Pid> {
    let number = fs::read_to_string(runtime.join("daemon.lock"))?;
    Ok(Pid::from_raw(number.trim().parse()?))
}

/// The processor time that they have had together, threads that ended included.
///
/// # Errors
/// When one of them has gone.
pub(crate) fn processor_time(processes: &[Pid]) -> anyhow::Result<Duration> {
    let times = processes
        .iter()
        .map(|process| Ok(Duration::from(clock_gettime(clock_getcpuclockid(*process)?)?)));
    times.sum::<anyhow::Result<Duration>>()
}

/// How often the threads of a process that live now were switched to another, by themselves or by
/// the scheduler.
///
/// # Errors
/// When it has gone.
pub(crate) fn switches(process: Pid) -> anyhow::Result<BTreeMap<i32, u64>> {
    let mut switches = BTreeMap::new();
    for task in fs::read_dir(format!("/proc/{process}/task"))? {
        let task = task?;
        let status = fs::read_to_string(task.path().join("status"))?;
        let counts = status.lines().filter_map(|line| {
            let (name, count) = line.split_once(':')?;
            name.ends_with("voluntary_ctxt_switches").then(|| count.trim().parse::<u64>().ok())?
        });
        let thread = task.file_name().to_str().and_then(|name| name.parse().ok());
        switches.insert(thread.context("a thread without a number")?, counts.sum());
    }
    Ok(switches)
}

/// The memory of processes, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    /// All pages that they have mapped and touched, shared ones in each of them.
    pub(crate) resident: u64,
    /// The same, but shared pages divided among those who share them.
    pub(crate) proportional: u64,
    /// Pages that nobody else has.
    pub(crate) private: u64,
    /// Proportional without files in memory, which are counted below.
    pub(crate) own: u64,
    /// Files in memory that they keep open, whether anybody has mapped them or not, each once.
    pub(crate) kept: u64,
}

impl Memory {
    /// Everything that would be free without them.
    pub(crate) fn total(&self) -> u64 {
        self.own + self.kept
    }

    /// The memory of all these together.
    ///
    /// # Errors
    /// When one of them has gone.
    pub(crate) fn of(processes: &[Pid]) -> anyhow::Result<Self> {
        let mut all = Self::default();
        let mut files = BTreeMap::new();
        for process in processes {
            all = all + mapped(*process)?;
            files.extend(files_in_memory(*process)?);
        }
        all.kept = files.values().sum();
        Ok(all)
    }
}

impl Add for Memory {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            resident: self.resident + other.resident,
            proportional: self.proportional + other.proportional,
            private: self.private + other.private,
            own: self.own + other.own,
            kept: self.kept + other.kept,
        }
    }
}

fn mapped(process: Pid) -> anyhow::Result<Memory> {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup"))?;
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        number.map(|kibibytes| kibibytes * 1024).with_context(|| format!("no {name} of {process}"))
    };
    Ok(Memory {
        resident: bytes("Rss")?,
        proportional: bytes("Pss")?,
        private: bytes("Private_Clean")? + bytes("Private_Dirty")?,
        own: bytes("Pss_Anon")? + bytes("Pss_File")?,
        kept: 0,
    })
}

/// How much each of them takes, by what tells it from others.
fn files_in_memory(process: Pid) -> anyhow::Result<BTreeMap<(u64, u64), u64>> {
    let mut files = BTreeMap::new();
    for descriptor in fs::read_dir(format!("/proc/{process}/fd"))? {
        let path = descriptor?.path();
        let is_in_memory = |name: &Path| name.to_string_lossy().starts_with("/memfd:");
        // One that was closed meanwhile is none any more.
        if fs::read_link(&path).is_ok_and(|name| is_in_memory(&name))
            && let Ok(file) = fs::metadata(&path)
        {
            files.insert((file.dev(), file.ino()), file.blocks() * 512);
        }
    }
    Ok(files)
}
