//! TOML with a table `mcp_servers`, for Codex.

use serde_json::{Value, json};

use crate::cli::install::family::{Entry, Family, launch_of};
use crate::cli::install::format::Format;
use crate::cli::install::server::{Launch, Server};

pub const FAMILY: Family = Family { format: Format::Toml, container: "mcp_servers", entry, launch };

fn entry(server: &Server) -> Entry {
    let Launch { program, arguments } = &server.launch;
    let must = vec![("command", json!(program)), ("args", json!(arguments))];
    Entry { must, at_first: Vec::new() }
}

fn launch(entry: &Value) -> Option<Launch> {
    launch_of(entry, "command", "args")
}
