//! A person lets an agent's call pass with a key, or denies it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;

use nix::unistd::getuid;
use serde_json::{Value, json};
use termgate::core::frame::Size;

use crate::commands::blocking::until;
use crate::commands::run::text;
use crate::commands::seat::{Seat, Shown, start, until_holder};
use crate::harness::home::{Home, is_installed};
use crate::harness::processes::PROGRAM;
use crate::harness::waiting::SAFETY;

const SSHD: &str = "/usr/sbin/sshd";

const ASK_BEFORE_RM: &str = r#"
[[rule]]
name = "recursive-remove"
effect = "ask"
command = { program = "rm", flags = ["recursive"] }
"#;

/// A home whose daemon asks before `rm -r`.
fn asking_home() -> Home {
    let home = Home::new();
    let policy = home.configure("").with_file_name("policy.toml");
    std::fs::write(policy, ASK_BEFORE_RM).unwrap();
    home
}

/// An agent at the gateway that runs one command, and prints nothing before its answer.
struct Agent(BufReader<UnixStream>);

impl Agent {
    fn at(home: &Home) -> Self {
        let stream = UnixStream::connect(home.runtime("gateway.sock")).unwrap();
        let mut agent = Self(BufReader::new(stream));
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "claude", "version": "1"},
        });
        agent.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}));
        agent.answer(1);
        agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        agent
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.0.get_mut(), "{message}").unwrap();
    }

    fn call(&mut self, id: u64, tool: &str, arguments: &Value) {
        let params = json!({"name": tool, "arguments": arguments});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }

    /// What a call answered.
    fn answer(&mut self, id: u64) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the daemon hung up");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message["result"]["structuredContent"].clone();
            }
        }
    }
}

#[test]
fn an_agents_recursive_remove_waits_for_a_person_who_lets_it_pass_with_a_key() {
    let home = asking_home();
    let _daemon = home.daemon();
    start(&home, "exec bash --norc");
    let build = home.path("home/build");
    std::fs::create_dir(&build).unwrap();
    let mut seat = Seat::attach(&home, "build");
    seat.until_status("free: type to take the keyboard");
    let mut agent = Agent::at(&home);
    agent.call(2, "acquire_lease", &json!({"session": "build"}));
    agent.answer(2);
    let remove = json!({"session": "build", "command": "rm -fr build/"});
    agent.call(3, "run", &remove);
    seat.until_status("rm -fr build/ | C-\\ y approves, C-\\ n denies");
    assert!(build.exists());
    seat.types("\x1cy");
    assert_eq!(agent.answer(3)["exit_code"], 0);
    assert!(!build.exists());
    // The question is gone from the status line, so that the next is a new one.
    seat.until_status("has the keyboard");
    // The next one is denied, and so is what asks again.
    std::fs::create_dir(&build).unwrap();
    agent.call(4, "run", &remove);
    seat.until_status("rm -fr build/ | C-\\ y approves, C-\\ n denies");
    decide(&home, &mut seat, "\x1cn");
    let denied = agent.answer(4);
    assert_eq!(denied["error_code"], "policy_denied", "{denied}");
    seat.until_status("has the keyboard");
    assert!(build.exists());
    seat.types("\x1cy");
    seat.until_status("nothing waits for an approval here");
}

/// Presses the keys until nothing waits: they do nothing while a call has just taken the place of another.
fn decide(home: &Home, seat: &mut Seat, keys: &str) {
    until("the call to be decided", || {
        seat.types(keys);
        home.printed("approve") == "nothing waits for an approval\n"
    });
}

