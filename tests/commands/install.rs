//! `termgate install` as a person runs it, in a home directory of the test's own.
//!
//! Clients are played by shell scripts that write down what they were told.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::commands::user::User;
use crate::harness::processes::PROGRAM;

impl User {
    /// Puts a program on `PATH` that writes down its arguments, one a line, and then does this.
    fn program(&self, name: &str, then: &str) {
        let told = self.path(&format!("{name}.told"));
        let script = format!(
            "#!/bin/sh\nfor word in \"$@\"; do printf '%s\\n' \"$word\"; done >>'{}'\n{then}\n",
            told.display()
        );
        self.write(&format!("bin/{name}"), &script);
        let executable = PermissionsExt::from_mode(0o755);
        fs::set_permissions(self.path(&format!("bin/{name}")), executable).unwrap();
    }

    /// What a program of [`User::program`] was told so far.
    fn told(&self, name: &str) -> Vec<String> {
        let told = fs::read_to_string(self.path(&format!("{name}.told"))).unwrap_or_default();
        told.lines().map(str::to_owned).collect()
    }

    /// Runs it for one client with `--json`, and gives back what came of that client.
    fn one(&self, words: &str) -> Value {
        let answer = self.json(words);
        assert_eq!(answer["ok"], true, "{answer}");
        answer["data"]["clients"][0].clone()
    }

    /// Every file below the home directory with what is in it, but without the programs.
    fn everything(&self) -> Vec<(PathBuf, String)> {
        let mut left = vec![self.path("")];
        let mut files = Vec::new();
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    left.push(path);
                } else {
                    files.push((path.clone(), fs::read_to_string(path).unwrap()));
                }
            }
        }
        files.sort();
        files
    }
}

