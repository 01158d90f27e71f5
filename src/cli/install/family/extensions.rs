//! YAML with `extensions`, for goose, which has its own names for program and environment.

use serde_json::json;

use crate::cli::install::family::{Entry, Family};
use crate::cli::install::format::Format;
use crate::cli::install::server::{Launch, Server};

/// How long goose waits for an answer, in seconds; goose's default.
const TIMEOUT: u64 = 300;

pub const FAMILY: Family =
    Family { format: Format::Yaml, container: "extensions", entry, launch: |_| None };

fn entry(server: &Server) -> Entry {
    let Launch { program, arguments } = &server.launch;
    let must = vec![
        ("type", json!("stdio")),
        ("name", json!(server.name)),
        ("cmd", json!(program)),
        ("args", json!(arguments)),
    ];
    let at_first = vec![
        ("enabled", json!(true)),
        ("description", json!("Terminal sessions with one writer each")),
        ("envs", json!({})),
        ("timeout", json!(TIMEOUT)),
    ];
    Entry { must, at_first }
}
