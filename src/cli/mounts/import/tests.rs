//! Files of other clients, and what becomes of their servers.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::cli::output::CommandReport;
use crate::core::mount::expansion::expand;
use crate::core::mount::server::{HttpAddress, MountedServer, ServerCommand};
use crate::core::mount::{MountMode, MountTrust};

/// A directory with a file of another client, into whose mounts file it is imported.
struct Importing(tempfile::TempDir, PathBuf);

impl Importing {
    fn of(text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let theirs = directory.path().join("theirs.json");
        fs::write(&theirs, text).unwrap();
        Self(directory, theirs)
    }

    fn mounts_file(&self) -> PathBuf {
        self.0.path().join("mounts.toml")
    }

    fn run(&self) -> Result<CommandReport, CliFailure> {
        self.run_with(MountRights::default())
    }

    fn run_with(&self, rights: MountRights) -> Result<CommandReport, CliFailure> {
        let config = Some(self.0.path().join("termgate.toml"));
        let file = MountsFileChoice { config, no_reload: false };
        let from = self.1.clone();
        let wait = ServerWait::default();
        Ok(ImportMounts { from, rights, file, wait }.run()?.report)
    }

    fn table(&self) -> MountTable {
        let text = fs::read_to_string(self.mounts_file()).unwrap();
        let mut table = MountTable::new();
        let problems = mounts::read(&text, Path::new("mounts.toml"), &mut table);
        assert!(problems.is_empty(), "{problems:?} {text}");
        table
    }

    fn server(&self, name: &str) -> MountedServer {
        let mount = self.table().remove(&name.parse().unwrap()).unwrap();
        assert_eq!(mount.trust, MountTrust::Untrusted);
        mount.server
    }
}

fn program(server: MountedServer) -> ServerCommand {
    let MountedServer::Program(program) = server else { panic!("{server:?}") };
    program
}

fn http(server: MountedServer) -> HttpAddress {
    let MountedServer::Http(http) = server else { panic!("{server:?}") };
    http
}

#[test]
fn the_file_of_claude_desktop_comes_in_and_its_numbers_are_texts() {
    let importing = Importing::of(
        r#"{"globalShortcut": "", "mcpServers": {
            "filesystem": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv"]},
            "db": {"command": "uvx", "args": ["--port", 5432, true],
                "env": {"PORT": 8080, "DEBUG": true, "RATIO": 0.5, "KEY": "${KEY}", "UNSET": null}}}}"#,
    );
    let report = importing.run().unwrap();
    assert_eq!(report.data["added"], json!(["db", "filesystem"]));
    assert_eq!(report.notes.len(), 1, "{report:?}");
    let db = program(importing.server("db"));
    assert_eq!(db.args, ["--port", "5432", "true"]);
    let env = [("DEBUG", "true"), ("KEY", "${KEY}"), ("PORT", "8080"), ("RATIO", "0.5")];
    assert_eq!(db.env, env.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    assert_eq!(program(importing.server("filesystem")).args[2], "/srv");
    let mode = fs::metadata(importing.mounts_file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it may have secrets");
}

#[test]
fn the_file_of_cursor_has_urls_without_a_type() {
    let importing = Importing::of(
        r#"{"mcpServers": {
            "web": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}", "X-N": 1}},
            "tool": {"command": "node", "env": {"A": "${env:A}"}},
            "here": {"command": "node", "args": ["${userHome}/x.js"]}}}"#,
    );
    let report = importing.run().unwrap();
    assert_eq!(report.data["added"], json!(["tool", "web"]));
    let web = http(importing.server("web"));
    assert_eq!(web.headers["Authorization"], "Bearer ${TOKEN}");
    assert_eq!(web.headers["X-N"], "1");
    assert_eq!(program(importing.server("tool")).env["A"], "${A}");
    assert!(report.notes[0].starts_with("left out here: it needs ${userHome}"));
}

#[test]
fn the_file_of_vs_code_has_servers_inputs_and_comments() {
    let importing = Importing::of(
        r#"{
            // What is asked for.
            "inputs": [{"type": "promptString", "id": "key"}],
            "servers": {
                "github": {"type": "http", "url": "https://example.com/mcp/"},
                "sequential-thinking": {"type": "stdio", "command": "npx", "env": {"A": "${env:A}"}},
                "asks": {"command": "npx", "env": {"KEY": "${input:key}"}},
                "there": {"command": "npx", "env": {"ROOT": "${workspaceFolder}/${file}:${cwd}"}},
                "file": {"command": "npx", "envFile": "${workspaceFolder}/.env"},
            },
        }"#,
    );
    let report = importing.run().unwrap();
    assert_eq!(report.data["added"], json!(["file", "github", "sequential-think"]));
    assert_eq!(report.data["renamed"], json!({"sequential-thinking": "sequential-think"}));
    assert_eq!(program(importing.server("sequential-think")).env["A"], "${A}");
    let [asks, there, file, added] = &report.notes[..] else { panic!("{report:?}") };
    assert!(asks.starts_with("left out asks: it needs ${input:key}"), "{asks}");
    assert!(there.starts_with("left out there: it needs ${cwd}"), "{there}");
    assert_eq!(file, "file: envFile is ignored");
    let names = "added file, github, sequential-thinking as sequential-think to ";
    assert!(added.starts_with(names), "{added}");
}

