//! A user adds a server, calls its tools, and accepts what it changes.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::commands::blocking::until;
use crate::harness::home::Home;

/// A server with a tool that counts and one that fails.
const SERVER: &str = r#"
import json, sys
count = 0
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, result = message["method"], {}
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "counter", "version": "1"}}
    elif method == "tools/list":
        schema = {"type": "object"}
        result = {"tools": [{"name": "count", "description": "COUNTS", "inputSchema": schema},
                            {"name": "fail", "description": "fails", "inputSchema": schema}]}
    elif message["params"]["name"] == "count":
        count += message["params"]["arguments"].get("by", 1)
        result = {"content": [{"type": "text", "text": f"at {count}"}]}
    else:
        result = {"content": [{"type": "text", "text": "out of order"}], "isError": True}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

fn server(home: &Home, description: &str) -> String {
    let path = home.path("server.py");
    fs::write(&path, SERVER.replace("COUNTS", description)).unwrap();
    path.display().to_string()
}

fn listed(home: &Home) -> Value {
    home.envelope("mounts")["data"]["mounts"][0].take()
}

#[test]
fn a_server_is_added_called_and_its_changes_are_accepted() {
    let home = Home::new();
    home.configure("allow_write = true\n");
    let _daemon = home.daemon();
    let script = server(&home, "counts");
    let added = home.run(&format!("mounts add counter -- python3 {script}"));
    assert!(added.status.success(), "{added:?}");
    assert_eq!(home.printed("config reload"), "changed: mounts\n");
    until("its tools to be known", || home.printed("mounts tools counter").contains("counts"));
    assert_eq!(home.printed("call counter__count by=2"), "at 2\n");
    let answer = home.envelope("call counter__count");
    assert_eq!(answer["data"], json!({"content": [{"type": "text", "text": "at 3"}]}));
    let failed = home.envelope("call counter__fail");
    let told = (&failed["error_code"], &failed["error"]);
    assert_eq!(told, (&json!("upstream_error"), &json!("out of order")));
    // What it says of itself now is not what was accepted.
    server(&home, "counts, and more");
    home.printed("mounts restart counter");
    until("the change to be seen", || listed(&home)["changed"] == true);
    let found = home.run("doctor").stdout;
    let found = String::from_utf8_lossy(&found);
    assert!(found.contains("counter has changed its tools"), "{found}");
    assert!(found.contains("Run: termgate mounts tools counter"), "{found}");
    assert!(home.printed("top --once").contains("; 1 mount, 1 running, 0 held, 1 with a problem"));
    let refused = home.envelope("call counter__count");
    assert_eq!(refused["error_code"], "upstream_unavailable", "{refused}");
    assert!(home.printed("mounts tools counter").contains("counts => counts, and more"));
    home.printed("mounts accept counter");
    assert_eq!(home.printed("call counter__count"), "at 1\n");
    home.printed("mounts remove counter");
    assert_eq!(home.printed("config reload"), "changed: mounts\n");
    assert_eq!(home.envelope("call counter__count")["error_code"], "invalid_argument");
}

#[test]
fn servers_of_another_client_are_imported() {
    let home = Home::new();
    let servers = json!({"mcpServers": {
        "counter": {"command": "python3", "args": [server(&home, "counts")], "env": {"A": "b"}},
        "remote": {"type": "sse", "url": "https://example.com"},
    }});
    let file = home.path("mcp.json");
    fs::write(&file, servers.to_string()).unwrap();
    let imported = home.run(&format!("mounts import {}", Path::new(&file).display()));
    assert!(imported.status.success(), "{imported:?}");
    assert!(String::from_utf8_lossy(&imported.stderr).contains("left out remote"));
    home.configure("allow_write = true\n");
    let _daemon = home.daemon();
    until("its tools to be known", || home.printed("mounts tools counter").contains("counts"));
    assert_eq!(home.printed("call counter__count"), "at 1\n");
    assert_eq!(listed(&home)["trust"], "untrusted");
}
