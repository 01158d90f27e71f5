//! Where the time of a row goes: the whole machine sampled by Linux's perf, as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::support::child::Owned;
use crate::support::plot::folder;

/// Samples a second on each processor: a prime number, so that nothing periodic is met again and again.
const SAMPLES: &str = "997";
/// The most functions in a profile.
const FUNCTIONS: usize = 40;
/// The least part of the busy time worth a line, in percent.
const LEAST: f64 = 1.0;

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
        let lines: Vec<&str> = report
            .lines()
            .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
            // Without the columns that perf adds and leaves empty.
            .map(|line| line.trim_end_matches([' ', '-']))
            .collect();
        let mut text = by_part(&lines);
        for line in lines.iter().take(FUNCTIONS) {
            writeln!(text, "{line}")?;
        }
        std::fs::write(&self.text, text)?;
        println!("\nprofile: {}", self.text.display());
        Ok(())
    }
}

/// The thread of an idle processor.
const IDLE: &str = "swapper";

/// Sums the functions up: by thread, and by crate or module of termgate, in percent of the time that is not idle.
fn by_part(lines: &[&str]) -> String {
    let mut parts = BTreeMap::<(&str, String), f64>::new();
    let mut busy = 0.0;
    for line in lines {
        let columns: Vec<&str> =
            line.split("  ").map(str::trim).filter(|it| !it.is_empty()).collect();
        let [percent, thread, file, symbol] = columns.as_slice() else { continue };
        let Ok(percent) = percent.trim_end_matches('%').parse::<f64>() else { continue };
        if *thread != IDLE {
            busy += percent;
            *parts.entry((thread, part_of(file, symbol))).or_default() += percent;
        }
    }
    let mut parts: Vec<_> = parts.into_iter().collect();
    parts.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let mut text = format!("{busy:.1} % of the time was not idle. Of that:\n");
    for ((thread, part), percent) in parts {
        let share = 100.0 * percent / busy;
        if share >= LEAST {
            text += &format!("{share:9.2}%  {thread:<15}  {part}\n");
        }
    }
    text + "\nOf all the time:\n"
}

/// The first names of a function's path, as in `termgate::mcp` and `serde_json`; the file where it has none.
fn part_of(file: &str, symbol: &str) -> String {
    let Some(path) = symbol.strip_prefix("[.] ") else { return "kernel".to_owned() };
    let path = path.trim_start_matches(['<', '&', '*']).trim_start_matches("mut ");
    let path = path.split([' ', '<', '>', '{']).next().unwrap_or_default();
    let mut names = path.split("::");
    match (names.next(), names.next()) {
        (Some("termgate"), Some(module)) => format!("termgate::{module}"),
        (Some("std" | "core" | "alloc"), Some(_)) => "Rust's standard library".to_owned(),
        (Some(krate), Some(_)) => krate.to_owned(),
        (_, _) => file.to_owned(),
    }
}
