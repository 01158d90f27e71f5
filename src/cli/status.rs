//! The daemon's counters, as `ls --daemon` shows them: for people, as JSON, or for Prometheus.
//!
//! It reads one resource that only operators are told, and works nothing out but how it is shown.

use serde_json::Value;

use crate::cli::context::Context;
use crate::cli::duration::rough;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::output::Report;
use crate::cli::prometheus::{Exposition, Kind};
use crate::cli::table::render;
use crate::core::one_line::one_line;

/// The resource that tells of the daemon.
pub const STATUS: &str = "termgate://daemon";

/// Asks the daemon for its state, with the text that `told` makes of it.
///
/// # Errors
/// That no daemon answers.
pub async fn report(context: &Context, told: fn(&Value) -> String) -> Result<Report, Failure> {
    let status = context.daemon().await?.read(STATUS).await?;
    let text = told(&status);
    Ok(Report { data: status, text, notes: Vec::new(), exit: Exit::Done, mcp_version: None })
}

/// The state for people: a line for each subject, and a table of calls.
pub fn people(status: &Value) -> String {
    let n = |path: &str| number(status, path);
    let lines = [
        (
            "daemon",
            format!("{} pid {} up {}", word(&status["version"]), n("/pid"), rough(n("/uptime_ms"))),
        ),
        ("memory", bytes(n("/resident_bytes"))),
        ("writing", switches(&status["write"]["on"])),
        (
            "connections",
            format!("{} open, {} in all", n("/connections/open"), n("/connections/total")),
        ),
        (
            "sessions",
            format!(
                "{} running, {} ended, {} created in all",
                n("/sessions/running"),
                n("/sessions/ended"),
                n("/sessions/created_total"),
            ),
        ),
        (
            "leases",
            format!(
                "{} held, {} waiting, {} granted in all",
                n("/leases/held"),
                n("/leases/waiters"),
                n("/leases/granted_total"),
            ),
        ),
        ("denied", denied(&status["leases"]["denied"])),
        ("observers", format!("{}, {} deltas sent", n("/observers"), n("/deltas_sent"))),
        (
            "frames",
            format!(
                "{} published, {} skipped by observers",
                n("/frames/published"),
                n("/frames/skipped")
            ),
        ),
        (
            "terminals",
            format!(
                "{} read, {} written",
                bytes(n("/pty/read_bytes")),
                bytes(n("/pty/written_bytes"))
            ),
        ),
    ];
    let lines = lines.map(|(name, text)| format!("{name:12} {text}")).join("\n");
    let calls = calls(status);
    if calls.is_empty() {
        return lines;
    }
    let rows: Vec<_> = calls
        .iter()
        .map(|(tool, outcome, times)| {
            [(*tool).to_owned(), (*outcome).to_owned(), times.to_string()]
        })
        .collect();
    format!("{lines}\n\n{}", render(["TOOL", "OUTCOME", "CALLS"], &rows))
}

/// The state as metrics.
pub fn exposition(status: &Value) -> String {
    let mut text = Exposition::default();
    let version = word(&status["version"]);
    let info = [(vec![("version", version)], 1)];
    text.family(Kind::Gauge, "termgate_build_info", "The daemon's version.", info);
    for (kind, name, help, path) in METRICS {
        text.one(kind, name, help, number(status, path));
    }
    let uptime = number(status, "/uptime_ms") as f64 / 1_000.0;
    text.one(Kind::Gauge, "termgate_uptime_seconds", "Time since the daemon started.", uptime);
    let switches = status["write"]["on"].as_array().map_or(0, Vec::len);
    text.one(Kind::Gauge, "termgate_write_switches", "Write switches that are on.", switches);
    let sessions = ["running", "ended"]
        .map(|state| (vec![("state", state)], number(&status["sessions"], &format!("/{state}"))));
    text.family(Kind::Gauge, "termgate_sessions", "Sessions there are, by state.", sessions);
    let denied = pairs(&status["leases"]["denied"]);
    let denied = denied.into_iter().map(|(code, times)| (vec![("code", code)], times));
    text.family(
        Kind::Counter,
        "termgate_denials_total",
        "Calls refused for want of a right.",
        denied,
    );
    let calls = calls(status);
    let calls = calls
        .iter()
        .map(|(tool, outcome, times)| (vec![("tool", *tool), ("outcome", *outcome)], *times));
    text.family(Kind::Counter, "termgate_tool_calls_total", "Calls of tools, by outcome.", calls);
    text.into_text()
}

