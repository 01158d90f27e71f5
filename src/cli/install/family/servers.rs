//! JSON with `servers`, for VS Code: each entry contains its type of transport.

use serde_json::{Value, json};

use crate::cli::install::family::{Entry, Family, launch_of};
use crate::cli::install::format::Format;
use crate::cli::install::server::{Launch, Server};

pub const FAMILY: Family = Family { format: Format::Json, container: "servers", entry, launch };

fn entry(server: &Server) -> Entry {
    let Launch { program, arguments } = &server.launch;
    let must =
        vec![("type", json!("stdio")), ("command", json!(program)), ("args", json!(arguments))];
    Entry { must, at_first: Vec::new() }
}

fn launch(entry: &Value) -> Option<Launch> {
    launch_of(entry, "command", "args")
}
