//! The table of clients: their names, configuration files, and signs that they are installed.
//!
//! To add a client, add a row.

use crate::cli::install::family::{
    Family, context_servers, extensions, mcp_servers, opencode, servers, toml_servers,
};
use crate::cli::install::own_command::{OwnCommand, Writes};
use crate::cli::install::place::{Base, Place, Scope};

#[derive(Debug)]
pub struct Client {
    pub name: &'static str,
    /// The client's own name for display.
    pub title: &'static str,
    pub family: Family,
    pub user: Place,
    pub project: Option<Place>,
    /// Exists when the client is installed.
    pub sign: Place,
    /// The program that is on `PATH` when the client is installed.
    pub program: Option<&'static str>,
    pub command: Option<OwnCommand>,
    /// Its skill directories, if it reads skills.
    pub skills: Option<SkillPlaces>,
}

/// The skill directories of a client.
#[derive(Clone, Copy, Debug)]
pub struct SkillPlaces {
    pub user: Place,
    pub project: Place,
}

impl Client {
    pub fn named(name: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.name == name)
    }

    /// The client's skill directory in this scope, if it reads skills.
    pub fn skills(&self, scope: Scope) -> Option<Place> {
        self.skills.map(|places| match scope {
            Scope::User => places.user,
            Scope::Project => places.project,
        })
    }

    /// The client's file of servers in this scope, if it has the scope.
    pub fn place(&self, scope: Scope) -> Option<Place> {
        match scope {
            Scope::User => Some(self.user),
            Scope::Project => self.project,
        }
    }
}

const CLAUDE: OwnCommand = OwnCommand {
    program: "claude",
    scopes: &[Scope::User, Scope::Project],
    add: &["mcp", "add", "--scope", "{scope}", "{name}", "--", "{program}", "{arguments}"],
    remove: Some(&["mcp", "remove", "--scope", "{scope}", "{name}"]),
    writes: Writes::File,
};
const CODEX: OwnCommand = OwnCommand {
    program: "codex",
    scopes: &[Scope::User],
    add: &["mcp", "add", "{name}", "--", "{program}", "{arguments}"],
    remove: Some(&["mcp", "remove", "{name}"]),
    writes: Writes::File,
};
const GEMINI: OwnCommand = OwnCommand {
    program: "gemini",
    scopes: &[Scope::User, Scope::Project],
    add: &["mcp", "add", "--scope", "{scope}", "{name}", "{program}", "--", "{arguments}"],
    remove: Some(&["mcp", "remove", "--scope", "{scope}", "{name}"]),
    writes: Writes::File,
};
const CODE: OwnCommand = OwnCommand {
    program: "code",
    scopes: &[Scope::User],
    add: &["--add-mcp", "{json}"],
    remove: None,
    // The active profile may have a file of its own.
    writes: Writes::Elsewhere,
};

const fn place(base: Base, names: &'static [&'static str]) -> Place {
    Place { base, names }
}

const fn project(names: &'static [&'static str]) -> Option<Place> {
    Some(place(Base::Project, names))
}

const fn skills(user: Place, project: &'static [&'static str]) -> Option<SkillPlaces> {
    Some(SkillPlaces { user, project: place(Base::Project, project) })
}

/// The skill directories that several clients share.
const SHARED_SKILLS: Option<SkillPlaces> =
    skills(place(Base::Home, &[".agents/skills"]), &[".agents/skills"]);
/// The skill directories of the Copilot clients.
const COPILOT_SKILLS: Option<SkillPlaces> =
    skills(place(Base::Variable("COPILOT_HOME", ".copilot"), &["skills"]), &[".github/skills"]);

