//! The forms in which clients store a server, and the server itself.

use serde_json::{Value, json};

use crate::cli::install::format::{Emptied, FileFormat, FileFormatError, Members, Spot};
#[derive(Clone, Debug, PartialEq)]
pub struct FormattedEntry {
    /// The members that start the server. termgate sets them at every write.
    pub must: Members,
    /// Initial members that the user may change later.
    pub at_first: Members,
}

/// How a group of clients stores a server.
#[derive(Clone, Copy, Debug)]
pub struct EntryFormat {
    pub format: FileFormat,
    /// The top-level name that contains the servers.
    pub container: &'static str,
    pub entry: fn(&ServerEntry) -> FormattedEntry,
    /// Parses what an entry starts; none when it starts no program.
    pub launch: fn(&Value) -> Option<ServerProgram>,
}

/// An existing entry.
#[derive(Clone, Debug, PartialEq)]
pub enum FoundEntry {
    /// It starts a program.
    Program(ServerProgram),
    /// It is something else, such as an address.
    Other,
}

impl EntryFormat {
    /// The entry in its container, to paste into a client's file.
    pub fn snippet(&self, server: &ServerEntry) -> String {
        let added = self.format.add("", self.spot(&server.name), &whole((self.entry)(server)));
        added.expect("nothing is in the way in an empty text")
    }

    /// Finds the entry with this name in the text.
    pub fn find(&self, text: &str, name: &str) -> Result<Option<FoundEntry>, FileFormatError> {
        let value = self.format.get(text, self.spot(name))?;
        Ok(value.map(|value| (self.launch)(&value).map_or(FoundEntry::Other, FoundEntry::Program)))
    }

    pub fn has_container(&self, text: &str) -> Result<bool, FileFormatError> {
        self.format.has_container(text, self.container)
    }

    /// The text with the server; unchanged when the server is there already.
    pub fn put(&self, text: &str, server: &ServerEntry) -> Result<String, FileFormatError> {
        let spot = self.spot(&server.name);
        let entry = (self.entry)(server);
        let Some(there) = self.format.get(text, spot)? else {
            return self.format.add(text, spot, &whole(entry));
        };
        if entry.must.iter().all(|(name, value)| there.get(name) == Some(value)) {
            return Ok(text.to_owned());
        }
        if (self.launch)(&there).is_some() {
            return self.format.set(text, spot, &entry.must);
        }
        let without = self.format.remove(text, spot, Emptied::Stays)?;
        self.format.add(&without, spot, &whole(entry))
    }

    /// The text without the existing entry.
    pub fn take(
        &self,
        text: &str,
        name: &str,
        emptied: Emptied,
    ) -> Result<String, FileFormatError> {
        self.format.remove(text, self.spot(name), emptied)
    }

    fn spot<'a>(&self, name: &'a str) -> Spot<'a> {
        Spot { container: self.container, name }
    }
}

fn whole(entry: FormattedEntry) -> Members {
    entry.must.into_iter().chain(entry.at_first).collect()
}

/// JSON with `mcpServers`, for most clients.
pub const MCP_SERVERS: EntryFormat = EntryFormat {
    format: FileFormat::Json,
    container: "mcpServers",
    entry: |server| FormattedEntry { must: started(server), at_first: Vec::new() },
    launch,
};

/// The same with the type of transport, for Claude Code.
pub const TYPED: EntryFormat =
    EntryFormat { entry: |server| typed("stdio", server, vec![("env", json!({}))]), ..MCP_SERVERS };
/// The same with the type of server and its tools, for the Copilot CLI.
pub const COPILOT: EntryFormat = EntryFormat {
    entry: |server| typed("local", server, vec![("tools", json!(["*"]))]),
    ..MCP_SERVERS
};
/// VS Code.
pub const SERVERS: EntryFormat = EntryFormat {
    container: "servers",
    entry: |server| typed("stdio", server, Vec::new()),
    ..MCP_SERVERS
};

/// Zed's settings.
pub const CONTEXT_SERVERS: EntryFormat = EntryFormat {
    container: "context_servers",
    entry: |server| FormattedEntry { must: started(server), at_first: vec![("env", json!({}))] },
    ..MCP_SERVERS
};

/// Codex: a TOML table.
pub const TOML_SERVERS: EntryFormat =
    EntryFormat { format: FileFormat::Toml, container: "mcp_servers", ..MCP_SERVERS };
/// opencode: the program and its arguments are one list.
pub const OPENCODE: EntryFormat = EntryFormat {
    container: "mcp",
    entry: |server| {
        let ServerProgram { program, arguments } = &server.launch;
        let command: Vec<&String> = [program].into_iter().chain(arguments).collect();
        let must = vec![("type", json!("local")), ("command", json!(command))];
        FormattedEntry { must, at_first: vec![("enabled", json!(true))] }
    },
    launch: |entry| {
        let mut command = texts(entry.get("command")?).into_iter();
        Some(ServerProgram { program: command.next()?, arguments: command.collect() })
    },
    ..MCP_SERVERS
};

/// goose: YAML, which has its own names for program and environment.
pub const EXTENSIONS: EntryFormat = EntryFormat {
    format: FileFormat::Yaml,
    container: "extensions",
    entry: |server| {
        let ServerProgram { program, arguments } = &server.launch;
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
            // How long goose waits for an answer, in seconds; its default.
            ("timeout", json!(300)),
        ];
        FormattedEntry { must, at_first }
    },
    launch: |_| None,
};

fn started(server: &ServerEntry) -> Members {
    let ServerProgram { program, arguments } = &server.launch;
    vec![("command", json!(program)), ("args", json!(arguments))]
}

fn typed(kind: &str, server: &ServerEntry, at_first: Members) -> FormattedEntry {
    let must = [("type", json!(kind))].into_iter().chain(started(server)).collect();
    FormattedEntry { must, at_first }
}

fn launch(entry: &Value) -> Option<ServerProgram> {
    let program = entry.get("command")?.as_str()?.to_owned();
    let arguments = entry.get("args").map(texts).unwrap_or_default();
    Some(ServerProgram { program, arguments })
}

fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The default name of the entry.
pub const NAME: &str = "termgate";

/// The longest name of an entry, in characters.
const NAME_MAX: usize = 64;

/// How a client starts a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerProgram {
    /// The absolute path of the program: graphical clients start with a short `PATH`.
    pub program: String,
    pub arguments: Vec<String>,
}

/// A server and its name in the client's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerEntry {
    pub name: String,
    pub launch: ServerProgram,
}

/// What the client's agents may do, besides the daemon's policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentRights {
    AsConfigured,
    ReadOnly,
    Write,
}

impl ServerEntry {
    /// This program as a server over standard input and output.
    pub fn bridge(name: String, program: String, rights: AgentRights) -> Self {
        let mut arguments = vec!["mcp".to_owned()];
        match rights {
            AgentRights::AsConfigured => {}
            AgentRights::ReadOnly => arguments.push("--read-only".to_owned()),
            AgentRights::Write => arguments.push("--allow-write".to_owned()),
        }
        Self { name, launch: ServerProgram { program, arguments } }
    }
}

/// Parses a name that is valid for every client and safe in shells and commands.
pub fn parse_name(text: &str) -> Result<String, String> {
    let begins_well = text.starts_with(|first: char| first.is_ascii_alphanumeric());
    let of_name = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
    if begins_well && text.len() <= NAME_MAX && text.chars().all(of_name) {
        return Ok(text.to_owned());
    }
    Err(format!("a name is 1 to {NAME_MAX} letters, digits, `-` and `_`, a letter or digit first"))
}

#[cfg(test)]
mod tests;