#[test]
fn the_file_of_cline_says_what_is_disabled_and_approved() {
    let importing = Importing::of(
        r#"{"mcpServers": {
            "on": {"command": "npx", "disabled": false, "autoApprove": ["x"], "alwaysAllow": []},
            "off": {"command": "npx", "disabled": true},
            "events": {"type": "sse", "url": "https://example.com/sse"},
            "stream": {"type": "streamableHttp", "url": "https://example.com/mcp"}}}"#,
    );
    let report = importing.run().unwrap();
    assert_eq!(report.data["added"], json!(["on", "stream"]));
    let left: Vec<_> = report.data["skipped"].as_array().unwrap().iter().collect();
    assert!(left[0].as_str().unwrap().starts_with("events: its transport `sse`"), "{left:?}");
    assert_eq!(*left[1], json!("off: it is disabled"));
    assert_eq!(
        report.data["notes"],
        json!(["on: alwaysAllow is ignored", "on: autoApprove is ignored"])
    );
}

#[test]
fn what_cannot_be_a_mount_is_left_out_alone() {
    let importing = Importing::of(
        r#"{"mcpServers": {
            "good": {"command": "x", "args": null},
            "list": {"command": "x", "args": [["a"]]},
            "word": {"command": "x", "args": "a"},
            "map": {"command": "x", "env": ["A=b"]},
            "deep": {"command": "x", "env": {"A": {"b": 1}}},
            "name": {"command": "x", "env": {"A-B": "c"}},
            "nul": {"command": "x", "args": ["a\u0000b"]},
            "place": {"command": "x", "cwd": "here"},
            "home": {"command": "${userHome}/x"},
            "cut": {"command": "x", "args": ["${A%b}"]},
            "number": {"command": 1},
            "nothing": {},
            "text": "x",
            "ws": {"type": "ws", "url": "wss://example.com"},
            "none": {"type": "http"},
            "user": {"url": "https://a:b@example.com"}}}"#,
    );
    let report = importing.run().unwrap();
    assert_eq!(report.data["added"], json!(["good"]));
    let left = report.data["skipped"].as_array().unwrap();
    let left: Vec<_> = left.iter().map(|it| it.as_str().unwrap()).collect();
    for expected in [
        "deep: env.A is neither a text nor a number",
        "home: it needs ${userHome}",
        "cut: args: `${` without a name",
        "list: one of its args is neither",
        "map: its env has no names",
        "name: env: `A-B` is not the name of a variable",
        "none: it has no url",
        "nothing: it has no command",
        "nul: a text contains the character NUL",
        "number: its command is no text",
        "place: cwd: must be an absolute path",
        "text: it is no object",
        "user: url: a user and a password",
        "word: its args are no list",
        "ws: its type `ws` is not known",
    ] {
        assert!(left.iter().any(|it| it.starts_with(expected)), "{expected}: {left:?}");
    }
    assert_eq!(left.len(), 15);
}

#[test]
fn half_a_character_and_names_that_are_there_twice_lose_their_own_servers_alone() {
    let importing = Importing::of(
        r#"{"mcpServers": {
            "good": {"command": "x", "args": ["\ud83d\ude00", "a\\ud800"]},
            "half": {"command": "x", "args": ["\ud800"]},
            "cut\udc00": {"command": "x"},
            "fs": {"command": "a"},
            "env": {"command": "x", "env": {"A": "1", "A": "2"}},
            "fs": {"command": "b"}},
          "servers": {"fs": {"command": "c"}}}"#,
    );
    let report = importing.run().unwrap();
    assert_eq!(report.data["added"], json!(["fs", "good"]));
    assert_eq!(program(importing.server("good")).args, ["\u{1f600}", "a\\ud800"]);
    assert_eq!(program(importing.server("fs")).command, "c");
    let skipped = [
        "env: `env.A` is there twice",
        "fs: the file has several servers of this name",
        "fs: the file has several servers of this name",
        "half: it has half a character",
        "cut\u{fffd}: it has half a character",
    ];
    assert_eq!(report.data["skipped"], json!(skipped));
}

