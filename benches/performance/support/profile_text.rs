//! A profile as text: whose time a row takes, and where termgate's own goes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The thread of an idle processor.
const IDLE: &str = "swapper";
/// The program of the daemon and of shims. A thread that was met in it is termgate's.
const PROGRAM: &str = "termgate";
/// Short threads of the daemon, and shims that start, which may not have been met in the program.
const SHORT: [&str; 2] = ["census", "exe"];
/// What samples of termgate are called among those of all.
const OWN: &str = "termgate, all its processes";
/// The least part worth a line, in percent.
const LEAST: f64 = 1.0;
/// The most functions in a profile.
const FUNCTIONS: usize = 40;

/// How often a function was met.
struct Met<'a> {
    samples: u64,
    /// The number of the thread, which one after another may have.
    number: &'a str,
    thread: &'a str,
    file: &'a str,
    symbol: &'a str,
}

impl<'a> Met<'a> {
    /// Reads a line of a report with these columns, behind each other with `|` between them.
    fn of(line: &'a str) -> Option<Self> {
        let mut columns = line.splitn(5, '|').map(str::trim);
        let samples = columns.next()?.parse().ok()?;
        let (number, _) = columns.next()?.split_once(':')?;
        let (thread, file, symbol) = (columns.next()?, columns.next()?, columns.next()?);
        // Without the columns that perf adds and leaves empty.
        let symbol = symbol.trim_end_matches(['|', '-', ' ']);
        Some(Self { samples, number, thread, file, symbol })
    }
}

/// The text of perf's report of samples by number and name of the thread, file and function.
pub(crate) fn text_of(report: &str) -> String {
    let met = report.lines().filter_map(Met::of);
    let busy: Vec<Met<'_>> = met.filter(|met| met.thread != IDLE).collect();
    let own: BTreeSet<(&str, &str)> =
        busy.iter().filter(|met| met.file == PROGRAM).map(|met| (met.number, met.thread)).collect();
    let is_own = |met: &Met<'_>| {
        own.contains(&(met.number, met.thread))
            || met.thread.starts_with(PROGRAM)
            || SHORT.contains(&met.thread)
    };
    let mut text = "Of the time that processors worked:\n".to_owned();
    let whose = |met: &Met<'_>| if is_own(met) { OWN } else { met.thread }.to_owned();
    list(&mut text, busy.iter().map(|met| (whose(met), met.samples)), usize::MAX);
    let own: Vec<&Met<'_>> = busy.iter().filter(|met| is_own(met)).collect();
    text += "\nOf termgate's time, by thread and part:\n";
    let part = |met: &Met<'_>| format!("{:<15}  {}", met.thread, part_of(met.file, met.symbol));
    list(&mut text, own.iter().map(|met| (part(met), met.samples)), usize::MAX);
    text += "\nAnd by function:\n";
    let function = |met: &Met<'_>| format!("{:<15}  {}", met.thread, met.symbol);
    list(&mut text, own.iter().map(|met| (function(met), met.samples)), FUNCTIONS);
    text
}

fn percent(part: u64, of: u64) -> f64 {
    100.0 * part as f64 / of.max(1) as f64
}

/// Writes what was met most often, as parts of all.
fn list(text: &mut String, met: impl Iterator<Item = (String, u64)>, most: usize) {
    let mut sums = BTreeMap::<String, u64>::new();
    met.for_each(|(name, samples)| *sums.entry(name).or_default() += samples);
    let all = sums.values().sum();
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
    for (name, samples) in sums.into_iter().take(most) {
        let share = percent(samples, all);
        if share >= LEAST {
            // A string takes all that is written to it.
            let _ = writeln!(text, "{share:9.2}%  {name}");
        }
    }
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