pub static CLIENTS: [Client; 14] = [
    Client {
        name: "claude-code",
        title: "Claude Code",
        family: mcp_servers::TYPED,
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
    Client {
        name: "claude-desktop",
        title: "Claude Desktop",
        family: mcp_servers::PLAIN,
        user: place(Base::Application, &["Claude/claude_desktop_config.json"]),
        project: None,
        sign: place(Base::Application, &["Claude"]),
        program: None,
        command: None,
        skills: None,
    },
    Client {
        name: "cline",
        title: "Cline",
        family: mcp_servers::PLAIN,
        user: place(
            Base::Application,
            &["Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"],
        ),
        project: None,
        sign: place(Base::Application, &["Code/User/globalStorage/saoudrizwan.claude-dev"]),
        program: None,
        command: None,
        skills: SHARED_SKILLS,
    },
    Client {
        name: "codex",
        title: "Codex",
        family: toml_servers::FAMILY,
        user: place(Base::Variable("CODEX_HOME", ".codex"), &["config.toml"]),
        project: project(&[".codex/config.toml"]),
        sign: place(Base::Variable("CODEX_HOME", ".codex"), &[""]),
        program: Some("codex"),
        command: Some(CODEX),
        skills: SHARED_SKILLS,
    },
    Client {
        name: "copilot",
        title: "GitHub Copilot CLI",
        family: mcp_servers::COPILOT,
        user: place(Base::Variable("COPILOT_HOME", ".copilot"), &["mcp-config.json"]),
        project: project(&[".github/mcp.json"]),
        sign: place(Base::Variable("COPILOT_HOME", ".copilot"), &[""]),
        program: Some("copilot"),
        command: None,
        skills: COPILOT_SKILLS,
    },
    Client {
        name: "cursor",
        title: "Cursor",
        family: mcp_servers::PLAIN,
        user: place(Base::Home, &[".cursor/mcp.json"]),
        project: project(&[".cursor/mcp.json"]),
        sign: place(Base::Home, &[".cursor"]),
        program: Some("cursor"),
        command: None,
        skills: skills(place(Base::Home, &[".cursor/skills"]), &[".cursor/skills"]),
    },
    Client {
        name: "gemini",
        title: "Gemini CLI",
        family: mcp_servers::PLAIN,
        user: place(Base::Home, &[".gemini/settings.json"]),
        project: project(&[".gemini/settings.json"]),
        sign: place(Base::Home, &[".gemini"]),
        program: Some("gemini"),
        command: Some(GEMINI),
        skills: skills(place(Base::Home, &[".gemini/skills"]), &[".gemini/skills"]),
    },
    Client {
        name: "goose",
        title: "goose",
        family: extensions::FAMILY,
        user: place(Base::Config, &["goose/config.yaml"]),
        project: None,
        sign: place(Base::Config, &["goose"]),
        program: Some("goose"),
        command: None,
        skills: skills(place(Base::Config, &["goose/skills"]), &[".goose/skills"]),
    },
    Client {
        name: "junie",
        title: "Junie",
        family: mcp_servers::PLAIN,
        user: place(Base::Home, &[".junie/mcp/mcp.json"]),
        project: project(&[".junie/mcp/mcp.json"]),
        sign: place(Base::Home, &[".junie"]),
        program: Some("junie"),
        command: None,
        skills: skills(place(Base::Home, &[".junie/skills"]), &[".junie/skills"]),
    },
    Client {
        name: "kiro",
        title: "Kiro",
        family: mcp_servers::PLAIN,
        user: place(Base::Home, &[".kiro/settings/mcp.json"]),
        project: project(&[".kiro/settings/mcp.json"]),
        sign: place(Base::Home, &[".kiro"]),
        program: Some("kiro"),
        command: None,
        skills: skills(place(Base::Home, &[".kiro/skills"]), &[".kiro/skills"]),
    },
    Client {
        name: "opencode",
        title: "opencode",
        family: opencode::FAMILY,
        user: place(Base::Config, &["opencode/opencode.json", "opencode/opencode.jsonc"]),
        project: project(&["opencode.json", "opencode.jsonc"]),
        sign: place(Base::Config, &["opencode"]),
        program: Some("opencode"),
        command: None,
        skills: skills(place(Base::Config, &["opencode/skills"]), &[".opencode/skills"]),
    },
    Client {
        name: "vscode",
        title: "VS Code",
        family: servers::FAMILY,
        user: place(Base::Application, &["Code/User/mcp.json"]),
        project: project(&[".vscode/mcp.json"]),
        sign: place(Base::Application, &["Code"]),
        program: Some("code"),
        command: Some(CODE),
        skills: COPILOT_SKILLS,
    },
    Client {
        name: "windsurf",
        title: "Windsurf",
        family: mcp_servers::PLAIN,
        user: place(Base::Home, &[".codeium/windsurf/mcp_config.json"]),
        project: None,
        sign: place(Base::Home, &[".codeium/windsurf"]),
        program: Some("windsurf"),
        command: None,
        skills: skills(place(Base::Home, &[".codeium/windsurf/skills"]), &[".windsurf/skills"]),
    },
    Client {
        name: "zed",
        title: "Zed",
        family: context_servers::FAMILY,
        user: place(Base::Config, &["zed/settings.json"]),
        project: project(&[".zed/settings.json"]),
        sign: place(Base::Config, &["zed"]),
        program: Some("zed"),
        command: None,
        skills: SHARED_SKILLS,
    },
];

#[cfg(test)]
mod tests;
