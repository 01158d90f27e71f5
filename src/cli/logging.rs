//! The daemon's log on standard error, as text or as JSON.

mod throttle;

use std::env;
use std::io::{self, Write};
use std::sync::Arc;

use clap::ValueEnum;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

use crate::cli::failure::CliFailure;
use crate::cli::logging::throttle::Throttle;
use crate::cli::start::log::BoundedLog;

/// This crate logs what clients send, so its log is off unless it is requested.
const PROTOCOL_CRATE: &str = "rmcp";

/// The form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

/// The log of this process. When dropped, it reports the suppressed lines.
#[must_use = "what was left out is said when it is dropped"]
#[derive(Debug)]
pub struct Logging(Throttle);

impl Drop for Logging {
    fn drop(&mut self) {
        self.0.tell_rest();
    }
}

/// Starts logging for the life of the process; `file` is the log file behind standard error, if any.
pub fn start_logging(
    format: LogFormat,
    verbosity: u8,
    file: Option<BoundedLog>,
) -> Result<Logging, CliFailure> {
    let wanted = env::var("RUST_LOG").ok();
    let filter = EnvFilter::try_new(directives(wanted.as_deref(), verbosity))
        .map_err(|error| CliFailure::Usage(format!("RUST_LOG: {error}")))?;
    let writer = match file.map(Arc::new) {
        Some(file) => BoxMakeWriter::new(move || InFile(Arc::clone(&file))),
        None => BoxMakeWriter::new(io::stderr),
    };
    // Reporting a failed write on standard error would fail too, and end the thread that logs.
    let log = tracing_subscriber::fmt::layer().with_writer(writer).log_internal_errors(false);
    let log: Box<dyn Layer<_> + Send + Sync> = match format {
        LogFormat::Text => log.with_ansi(false).boxed(),
        LogFormat::Json => log.json().boxed(),
    };
    let throttle = Throttle::default();
    Registry::default().with(log).with(throttle.clone()).with(filter).init();
    Ok(Logging(throttle))
}

/// Writes lines to a file of bounded size.
#[derive(Debug)]
struct InFile(Arc<BoundedLog>);

impl Write for InFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write(line).map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The log filter: RUST_LOG, or otherwise the number of `-v`. The protocol's crate is off unless
/// RUST_LOG names it.
fn directives(wanted: Option<&str>, verbosity: u8) -> String {
    let usual = match verbosity {
        0 => "info",
        1 => "debug",
        2.. => "trace",
    };
    let wanted = wanted.filter(|wanted| !wanted.is_empty()).unwrap_or(usual);
    if wanted.contains(PROTOCOL_CRATE) {
        return wanted.to_owned();
    }
    format!("{wanted},{PROTOCOL_CRATE}=error")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_v_tells_more_and_the_protocol_stays_quiet() {
        assert_eq!(directives(None, 0), "info,rmcp=error");
        assert_eq!(directives(None, 1), "debug,rmcp=error");
        assert_eq!(directives(Some(""), 5), "trace,rmcp=error");
    }

    #[test]
    fn the_variable_wins_and_may_name_the_protocol() {
        assert_eq!(directives(Some("termgate=trace"), 1), "termgate=trace,rmcp=error");
        assert_eq!(directives(Some("info,rmcp=debug"), 0), "info,rmcp=debug");
    }
}
