//! The daemon's counters for `ls --daemon`: for people, as JSON, or for Prometheus.
//!
//! It reads one resource that only operators can read.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};

use serde::Serialize;
use serde_json::json;

use crate::cli::context::Context;
use crate::cli::failure::CliFailure;
use crate::cli::output::CommandReport;
use crate::cli::table::render;
use crate::core::human_duration::rough;
use crate::core::one_line::one_line;
use crate::wire::status::DaemonStatus;
use crate::wire::status::{SwitchWire, WriteStatus};
use crate::wire::word;

/// The resource with the daemon's status.
pub const STATUS: &str = "termgate://daemon";

/// Reads the daemon's status; `shown` turns it into text.
pub async fn report(
    context: &Context,
    shown: fn(&DaemonStatus) -> String,
) -> Result<CommandReport, CliFailure> {
    let status: DaemonStatus = context.daemon().await?.read(STATUS).await?;
    let (text, data) = (shown(&status), json!(status));
    Ok(CommandReport::new(data, text))
}

/// The status for people: a line for each subject, and a table of calls.
pub fn people(status: &DaemonStatus) -> String {
    let DaemonStatus { version, pid, sessions, leases, connections, frames, pty, .. } = status;
    let lines = [
        ("daemon", format!("{version} pid {pid} up {}", rough(status.uptime_ms))),
        ("memory", bytes(status.resident_bytes.unwrap_or_default())),
        ("writing", switches(&status.write)),
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
    text.family(MetricKind::Gauge, "termgate_build_info", "The daemon's version.", info);
    for (kind, name, help, number) in METRICS {
        text.one(kind, name, help, number(status));
    }
    let uptime = status.uptime_ms as f64 / 1_000.0;
    text.one(
        MetricKind::Gauge,
        "termgate_uptime_seconds",
        "Time since the daemon started.",
        uptime,
    );
    let switches = status.write.on.len();
    text.one(MetricKind::Gauge, "termgate_write_switches", "Write switches that are on.", switches);
    let sessions = [("running", status.sessions.running), ("ended", status.sessions.ended)]
        .map(|(state, count)| (vec![("state", state)], count));
    text.family(MetricKind::Gauge, "termgate_sessions", "Sessions there are, by state.", sessions);
    let denied = status.leases.denied.iter();
    let denied = denied.map(|(code, times)| (vec![("code", code.as_str())], *times));
    text.family(
        MetricKind::Counter,
        "termgate_denials_total",
        "Calls refused for want of a right.",
        denied,
    );
    let calls = calls(status)
        .map(|(tool, outcome, times)| (vec![("tool", tool), ("outcome", outcome)], times));
    text.family(
        MetricKind::Counter,
        "termgate_tool_calls_total",
        "Calls of tools, by outcome.",
        calls,
    );
    text.into_text()
}

/// A metric with a single number.
type Metric = (MetricKind, &'static str, &'static str, fn(&DaemonStatus) -> u64);

const METRICS: [Metric; 13] = [
    (MetricKind::Gauge, "termgate_resident_memory_bytes", "Memory of the daemon.", |status| {
        status.resident_bytes.unwrap_or_default()
    }),
    (MetricKind::Gauge, "termgate_connections_open", "Clients that are connected.", |status| {
        status.connections.open as u64
    }),
    (MetricKind::Counter, "termgate_connections_total", "Clients that ever connected.", |status| {
        status.connections.total
    }),
    (MetricKind::Counter, "termgate_sessions_created_total", "Sessions ever created.", |status| {
        status.sessions.created_total
    }),
    (MetricKind::Gauge, "termgate_leases_held", "Leases in force.", |status| {
        status.leases.held as u64
    }),
    (MetricKind::Gauge, "termgate_lease_waiters", "Callers in line for a lease.", |status| {
        status.leases.waiters as u64
    }),
    (MetricKind::Counter, "termgate_leases_granted_total", "Leases ever granted.", |status| {
        status.leases.granted_total
    }),
    (MetricKind::Gauge, "termgate_observers", "Observers that are pushed deltas.", |status| {
        status.observers as u64
    }),
    (MetricKind::Counter, "termgate_deltas_sent_total", "Deltas pushed to observers.", |status| {
        status.deltas_sent
    }),
    (MetricKind::Counter, "termgate_frames_published_total", "Frames drawn.", |status| {
        status.frames.published
    }),
    (
        MetricKind::Counter,
        "termgate_frames_skipped_total",
        "Frames that an observer received together with a later one.",
        |status| status.frames.skipped,
    ),
    (
        MetricKind::Counter,
        "termgate_pty_read_bytes_total",
        "Bytes that programs wrote.",
        |status| status.pty.read_bytes,
    ),
    (
        MetricKind::Counter,
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

/// The scopes in which writing is on and those that are protected, for people.
pub fn switches(WriteStatus { on, protected }: &WriteStatus) -> String {
    if on.is_empty() {
        return "off everywhere".to_owned();
    }
    let switch = |switch: &SwitchWire| {
        let scope = one_line(&switch.scope);
        let left = switch.closes_in_ms.map(|left| format!(" for {}", rough(left)));
        format!("on for {scope}{}", left.unwrap_or_default())
    };
    let protected = protected.iter().map(|scope| format!("protected: {}", one_line(scope)));
    on.iter().map(switch).chain(protected).collect::<Vec<_>>().join(", ")
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

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricKind {
    /// The value goes up and down.
    Gauge,
    /// The value only grows; the name ends in `_total`.
    Counter,
}

/// A text of metric families.
#[derive(Clone, Debug, Default)]
pub struct Exposition(String);

impl Exposition {
    /// Adds a family with one sample.
    pub fn one(&mut self, kind: MetricKind, name: &str, help: &str, value: impl Display) {
        self.family(kind, name, help, [(Vec::new(), value)]);
    }

    /// Adds a family of samples with labels.
    pub fn family<'a, V: Display>(
        &mut self,
        kind: MetricKind,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Vec<(&'a str, &'a str)>, V)>,
    ) {
        self.line(format_args!("# HELP {name} {}", escaped(help, false)));
        self.line(format_args!("# TYPE {name} {}", word(&kind)));
        for (labels, value) in samples {
            self.line(format_args!("{name}{} {value}", braced(&labels)));
        }
    }

    /// The whole text, without the final line end.
    pub fn into_text(self) -> String {
        self.0.trim_end().to_owned()
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{line}").expect("text takes all that is written to it");
    }
}

fn braced(labels: &[(&str, &str)]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let pairs = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value, true)));
    format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
}

