//! The daemon's counters for `ls --daemon`: for people, as JSON, or for Prometheus.
//!
//! It reads one resource that only operators can read.

use std::collections::BTreeMap;

use serde_json::json;

use crate::cli::context::Context;
use crate::cli::duration::rough;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::output::Report;
use crate::cli::prometheus::{Exposition, Kind};
use crate::cli::table::render;
use crate::core::one_line::one_line;
use crate::wire::status::DaemonStatus;
use crate::wire::status::SwitchWire;

/// The resource with the daemon's status.
pub const STATUS: &str = "termgate://daemon";

/// Reads the daemon's status; `shown` turns it into text.
///
/// # Errors
/// No daemon answers.
pub async fn report(
    context: &Context,
    shown: fn(&DaemonStatus) -> String,
) -> Result<Report, Failure> {
    let status: DaemonStatus = context.daemon().await?.read(STATUS).await?;
    let (text, data) = (shown(&status), json!(status));
    Ok(Report { data, text, notes: Vec::new(), exit: Exit::Done, mcp_version: None })
}

/// The status for people: a line for each subject, and a table of calls.
pub fn people(status: &DaemonStatus) -> String {
    let DaemonStatus { version, pid, sessions, leases, connections, frames, pty, .. } = status;
    let lines = [
        ("daemon", format!("{version} pid {pid} up {}", rough(status.uptime_ms))),
        ("memory", bytes(status.resident_bytes.unwrap_or_default())),
        ("writing", switches(&status.write.on)),
        ("connections", format!("{} open, {} in all", connections.open, connections.total)),
        (
            "sessions",
            format!(
                "{} running, {} ended, {} created in all",
                sessions.running, sessions.ended, sessions.created_total
            ),
        ),
        (
            "leases",
            format!(
                "{} held, {} waiting, {} granted in all",
                leases.held, leases.waiters, leases.granted_total
            ),
        ),
        ("denied", denied(&leases.denied)),
        ("observers", format!("{}, {} deltas sent", status.observers, status.deltas_sent)),
        (
            "frames",
            format!("{} published, {} skipped by observers", frames.published, frames.skipped),
        ),
        (
            "terminals",
            format!("{} read, {} written", bytes(pty.read_bytes), bytes(pty.written_bytes)),
        ),
    ];
    let lines = lines.map(|(name, text)| format!("{name:12} {text}")).join("\n");
    let rows: Vec<_> = calls(status)
        .map(|(tool, outcome, times)| [tool.to_owned(), outcome.to_owned(), times.to_string()])
        .collect();
    if rows.is_empty() {
        return lines;
    }
    format!("{lines}\n\n{}", render(["TOOL", "OUTCOME", "CALLS"], &rows))
}

/// The status as metrics.
pub fn exposition(status: &DaemonStatus) -> String {
    let mut text = Exposition::default();
    let info = [(vec![("version", status.version.as_str())], 1)];
    text.family(Kind::Gauge, "termgate_build_info", "The daemon's version.", info);
    for (kind, name, help, number) in METRICS {
        text.one(kind, name, help, number(status));
    }
    let uptime = status.uptime_ms as f64 / 1_000.0;
    text.one(Kind::Gauge, "termgate_uptime_seconds", "Time since the daemon started.", uptime);
    let switches = status.write.on.len();
    text.one(Kind::Gauge, "termgate_write_switches", "Write switches that are on.", switches);
    let sessions = [("running", status.sessions.running), ("ended", status.sessions.ended)]
        .map(|(state, count)| (vec![("state", state)], count));
    text.family(Kind::Gauge, "termgate_sessions", "Sessions there are, by state.", sessions);
    let denied = status.leases.denied.iter();
    let denied = denied.map(|(code, times)| (vec![("code", code.as_str())], *times));
    text.family(
        Kind::Counter,
        "termgate_denials_total",
        "Calls refused for want of a right.",
        denied,
    );
    let calls = calls(status)
        .map(|(tool, outcome, times)| (vec![("tool", tool), ("outcome", outcome)], times));
    text.family(Kind::Counter, "termgate_tool_calls_total", "Calls of tools, by outcome.", calls);
    text.into_text()
}