/// Where the program under test is, as it must be written down.
fn program() -> String {
    let path = Path::new(PROGRAM).canonicalize().unwrap();
    path.into_os_string().into_string().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_client_without_a_command_has_its_file_edited_once() {
    let home = User::new();
    home.write(".cursor/mcp.json", "{\"mcpServers\": {\"other\": {\"command\": \"x\"}}}\n");
    let before = home.read(".cursor/mcp.json");
    let done = home.one("--client cursor --read-only");
    assert_eq!(done["result"], "added");
    let backup = done["backup"].as_str().unwrap();
    assert_eq!(fs::read_to_string(backup).unwrap(), before);
    let now: Value = serde_json::from_str(&home.read(".cursor/mcp.json")).unwrap();
    let expected = json!({"command": program(), "args": ["mcp", "--read-only"]});
    assert_eq!(now["mcpServers"]["termgate"], expected);
    assert_eq!(now["mcpServers"]["other"], json!({"command": "x"}));

    let everything = home.everything();
    assert_eq!(home.one("--client cursor --read-only")["result"], "already_there");
    assert_eq!(home.everything(), everything);

    assert_eq!(home.one("--client cursor --allow-write")["result"], "updated");
    assert!(home.read(".cursor/mcp.json").contains("--allow-write"));
    assert_eq!(home.one("--client cursor --uninstall")["result"], "removed");
    assert_eq!(home.everything(), [(home.path(".cursor/mcp.json"), before)]);
    assert_eq!(home.one("--client cursor --uninstall")["result"], "not_there");
}

#[test]
fn a_file_that_was_made_for_our_entry_alone_goes_with_it() {
    let home = User::new();
    assert_eq!(home.one("--client kiro")["result"], "added");
    assert!(home.read(".kiro/settings/mcp.json").contains(&program()));
    assert_eq!(home.one("--client kiro --uninstall")["result"], "removed");
    assert!(!home.path(".kiro").exists());
}

#[test]
fn a_directory_that_was_there_or_has_something_else_in_it_stays() {
    let home = User::new();
    fs::create_dir(home.path(".kiro")).unwrap();
    for other in [None, Some(".kiro/settings/other")] {
        assert_eq!(home.one("--client kiro")["result"], "added");
        if let Some(other) = other {
            home.write(other, "");
        }
        assert_eq!(home.one("--client kiro --uninstall")["result"], "removed");
        assert!(home.path(".kiro").exists());
        assert_eq!(home.path(".kiro/settings").exists(), other.is_some());
    }
}

#[test]
fn a_client_with_yaml_is_left_as_it_is_and_its_user_told_what_to_paste() {
    let home = User::new();
    let answer = home.json("--client goose");
    assert_eq!((&answer["ok"], &answer["error_code"]), (&json!(false), &json!("client_config")));
    let hint = answer["hint"].as_str().unwrap();
    assert!(hint.contains("extensions:\n  termgate:\n") && hint.contains(&program()), "{hint}");
    assert!(!home.path(".config/goose").exists());
}

#[test]
fn clients_with_a_command_are_told_by_it_and_their_files_are_looked_at_but_not_edited() {
    let home = User::new();
    let program = program();
    for (client, name, file, words) in [
        (
            "claude-code",
            "claude",
            ".claude.json",
            "mcp add --scope user tg -- PROGRAM mcp --allow-write",
        ),
        ("codex", "codex", ".codex/config.toml", "mcp add tg -- PROGRAM mcp --allow-write"),
        (
            "gemini",
            "gemini",
            ".gemini/settings.json",
            "mcp add --scope user tg PROGRAM -- mcp --allow-write",
        ),
    ] {
        let snippet =
            text(&home.run(&format!("--client {client} --allow-write --name tg --print")).stdout);
        fs::create_dir_all(home.path(file).parent().unwrap()).unwrap();
        home.program(name, &format!("printf '%s' '{snippet}' >\"$HOME/{file}\""));
        let done = home.one(&format!("--client {client} --allow-write --name tg"));
        assert_eq!((&done["result"], &done["backup"]), (&json!("added"), &Value::Null));
        assert_eq!((&done["note"], done["command"].is_string()), (&Value::Null, true), "{done}");
        let expected: Vec<_> = words.split(' ').map(|it| it.replace("PROGRAM", &program)).collect();
        assert_eq!(home.told(name), expected);
        assert_eq!(home.read(file), snippet.as_str(), "{file}");
    }
}

#[test]
fn vs_code_is_trusted_since_its_command_may_write_the_file_of_another_profile() {
    let home = User::new();
    home.program("code", "");
    home.write(".config/Code/User/mcp.json", "{}");
    let everything = home.everything();
    let done = home.one("--client vscode --name tg");
    assert_eq!((&done["result"], &done["backup"]), (&json!("added"), &Value::Null));
    let told = home.told("code");
    assert_eq!(told[0], "--add-mcp");
    let expected = json!({"name": "tg", "command": program(), "args": ["mcp"]});
    assert_eq!(serde_json::from_str::<Value>(&told[1]).unwrap(), expected);
    fs::remove_file(home.path("code.told")).unwrap();
    assert_eq!(home.everything(), everything);
}

#[test]
fn a_command_that_says_yes_and_does_nothing_is_followed_by_an_edit_with_one_backup() {
    let home = User::new();
    home.program("claude", "");
    let done = home.one("--client claude-code");
    assert_eq!((&done["result"], &done["command"]), (&json!("added"), &Value::Null));
    let note = done["note"].as_str().unwrap();
    assert!(note.contains("claude mcp add") && note.contains("did not put it there"), "{note}");
    assert!(home.read(".claude.json").contains(&program()));

    let before = home.read(".claude.json");
    let done = home.one("--client claude-code --read-only");
    assert_eq!(done["result"], "updated");
    assert_eq!(fs::read_to_string(done["backup"].as_str().unwrap()).unwrap(), before);
    let done = home.one("--client claude-code --uninstall");
    assert!(done["note"].as_str().unwrap().contains("did not take it out"), "{done}");
    assert!(!home.path(".claude.json").exists() || !home.read(".claude.json").contains("termgate"));
}

#[test]
fn a_file_is_kept_before_the_clients_own_command_changes_it() {
    let home = User::new();
    let before = "{\"theme\": \"dark\"}\n";
    home.write(".claude.json", before);
    let snippet = text(&home.run("--client claude-code --print").stdout);
    home.program("claude", &format!("printf '%s' '{snippet}' >\"$HOME/.claude.json\""));
    let done = home.one("--client claude-code");
    assert!(done["command"].as_str().unwrap().starts_with("claude mcp add"), "{done}");
    assert_eq!(fs::read_to_string(done["backup"].as_str().unwrap()).unwrap(), before);
    let said = text(&home.run("--client claude-code --uninstall").stdout);
    assert!(said.contains("removed"), "{said}");
}

#[test]
fn a_client_that_knows_an_old_entry_is_told_to_forget_it_first() {
    let home = User::new();
    let entry = r#"{"mcpServers": {"termgate": {"command": "socat"}}}"#;
    home.write(".claude.json", entry);
    let snippet = text(&home.run("--client claude-code --print").stdout);
    let write = |text: &str| format!("printf '%s' '{text}' >\"$HOME/.claude.json\"");
    home.program("claude", &write(&snippet));
    let done = home.one("--client claude-code");
    assert_eq!(done["result"], "updated");
    assert_eq!(fs::read_to_string(done["backup"].as_str().unwrap()).unwrap(), entry);
    let told = home.told("claude").join(" ");
    let remove = "mcp remove --scope user termgate";
    assert_eq!(told, format!("{remove} mcp add --scope user termgate -- {} mcp", program()));
    home.program("claude", &write("{}"));
    let done = home.one("--client claude-code --uninstall");
    assert!(done["command"].is_string(), "{done}");
    assert!(home.told("claude").join(" ").ends_with(remove));
}

#[test]
fn a_command_that_says_a_lot_or_leaves_a_program_behind_is_not_waited_for() {
    let home = User::new();
    let line = "x".repeat(1_000);
    // More than a pipe holds, and then the reason.
    let chatter = format!("i=0; while [ $i -lt 300 ]; do echo {line} >&2; i=$((i+1)); done");
    home.program("codex", &format!("echo 'not today' >&2\n{chatter}\nexit 3"));
    let said = text(&home.run("--client codex").stdout);
    assert!(said.contains("failed: not today"), "{said}");
    fs::remove_file(home.path(".codex/config.toml")).unwrap();
    // It keeps standard error open for longer than a command may take.
    home.program(
        "codex",
        "echo 'not now' >&2\n/bin/sleep 100 >/dev/null & echo $! >\"$HOME/left\"\nexit 3",
    );
    let said = text(&home.run("--client codex").stdout);
    let left = home.read("left").trim().parse().unwrap();
    let kill = nix::sys::signal::kill;
    kill(nix::unistd::Pid::from_raw(left), nix::sys::signal::Signal::SIGKILL).unwrap();
    assert!(said.contains("failed: not now"), "{said}");
}

#[test]
fn a_file_with_a_byte_order_mark_keeps_it_and_gets_it_back() {
    let home = User::new();
    let before = "\u{feff}{\"theme\": \"dark\"}\n";
    home.write(".cursor/mcp.json", before);
    assert_eq!(home.one("--client cursor")["result"], "added");
    let now = home.read(".cursor/mcp.json");
    let read: Value = serde_json::from_str(now.strip_prefix('\u{feff}').unwrap()).unwrap();
    assert_eq!(read["mcpServers"]["termgate"]["command"], program());
    assert_eq!(home.one("--client cursor")["result"], "already_there");
    assert_eq!(home.one("--client cursor --uninstall")["result"], "removed");
    assert_eq!(home.read(".cursor/mcp.json"), before);
}

#[test]
fn where_no_whole_backup_can_be_written_nothing_changes_and_nothing_is_left_behind() {
    let home = User::new();
    home.write(".cursor/mcp.json", &format!("{{\"note\": \"{}\"}}\n", "x".repeat(100_000)));
    let everything = home.everything();
    let mut shell = home.0.command("/bin/sh");
    // The kernel lets no file grow beyond the limit, as on a full disk.
    let script = "ulimit -f 8; trap '' XFSZ; exec \"$0\" install --client cursor";
    shell.args(["-c", script, PROGRAM]).env_remove("XDG_CONFIG_HOME");
    let output = shell.current_dir(home.path("work")).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains("(client_config)"), "{output:?}");
    assert_eq!(home.everything(), everything);
}

