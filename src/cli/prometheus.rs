//! Writes metrics in the Prometheus text format (version 0.0.4).

use std::fmt::{Display, Write};

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The value goes up and down.
    Gauge,
    /// The value only grows; the name ends in `_total`.
    Counter,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
        }
    }
}

/// A text of metric families.
#[derive(Clone, Debug, Default)]
pub struct Exposition(String);

impl Exposition {
    /// Adds a family with one sample.
    pub fn one(&mut self, kind: Kind, name: &str, help: &str, value: impl Display) {
        self.family(kind, name, help, [(Vec::new(), value)]);
    }

    /// Adds a family of samples with labels.
    pub fn family<'a, V: Display>(
        &mut self,
        kind: Kind,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Vec<(&'a str, &'a str)>, V)>,
    ) {
        self.line(format_args!("# HELP {name} {}", escaped(help, false)));
        self.line(format_args!("# TYPE {name} {}", kind.word()));
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

    #[test]
    fn a_family_is_its_help_its_type_and_its_samples() {
        let mut text = Exposition::default();
        text.one(Kind::Gauge, "up", "Whether it runs.", 1);
        let samples = [(vec![("tool", "why"), ("outcome", "ok")], 3)];
        text.family(Kind::Counter, "calls_total", "Calls.", samples);
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
