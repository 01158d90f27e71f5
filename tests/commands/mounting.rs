//! A user adds a server, calls its tools, and accepts what it changes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::commands::blocking::until;
use crate::commands::terminal::Terminal;
use crate::harness::home::Home;
use crate::harness::processes::{command_line, lives, named};

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
                            {"name": "crash", "description": "ends", "inputSchema": schema},
                            {"name": "fail", "description": "fails", "inputSchema": schema}]}
    elif message["params"]["name"] == "count":
        count += message["params"]["arguments"].get("by", 1)
        result = {"content": [{"type": "text", "text": f"at {count}"}]}
    elif message["params"]["name"] == "crash":
        sys.exit(1)
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
    let told = String::from_utf8_lossy(&added.stderr);
    assert!(told.contains("the daemon has read it; changed: mounts"), "{told}");
    assert_eq!(listed(&home)["name"], "counter");
    until("its tools to be known", || home.printed("mounts tools counter").contains("counts"));
    assert_eq!(home.printed("call counter__count by=2"), "at 2\n");
    let answer = home.envelope("call counter__count");
    assert_eq!(answer["data"], json!({"content": [{"type": "text", "text": "at 3"}]}));
    let failed = home.envelope("call counter__fail");
    assert_eq!((&failed["error_code"], &failed["error"]), (&json!(null), &json!("out of order")));
    assert_eq!(failed["data"]["content"][0]["text"], "out of order", "{failed}");
    let failed = home.run("call counter__fail");
    assert_eq!(String::from_utf8_lossy(&failed.stderr), "termgate: out of order\n");
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let crashed = home.run("call counter__crash");
    assert_eq!(crashed.status.code(), Some(1), "{crashed:?}");
    for line in ["log", "restart", "tools", "accept"] {
        let unknown = home.run(&format!("mounts {line} nosuch"));
        assert_eq!(unknown.status.code(), Some(3), "{line}: {unknown:?}");
    }
    // What it says of itself now is not what was accepted.
    server(&home, "counts, and more");
    home.printed("mounts restart counter");
    until("the change to be seen", || listed(&home)["changed"] == true);
    let found = home.run("doctor").stdout;
    let found = String::from_utf8_lossy(&found);
    assert!(found.contains("counter has changed its tools"), "{found}");
    assert!(found.contains("Run: termgate mounts tools counter"), "{found}");
    let top = home.printed("top --once");
    assert!(top.starts_with("1 mount with a problem; "), "{top}");
    assert!(top.contains("; 1 mount, 1 running, 0 held"), "{top}");
    let refused = home.envelope("call counter__count");
    assert_eq!(refused["error_code"], "upstream_unavailable", "{refused}");
    assert!(home.printed("mounts tools counter").contains("counts => counts, and more"));
    let unasked = home.run("mounts accept counter");
    assert_eq!(unasked.status.code(), Some(2), "{unasked:?}");
    assert_eq!(listed(&home)["changed"], true);
    let mut terminal = Terminal::of(home.termgate("mounts accept counter"));
    let shown = terminal.wait_for("Accept these tools? [y/N]");
    assert!(shown.contains("counts => counts, and more"), "{shown}");
    terminal.type_in("n\r");
    terminal.wait_for("nothing was accepted");
    assert_eq!(listed(&home)["changed"], true);
    let accepted = home.envelope("mounts accept counter --yes");
    let tools = &accepted["data"]["tools"];
    assert_eq!(tools.as_array().map(Vec::len), Some(1), "{accepted}");
    assert_eq!((&tools[0]["tool"], &tools[0]["change"]), (&json!("count"), &json!("description")));
    assert_eq!(home.envelope("mounts accept counter")["error_code"], "invalid_argument");
    assert_eq!(home.printed("call counter__count"), "at 1\n");
    let removed = home.envelope("mounts remove counter");
    assert_eq!(removed["data"]["reload"]["changed"], json!(["mounts"]), "{removed}");
    assert_eq!(home.envelope("call counter__count")["error_code"], "invalid_argument");
}

/// Writes the user's mounts.
fn write_mounts(home: &Home, text: &str) {
    fs::write(home.configure("allow_write = true\n").with_file_name("mounts.toml"), text).unwrap();
}

