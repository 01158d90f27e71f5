//! The shape of each form, in texts as people have them.

use serde_json::json;

use super::*;
use crate::cli::install::client::CLIENTS;
use crate::cli::install::entry_format::AgentRights;

fn server() -> ServerEntry {
    ServerEntry::bridge("termgate".to_owned(), "/opt/a b/termgate".to_owned(), AgentRights::Write)
}

fn added(entry_format: &EntryFormat, text: &str) -> String {
    entry_format.put(text, &server()).unwrap()
}

#[test]
fn every_family_begins_a_text_with_what_its_clients_read() {
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let (command, args) = ("/opt/a b/termgate", ["mcp", "--allow-write"]);
    let plain = json!({"command": command, "args": args});
    let entry = |more: Value| {
        let mut entry = plain.clone();
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"termgate": entry})
    };
    let snippet = |entry_format: &EntryFormat| json(&entry_format.snippet(&server()));
    assert_eq!(snippet(&MCP_SERVERS), json!({"mcpServers": {"termgate": plain}}));
    let typed = entry(json!({"type": "stdio", "env": {}}));
    assert_eq!(snippet(&TYPED), json!({"mcpServers": typed}));
    let copilot = entry(json!({"type": "local", "tools": ["*"]}));
    assert_eq!(snippet(&COPILOT), json!({"mcpServers": copilot}));
    assert_eq!(snippet(&SERVERS), json!({"servers": entry(json!({"type": "stdio"}))}));
    let zed = entry(json!({"env": {}}));
    assert_eq!(snippet(&CONTEXT_SERVERS), json!({"context_servers": zed}));
    let opencode = json!({"type": "local", "enabled": true,
        "command": ["/opt/a b/termgate", "mcp", "--allow-write"]});
    assert_eq!(snippet(&OPENCODE), json!({"mcp": {"termgate": opencode}}));
    assert_eq!(
        TOML_SERVERS.snippet(&server()),
        "[mcp_servers.termgate]\ncommand = \"/opt/a b/termgate\"\nargs = [\"mcp\", \"--allow-write\"]\n"
    );
    assert_eq!(
        EXTENSIONS.snippet(&server()),
        "extensions:\n  termgate:\n    type: \"stdio\"\n    name: \"termgate\"\n    \
         cmd: \"/opt/a b/termgate\"\n    args: [\"mcp\",\"--allow-write\"]\n    enabled: true\n    \
         description: \"Terminal sessions with one writer each\"\n    envs: {}\n    timeout: 300\n"
    );
}

#[test]
fn a_path_with_quotes_and_backslashes_reads_back_from_every_family() {
    let server = ServerEntry::bridge(
        "t".to_owned(),
        "/a \"b\" 'c' \\d: # {e}/é".to_owned(),
        AgentRights::ReadOnly,
    );
    for client in CLIENTS.iter().filter(|client| client.entry_format.format != FileFormat::Yaml) {
        let text = client.entry_format.snippet(&server);
        let found = client.entry_format.find(&text, "t");
        assert_eq!(found, Ok(Some(FoundEntry::Program(server.launch.clone()))), "{text}");
    }
}

#[test]
fn json_with_comments_and_other_servers_keeps_them_all() {
    let before = r#"// mine
{
  "theme": "dark", // do not touch
  "mcpServers": {
    // the other one
    "other": { "command": "x", "args": [ ] } /* odd */
  },
  "last": 1,
}
"#;
    let after = r#"// mine
{
  "theme": "dark", // do not touch
  "mcpServers": {
    // the other one
    "other": { "command": "x", "args": [ ] }, /* odd */
    "termgate": {
      "command": "/opt/a b/termgate",
      "args": ["mcp", "--allow-write"]
    }
  },
  "last": 1,
}
"#;
    let put = added(&MCP_SERVERS, before);
    assert_eq!(put, after);
    let taken = MCP_SERVERS.take(&put, "termgate", Emptied::Stays).unwrap();
    assert_eq!(taken, before);
}

#[test]
fn toml_with_comments_and_other_servers_keeps_them_all() {
    let before = "# mine\nmodel = \"m\" # best\n\n[mcp_servers.other]\ncommand = 'x'\n\n# tail\n\
                  [tui]\ntheme = \"t\"\n# end\n";
    let put = added(&TOML_SERVERS, before);
    for line in before.lines() {
        assert!(put.lines().any(|it| it == line), "`{line}` is gone from {put}");
    }
    assert_eq!(TOML_SERVERS.take(&put, "termgate", Emptied::Stays).unwrap(), before);
}

#[test]
fn toml_with_inline_servers_stays_inline() {
    let before = "mcp_servers = { other = { command = \"x\" } } # all of them\n";
    let put = added(&TOML_SERVERS, before);
    assert_eq!(put.lines().count(), 1, "{put}");
    assert!(put.starts_with("mcp_servers = { other = { command = \"x\" }"), "{put}");
    assert!(put.ends_with("# all of them\n"), "{put}");
    let found = TOML_SERVERS.find(&put, "termgate");
    assert_eq!(found, Ok(Some(FoundEntry::Program(server().launch))));
    let taken = TOML_SERVERS.take(&put, "termgate", Emptied::Stays).unwrap();
    assert!(!taken.contains("termgate"), "{taken}");
}

