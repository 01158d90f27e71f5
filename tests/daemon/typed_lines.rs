//! What runs is the line that was judged, whatever the terminal shows of it.

use serde_json::{Value, json};

use crate::daemon::harness::{Era, TestDaemon, Wire};
use crate::daemon::policy::{daemon_with, refused};
use crate::harness::home::is_installed;

const ASK_BEFORE_RM: &str = r#"
    [[rule]]
    name = "removes"
    effect = "ask"
    command = { program = "rm" }
"#;

/// A shell that shows its prompt and nothing behind it.
const AT_PROMPT: &str = "[#$] ?$";

struct Typist {
    daemon: TestDaemon,
    client: Wire,
    session: String,
}

impl Typist {
    /// Somebody who types to a shell at its prompt, under these rules.
    async fn new(rules: &str) -> Self {
        let daemon = daemon_with(rules).await;
        let mut client = daemon.client(Era::Modern).await;
        let created = json!({"command": "bash"});
        let created = client.structured("create_session", created).await;
        let session = created["session"]["id"].as_str().unwrap().to_owned();
        client.structured("run", json!({"session": session, "command": "true"})).await;
        Self { daemon, client, session }
    }

    async fn text(&mut self, text: &str) -> Value {
        self.client.call("send_text", json!({"session": self.session, "text": text})).await
    }

    async fn keys(&mut self, keys: &str) -> Value {
        self.client.call("send_keys", json!({"session": self.session, "keys": keys})).await
    }

    /// Types what is not asked about, and waits until it has had its effect.
    async fn types(&mut self, text: &str) {
        let until = json!({"session": self.session, "text": text, "until": {"idle_ms": 200}});
        self.client.structured("send_text", until).await;
    }

    /// Presses keys that are not asked about, and waits until they have had their effect.
    async fn presses(&mut self, keys: &str) {
        let until = json!({"session": self.session, "keys": keys, "until": {"idle_ms": 200}});
        self.client.structured("send_keys", until).await;
    }

    /// Waits until the terminal shows this.
    async fn shows(&mut self, pattern: &str) {
        let wait = json!({"session": self.session, "pattern": pattern, "timeout_ms": 20_000});
        self.client.wait_for(wait).await;
    }