#[test]
fn variables_of_the_daemon_are_replaced_in_the_command_of_a_server() {
    let home = Home::new();
    server(&home, "counts");
    fs::copy(home.path("server.py"), home.path("home/server.py")).unwrap();
    write_mounts(
        &home,
        "[mount.counter]\ncommand = \"${NO_SUCH:-python3}\"\nargs = [\"${NO_SUCH:-server}.py\"]\ncwd = \"${HOME}\"\n\
         [mount.lost]\ncommand = \"python3\"\nargs = [\"${NO_SUCH}\"]\n\
         [mount.nowhere]\ncommand = \"python3\"\ncwd = \"${LANG}\"\n\
         [mount.nothing]\ncommand = \"${NO_SUCH:-}\"\n",
    );
    let _daemon = home.daemon();
    until("its tools to be known", || home.printed("mounts tools counter").contains("counts"));
    assert_eq!(home.printed("call counter__count"), "at 1\n");
    let problem = |name: &str| {
        let listed = home.envelope("mounts");
        let all = listed["data"]["mounts"].as_array().unwrap().clone();
        let mount = all.into_iter().find(|it| it["name"] == name).unwrap();
        mount["problem"].as_str().unwrap_or_default().to_owned()
    };
    for (name, expected) in [
        ("lost", "args: the variable NO_SUCH is not set"),
        ("nowhere", "cwd: C.UTF-8 is not an absolute path"),
        ("nothing", "command: its variables are empty"),
    ] {
        until("the problem to be told", || problem(name).contains(expected));
    }
}

#[test]
fn a_call_at_the_command_line_waits_for_its_approval() {
    let home = Home::new();
    let rule = "[[rule]]\nname = 'asks'\neffect = 'ask'\nmount = 'counter/count'\n";
    fs::write(home.configure("allow_write = true\n").with_file_name("policy.toml"), rule).unwrap();
    let _daemon = home.daemon();
    home.printed(&format!("mounts add counter -- python3 {}", server(&home, "counts")));
    until("its tools to be known", || home.printed("mounts tools counter").contains("counts"));
    let mut call = home.termgate("call counter__count by=2");
    let calling = call.stdout(Stdio::piped()).spawn().unwrap();
    let waiting =
        || home.envelope("approve")["data"]["approvals"].get(0).cloned().unwrap_or_default();
    until("the call to wait", || waiting().is_object());
    let id = waiting()["approval_id"].as_str().unwrap().to_owned();
    home.printed(&format!("approve {id}"));
    let answer = calling.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&answer.stdout), "at 2\n");
}

#[test]
fn servers_of_another_client_are_imported() {
    let home = Home::new();
    server(&home, "counts");
    let servers = json!({"mcpServers": {
        "counter": {"command": "python3", "args": ["./server.py"], "env": {"A": "b"}},
        "remote": {"type": "sse", "url": "https://example.com"},
    }});
    let file = home.path("mcp.json");
    fs::write(&file, servers.to_string()).unwrap();
    let imported = home.run(&format!("mounts import {}", Path::new(&file).display()));
    assert!(imported.status.success(), "{imported:?}");
    let told = String::from_utf8_lossy(&imported.stderr);
    assert!(told.contains("left out remote"), "{told}");
    assert!(told.contains("no daemon runs; the next one reads it"), "{told}");
    home.configure("allow_write = true\n");
    let _daemon = home.daemon();
    until("its tools to be known", || home.printed("mounts tools counter").contains("counts"));
    assert_eq!(home.printed("call counter__count"), "at 1\n");
    assert_eq!(listed(&home)["trust"], "untrusted");
}

