//! The table of clients: their names, configuration files, and signs that they are installed.
//!
//! To add a client, add a row.

use std::path::{Path, PathBuf};

use crate::cli::install::entry_format::{
    CONTEXT_SERVERS, COPILOT, EXTENSIONS, EntryFormat, FoundEntry, MCP_SERVERS, OPENCODE, SERVERS,
    TOML_SERVERS, TYPED,
};
use crate::cli::install::file::{ClientFile, FileError};
use crate::cli::install::own_command::{OwnCommand, Writes};
use crate::cli::install::place::{Base, ClientPath, InstallScope, Surroundings};

#[derive(Debug)]
pub struct McpClient {
    pub name: &'static str,
    /// The client's own name for display.
    pub title: &'static str,
    pub entry_format: EntryFormat,
    pub user: ClientPath,
    pub project: Option<ClientPath>,
    /// Exists when the client is installed.
    pub sign: ClientPath,
    /// The program that is on `PATH` when the client is installed.
    pub program: Option<&'static str>,
    pub command: Option<OwnCommand>,
    /// Its skill directories, if it reads skills.
    pub skills: Option<SkillPlaces>,
}

/// The skill directories of a client.
#[derive(Clone, Copy, Debug)]
pub struct SkillPlaces {
    pub user: ClientPath,
    pub project: ClientPath,
}

impl McpClient {
    pub fn named(name: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.name == name)
    }

    /// The client's skill directory in this scope, if it reads skills.
    pub fn skills(&self, scope: InstallScope) -> Option<ClientPath> {
        self.skills.map(|places| match scope {
            InstallScope::User => places.user,
            InstallScope::Project => places.project,
        })
    }

    /// The client's file of servers in this scope, if it has the scope.
    pub fn place(&self, scope: InstallScope) -> Option<ClientPath> {
        match scope {
            InstallScope::User => Some(self.user),
            InstallScope::Project => self.project,
        }
    }
}

const CLAUDE: OwnCommand = OwnCommand {
    program: "claude",
    scopes: &[InstallScope::User, InstallScope::Project],
    add: &["mcp", "add", "--scope", "{scope}", "{name}", "--", "{program}", "{arguments}"],
    remove: Some(&["mcp", "remove", "--scope", "{scope}", "{name}"]),
    writes: Writes::File,
};
const CODEX: OwnCommand = OwnCommand {
    program: "codex",
    scopes: &[InstallScope::User],
    add: &["mcp", "add", "{name}", "--", "{program}", "{arguments}"],
    remove: Some(&["mcp", "remove", "{name}"]),
    writes: Writes::File,
};
const GEMINI: OwnCommand = OwnCommand {
    program: "gemini",
    scopes: &[InstallScope::User, InstallScope::Project],
    add: &["mcp", "add", "--scope", "{scope}", "{name}", "{program}", "--", "{arguments}"],
    remove: Some(&["mcp", "remove", "--scope", "{scope}", "{name}"]),
    writes: Writes::File,
};
const CODE: OwnCommand = OwnCommand {
    program: "code",
    scopes: &[InstallScope::User],
    add: &["--add-mcp", "{json}"],
    remove: None,
    // The active profile may have a file of its own.
    writes: Writes::Elsewhere,
};

const fn place(base: Base, names: &'static [&'static str]) -> ClientPath {
    ClientPath { base, names }
}

const fn project(names: &'static [&'static str]) -> Option<ClientPath> {
    Some(place(Base::Project, names))
}

const fn skills(user: ClientPath, project: &'static [&'static str]) -> Option<SkillPlaces> {
    Some(SkillPlaces { user, project: place(Base::Project, project) })
}

/// The skill directories that several clients share.
const SHARED_SKILLS: Option<SkillPlaces> =
    skills(place(Base::Home, &[".agents/skills"]), &[".agents/skills"]);
/// The skill directories of the Copilot clients.
const COPILOT_SKILLS: Option<SkillPlaces> =
    skills(place(Base::Variable("COPILOT_HOME", ".copilot"), &["skills"]), &[".github/skills"]);