    /// What the approver of a call is told, which was asked about.
    async fn what(&self, asked: &Value) -> String {
        let error = &asked["structuredContent"];
        assert_eq!(error["error_code"], "approval_required", "{error}");
        let id = &error["details"]["approval_id"];
        let list = self.daemon.operator().await.structured("list_approvals", json!({})).await;
        let all = list["approvals"].as_array().unwrap();
        let call = all.iter().find(|call| call["approval_id"] == *id).unwrap();
        call["what"].as_str().unwrap().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_approves_a_line_is_told_what_was_typed_though_output_has_erased_a_part_of_it() {
    let mut typist = Typist::new(ASK_BEFORE_RM).await;
    let fifo = typist.daemon.file("fifo");
    let erase = format!("mkfifo {0}; (read x < {0}; printf '\\033[6D\\033[K') &", fifo.display());
    typist.client.structured("run", json!({"session": typist.session, "command": erase})).await;
    typist.types("rm -rf first second").await;
    tokio::task::spawn_blocking(move || std::fs::write(fifo, "now\n")).await.unwrap().unwrap();
    typist.shows("rm -rf first ?$").await;
    let asked = typist.keys("Enter").await;
    let what = typist.what(&asked).await;
    assert!(what.contains("a line that is not known"), "{what}");
    assert!(what.contains("it was typed: rm -rf first second"), "{what}");
    assert!(what.ends_with("the screen shows: rm -rf first "), "{what}");
    typist.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rest_of_a_line_that_goes_on_is_not_shown_as_a_line_of_its_own() {
    let rules = format!("unknown = 'allow'\n{ASK_BEFORE_RM}");
    let mut typist = Typist::new(&rules).await;
    typist.types("for d in one two; do cd $d\n").await;
    typist.shows("^> ?$").await;
    let asked = typist.text("rm -rf b\n").await;
    let what = typist.what(&asked).await;
    assert!(what.contains("a line that is not known"), "{what}");
    // At the next prompt it is a line.
    typist.presses("C-c").await;
    typist.shows(AT_PROMPT).await;
    let asked = typist.text("rm -rf b\n").await;
    let what = typist.what(&asked).await;
    assert!(what.ends_with(r#"{"text":"rm -rf b\n"}"#), "{what}");
    // So it is in a shell inside of it, as far as its prompt tells.
    typist.types("bash --norc\n").await;
    typist.shows(&format!("^bash-.*{AT_PROMPT}")).await;
    typist.types("true \\\n").await;
    typist.shows("^> ?$").await;
    let asked = typist.text("rm -rf b\n").await;
    let what = typist.what(&asked).await;
    assert!(what.contains("a line that is not known"), "{what}");
    typist.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_is_typed_in_pieces_without_a_pause_is_known() {
    let mut typist = Typist::new(ASK_BEFORE_RM).await;
    for piece in ["r", "m -rf", "x\u{7f} first"] {
        assert_eq!(typist.text(piece).await["isError"], false);
    }
    let asked = typist.keys("Enter").await;
    let what = typist.what(&asked).await;
    assert!(what.ends_with(", which ends the line: rm -rf first"), "{what}");
    // The same shell takes other lines unasked.
    typist.presses("C-u").await;
    for piece in ["echo ", "first", "\n"] {
        assert_eq!(typist.text(piece).await["isError"], false);
    }
    typist.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_keys_have_changed_is_judged_by_what_the_screen_shows_and_not_known() {
    let mut typist = Typist::new(&ASK_BEFORE_RM.replace("ask", "deny")).await;
    let clear = json!({"session": typist.session, "command": "clear"});
    typist.client.structured("run", clear).await;
    typist.presses("Up").await;
    typist.shows("[#$] clear$").await;
    let asked = typist.keys("Enter").await;
    let what = typist.what(&asked).await;
    assert!(
        what.ends_with(", which ends a line that is not known; the screen shows: clear"),
        "{what}"
    );
    // A new line is known again.
    typist.presses("C-c").await;
    typist.shows(AT_PROMPT).await;
    assert_eq!(typist.text("true\n").await["isError"], false);
    typist.types("rm -r").await;
    typist.presses("Left").await;
    typist.presses("Right").await;
    let error = &typist.text(" x\n").await["structuredContent"];
    assert_eq!(error["error_code"], "policy_denied", "{error}");
    typist.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_a_program_took_are_no_part_of_the_next_line() {
    if !is_installed("less") {
        return;
    }
    let mut typist = Typist::new(ASK_BEFORE_RM).await;
    typist.types("seq 1000 | less\n").await;
    typist.shows("^:$").await;
    typist.presses("q").await;
    typist.shows(AT_PROMPT).await;
    assert_eq!(typist.text("true\n").await["isError"], false);
    typist.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_for_a_shell_that_shows_nothing_is_judged_and_its_text_is_told_to_nobody() {
    let mut typist = Typist::new(ASK_BEFORE_RM).await;
    typist.types("sh -c 'stty -echo; exec sh'\n").await;
    let secret = json!({"session": typist.session, "needs_input": true, "timeout_ms": 20_000});
    typist.client.wait_for(secret).await;
    let what = {
        let asked = typist.text("rm -rf hidden-place; echo done\n").await;
        typist.what(&asked).await
    };
    assert_eq!(
        what,
        "send_text what a shell does not show, which may be a line for the rule `removes`"
    );
    // In pieces, too.
    assert_eq!(typist.text("rm -rf hid").await["isError"], false);
    let asked = typist.text("den-place\n").await;
    assert!(!typist.what(&asked).await.contains("hid"));
    let sent = typist.keys("C-c").await;
    assert_eq!(sent["isError"], false, "{sent}");
    typist.types("true\n").await;
    typist.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_for_a_shell_or_a_program_is_not_asked_about_whatever_is_in_it() {
    let mut typist = Typist::new(ASK_BEFORE_RM).await;
    typist.types("read -s word\n").await;
    let secret = json!({"session": typist.session, "needs_input": true, "timeout_ms": 20_000});
    typist.client.wait_for(secret.clone()).await;
    typist.types("$ecret (`; '\n").await;
    // What follows a password is left to the shell.
    let ask = "python3 -c 'import getpass; getpass.getpass()'\n";
    typist.types(ask).await;
    typist.client.wait_for(secret).await;
    let session = &typist.session;
    let lines = json!({"session": session, "text": "hunter2\nrm -rf x\n"});
    let error = refused(&mut typist.client, "send_text", lines).await;
    assert_eq!(error["error_code"], "approval_required", "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
    typist.types("rm -rf x\n").await;
    typist.daemon.stop().await;
}