#[test]
fn a_client_whose_entry_is_right_is_told_nothing() {
    let home = User::new();
    home.program("codex", "");
    let entry = format!("[mcp_servers.termgate]\ncommand = '{}'\nargs = ['mcp']\n", program());
    home.write(".codex/config.toml", &entry);
    assert_eq!(home.one("--client codex")["result"], "already_there");
    assert!(home.told("codex").is_empty());
}

#[test]
fn a_command_that_fails_is_followed_by_an_edit_of_the_file_and_both_are_told() {
    let home = User::new();
    home.program("codex", "echo 'no such subcommand' >&2\nexit 3");
    let output = home.run("--client codex");
    assert!(output.status.success());
    let said = text(&output.stdout);
    assert!(said.contains("no such subcommand"), "{said}");
    assert!(said.contains("added: ~/.codex/config.toml"), "{said}");
    assert!(home.read(".codex/config.toml").contains(&program()));
}

#[test]
fn a_project_has_its_own_file_where_the_client_knows_one() {
    let home = User::new();
    assert_eq!(home.one("--client claude-code --scope project")["result"], "added");
    let file: Value = serde_json::from_str(&home.read("work/.mcp.json")).unwrap();
    assert_eq!(file["mcpServers"]["termgate"]["command"], program());
    assert_eq!(file["mcpServers"]["termgate"]["type"], "stdio");
    let output = home.run("--client windsurf --scope project");
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("Windsurf has no project scope; it has: user"), "{said}");
}

