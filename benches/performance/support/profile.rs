//! Where the time of a row goes: the whole machine sampled by Linux's perf, as text.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::support::child::Owned;
use crate::support::plot::folder;
use crate::support::profile_text::text_of;

/// Samples a second on each processor: a prime number, so that nothing periodic is met again and again.
const SAMPLES: &str = "997";

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
        // By the clock, which goes on where a processor rests.
        perf.args(["record", "--event", "cpu-clock", "--all-cpus", "--freq", SAMPLES, "--output"])
            .arg(&samples);
        let perf = perf.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let sampling = Owned(perf.context("--profile needs perf (Debian: linux-perf)")?);
        Ok(Self { sampling, samples, text: folder.join(row).with_extension("profile.txt") })
    }

    /// Writes `target/performance/ROW.profile.txt`.
    ///
    /// # Errors
    /// What perf or the kernel said.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        drop(self.sampling);
        let mut perf = Command::new("perf");
        perf.args(["report", "--stdio", "--field-separator", "|"])
            .args(["--fields", "sample,pid,comm,dso,symbol", "--input"])
            .arg(&self.samples);
        let report = perf.stderr(Stdio::null()).output()?;
        ensure!(report.status.success(), "perf report failed; may this user sample all processes?");
        std::fs::write(&self.text, text_of(&String::from_utf8_lossy(&report.stdout)))?;
        println!("\nprofile: {}", self.text.display());
        Ok(())
    }
}
