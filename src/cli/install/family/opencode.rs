//! JSON with `mcp`, for opencode: the program and its arguments are one list.

use serde_json::{Value, json};

use crate::cli::install::family::{Entry, Family, texts};
use crate::cli::install::format::Format;
use crate::cli::install::server::{Launch, Server};

pub const FAMILY: Family = Family { format: Format::Json, container: "mcp", entry, launch };

fn entry(server: &Server) -> Entry {
    let Launch { program, arguments } = &server.launch;
    let command: Vec<&String> = [program].into_iter().chain(arguments).collect();
    let must = vec![("type", json!("local")), ("command", json!(command))];
    Entry { must, at_first: vec![("enabled", json!(true))] }
}

fn launch(entry: &Value) -> Option<Launch> {
    let mut command = texts(entry.get("command")?).into_iter();
    Some(Launch { program: command.next()?, arguments: command.collect() })
}
