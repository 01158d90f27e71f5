//! Homes: each foreign crate is named in its home and nowhere else, and so are `unsafe` and what
//! starts a program.
//!
//! A home is the beginning of a path below `src/`; an empty one is everywhere.

use crate::architecture::dependencies::direct_dependencies;
use crate::architecture::source::{Complaint, Source, all, assert_none};

/// Everywhere but in the core.
const SHELL: &[&str] = &[
    "config",
    "mount",
    "session",
    "store",
    "surface",
    "gateway",
    "mcp",
    "transport",
    "cli",
    "main",
];

/// Everything of ours that speaks the protocol or a shape of it, or keeps notes.
const WIRE: &[&str] = &[
    "wire",
    "mount",
    "session/records",
    "session/recording",
    "store",
    "surface",
    "gateway",
    "mcp",
    "transport",
    "cli",
];

/// The homes of each crate, by the name it has in code.
const HOMES: [(&str, &[&str]); 50] = [
    ("ab_glyph_rasterizer", &["cli/record/font"]),
    ("alacritty_terminal", &["core/screen"]),
    ("anyhow", &["cli", "main"]),
    ("base64", &["mount/link/http", "store", "surface", "mcp/server/attaching", "cli/attach"]),
    ("brush_parser", &["core/command_line"]),
    ("bytes", &["mount/link/http", "session", "mcp", "transport"]),
    ("clap", &["cli", "main"]),
    ("clap_complete", &["cli"]),
    ("clap_mangen", &["cli/man"]),
    ("dashmap", &["session/registry"]),
    ("dejavu", &["cli/record/font"]),
    ("futures_util", &["transport/connection"]),
    // The only randomness that is a secret.
    ("getrandom", &["transport/tokens"]),
    ("gif", &["cli/record/gif"]),
    ("globset", &["core/policy/rules/patterns"]),
    ("http_body_util", &["mount/link/http"]),
    ("hyper", &["mount/link/http"]),
    ("hyper_rustls", &["mount/link/http/client"]),
    ("hyper_util", &["mount/link/http/client"]),
    ("jsonc_parser", &["cli/install/format"]),
    // The system, named where a descriptor is owned; starting the daemon detaches it.
    ("nix", NIX),
    ("libc", NIX),
    ("lz4_flex", &["session/pty/held/store"]),
    // What is kept over a restart has types of its own; the core is not serializable otherwise.
    ("percent_encoding", &["core"]),
    ("postcard", &["core/frame/kept", "core/screen/snapshot"]),
    ("regex_automata", &["core/policy/rules/shapes", "core/wait/automaton"]),
    ("regex_syntax", &["core/wait/automaton"]),
    // Tools take their arguments as its JSON object, and the gateway hands that on.
    ("rmcp", &["surface", "gateway", "mcp", "transport"]),
    ("rusqlite", &["store/index"]),
    // Descriptors sent beside a frame, without allocation.
    // And the priority of a thread.
    ("rustix", &["shim/socket", "store/index/writer"]),
    ("schemars", &["wire", "surface"]),
    ("serde", SERDE),
    ("serde_json", WIRE),
    ("serde_path_to_error", &["surface"]),
    (
        "sha2",
        &[
            "core/policy/approvals",
            "core/token",
            "store",
            "mount/definitions",
            "cli/install/skills",
        ],
    ),
    ("strsim", &["core/nearest"]),
    ("subtle", &["core/token"]),
    ("terminal_size", &["cli/raw_terminal"]),
    ("thiserror", &[""]),
    ("tokio", SHELL),
    ("tokio_util", &["mount", "session", "mcp", "transport", "cli"]),
    ("toml", &["config"]),
    ("toml_edit", &["cli/install/format"]),
    ("tower_service", &["mount/link/http/client"]),
    ("tracing", SHELL),
    ("tracing_subscriber", &["cli"]),
    ("ttf_parser", &["cli/record/font"]),
    ("unicode_width", &["core"]),
    ("uuid", &[""]),
    ("termgate", &["main"]),
];

/// What is sent, stored or kept over a restart.
const SERDE: &[&str] = &[
    "core/frame/kept",
    "core/screen/recorder",
    "core/screen/snapshot",
    "config/mounts",
    "config/policy",
    "config/tenants",
    "config/tokens",
    "mount",
    "session/records",
    "session/recording",
    "store",
    "wire",
    "surface",
    "mcp",
    "transport",
    "cli",
];

const NIX: &[&str] = &[
    // The names of groups.
    "config/sockets",
    "session/pty",
    "config/accounts",
    "mount/link/process",
    "session/clock",
    "session/ring",
    "session/evidence",
    "shim",
    "transport/unix",
    "transport/connection/link",
    "transport/signals",
    "transport/notify",
    "cli/attach",
    "cli/serve",
    "cli/start",
    "cli/raw_terminal",
    // A named pipe.
    "cli/run/input",
    // Its files are a stranger's, pipes among them.
    "mcp/resource/git",
];