/// A metric with a single number.
type Metric = (Kind, &'static str, &'static str, fn(&DaemonStatus) -> u64);

const METRICS: [Metric; 13] = [
    (Kind::Gauge, "termgate_resident_memory_bytes", "Memory of the daemon.", |status| {
        status.resident_bytes.unwrap_or_default()
    }),
    (Kind::Gauge, "termgate_connections_open", "Clients that are connected.", |status| {
        status.connections.open as u64
    }),
    (Kind::Counter, "termgate_connections_total", "Clients that ever connected.", |status| {
        status.connections.total
    }),
    (Kind::Counter, "termgate_sessions_created_total", "Sessions ever created.", |status| {
        status.sessions.created_total
    }),
    (Kind::Gauge, "termgate_leases_held", "Leases in force.", |status| status.leases.held as u64),
    (Kind::Gauge, "termgate_lease_waiters", "Callers in line for a lease.", |status| {
        status.leases.waiters as u64
    }),
    (Kind::Counter, "termgate_leases_granted_total", "Leases ever granted.", |status| {
        status.leases.granted_total
    }),
    (Kind::Gauge, "termgate_observers", "Observers that are pushed deltas.", |status| {
        status.observers as u64
    }),
    (Kind::Counter, "termgate_deltas_sent_total", "Deltas pushed to observers.", |status| {
        status.deltas_sent
    }),
    (Kind::Counter, "termgate_frames_published_total", "Frames drawn.", |status| {
        status.frames.published
    }),
    (
        Kind::Counter,
        "termgate_frames_skipped_total",
        "Frames that an observer received together with a later one.",
        |status| status.frames.skipped,
    ),
    (Kind::Counter, "termgate_pty_read_bytes_total", "Bytes that programs wrote.", |status| {
        status.pty.read_bytes
    }),
    (
        Kind::Counter,
        "termgate_pty_written_bytes_total",
        "Bytes that programs were typed.",
        |status| status.pty.written_bytes,
    ),
];

/// Every tool and outcome with its number of calls.
fn calls(status: &DaemonStatus) -> impl Iterator<Item = (&str, &str, u64)> {
    status.calls.iter().flat_map(|(tool, outcomes)| {
        let tool = tool.as_str();
        outcomes.iter().map(move |(outcome, times)| (tool, outcome.as_str(), *times))
    })
}

fn denied(codes: &BTreeMap<String, u64>) -> String {
    if codes.is_empty() {
        return "nothing".to_owned();
    }
    codes.iter().map(|(code, times)| format!("{times} {code}")).collect::<Vec<_>>().join(", ")
}

/// The scopes in which writing is on, for people.
pub fn switches(on: &[SwitchWire]) -> String {
    if on.is_empty() {
        return "off everywhere".to_owned();
    }
    let switch = |switch: &SwitchWire| {
        let scope = one_line(&switch.scope);
        let left = switch.closes_in_ms.map(|left| format!(" for {}", rough(left)));
        format!("on for {scope}{}", left.unwrap_or_default())
    };
    on.iter().map(switch).collect::<Vec<_>>().join(", ")
}

/// A number of bytes, rounded for people.
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
    use super::*;

    fn status() -> DaemonStatus {
        let status = json!({
            "version": "1.2.3", "pid": 7, "uptime_ms": 61_500, "resident_bytes": 2_097_152,
            "write": {"on": [{"scope": "everything", "closes_in_ms": 60_000}]},
            "sessions": {"running": 2, "ended": 1, "created_total": 5},
            "leases": {"held": 1, "waiters": 3, "granted_total": 9, "denied": {"lease_held": 4}},
            "observers": 2, "connections": {"open": 6, "total": 20}, "deltas_sent": 100,
            "frames": {"published": 50, "skipped": 8}, "pty": {"read_bytes": 1_536, "written_bytes": 12},
            "calls": {"resize": {"lease_held": 4, "ok": 1}},
        });
        serde_json::from_value(status).unwrap()
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
