//! The machine that results are of, and how busy it is.
//!
//! It measures nothing; a figure without it says little.

use std::fs;

/// Says on which machine, how busy, the run takes place.
pub(crate) fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let processors = read("/proc/cpuinfo");
    let model = processors.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown processor", |line| line.trim_start_matches([' ', '\t', ':']));
    let count = processors.lines().filter(|line| line.starts_with("processor")).count();
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("{model}, {count} processors, Linux {}; {}", kernel.trim(), load())
}

/// How busy the machine is.
pub(crate) fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let minutes: Vec<&str> = load.split(' ').take(3).collect();
    format!("load {}", minutes.join(" "))
}