pub static CLIENTS: [McpClient; 14] = [
    McpClient {
        name: "claude-code",
        title: "Claude Code",
        entry_format: TYPED,
        user: place(Base::Variable("CLAUDE_CONFIG_DIR", ""), &[".claude.json"]),
        project: project(&[".mcp.json"]),
        sign: place(Base::Variable("CLAUDE_CONFIG_DIR", ""), &[".claude.json", ".claude"]),
        program: Some("claude"),
        command: Some(CLAUDE),
        skills: skills(
            place(Base::Variable("CLAUDE_CONFIG_DIR", ".claude"), &["skills"]),
            &[".claude/skills"],
        ),
    },
    McpClient {
        name: "claude-desktop",
        title: "Claude Desktop",
        entry_format: MCP_SERVERS,
        user: place(Base::Config, &["Claude/claude_desktop_config.json"]),
        project: None,
        sign: place(Base::Config, &["Claude"]),
        program: None,
        command: None,
        skills: None,
    },
    McpClient {
        name: "cline",
        title: "Cline",
        entry_format: MCP_SERVERS,
        user: place(
            Base::Config,
            &["Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"],
        ),
        project: None,
        sign: place(Base::Config, &["Code/User/globalStorage/saoudrizwan.claude-dev"]),
        program: None,
        command: None,
        skills: SHARED_SKILLS,
    },
    McpClient {
        name: "codex",
        title: "Codex",
        entry_format: TOML_SERVERS,
        user: place(Base::Variable("CODEX_HOME", ".codex"), &["config.toml"]),
        project: project(&[".codex/config.toml"]),
        sign: place(Base::Variable("CODEX_HOME", ".codex"), &[""]),
        program: Some("codex"),
        command: Some(CODEX),
        skills: SHARED_SKILLS,
    },
    McpClient {
        name: "copilot",
        title: "GitHub Copilot CLI",
        entry_format: COPILOT,
        user: place(Base::Variable("COPILOT_HOME", ".copilot"), &["mcp-config.json"]),
        project: project(&[".github/mcp.json"]),
        sign: place(Base::Variable("COPILOT_HOME", ".copilot"), &[""]),
        program: Some("copilot"),
        command: None,
        skills: COPILOT_SKILLS,
    },
    McpClient {
        name: "cursor",
        title: "Cursor",
        entry_format: MCP_SERVERS,
        user: place(Base::Home, &[".cursor/mcp.json"]),
        project: project(&[".cursor/mcp.json"]),
        sign: place(Base::Home, &[".cursor"]),
        program: Some("cursor"),
        command: None,
        skills: skills(place(Base::Home, &[".cursor/skills"]), &[".cursor/skills"]),
    },
    McpClient {
        name: "gemini",
        title: "Gemini CLI",
        entry_format: MCP_SERVERS,
        user: place(Base::Home, &[".gemini/settings.json"]),
        project: project(&[".gemini/settings.json"]),
        sign: place(Base::Home, &[".gemini"]),
        program: Some("gemini"),
        command: Some(GEMINI),
        skills: skills(place(Base::Home, &[".gemini/skills"]), &[".gemini/skills"]),
    },
    McpClient {
        name: "goose",
        title: "goose",
        entry_format: EXTENSIONS,
        user: place(Base::Config, &["goose/config.yaml"]),
        project: None,
        sign: place(Base::Config, &["goose"]),
        program: Some("goose"),
        command: None,
        skills: skills(place(Base::Config, &["goose/skills"]), &[".goose/skills"]),
    },
    McpClient {
        name: "junie",
        title: "Junie",
        entry_format: MCP_SERVERS,
        user: place(Base::Home, &[".junie/mcp/mcp.json"]),
        project: project(&[".junie/mcp/mcp.json"]),
        sign: place(Base::Home, &[".junie"]),
        program: Some("junie"),
        command: None,
        skills: skills(place(Base::Home, &[".junie/skills"]), &[".junie/skills"]),
    },
    McpClient {
        name: "kiro",
        title: "Kiro",
        entry_format: MCP_SERVERS,
        user: place(Base::Home, &[".kiro/settings/mcp.json"]),
        project: project(&[".kiro/settings/mcp.json"]),
        sign: place(Base::Home, &[".kiro"]),
        program: Some("kiro"),
        command: None,
        skills: skills(place(Base::Home, &[".kiro/skills"]), &[".kiro/skills"]),
    },
    McpClient {
        name: "opencode",
        title: "opencode",
        entry_format: OPENCODE,
        user: place(Base::Config, &["opencode/opencode.json", "opencode/opencode.jsonc"]),
        project: project(&["opencode.json", "opencode.jsonc"]),
        sign: place(Base::Config, &["opencode"]),
        program: Some("opencode"),
        command: None,
        skills: skills(place(Base::Config, &["opencode/skills"]), &[".opencode/skills"]),
    },
    McpClient {
        name: "vscode",
        title: "VS Code",
        entry_format: SERVERS,
        user: place(Base::Config, &["Code/User/mcp.json"]),
        project: project(&[".vscode/mcp.json"]),
        sign: place(Base::Config, &["Code"]),
        program: Some("code"),
        command: Some(CODE),
        skills: COPILOT_SKILLS,
    },
    McpClient {
        name: "windsurf",
        title: "Windsurf",
        entry_format: MCP_SERVERS,
        user: place(Base::Home, &[".codeium/windsurf/mcp_config.json"]),
        project: None,
        sign: place(Base::Home, &[".codeium/windsurf"]),
        program: Some("windsurf"),
        command: None,
        skills: skills(place(Base::Home, &[".codeium/windsurf/skills"]), &[".windsurf/skills"]),
    },
    McpClient {
        name: "zed",
        title: "Zed",
        entry_format: CONTEXT_SERVERS,
        user: place(Base::Config, &["zed/settings.json"]),
        project: project(&[".zed/settings.json"]),
        sign: place(Base::Config, &["zed"]),
        program: Some("zed"),
        command: None,
        skills: SHARED_SKILLS,
    },
];