#[test]
fn a_call_that_the_last_line_cuts_is_approved_only_while_all_of_it_is_shown() {
    let home = asking_home();
    let _daemon = home.daemon();
    start(&home, "exec bash --norc");
    let [build, precious] = ["home/build", "home/precious"].map(|name| home.path(name));
    std::fs::create_dir(&build).unwrap();
    std::fs::create_dir(&precious).unwrap();
    let mut seat = Seat::attach(&home, "build");
    seat.until_status("free: type to take the keyboard");
    let mut agent = Agent::at(&home);
    agent.call(2, "acquire_lease", &json!({"session": "build"}));
    agent.answer(2);
    let line = format!("rm -fr build/ && echo {} && rm -fr  precious/", "a".repeat(100));
    let call = json!({"session": "build", "command": line});
    agent.call(3, "run", &call);
    seat.until_status("C-\\ y shows all, C-\\ n denies: rm -fr build/");
    assert!(!seat.shown().contains("precious"), "{}", seat.shown());
    seat.types("\x1cy");
    seat.until_status("C-\\ y approves, C-\\ n denies");
    seat.until_text("&& rm -fr  precious/");
    let whole = |shown: &Shown| {
        let rows = shown.frame.lines.iter().map(|line| format!("{:<80}", &*line.value.text));
        rows.collect::<String>().contains(&line)
    };
    seat.until("every character of the call", whole);
    // Any other key closes it, and reaches no program.
    seat.types("q");
    seat.until("the call to be closed", |shown| !shown.text().contains("precious"));
    seat.until_status("C-\\ y shows all");
    assert!(build.exists() && precious.exists());
    seat.types("\x1cy");
    seat.until_text("precious/");
    seat.types("\x1cy");
    assert_eq!(agent.answer(3)["exit_code"], 0);
    assert!(!build.exists() && !precious.exists());
    seat.until("the call to be gone", |shown| !shown.status().contains("approves"));
    // What is longer than the screen is shown page by page, and denied at any of them.
    let long = format!("rm -fr build/; echo {}", "b".repeat(1_500));
    let call = json!({"session": "build", "command": long});
    drop(seat);
    let mut seat = Seat::attach(&home, "build");
    seat.resize(Size { rows: 12, cols: 60 });
    seat.until_status("has the keyboard");
    agent.call(4, "run", &call);
    seat.until_status("C-\\ y shows all");
    seat.types("\x1cy");
    seat.until_text("page 1 of 3");
    seat.until_status("C-\\ y shows more, C-\\ n denies");
    seat.types("\x1cy");
    seat.until_text("page 2 of 3");
    seat.types("\x1cn");
    assert_eq!(agent.answer(4)["error_code"], "policy_denied");
}

#[test]
fn a_key_decides_the_call_that_was_read_and_none_that_took_its_place() {
    let home = asking_home();
    let _daemon = home.daemon();
    start(&home, "exec bash --norc");
    let mut seat = Seat::attach(&home, "build");
    seat.until_status("free: type to take the keyboard");
    let mut agent = Agent::at(&home);
    agent.call(2, "acquire_lease", &json!({"session": "build"}));
    agent.answer(2);
    agent.call(3, "run", &json!({"session": "build", "command": "rm -r one"}));
    seat.until_status("rm -r one | C-\\ y approves");
    agent.send(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3},
    }));
    agent.call(4, "run", &json!({"session": "build", "command": "rm -r two"}));
    seat.until_status("rm -r two");
    seat.types("\x1cy");
    seat.until_status("another call is shown now: press again");
    assert!(home.printed("approve").starts_with("1 call waits for an approval\n"));
    decide(&home, &mut seat, "\x1cy");
    assert_eq!(agent.answer(4)["exit_code"], 1, "there is none");
    // The person who let it pass is named as the person who attached.
    let by = |kind: &str| {
        let events = home.envelope(&format!("call list_events kind={kind}"));
        events["data"]["events"][0]["by"].as_str().unwrap_or_else(|| panic!("{events}")).to_owned()
    };
    assert_eq!(by("approval_granted"), by("attached"));
}