#[test]
fn a_file_that_cannot_be_understood_stays_as_it_is_and_the_snippet_is_told() {
    let home = User::new();
    home.write(".config/zed/settings.json", "{ \"theme\": ");
    let everything = home.everything();
    let answer = home.json("--client zed");
    assert_eq!((&answer["ok"], &answer["error_code"]), (&json!(false), &json!("client_config")));
    let hint = answer["hint"].as_str().unwrap();
    assert!(hint.contains("\"context_servers\"") && hint.contains(&program()), "{hint}");
    assert_eq!(home.run("--client zed").status.code(), Some(1));
    assert_eq!(home.everything(), everything);
}

#[test]
fn printing_and_a_dry_run_change_nothing() {
    let home = User::new();
    home.program("claude", "");
    home.write(".config/opencode/opencode.jsonc", "// mine\n{\n  \"theme\": \"dark\"\n}\n");
    let everything = home.everything();
    let snippet = text(&home.run("--client opencode --print --read-only").stdout);
    let snippet: Value = serde_json::from_str(&snippet).unwrap();
    let command = json!([program(), "mcp", "--read-only"]);
    assert_eq!(snippet["mcp"]["termgate"]["command"], command);
    let shown = text(&home.run("--client opencode --dry-run").stdout);
    assert!(shown.contains("would be added: ~/.config/opencode/opencode.jsonc"), "{shown}");
    assert!(shown.contains("\n+  \"mcp\": {\n"), "{shown}");
    let shown = text(&home.run("--client claude-code --dry-run").stdout);
    assert!(shown.contains("would be added: with `claude mcp add --scope user"), "{shown}");
    assert_eq!(home.everything(), everything);
}

#[test]
fn all_means_every_client_that_is_here_and_one_that_fails_stops_no_other() {
    let home = User::new();
    let output = home.run("--client all");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    home.write(".cursor/mcp.json", "not json");
    home.write(".kiro/settings/mcp.json", "{}");
    home.write(".codeium/windsurf/mcp_config.json", "");
    let output = home.run("--client all");
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    let begins = |line: &str| said.lines().any(|it| it.starts_with(line));
    assert!(begins("cursor: ") && said.contains("(client_config)"), "{said}");
    assert!(begins("kiro: added: ~/.kiro/settings/mcp.json, backup in ~/.kiro/"), "{said}");
    assert!(begins("windsurf: added: "), "{said}");
    assert_eq!(home.read(".cursor/mcp.json"), "not json");
    let answer = home.json("--client all --uninstall");
    let results: Vec<_> =
        answer["data"]["clients"].as_array().unwrap().iter().map(|it| &it["result"]).collect();
    assert_eq!(results, ["failed", "removed", "removed"]);
    assert_eq!(home.read(".kiro/settings/mcp.json"), "{}");
    assert_eq!(home.read(".codeium/windsurf/mcp_config.json"), "");
}
