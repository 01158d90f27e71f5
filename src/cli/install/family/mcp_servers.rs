//! JSON with `mcpServers`, for most clients, in three variants.

use serde_json::{Value, json};

use crate::cli::install::family::{Entry, Family, launch_of};
use crate::cli::install::format::{Format, Members};
use crate::cli::install::server::{Launch, Server};

/// Only program and arguments.
pub const PLAIN: Family = Family { entry: plain, ..BASE };
/// With the type of transport, for Claude Code.
pub const TYPED: Family = Family { entry: typed, ..BASE };
/// With the type of server and its tools, for the Copilot CLI.
pub const COPILOT: Family = Family { entry: copilot, ..BASE };

const BASE: Family = Family { format: Format::Json, container: "mcpServers", entry: plain, launch };

fn plain(server: &Server) -> Entry {
    Entry { must: start(server), at_first: Vec::new() }
}

fn typed(server: &Server) -> Entry {
    let kind = ("type", json!("stdio"));
    let must = [kind].into_iter().chain(start(server)).collect();
    Entry { must, at_first: vec![("env", json!({}))] }
}

fn copilot(server: &Server) -> Entry {
    let kind = ("type", json!("local"));
    let must = [kind].into_iter().chain(start(server)).collect();
    Entry { must, at_first: vec![("tools", json!(["*"]))] }
}

fn start(server: &Server) -> Members {
    let Launch { program, arguments } = &server.launch;
    vec![("command", json!(program)), ("args", json!(arguments))]
}

fn launch(entry: &Value) -> Option<Launch> {
    launch_of(entry, "command", "args")
}
