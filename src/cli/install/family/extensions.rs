//! YAML with `extensions`, as goose has it, with words of its own for program and environment.
//!
//! It knows nothing of files.

use serde_json::json;

use crate::cli::install::family::{Entry, Family};
use crate::cli::install::format::Format;
use crate::cli::install::server::{Launch, Server};

/// How long goose waits for an answer, in seconds; its own default.
const TIMEOUT: u64 = 300;

/// The family.
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