/// The metrics that are one number, and where it stands.
const METRICS: [(Kind, &str, &str, &str); 13] = [
    (Kind::Gauge, "termgate_resident_memory_bytes", "Memory of the daemon.", "/resident_bytes"),
    (Kind::Gauge, "termgate_connections_open", "Clients that are connected.", "/connections/open"),
    (
        Kind::Counter,
        "termgate_connections_total",
        "Clients that ever connected.",
        "/connections/total",
    ),
    (
        Kind::Counter,
        "termgate_sessions_created_total",
        "Sessions ever created.",
        "/sessions/created_total",
    ),
    (Kind::Gauge, "termgate_leases_held", "Leases in force.", "/leases/held"),
    (Kind::Gauge, "termgate_lease_waiters", "Callers in line for a lease.", "/leases/waiters"),
    (
        Kind::Counter,
        "termgate_leases_granted_total",
        "Leases ever granted.",
        "/leases/granted_total",
    ),
    (Kind::Gauge, "termgate_observers", "Observers that are pushed deltas.", "/observers"),
    (Kind::Counter, "termgate_deltas_sent_total", "Deltas pushed to observers.", "/deltas_sent"),
    (Kind::Counter, "termgate_frames_published_total", "Frames drawn.", "/frames/published"),
    (
        Kind::Counter,
        "termgate_frames_skipped_total",
        "Frames told together with a later one.",
        "/frames/skipped",
    ),
    (
        Kind::Counter,
        "termgate_pty_read_bytes_total",
        "Bytes that programs wrote.",
        "/pty/read_bytes",
    ),
    (
        Kind::Counter,
        "termgate_pty_written_bytes_total",
        "Bytes that programs were typed.",
        "/pty/written_bytes",
    ),
];

fn number(value: &Value, path: &str) -> u64 {
    value.pointer(path).and_then(Value::as_u64).unwrap_or_default()
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Every tool, outcome and number of calls.
fn calls(status: &Value) -> Vec<(&str, &str, u64)> {
    let tools = status["calls"].as_object().into_iter().flatten();
    let of_tool = |(tool, outcomes)| {
        let outcomes = pairs(outcomes).into_iter();
        outcomes.map(move |(outcome, times)| (String::as_str(tool), outcome, times))
    };
    tools.flat_map(of_tool).collect()
}

fn pairs(members: &Value) -> Vec<(&str, u64)> {
    let members = members.as_object().into_iter().flatten();
    members.map(|(name, value)| (name.as_str(), value.as_u64().unwrap_or_default())).collect()
}

fn denied(codes: &Value) -> String {
    let codes = pairs(codes);
    if codes.is_empty() {
        return "nothing".to_owned();
    }
    codes.iter().map(|(code, times)| format!("{times} {code}")).collect::<Vec<_>>().join(", ")
}

/// Where writing is on, for people.
pub fn switches(on: &Value) -> String {
    let on = on.as_array().map(Vec::as_slice).unwrap_or_default();
    if on.is_empty() {
        return "off everywhere".to_owned();
    }
    let switch = |switch: &Value| {
        let scope = one_line(word(&switch["scope"]));
        let left = switch["closes_in_ms"].as_u64().map(|left| format!(" for {}", rough(left)));
        format!("on for {scope}{}", left.unwrap_or_default())
    };
    on.iter().map(switch).collect::<Vec<_>>().join(", ")
}

/// A number of bytes to the precision a glance takes in.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1_024 {
        return format!("{count} B");
    }
    let (mut whole, mut unit) = (count as f64 / 1_024.0, 0);
    while whole >= 1_024.0 && unit + 1 < UNITS.len() {
        whole /= 1_024.0;
        unit += 1;
    }
    format!("{whole:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status() -> Value {
        json!({
            "version": "1.2.3", "pid": 7, "uptime_ms": 61_500, "resident_bytes": 2_097_152,
            "write": {"on": [{"scope": "everything", "closes_in_ms": 60_000}]},
            "sessions": {"running": 2, "ended": 1, "created_total": 5},
            "leases": {"held": 1, "waiters": 3, "granted_total": 9, "denied": {"lease_held": 4}},
            "observers": 2, "connections": {"open": 6, "total": 20}, "deltas_sent": 100,
            "frames": {"published": 50, "skipped": 8}, "pty": {"read_bytes": 1_536, "written_bytes": 12},
            "calls": {"resize": {"lease_held": 4, "ok": 1}},
        })
    }

    #[test]
    fn people_are_told_each_subject_in_a_line_and_calls_in_a_table() {
        let text = people(&status());
        for line in [
            "daemon       1.2.3 pid 7 up 1m",
            "memory       2.0 MiB",
            "writing      on for everything for 1m",
            "denied       4 lease_held",
            "terminals    1.5 KiB read, 12 B written",
            "resize  lease_held  4",
        ] {
            assert!(text.lines().any(|told| told == line), "{line:?} is not in {text}");
        }
    }

    #[test]
    fn metrics_carry_the_numbers_and_their_labels() {
        let text = exposition(&status());
        for line in [
            "termgate_build_info{version=\"1.2.3\"} 1",
            "termgate_uptime_seconds 61.5",
            "termgate_sessions{state=\"ended\"} 1",
            "termgate_denials_total{code=\"lease_held\"} 4",
            "termgate_tool_calls_total{tool=\"resize\",outcome=\"ok\"} 1",
            "termgate_frames_skipped_total 8",
        ] {
            assert!(text.lines().any(|told| told == line), "{line:?} is not in {text}");
        }
    }

    #[test]
    fn bytes_are_told_in_the_largest_unit_that_fits() {
        let expected = [(0, "0 B"), (1_023, "1023 B"), (1_024, "1.0 KiB"), (5 << 30, "5.0 GiB")];
        for (count, text) in expected {
            assert_eq!(bytes(count), text);
        }
    }
}