/// Whether a client has termgate configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Knowledge {
    Unknown,
    /// It starts this program; `there` is whether that exists.
    Starts {
        program: PathBuf,
        there: bool,
    },
    /// It has an entry that starts no program.
    Other,
    /// Its file cannot be read; contains the reason.
    Unreadable(String),
}

/// The state of a client in one scope.
#[derive(Clone, Debug)]
pub struct ClientSighting {
    pub client: &'static McpClient,
    pub scope: InstallScope,
    pub file: PathBuf,
    pub knowledge: Knowledge,
}

/// The clients that seem installed.
pub fn present(around: &Surroundings) -> impl Iterator<Item = &'static McpClient> {
    CLIENTS.iter().filter(|client| is_present(client, around))
}

/// The clients that seem installed, and whether they have a server of this name. It includes the project
/// scope when the client has a file there.
pub fn sightings(around: &Surroundings, name: &str) -> Vec<ClientSighting> {
    let mut sightings = Vec::new();
    for client in present(around) {
        for scope in [InstallScope::User, InstallScope::Project] {
            let Some(place) = client.place(scope) else { continue };
            let file = around.path(place);
            // In the home directory, both scopes can have the same file.
            let again = file == around.path(client.user);
            if scope == InstallScope::User || !again && file.exists() {
                let knowledge = knowledge(client, &file, name);
                sightings.push(ClientSighting { client, scope, file, knowledge });
            }
        }
    }
    sightings
}

fn is_present(client: &McpClient, around: &Surroundings) -> bool {
    let has_program = || client.program.is_some_and(|name| around.program(name).is_some());
    around.path(client.sign).exists() || has_program()
}

fn knowledge(client: &McpClient, file: &Path, name: &str) -> Knowledge {
    match find(client, file, name) {
        Ok(None) => Knowledge::Unknown,
        Ok(Some(FoundEntry::Other)) => Knowledge::Other,
        Ok(Some(FoundEntry::Program(launch))) => {
            let program = PathBuf::from(launch.program);
            let there = program.is_file();
            Knowledge::Starts { program, there }
        }
        Err(why) => Knowledge::Unreadable(why.to_string()),
    }
}

fn find(client: &McpClient, file: &Path, name: &str) -> Result<Option<FoundEntry>, FileError> {
    let file = ClientFile::read(file)?;
    let Some(text) = file.text() else { return Ok(None) };
    Ok(client.entry_format.find(text, name)?)
}

#[cfg(test)]
mod tests;