fn escaped(text: &str, quotes: bool) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if quotes { text.replace('"', "\\\"") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> DaemonStatus {
        let status = json!({
            "version": "1.2.3", "pid": 7, "uptime_ms": 61_500, "resident_bytes": 2_097_152,
            "write": {"on": [{"scope": "everything", "closes_in_ms": 60_000}], "protected": ["ab12"]},
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
            "daemon       1.2.3 pid 7 up 1m2s",
            "memory       2.0 MiB",
            "writing      on for everything for 1m, protected: ab12",
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

    #[test]
    fn a_family_is_its_help_its_type_and_its_samples() {
        let mut text = Exposition::default();
        text.one(MetricKind::Gauge, "up", "Whether it runs.", 1);
        let samples = [(vec![("tool", "why"), ("outcome", "ok")], 3)];
        text.family(MetricKind::Counter, "calls_total", "Calls.", samples);
        let expected = "# HELP up Whether it runs.\n# TYPE up gauge\nup 1\n\
            # HELP calls_total Calls.\n# TYPE calls_total counter\n\
            calls_total{tool=\"why\",outcome=\"ok\"} 3";
        assert_eq!(text.into_text(), expected);
    }

    #[test]
    fn what_would_end_a_value_early_is_escaped() {
        assert_eq!(braced(&[("a", "x\"\\\n")]), r#"{a="x\"\\\n"}"#);
    }
}