#[test]
fn comments_above_our_table_outlive_it() {
    let entry_format = TOML_SERVERS;
    let entry = "[mcp_servers.termgate]\ncommand = \"x\"\n";
    let with = format!("# one\n{entry}\n# two\n[tui]\na = 1\n\n[zoo]\nb = 1\n");
    let taken = entry_format.take(&with, "termgate", Emptied::Stays).unwrap();
    assert_eq!(taken, "# one\n\n# two\n[tui]\na = 1\n\n[zoo]\nb = 1\n");
    let alone = entry_format.take(&format!("# one\n{entry}"), "termgate", Emptied::Stays).unwrap();
    assert_eq!(alone, "# one\n");
}

#[test]
fn yaml_is_printed_and_never_edited() {
    for text in ["", "a: 1\n", "extensions: {}\n"] {
        let put = EXTENSIONS.put(text, &server());
        assert_eq!(put, Err(FileFormatError::NotEdited), "{text}");
    }
}

#[test]
fn an_old_entry_is_brought_up_to_date_and_what_the_user_added_stays() {
    let before = r#"{
  "mcpServers": {
    "termgate": {
      "command": "socat", // the old way
      "args": ["STDIO", "UNIX-CONNECT:/run/x"],
      "timeout": 600
    },
    "z": {}
  }
}
"#;
    let after = r#"{
  "mcpServers": {
    "termgate": {
      "command": "/opt/a b/termgate", // the old way
      "args": ["mcp", "--allow-write"],
      "timeout": 600
    },
    "z": {}
  }
}
"#;
    assert_eq!(added(&MCP_SERVERS, before), after);
    let before = "[mcp_servers.termgate]\ncommand = \"old\" # here\nstartup_timeout_sec = 9\n";
    let after = "[mcp_servers.termgate]\ncommand = \"/opt/a b/termgate\" # here\n\
                 startup_timeout_sec = 9\nargs = [\"mcp\", \"--allow-write\"]\n";
    assert_eq!(added(&TOML_SERVERS, before), after);
}

#[test]
fn an_entry_that_starts_no_program_is_replaced_whole() {
    let before = r#"{"mcpServers": {"termgate": {"url": "http://x"}}}"#;
    let put: Value = serde_json::from_str(&added(&MCP_SERVERS, before)).unwrap();
    let expected: Value = serde_json::from_str(&MCP_SERVERS.snippet(&server())).unwrap();
    assert_eq!(put, expected);
}

#[test]
fn a_text_that_cannot_be_understood_is_refused_by_every_family() {
    for client in &CLIENTS {
        let (entry_format, container) = (&client.entry_format, client.entry_format.container);
        let texts = match entry_format.format {
            FileFormat::Json => [
                "{\"a\": ".to_owned(),
                "[]".to_owned(),
                format!("{{\"{container}\": 3}}"),
                format!("{{\"{container}\": {{}}, \"{container}\": {{}}}}"),
            ],
            FileFormat::Toml => [
                "[a".to_owned(),
                "a = ".to_owned(),
                format!("{container} = 3"),
                format!("[{container}]\n[{container}]\n"),
            ],
            FileFormat::Yaml => [
                "a: [1".to_owned(),
                "- 1\n".to_owned(),
                format!("{container}: 3\n"),
                format!("{container}: {{}}\n{container}: {{}}\n"),
            ],
        };
        for text in texts {
            assert!(entry_format.put(&text, &server()).is_err(), "{}: {text}", client.name);
        }
    }
}

#[test]
fn an_emptied_container_goes_only_when_it_is_asked_to() {
    for (entry_format, before, without) in [
        (&MCP_SERVERS, "{\n  \"a\": 1\n}\n", "{\n  \"a\": 1,\n  \"mcpServers\": {}\n}\n"),
        (&TOML_SERVERS, "a = 1\n", "a = 1\n\n[mcp_servers]\n"),
    ] {
        let put = added(entry_format, before);
        assert_eq!(entry_format.take(&put, "termgate", Emptied::Goes).unwrap(), before);
        let put = added(entry_format, without);
        let stays = entry_format.take(&put, "termgate", Emptied::Stays).unwrap();
        assert!(entry_format.has_container(&stays).unwrap(), "{stays}");
    }
}

#[test]
fn a_name_is_a_plain_word() {
    assert_eq!(parse_name("termgate-2"), Ok("termgate-2".to_owned()));
    for text in ["", "-x", "a b", "a.b", "a\"b", "é", &"a".repeat(NAME_MAX + 1)] {
        assert!(parse_name(text).is_err(), "{text}");
    }
}

#[test]
fn the_bridge_is_started_with_the_rights_asked_for() {
    let arguments = |rights| {
        ServerEntry::bridge("t".to_owned(), "/bin/termgate".to_owned(), rights).launch.arguments
    };
    assert_eq!(arguments(AgentRights::AsConfigured), ["mcp"]);
    assert_eq!(arguments(AgentRights::ReadOnly), ["mcp", "--read-only"]);
    assert_eq!(arguments(AgentRights::Write), ["mcp", "--allow-write"]);
}