/// Where the system is spoken to in ways that the compiler cannot check.
const UNSAFE: &[&str] = &["shim", "session/pty", "session/clock", "transport/unix/handed"];

/// Where programs are started. Reading runs nothing: no tool and no resource is among these.
const PROGRAMS: &[&str] = &[
    "mount/link/process",
    "session/pty",
    "shim",
    "transport/daemon/server_host",
    "transport/daemon/upgrade",
    "transport/unix/event_command",
    "transport/unix/tests",
    "cli",
];

/// Whether a path names what starts a program.
fn starts_programs(segments: &[String]) -> bool {
    let names: Vec<&str> = segments.iter().map(String::as_str).collect();
    names.starts_with(&["tokio", "process"]) || names.starts_with(&["std", "process", "Command"])
}

/// Whether the file is one of these or below it: `session/pty` is `session/pty.rs` and all of
/// `session/pty/`.
fn lives_in(file: &str, homes: &[&str]) -> bool {
    homes.iter().any(|home| {
        let rest = file.strip_prefix(home);
        home.is_empty() || rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    })
}

fn complaints(sources: &[Source]) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for source in sources {
        for name in source.names().iter().filter(|name| name.segments.len() > 1) {
            let crate_name = &name.segments[0];
            let home = HOMES.iter().find(|(known, _)| known == crate_name);
            if let Some((_, homes)) = home.filter(|(_, homes)| !lives_in(&source.file, homes)) {
                let problem = format!("names `{crate_name}`, whose home is {}", homes.join(", "));
                complaints.push(source.complaint(name.line, problem));
            }
        }
        let started = source.names().into_iter().filter(|name| starts_programs(&name.segments));
        for name in started.filter(|name| !name.test && !source.test) {
            if !lives_in(&source.file, PROGRAMS) {
                let problem = format!("starts programs, whose home is {}", PROGRAMS.join(", "));
                complaints.push(source.complaint(name.line, problem));
            }
        }
        let unsafe_code = source.tokens.iter().find(|token| token.text == "unsafe");
        if let Some(token) = unsafe_code.filter(|_| !lives_in(&source.file, UNSAFE)) {
            let problem = format!("unsafe code, whose home is {}", UNSAFE.join(", "));
            complaints.push(source.complaint(token.line, problem));
        }
    }
    complaints
}

#[test]
fn every_foreign_crate_is_named_in_its_home_only() {
    assert_none(&complaints(&all()));
}

#[test]
fn every_direct_dependency_has_a_home() {
    let homeless: Vec<String> = direct_dependencies()
        .into_iter()
        .filter(|dependency| !dependency.dev)
        .map(|dependency| dependency.name.replace('-', "_"))
        .filter(|name| !HOMES.iter().any(|(known, _)| known == name))
        .collect();
    assert!(homeless.is_empty(), "without a home in tests/architecture/homes.rs: {homeless:?}");
}

/// The problems of one file with this text.
fn problems(file: &str, text: &str) -> Vec<String> {
    let complaints = complaints(&[Source::parse(file, text)]);
    complaints.into_iter().map(|complaint| complaint.to_string()).collect()
}

#[test]
fn a_crate_away_from_home_is_reported() {
    let found = problems("mcp/server.rs", "//! A.\nuse dashmap::DashMap;\nfn a() {}");
    assert_eq!(found, ["src/mcp/server.rs:2: names `dashmap`, whose home is session/registry"]);
    let found = problems("core/ids.rs", "#[derive(serde::Serialize)]\nstruct Id;");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("src/core/ids.rs:1: names `serde`"), "{found:?}");
}

#[test]
fn a_crate_at_home_is_fine() {
    assert!(problems("session/registry.rs", "use dashmap::DashMap;").is_empty());
    assert!(problems("session/pty/own.rs", "use nix::libc; fn a() { libc::fork() }").is_empty());
}

#[test]
fn a_file_that_only_begins_like_a_home_is_reported() {
    assert_eq!(problems("session/registry_two.rs", "use dashmap::DashMap;").len(), 1);
}

#[test]
fn unsafe_code_away_from_home_is_reported() {
    let text = "fn a() {\n    unsafe { b() }\n}";
    let expected = "src/cli/attach.rs:2: unsafe code, whose home is shim, session/pty, session/clock, \
                    transport/unix/handed";
    assert_eq!(problems("cli/attach.rs", text), [expected]);
    assert!(problems("session/pty/spawn.rs", text).is_empty());
}

#[test]
fn a_program_that_a_resource_starts_is_reported() {
    let text = "//! A.\nuse tokio::process::Command;\nuse std::process::ExitCode;";
    let found = problems("mcp/resource/git.rs", text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("src/mcp/resource/git.rs:2: starts programs"), "{found:?}");
    assert!(problems("cli/start.rs", text).is_empty());
    let test = "//! A.\n#[cfg(test)]\nmod tests { use std::process::Command; }";
    assert!(problems("mcp/resource/git.rs", test).is_empty());
}