#[test]
fn the_command_line_lists_approves_denies_and_explains() {
    let home = asking_home();
    let _daemon = home.daemon();
    start(&home, "exec bash --norc");
    assert_eq!(home.printed("approve"), "nothing waits for an approval\n");
    let mut agent = Agent::at(&home);
    agent.call(2, "acquire_lease", &json!({"session": "build"}));
    agent.answer(2);
    agent.call(3, "run", &json!({"session": "build", "command": "rm -r one"}));
    until("a call to wait", || {
        home.printed("approve").starts_with("1 call waits for an approval\n")
    });
    let listed = home.envelope("approve");
    let call = &listed["data"]["approvals"][0];
    assert_eq!((&call["what"], &call["session_name"]), (&json!("rm -r one"), &json!("build")));
    let id = call["approval_id"].as_str().unwrap().to_owned();
    assert_eq!(home.printed(&format!("approve {id}")), "approved: rm -r one\n");
    assert_eq!(agent.answer(3)["exit_code"], 1, "there is none");
    let explained = home.printed(&format!("policy explain {id}"));
    assert!(explained.contains("ask by the rule `recursive-remove`"), "{explained}");
    let again = home.run(&format!("approve {id}"));
    assert_eq!(again.status.code(), Some(3), "{again:?}");
    agent.call(4, "run", &json!({"session": "build", "command": "rm -r two", "timeout_ms": 1}));
    let error = agent.answer(4);
    assert_eq!(error["error_code"], "approval_required", "{error}");
    let id = error["details"]["approval_id"].as_str().unwrap();
    assert_eq!(home.printed(&format!("approve {id} --deny")), "denied: rm -r two\n");
    assert_eq!(home.run("approve --deny").status.code(), Some(2));
    for line in ["approve 12345678", "policy explain 12345678", "approve 12345678 --always"] {
        let unknown = home.run(line);
        assert_eq!(unknown.status.code(), Some(3), "{line}: {unknown:?}");
    }
}

#[test]
fn one_approval_that_cannot_be_decided_keeps_no_other_from_it() {
    let home = asking_home();
    let _daemon = home.daemon();
    start(&home, "exec bash --norc");
    let mut agent = Agent::at(&home);
    agent.call(2, "acquire_lease", &json!({"session": "build"}));
    agent.answer(2);
    for (number, flag) in [(3, ""), (4, " --deny")] {
        let command = format!("rm -r none{number}");
        agent.call(number, "run", &json!({"session": "build", "command": command}));
        until("a call to wait", || home.printed("approve").starts_with("1 call waits"));
        let listed = home.envelope("approve");
        let id = listed["data"]["approvals"][0]["approval_id"].as_str().unwrap().to_owned();
        let decided = home.run(&format!("approve nonsense {id} 12345678{flag}"));
        let (out, told) = (text(&decided.stdout), text(&decided.stderr));
        assert!(out.ends_with(&format!(": {command}\n")), "{decided:?}");
        assert_eq!(decided.status.code(), Some(3), "{decided:?}");
        assert!(
            told.contains("nonsense: ID: an id has eight") && told.contains("12345678: "),
            "{told}"
        );
        agent.answer(number);
    }
    let failed = home.envelope("approve nonsense 12345678");
    assert_eq!(failed["data"]["failed"][1]["approval_id"], "12345678", "{failed}");
}

#[test]
fn a_refusal_names_its_decision_and_the_command_that_explains_it() {
    let home = asking_home();
    let policy = home.configure("").with_file_name("policy.toml");
    std::fs::write(policy, ASK_BEFORE_RM.replace("ask", "deny")).unwrap();
    let _daemon = home.daemon();
    start(&home, "exec bash --norc");
    let refused = home.run("run build -- rm -r x");
    assert_eq!(refused.status.code(), Some(5), "{refused:?}");
    let told = text(&refused.stderr);
    let explain = told.split('`').find(|part| part.starts_with("termgate policy explain "));
    let explain = explain.unwrap_or_else(|| panic!("{told}")).trim_start_matches("termgate ");
    assert!(home.printed(explain).contains("deny by the rule `recursive-remove`"), "{told}");
    let id = explain.trim_start_matches("policy explain ");
    assert!(text(&home.run(&format!("why {id}")).stderr).contains("termgate policy explain"));
}

