//! JSON with `mcpServers`, as most clients have it, in three dialects.
//!
//! It knows which members a dialect wants and nothing of files.

use serde_json::{Value, json};

use crate::cli::install::family::{Entry, Family, launch_of};
use crate::cli::install::format::{Format, Members};
use crate::cli::install::server::{Launch, Server};

/// Program and arguments only.
pub const PLAIN: Family = Family { entry: plain, ..BASE };
/// With the kind of transport, as Claude Code writes it.
pub const TYPED: Family = Family { entry: typed, ..BASE };
/// With the kind of server and its tools, as the Copilot CLI wants them.
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
