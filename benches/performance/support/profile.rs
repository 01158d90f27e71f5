//! Where the time of a row goes: the whole machine sampled by Linux's perf, as text.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::support::child::Owned;
use crate::support::plot::folder;

/// Samples a second on each processor: a prime number, so that nothing periodic is met again and again.
const SAMPLES: &str = "997";
/// The most functions in a profile.
const LINES: usize = 80;

/// A row that is being sampled.
#[derive(Debug)]
pub(crate) struct Profile {
    sampling: Owned,
    samples: PathBuf,
    text: PathBuf,
}

impl Profile {
    /// Begins to sample.
    ///
    /// # Errors
    /// When there is no perf.
    pub(crate) fn begin(row: &str) -> anyhow::Result<Self> {
        let folder = folder()?;
        let samples = folder.join(row).with_extension("perf");
        // What an earlier run left is not to be taken for this one.
        let _ = std::fs::remove_file(&samples);
        let mut perf = Command::new("perf");
        perf.args(["record", "--all-cpus", "--freq", SAMPLES, "--output"]).arg(&samples);
        let perf = perf.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let sampling = Owned(perf.context("--profile needs perf (Debian: linux-perf)")?);
        Ok(Self { sampling, samples, text: folder.join(row).with_extension("profile.txt") })
    }

    /// Writes `target/performance/ROW.profile.txt`: the part of all samples by thread, file and function.
    ///
    /// # Errors
    /// What perf or the kernel said.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        drop(self.sampling);
        let mut perf = Command::new("perf");
        perf.args(["report", "--stdio", "--sort", "comm,dso,symbol", "--input"]).arg(&self.samples);
        let report = perf.stderr(Stdio::null()).output()?;
        ensure!(report.status.success(), "perf report failed; may this user sample all processes?");
        let report = String::from_utf8_lossy(&report.stdout);
        let lines = report.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        // Without the columns that perf adds and leaves empty.
        let lines = lines.map(|line| line.trim_end_matches([' ', '-']).to_owned() + "\n");
        std::fs::write(&self.text, lines.take(LINES).collect::<String>())?;
        println!("\nprofile: {}", self.text.display());
        Ok(())
    }
}