#[test]
fn a_command_that_is_asked_about_says_for_what_it_waits_until_it_is_approved() {
    let home = Home::new();
    let tools = r#"["manage_session", "send_text", "run"]"#;
    let rule = format!("[[rule]]\nname = \"ask\"\neffect = \"ask\"\ntool = {tools}\n");
    std::fs::write(home.configure("").with_file_name("policy.toml"), rule).unwrap();
    let _daemon = home.daemon();
    start(&home, "exec bash --norc");
    for (words, prompts) in [("run build true", 1), ("send build x --json", 2), ("kill build", 2)] {
        // An approval is void once the screen or the lease has changed.
        until("the shell to ask for a command", || {
            home.printed("read build").matches("bash-").count() == prompts
        });
        until_holder(&home, "");
        let mut command = home.termgate(words);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (tell, told) = mpsc::channel();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            let mut said = String::new();
            stderr.read_line(&mut said).unwrap();
            tell.send(said)
        });
        let said = told.recv_timeout(SAFETY).unwrap_or_else(|_| panic!("{words} says nothing"));
        let id = said.trim_end().strip_prefix("waits for an approval: termgate approve ");
        home.printed(&format!("approve {}", id.unwrap_or_else(|| panic!("{words}: {said}"))));
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success(), "{words}: {ended:?}");
        if words.ends_with("--json") {
            let answer: Value = serde_json::from_slice(&ended.stdout).unwrap();
            assert_eq!(answer["data"]["written"], 1, "{answer}");
        }
    }
}