#[test]
fn what_a_daemon_is_not_to_read_or_refuses_stays_written() {
    let home = Home::new();
    let configuration = home.configure("allow_write = true\n");
    let _daemon = home.daemon();
    let unread = home.run("mounts add unread --no-reload -- cat");
    let told = String::from_utf8_lossy(&unread.stderr);
    assert!(unread.status.success() && told.contains("termgate config reload"), "{unread:?}");
    assert_eq!(home.envelope("mounts")["data"]["mounts"], json!([]));
    fs::write(&configuration, "allow_write = 5\n").unwrap();
    let refused = home.run("mounts add refused -- cat");
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(
        told.contains("the daemon does not read it: ") && told.contains("allow_write"),
        "{told}"
    );
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert_eq!(home.envelope("mounts")["data"]["mounts"], json!([]));
    home.configure("allow_write = true\n");
    assert_eq!(home.printed("config reload"), "changed: mounts\n");
    let listed = home.envelope("mounts")["data"]["mounts"].take();
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|it| it["name"].clone()).collect();
    assert_eq!(names, ["refused", "unread"]);
}

/// A file of another client with a server that works, one that fails, and one that never answers if `slow`.
fn foreign_file(home: &Home, slow: bool) -> String {
    server(home, "counts");
    let mut servers = json!({
        "counter": {"command": "python3", "args": ["./server.py"]},
        "broken": {"command": "python3", "args": ["-c", "import sys; sys.exit('no key')"]},
    });
    if slow {
        servers["slow"] =
            json!({"command": "python3", "args": ["-c", "input() and input() and input()"]});
    }
    let file = home.path("mcp.json");
    fs::write(&file, json!({"mcpServers": servers}).to_string()).unwrap();
    file.display().to_string()
}

#[test]
fn an_import_ends_when_each_server_lists_its_tools_or_has_failed() {
    let home = Home::new();
    home.configure("");
    let _daemon = home.daemon();
    home.printed("allow-write off");
    let imported = home.run(&format!("mounts import {}", foreign_file(&home, false)));
    assert!(imported.status.success(), "{imported:?}");
    // Nothing waits here.
    let mounts = home.envelope("mounts")["data"]["mounts"].take();
    let of = |name: &str| mounts.as_array().unwrap().iter().find(|it| it["name"] == name).unwrap();
    assert_eq!(of("counter")["accepted"], 3, "{mounts}");
    let problem = of("broken")["problem"].as_str().unwrap();
    let told = String::from_utf8_lossy(&imported.stderr);
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines.contains(&"counter: 3 tools"), "{told}");
    let failed = "broken: it did not start: it exited with status 1; stderr ends with: no key";
    assert!(lines.iter().any(|it| it.starts_with(failed)), "{told} {problem}");
    assert!(told.contains("no key; it is tried again"), "{told}");
    assert!(told.contains("until you run: termgate allow-write on"), "{told}");
    let read = told.find("the daemon has read it").unwrap();
    assert!(read < told.find("counter: 3 tools").unwrap(), "{told}");
    home.printed("allow-write on");
    let added = |words: &str| -> Value {
        let run = home.run(&format!("--json mounts add {words}"));
        serde_json::from_slice(&run.stdout).unwrap()
    };
    let failed = added("again -- python3 server.py");
    let server = &failed["data"]["servers"][0];
    let told = (&server["state"], &server["retries"]);
    assert_eq!(told, (&json!("failed"), &json!(true)), "{failed}");
    let failed = added("never -- ${NO_SUCH}");
    assert_eq!(failed["data"]["servers"][0].get("retries"), None, "{failed}");
    assert_eq!(failed["data"]["writing"], true, "{failed}");
    let added = added(&format!("more -- python3 {}", home.path("server.py").display()));
    let ready = json!([{"name": "more", "state": "ready", "tools": 3}]);
    assert_eq!(added["data"]["servers"], ready, "{added}");
}

#[test]
fn an_import_waits_for_nothing_where_it_is_told_so() {
    let home = Home::new();
    home.configure("");
    let _daemon = home.daemon();
    let file = foreign_file(&home, true);
    let imported = home.envelope(&format!("mounts import {file} --no-wait"));
    assert_eq!(imported["data"]["reload"]["changed"], json!(["mounts"]), "{imported}");
    assert_eq!(imported["data"].get("servers"), None, "{imported}");
    // This one never lists its tools.
    let mounts = home.envelope("mounts")["data"]["mounts"].take();
    let slow = mounts.as_array().unwrap().iter().find(|it| it["name"] == "slow").unwrap();
    assert_eq!(slow.get("accepted"), None, "{slow}");
}