#[test]
fn numbers_keep_their_digits() {
    let importing = Importing::of(
        r#"{"mcpServers": {"a": {"command": "x", "args": [123456789012345678901234567890, 1.10],
            "env": {"A": 18446744073709551617, "B": 1e400, "C": -0.0 /* zero */,},},}}"#,
    );
    importing.run().unwrap();
    let server = program(importing.server("a"));
    assert_eq!(server.args, ["123456789012345678901234567890", "1.10"]);
    let env: Vec<_> = server.env.values().map(String::as_str).collect();
    assert_eq!(env, ["18446744073709551617", "1e400", "-0.0"]);
}

#[test]
fn variables_of_the_daemon_come_in_and_those_of_the_program_stay_its_own() {
    let importing = Importing::of(
        r#"{"mcpServers": {
            "own": {"command": "npx", "args": ["mcp-remote", "--header", "Authorization:${AUTH}"], "env": {"AUTH": "x"}},
            "theirs": {"command": "${env:BIN}/x", "args": ["${env:HOME}", "${A:-b}${C}"], "cwd": "${PWD}"}}}"#,
    );
    let report = importing.run().unwrap();
    assert_eq!(report.data["added"], json!(["own", "theirs"]));
    assert_eq!(report.data["notes"], json!([]));
    let own = program(importing.server("own"));
    let put_in = expand(&own.args[2], |name| (name == "AUTH").then(|| "daemon's".to_owned()));
    assert_eq!(put_in.unwrap(), "Authorization:${AUTH}");
    let theirs = program(importing.server("theirs"));
    assert_eq!(theirs.command, "${BIN}/x");
    assert_eq!(theirs.args, ["${HOME}", "${A:-b}${C}"]);
    assert_eq!(theirs.cwd.as_deref(), Some("${PWD}"));
}

#[test]
fn all_servers_get_the_mode_and_the_trust_of_the_command_line() {
    let text =
        r#"{"mcpServers": {"a": {"command": "x", "trust": "trusted"}, "b": {"url": "http://b"}}}"#;
    let importing = Importing::of(text);
    let rights = MountRights { mode: Some(MountMode::PerClient), trust: None, sandbox: true };
    let report = importing.run_with(rights).unwrap();
    assert_eq!(report.data["added"], json!(["a"]));
    assert_eq!(report.data["skipped"], json!(["b: trust: a sandbox is only for a command"]));
    let mount = importing.table().remove(&"a".parse().unwrap()).unwrap();
    assert_eq!((mount.mode, mount.trust), (MountMode::PerClient, MountTrust::Sandboxed));
}

#[test]
fn each_server_gets_a_name_that_is_free_and_comes_once() {
    let importing = Importing::of(
        r#"{"mcpServers": {
            "My_Server": {"command": "a"},
            "my-server": {"command": "b"},
            "github.com/foo": {"command": "c"},
            "io.github.someone/weather-station-mcp": {"command": "d"},
            "sequential-thinking": {"command": "e"},
            "sequential-thinking-2": {"command": "f"},
            "データ": {"command": "g"},
            "fs": {"command": "h"}}}"#,
    );
    fs::write(importing.mounts_file(), "[mount.fs]\ncommand = \"other\"\n").unwrap();
    let report = importing.run().unwrap();
    let renamed = json!({
        "My_Server": "my-server-2",
        "github.com/foo": "github-com-foo",
        "io.github.someone/weather-station-mcp": "weather-station",
        "sequential-thinking": "sequential-think",
        "sequential-thinking-2": "sequential-thi-2",
        "データ": "server",
        "fs": "fs-2",
    });
    assert_eq!(report.data["renamed"], renamed);
    let commands = ["my-server", "my-server-2", "fs", "fs-2"]
        .map(|name| program(importing.server(name)).command);
    assert_eq!(commands, ["b", "a", "other", "h"]);
    let again = importing.run().unwrap();
    assert_eq!(again.data["added"], json!([]));
    let left = again.data["skipped"].as_array().unwrap();
    assert!(left.contains(&json!("My_Server: it is the mount my-server-2 already")), "{left:?}");
}