#[test]
fn policy_check_judges_by_the_rules_and_starter_sets_are_policies() {
    let home = asking_home();
    let check = |line: &str, words: &[&str]| {
        let output = home.termgate("policy check").args(words).arg(line).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(check("rm -fr x", &[]).starts_with("ask by the rule `recursive-remove`\n"));
    assert!(
        check("rm $X", &[]).starts_with("ask since not all that it does is known: an argument")
    );
    assert!(check("ls", &[]).starts_with("allow by default\n"));
    let file = home.path("ci.toml");
    std::fs::write(&file, home.printed("policy starter ci")).unwrap();
    let file = file.display().to_string();
    assert!(check("cargo test", &["--policy", &file]).starts_with("allow by the rule `build`\n"));
    assert!(check("curl x | sh", &["--policy", &file]).starts_with("deny by default\n"));
    std::fs::write(&file, "[[rule]]\nname = 'a'\neffect = 'deny'\ntool = []").unwrap();
    let wrong = home.termgate("policy check --policy").args([&file, "ls"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
    let told = String::from_utf8(wrong.stderr).unwrap();
    assert!(told.contains("ci.toml:1:1: rule a: tool: no pattern is given"), "{told}");
    std::fs::write(&file, "[[rule]]\nname = 'a'\neffect = 'deny'\ntool = 'rnu'").unwrap();
    let wrong = home.envelope(&format!("policy check --policy {file} ls"));
    let told = wrong["error"].as_str().unwrap();
    assert!(told.contains("nothing is called `rnu`; did you mean run?"), "{told}");
    let gone = home.path("gone.toml").display().to_string();
    let missing = home.envelope(&format!("policy check --policy {gone} ls"));
    assert_eq!(missing["error_code"], "invalid_configuration", "{missing}");
    assert!(missing["error"].as_str().unwrap().contains(&gone), "{missing}");
}

#[test]
fn a_wrong_policy_keeps_a_daemon_from_starting() {
    let home = asking_home();
    let policy = home.configure("").with_file_name("policy.toml");
    let checked = home.printed("config path");
    assert!(checked.contains("policy.toml"), "{checked}");
    std::fs::write(&policy, "[[rule]]\nname = 'a'\neffect = 'forbid'").unwrap();
    let refused = home.run("serve");
    assert!(!refused.status.success());
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(told.contains("policy.toml:3:10"), "{told}");
    let checked = home.run(&format!("config check {}", policy.display()));
    assert!(!checked.status.success());
}

#[test]
fn a_call_that_waits_is_judged_again_by_other_rules() {
    let home = asking_home();
    let daemon = home.daemon();
    start(&home, "exec bash --norc");
    let mut agent = Agent::at(&home);
    agent.call(2, "acquire_lease", &json!({"session": "build"}));
    agent.answer(2);
    agent.call(3, "run", &json!({"session": "build", "command": "rm -r one"}));
    until("a call to wait", || home.printed("approve").starts_with("1 call waits"));
    let policy = home.configure("").with_file_name("policy.toml");
    std::fs::write(policy, ASK_BEFORE_RM.replace("ask", "deny")).unwrap();
    daemon.signal(nix::sys::signal::Signal::SIGHUP);
    let denied = agent.answer(3);
    assert_eq!(denied["error_code"], "policy_denied", "{denied}");
    assert_eq!(home.printed("approve"), "nothing waits for an approval\n");
}

#[test]
fn a_call_that_is_approved_for_good_passes_from_then_on_by_a_rule_of_the_file() {
    let home = asking_home();
    let _daemon = home.daemon();
    start(&home, "exec bash --norc");
    let mut agent = Agent::at(&home);
    agent.call(2, "acquire_lease", &json!({"session": "build"}));
    agent.answer(2);
    agent.call(3, "run", &json!({"session": "build", "command": "rm -r one"}));
    let mut waiting = Value::Null;
    until("a call to wait", || {
        waiting = home.envelope("approve")["data"]["approvals"].take();
        waiting.as_array().is_some_and(|calls| calls.len() == 1)
    });
    let id = waiting[0]["approval_id"].as_str().unwrap();
    let unsure = home.run(&format!("approve {id} --always"));
    assert_eq!(unsure.status.code(), Some(2), "{unsure:?}");
    let policy = home.configure("").with_file_name("policy.toml");
    assert_eq!(std::fs::read_to_string(&policy).unwrap(), ASK_BEFORE_RM);
    let shown = home.printed(&format!("approve {id} --always --yes"));
    let head = format!("--- {0}\n+++ {0}\n@@ -5,0 +6,8 @@\n+\n+[[rule]]\n", policy.display());
    assert!(shown.starts_with(&head), "{shown}");
    assert!(shown.contains(&format!("\n+name = \"approved-{id}\"\n")), "{shown}");
    assert!(shown.contains("\n+overrides = [\"recursive-remove\"]\n"), "{shown}");
    assert_eq!(agent.answer(3)["exit_code"], 1, "there is no such file");
    agent.call(4, "run", &json!({"session": "build", "command": "rm -r one"}));
    assert_eq!(agent.answer(4)["exit_code"], 1);
    for other in ["rm -r two", "cd /; rm -r one", "sudo rm -r one", "rm -r one > x", "rm -fr one"] {
        agent.call(5, "run", &json!({"session": "build", "command": other, "timeout_ms": 1}));
        assert_eq!(agent.answer(5)["error_code"], "approval_required", "{other}");
    }
    // What is not known whole can be approved once only.
    let unknown = json!({"session": "build", "command": "rm -r $X", "timeout_ms": 1});
    agent.call(6, "run", &unknown);
    let id = agent.answer(6)["details"]["approval_id"].as_str().unwrap().to_owned();
    let refused = home.run(&format!("approve {id} --always --yes"));
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let gone = home.run("approve 00000000 --always --yes");
    assert_eq!(gone.status.code(), Some(3), "{gone:?}");
}

#[test]
fn several_calls_are_approved_at_once_and_those_that_do_the_same_are_listed_together() {
    let home = asking_home();
    let _daemon = home.daemon();
    start(&home, "exec bash --norc");
    let mut agents = [Agent::at(&home), Agent::at(&home)];
    for (number, agent) in agents.iter_mut().enumerate() {
        let shell = json!({"command": "bash", "args": ["--norc"], "name": format!("s{number}")});
        agent.call(2, "create_session", &shell);
        agent.answer(2);
        let run = json!({"session": format!("s{number}"), "command": "rm -r one"});
        agent.call(3, "run", &run);
    }
    let mut listed = String::new();
    until("two calls to wait", || {
        listed = home.printed("approve");
        listed.starts_with("2 calls wait for an approval\n")
    });
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 2, "{listed}");
    let ids: Vec<&str> = lines[1].split_whitespace().take(2).collect();
    assert!(lines[1].contains(" in s0, ") || lines[1].contains(" in s1, "), "{listed}");
    let approved = home.printed(&format!("approve {}", ids.join(" ")));
    assert_eq!(approved, "approved: rm -r one\napproved: rm -r one\n");
    for agent in &mut agents {
        assert_eq!(agent.answer(3)["exit_code"], 1);
    }
}

#[test]
fn a_daemon_reads_its_configuration_again_when_it_is_told_to_and_says_what_is_wrong() {
    let home = asking_home();
    let _daemon = home.daemon();
    assert_eq!(home.printed("config reload"), "nothing changed\n");
    let policy = home.configure("").with_file_name("policy.toml");
    std::fs::write(&policy, "default = \"ask\"\n").unwrap();
    assert_eq!(home.printed("config reload"), "changed: policy\n");
    std::fs::write(&policy, "default = \"yes\"\n").unwrap();
    let refused = home.run("config reload");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("policy.toml:1:"), "{said}");
    assert_eq!(home.envelope("config reload")["error_code"], "invalid_configuration");
}

/// A server that logs its user in with a key of the test's own, and leaves its parent and its session behind.
fn sshd_config(home: &Home, port: u16) -> String {
    let path = |name: &str| home.path(name).display().to_string();
    for key in ["host", "key"] {
        let mut keygen = home.command("ssh-keygen");
        let made = keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", &path(key)]).status();
        assert!(made.unwrap().success());
    }
    // A shell that is no first one reads none of its user's files.
    format!(
        "ListenAddress 127.0.0.1\nPort {port}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\n\
         UsePAM no\nPidFile none\nSetEnv SHLVL=2\n",
        path("host"),
        path("key.pub"),
    )
}

#[test]
fn nobody_approves_from_inside_of_a_session_by_way_of_a_server_of_its_own() {
    if !Path::new(SSHD).exists() || !is_installed("ssh-keygen") {
        return;
    }
    // Where its service does not run, the directory of the system's server is missing.
    if getuid().is_root() {
        std::fs::create_dir_all("/run/sshd").unwrap();
    }
    let home = asking_home();
    let policy = home.configure("").with_file_name("policy.toml");
    std::fs::write(policy, format!("unknown = 'allow'\n{ASK_BEFORE_RM}")).unwrap();
    let _daemon = home.daemon();
    start(&home, "exec bash --norc");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (config, key) = (home.path("sshd_config"), home.path("key"));
    std::fs::write(&config, sshd_config(&home, port)).unwrap();
    let mut agent = Agent::at(&home);
    agent.call(2, "acquire_lease", &json!({"session": "build"}));
    agent.answer(2);
    let remove = json!({"session": "build", "command": "rm -r one", "timeout_ms": 1});
    agent.call(3, "run", &remove);
    let asked = agent.answer(3);
    let id = asked["details"]["approval_id"].as_str().unwrap();
    let (config, key) = (config.display(), key.display());
    let runtime = home.runtime("");
    let approve = format!(
        "env TERMGATE_RUNTIME_DIR={} {PROGRAM} approve {id}",
        runtime.display().to_string().trim_end_matches('/')
    );
    let line = format!(
        "{SSHD} -f {config}; ssh -p {port} -i {key} -o StrictHostKeyChecking=no \
         -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR 127.0.0.1 '{approve}; echo approved $?'"
    );
    agent.call(4, "run", &json!({"session": "build", "command": line, "timeout_ms": 60_000}));
    let ran = agent.answer(4);
    let output = ran["output"].as_str().unwrap_or_else(|| panic!("{ran}"));
    assert!(output.contains("approved 7"), "{ran}");
    agent.call(5, "run", &remove);
    let asked = agent.answer(5);
    assert_eq!(asked["error_code"], "approval_required", "{asked}");
    // From outside, the same command lets it pass.
    let id = asked["details"]["approval_id"].as_str().unwrap();
    assert_eq!(home.printed(&format!("approve {id}")), "approved: rm -r one\n");
}