/// The children of a process that have ended and are not reaped.
fn unreaped(parent: i32) -> Vec<String> {
    let stat = |pid: &str| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let pids =
        fs::read_dir("/proc").unwrap().filter_map(|it| it.ok()?.file_name().into_string().ok());
    pids.map(|pid| stat(&pid)).filter(|it| it.contains(&format!(") Z {parent} "))).collect()
}

/// A server that starts three processes which stay: one in its group, one beside it, and one that nobody waits for. Their
/// parents end before them. Returns what finds all four.
fn add_server_that_starts(home: &Home) -> impl Fn() -> Vec<i32> + use<> {
    let word = home.path("started").display().to_string();
    let stays = format!("'import time, sys; time.sleep(1000)' {word}");
    let script = home.path("server.sh");
    let python = server(home, "counts");
    let starts = format!(
        "python3 -c {stays} & setsid python3 -c {stays} & env -i setsid -f $(command -v python3) -c {stays}\n\
         (sleep 0.3; true) & exec python3 {python}\n"
    );
    fs::write(&script, starts).unwrap();
    home.run(&format!("mounts add counter -- sh {}", script.display()));
    move || {
        let mut all = named(&[word.as_bytes(), python.as_bytes()]);
        all.retain(|pid| !command_line(*pid).contains("termgate"));
        all
    }
}

/// Whether these are the server and the three that it starts: until it runs, those may be four with what starts them.
fn is_complete(all: &[i32]) -> bool {
    all.len() == 4 && all.iter().any(|pid| command_line(*pid).contains("server.py"))
}

#[test]
fn whatever_a_server_has_started_ends_with_it() {
    let home = Home::new();
    home.configure("allow_write = true\n");
    let daemon = home.daemon();
    let of_server = add_server_that_starts(&home);
    let python = home.path("server.py").display().to_string();
    for end in ["restart", "crash", "remove"] {
        until("a server with all that it starts", || is_complete(&of_server()));
        let before = of_server();
        match end {
            "restart" => drop(home.printed("mounts restart counter")),
            "crash" => {
                let own = before.iter().find(|pid| command_line(**pid).contains(&python)).unwrap();
                kill(Pid::from_raw(*own), Signal::SIGKILL).unwrap();
            }
            _ => drop(home.printed("mounts remove counter")),
        }
        let ended = || before.iter().all(|pid| !lives(*pid));
        until(&format!("the end of all after {end}"), ended);
        if end == "crash" {
            home.printed("mounts restart counter");
        }
    }
    until("all to be reaped", || unreaped(daemon.pid()).is_empty());
}

#[test]
fn what_the_servers_of_a_killed_daemon_have_left_ends_with_the_start_of_the_next() {
    let home = Home::new();
    home.configure("allow_write = true\n");
    let daemon = home.daemon();
    let of_server = add_server_that_starts(&home);
    until("a server with all that it starts", || is_complete(&of_server()));
    let left = of_server();
    daemon.killed();
    home.run("mounts remove counter");
    until("the end of the server", || of_server().len() == 3);
    // It looks like one of them, and is none.
    let mut stranger = Command::new("sh");
    stranger.args(["-c", "read -r _"]).arg(home.path("started")).stdin(Stdio::piped());
    let mut stranger = stranger.spawn().unwrap();
    let _next = home.daemon();
    until("the end of what was left", || left.iter().all(|pid| !lives(*pid)));
    assert!(stranger.try_wait().unwrap().is_none());
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    let marks = || fs::read_dir(home.runtime("servers")).unwrap().count();
    until("the marks to be forgotten", || marks() == 0);
}

#[test]
fn a_server_at_a_socket_is_added_at_the_daemon_of_another_socket() {
    let home = Home::new();
    home.configure("allow_write = true\n");
    let _daemon = home.daemon();
    let operator = home.runtime("operator.sock").display().to_string();
    let added = format!("--socket {operator} mounts add far --unix-socket /nowhere.sock --no-wait");
    home.printed(&added);
    let mounts = home.envelope("mounts")["data"]["mounts"].take();
    assert_eq!(mounts[0]["name"], "far", "{mounts}");
    assert!(mounts[0]["server"].as_str().unwrap().contains("/nowhere.sock"), "{mounts}");
}