#[test]
fn a_program_with_relative_paths_starts_where_its_client_starts_it() {
    let servers = r#"{"mcpServers": {
        "there": {"command": "python3", "args": ["tools/server.py"]},
        "written": {"command": "./gone"},
        "all": {"command": "npx", "args": ["-y", "fs", "."]},
        "own": {"command": "./gone", "cwd": "/srv"},
        "root": {"command": "${workspaceFolder}/x", "args": ["--in=${workspaceFolder}"], "env": {"b": "c"}},
        "found": {"command": "tools", "args": ["/", "", "missing.py"]}}}"#;
    for file in [".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json", "tools/other.json"] {
        let mut importing = Importing::of("");
        let project = importing.0.path().join("a ${b}");
        for directory in ["tools/tools", ".vscode", ".cursor"] {
            fs::create_dir_all(project.join(directory)).unwrap();
        }
        for script in ["tools/server.py", "tools/tools/server.py"] {
            fs::write(project.join(script), "").unwrap();
        }
        importing.1 = project.join(file);
        fs::write(&importing.1, servers).unwrap();
        let place = if file.starts_with("tools") { project.join("tools") } else { project };
        let report = importing.run().unwrap();
        let cwd = |name: &str| program(importing.server(name)).cwd;
        let put_in = |name: &str| cwd(name).map(|it| expand(&it, |_| None).unwrap());
        for name in ["there", "written", "all"] {
            assert_eq!(put_in(name).as_deref(), place.to_str(), "{file} {name}");
        }
        assert_eq!((cwd("own").as_deref(), cwd("found")), (Some("/srv"), None), "{file}");
        let root = program(importing.server("root"));
        let words = [&root.command, &root.args[0]].map(|it| expand(it, |_| None).unwrap());
        let expected = [format!("{}/x", place.display()), format!("--in={}", place.display())];
        assert_eq!(words, expected, "{file}");
        let told =
            format!("added all (in {0}), found, own, root, there (in {0}), ", place.display());
        assert!(report.notes[0].starts_with(&told), "{report:?}");
    }
}

#[test]
fn the_files_of_a_user_name_no_directory() {
    let home = PathBuf::from(env::var_os("HOME").unwrap());
    for file in [
        ".claude.json",
        ".cursor/mcp.json",
        ".config/zed/settings.json",
        ".codeium/windsurf/mcp_config.json",
        "Library/Application Support/Code/User/mcp.json",
    ] {
        assert_eq!(place_of(&home.join(file)), None, "{file}");
    }
    assert_eq!(place_of(Path::new("/srv/claude_desktop_config.json")), None);
    assert_eq!(place_of(&home.join("work/.cursor/mcp.json")), Some(home.join("work")));
}

#[test]
fn a_file_with_nothing_to_add_says_so() {
    let report = Importing::of(r#"{"mcpServers": {}}"#).run().unwrap();
    assert_eq!(report.notes.len(), 1, "{report:?}");
    assert!(report.notes[0].starts_with("nothing to add: "), "{report:?}");
    let projects =
        r#"{"mcpServers": {}, "projects": {"/srv": {"mcpServers": {"a": {"command": "x"}}}}}"#;
    let report = Importing::of(projects).run().unwrap();
    assert_eq!(report.data["added"], json!([]));
    assert!(report.notes[1].contains("projects.PATH.mcpServers"), "{report:?}");
}

#[test]
fn no_more_come_in_than_there_may_be_mounts() {
    let servers: Vec<_> =
        (0..=MOUNTS_MAX).map(|n| format!(r#""s{n:02}": {{"command": "x{n}"}}"#)).collect();
    let importing = Importing::of(&format!(r#"{{"servers": {{{}}}}}"#, servers.join(",")));
    let report = importing.run().unwrap();
    assert_eq!(report.data["added"].as_array().unwrap().len(), MOUNTS_MAX);
    assert_eq!(report.data["skipped"], json!(["s32: there are 32 mounts already"]));
    assert_eq!(importing.table().len(), MOUNTS_MAX);
}

#[test]
fn a_file_without_servers_is_bad_input_and_nothing_internal() {
    for (text, expected) in [
        ("{", "it cannot be understood"),
        ("", "it is empty"),
        ("[]", "neither `mcpServers` nor `servers`"),
        (r#"{"inputs": []}"#, "neither `mcpServers` nor `servers`"),
        (r#"{"servers": []}"#, "its servers have no names"),
    ] {
        let failure = Importing::of(text).run().unwrap_err();
        assert_eq!(failure.code(), Some("invalid_argument"), "{text}");
        let told = failure.to_string();
        assert!(told.contains("theirs.json: ") && told.contains(expected), "{told}");
    }
    let importing = Importing::of("{}");
    fs::remove_file(importing.0.path().join("theirs.json")).unwrap();
    assert_eq!(importing.run().unwrap_err().code(), Some("invalid_argument"));
    let importing = Importing::of(r#"{"context_servers": {"a": {"command": "x"}}}"#);
    fs::write(importing.mounts_file(), "[mount").unwrap();
    let failure = importing.run().unwrap_err();
    assert_eq!(failure.code(), Some("invalid_configuration"));
    assert!(failure.to_string().contains("mounts.toml:1:"), "{failure}");
}
