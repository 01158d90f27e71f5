//! Sockets that other users may connect to: who gets in, who does not, and that it stays so.
//!
//! Every user here is a number that the kernel takes; only the group must have a name.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use nix::sys::signal::Signal;
use nix::unistd::{Group, getuid};
use serde_json::json;

use crate::harness::processes::PROGRAM;
use crate::harness::waiting::until;
use crate::outlive::client::{Client, start};
use crate::outlive::home::Home;

/// Two groups that Debian has, and that nobody of the machine's own users needs to be in.
const GROUP: &str = "users";
const OTHER_GROUP: &str = "games";

/// A user that no account of this machine is.
#[derive(Clone, Copy, Debug)]
struct User {
    uid: u32,
    group: Option<&'static str>,
}

const MEMBER: User = User { uid: 70_001, group: Some(GROUP) };
const OTHER_MEMBER: User = User { uid: 70_002, group: Some(OTHER_GROUP) };
const STRANGER: User = User { uid: 70_003, group: None };
/// The user of a daemon of its own.
const SERVICE: User = User { uid: 70_010, group: Some(GROUP) };

/// Connects to each socket, lists each directory and opens each file that it is given, and says how that went.
const PROBE: &str = r#"
import errno, os, socket, stat, sys
for path in sys.argv[1:]:
    kind, path = path.split(":", 1)
    try:
        if kind == "socket":
            socket.socket(socket.AF_UNIX).connect(path)
        elif kind == "list":
            os.listdir(path)
        else:
            open(path).close()
        print("in")
    except OSError as error:
        print(errno.errorcode[error.errno])
"#;

fn gid(group: &str) -> u32 {
    Group::from_name(group).unwrap().expect("a group of Debian").gid.as_raw()
}

impl User {
    /// The words before a program that has it run as this user.
    fn command(self, program: &Path) -> Command {
        let mut command = Command::new("setpriv");
        let uid = self.uid;
        command.arg(format!("--reuid={uid}")).arg(format!("--regid={uid}"));
        match self.group {
            Some(group) => command.arg(format!("--groups={}", gid(group))),
            None => command.arg("--clear-groups"),
        };
        command.arg("--").arg(program).env_clear().env("PATH", "/usr/bin:/bin");
        command.env("HOME", "/nonexistent").current_dir("/").stdin(Stdio::null());
        command
    }

    /// How each attempt ended: "in", or the kernel's error.
    fn probe(self, attempts: &[String]) -> Vec<String> {
        let mut command = self.command(Path::new("python3"));
        let output = command.arg("-c").arg(PROBE).args(attempts).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(str::to_owned).collect()
    }

    fn run(self, program: &Path, words: &str, environment: &[(&str, &Path)]) -> Output {
        let mut command = self.command(program);
        command.args(words.split_whitespace()).envs(environment.iter().copied());
        command.output().unwrap()
    }
}

/// Whether this test can be others; says so where it cannot.
fn can_be_others() -> bool {
    let can = getuid().is_root();
    if !can {
        eprintln!("only root can be other users");
    }
    can
}

/// A home whose runtime directory other users can get to.
fn open_home(keys: &str) -> Home {
    let home = Home::new();
    let user = home.path("user");
    for above in [home.ground(), &user, &user.join("run")] {
        fs::set_permissions(above, std::os::unix::fs::PermissionsExt::from_mode(0o711)).unwrap();
    }
    home.configure(keys);
    home
}

fn keys(clients: &str, observers: &str) -> String {
    format!("[sockets]\nclients = \"{clients}\"\nobservers = \"{observers}\"\n")
}

/// The sockets of a daemon with a session.
const SOCKETS: [&str; 5] =
    ["gateway.ro.sock", "s/ID.ro.sock", "gateway.sock", "s/ID.sock", "operator.sock"];

/// Which of [`SOCKETS`] a user gets into.
fn reached(home: &Home, user: User, session: &str) -> Vec<&'static str> {
    let path = |name: &str| home.runtime(&name.replace("ID", session));
    let attempts = SOCKETS.map(|name| format!("socket:{}", path(name).display()));
    let results = user.probe(&attempts);
    for result in &results {
        assert!(result == "in" || result == "EACCES", "{results:?}");
    }
    SOCKETS
        .into_iter()
        .zip(results)
        .filter(|(_, result)| result == "in")
        .map(|(it, _)| it)
        .collect()
}

/// Checks that a user can list no directory, open no file and reach no shim.
fn reaches_nothing_else(home: &Home, user: User, session: &str) {
    let mut attempts: Vec<String> =
        ["", "s", "h", "shell"].map(|name| format!("list:{}", home.runtime(name).display())).into();
    attempts.push(format!("socket:{}", home.runtime(&format!("h/{session}.sock")).display()));
    // Everything that is there and neither a socket of `SOCKETS` nor a directory.
    let known = |path: &Path| path.extension().is_some_and(|extension| extension == "sock");
    let files = files_below(&home.runtime("")).into_iter().filter(|path| !known(path));
    attempts.extend(files.map(|path| format!("open:{}", path.display())));
    assert!(attempts.iter().any(|it| it.ends_with("daemon.lock")), "{attempts:?}");
    let results = user.probe(&attempts);
    for (attempt, result) in attempts.iter().zip(&results) {
        assert_eq!(result, "EACCES", "{attempt} as {user:?}");
    }
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let below = entries.map(|path| match path.is_dir() {
        true => files_below(&path),
        false => vec![path],
    });
    below.flatten().collect()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

const READ_ONLY: [&str; 2] = ["gateway.ro.sock", "s/ID.ro.sock"];
const WRITING: [&str; 4] = ["gateway.ro.sock", "s/ID.ro.sock", "gateway.sock", "s/ID.sock"];

#[tokio::test]
async fn a_group_that_may_observe_reaches_the_read_only_sockets_and_nothing_else() {
    if !can_be_others() {
        return;
    }
    let home = open_home(&keys("", GROUP));
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let session = start(&mut client, "exec cat").await.id;
    let check = |session: &str| {
        assert_eq!(reached(&home, MEMBER, session), READ_ONLY);
        assert_eq!(reached(&home, STRANGER, session), [""; 0]);
        assert_eq!(reached(&home, OTHER_MEMBER, session), [""; 0]);
        for user in [MEMBER, STRANGER] {
            reaches_nothing_else(&home, user, session);
        }
    };
    check(&session);

    // Made again, and for a session that is created later.
    for name in ["gateway.ro.sock", "gateway.sock", "operator.sock"] {
        let path = home.runtime(name);
        fs::remove_file(&path).unwrap();
        until(name, || path.exists()).await;
    }
    check(&session);
    let later = start(&mut client, "exec cat").await.id;
    check(&later);

    daemon.kill().await;
    let mut daemon = home.serve().await;
    check(&session);
    check(&later);

    // An upgrade and a restart leave the sessions; so does a daemon without the keys, which closes all again.
    daemon.signal(Signal::SIGUSR1);
    until("the daemon to leave", || daemon.ended().is_some()).await;
    home.configure("");
    let _daemon = home.serve().await;
    assert_eq!(reached(&home, MEMBER, &session), [""; 0]);
    for name in ["", "s", "h"] {
        assert_eq!(mode(&home.runtime(name)), 0o700, "{name}");
    }
    for name in SOCKETS {
        assert_eq!(mode(&home.runtime(&name.replace("ID", &session))), 0o600, "{name}");
    }
}

#[tokio::test]
async fn each_key_opens_its_own_sockets() {
    if !can_be_others() {
        return;
    }
    let none: [&str; 0] = [];
    // For each pair of keys: what a member of one group, of the other, and a stranger reach.
    let cases: [(&str, &str, [&[&str]; 3]); 6] = [
        ("", "*", [&READ_ONLY, &READ_ONLY, &READ_ONLY]),
        ("*", "", [&WRITING, &WRITING, &WRITING]),
        (GROUP, "", [&WRITING, &none, &none]),
        (GROUP, GROUP, [&WRITING, &none, &none]),
        (GROUP, "*", [&WRITING, &READ_ONLY, &READ_ONLY]),
        (GROUP, OTHER_GROUP, [&["gateway.sock", "s/ID.sock"], &READ_ONLY, &none]),
    ];
    let home = open_home("");
    for (clients, observers, expected) in cases {
        home.configure(&keys(clients, observers));
        let daemon = home.serve().await;
        let session = start(&mut home.client().await, "exec cat").await.id;
        for (user, expected) in [MEMBER, OTHER_MEMBER, STRANGER].into_iter().zip(expected) {
            assert_eq!(reached(&home, user, &session), expected, "{clients:?}, {observers:?}");
            reaches_nothing_else(&home, user, &session);
        }
        daemon.kill().await;
    }
}

#[tokio::test]
async fn a_directory_that_was_widened_stops_the_next_daemon() {
    if !can_be_others() {
        return;
    }
    let home = open_home(&keys("", GROUP));
    home.serve().await.kill().await;
    for (name, wide) in [("", 0o730), ("s", 0o750), ("h", 0o710)] {
        let path = home.runtime(name);
        let right = mode(&path);
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(wide)).unwrap();
        let (code, said) = home.spawn("").ends().await;
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(&format!("has mode {wide:04o}")), "{said}");
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(right)).unwrap();
    }
    home.serve().await.kill().await;
}

/// Has all directories of the user belong to a user of its own, as which the daemon is to run.
fn give_to_service(home: &Home) -> PathBuf {
    fn give(path: &Path) {
        chown(path, Some(SERVICE.uid), Some(SERVICE.uid)).unwrap();
        if path.is_dir() {
            fs::read_dir(path).unwrap().for_each(|entry| give(&entry.unwrap().path()));
        }
    }
    let program = home.path("termgate");
    fs::copy(PROGRAM, &program).unwrap();
    give(&home.path("user"));
    program
}

#[tokio::test]
async fn a_client_reaches_the_daemon_of_another_user_only_when_it_names_its_socket() {
    if !can_be_others() {
        return;
    }
    let home = open_home(&keys(GROUP, ""));
    let program = give_to_service(&home);
    let mut command = SERVICE.command(&program);
    command.args(["serve", "--allow-write"]).envs(home.environment());
    let mut daemon = home.start(command);
    daemon.is_ready().await;
    assert_eq!(fs::metadata(home.runtime("gateway.sock")).unwrap().uid(), SERVICE.uid);
    let run = |user: User, words: &str, environment: &[(&str, &Path)]| {
        let output = user.run(&program, words, environment);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    let (gateway, runtime) = (home.runtime("gateway.sock"), home.path("user/run"));
    let list = format!("--socket {} ls", gateway.display());
    assert_eq!(run(MEMBER, &list, &[]).0, Some(0), "named by a flag");
    assert_eq!(run(MEMBER, "ls", &[("TERMGATE_SOCKET", &gateway)]).0, Some(0), "by a variable");
    let (code, said) = run(MEMBER, "mcp --no-spawn", &[("XDG_RUNTIME_DIR", &runtime)]);
    assert_eq!(code, Some(7), "{said}");
    assert!(said.contains(&format!("belongs to user {}", SERVICE.uid)), "{said}");
    assert!(said.contains("--socket"), "{said}");
    assert_ne!(run(STRANGER, &list, &[]).0, Some(0));

    // Where others could have put the socket, its listener may be anybody.
    let root = home.runtime("");
    fs::set_permissions(&root, std::os::unix::fs::PermissionsExt::from_mode(0o730)).unwrap();
    let (code, said) = run(MEMBER, &list, &[]);
    assert_eq!(code, Some(7), "{said}");
    assert!(said.contains("others may have put the socket there"), "{said}");
    fs::set_permissions(&root, std::os::unix::fs::PermissionsExt::from_mode(0o710)).unwrap();
    assert_eq!(run(MEMBER, &list, &[]).0, Some(0));
    daemon.kill().await;
}

#[tokio::test]
async fn a_daemon_that_is_not_in_the_group_says_so() {
    if !can_be_others() {
        return;
    }
    let home = open_home(&keys("", OTHER_GROUP));
    let program = give_to_service(&home);
    let mut command = SERVICE.command(&program);
    command.arg("serve").envs(home.environment());
    let (code, said) = home.start(command).ends().await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("must be a member of the group"), "{said}");
}

#[tokio::test]
async fn a_member_is_served_by_the_daemon_that_lets_it_in() {
    if !can_be_others() {
        return;
    }
    let home = open_home(&keys("", GROUP));
    let daemon = home.serve().await;
    start(&mut home.client().await, "exec cat").await;
    let program = home.path("termgate");
    fs::copy(PROGRAM, &program).unwrap();
    let gateway = home.runtime("gateway.ro.sock");
    let list = format!("--socket {} ls --json", gateway.display());
    let output = MEMBER.run(&program, &list, &[]);
    assert!(output.status.success(), "{output:?}");
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["data"]["sessions"], json!([]), "those of another user are not shown");
    let _own = Client::find(&home.runtime("gateway.ro.sock")).await;
    daemon.kill().await;
}

/// A user with an account of Debian's, who is in the group.
const ACCOUNT: User = User { uid: 1, group: Some(GROUP) };

#[tokio::test]
async fn each_user_of_roots_daemon_runs_programs_as_itself_and_sees_its_own() {
    if !can_be_others() {
        return;
    }
    let home = open_home(&keys("*", ""));
    let daemon = home.serve().await;
    let own = start(&mut home.client().await, "exec cat").await;
    let program = home.path("termgate");
    fs::copy(PROGRAM, &program).unwrap();
    let gateway = home.runtime("gateway.sock");
    let run = |user: User, words: &str| {
        let output = user.run(&program, &format!("--socket {} {words}", gateway.display()), &[]);
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (told, output)
    };
    let (created, output) = run(ACCOUNT, "new --name mine --json -- cat /proc/self/status");
    assert!(output.status.success(), "{output:?}");
    let session = created["data"]["session"]["id"].as_str().unwrap().to_owned();
    let (waited, output) = run(ACCOUNT, "wait mine --exit --json");
    assert!(output.status.success(), "{output:?} {waited}");
    let (history, _) = run(ACCOUNT, "history mine --json");
    let uid = "Uid:\\t1\\t1\\t1\\t1";
    let shown = history.to_string();
    assert!(shown.contains(uid) || shown.contains("Uid:    1       1       1       1"), "{shown}");
    let (listed, _) = run(ACCOUNT, "ls --json");
    let ids: Vec<_> = listed["data"]["sessions"].as_array().unwrap().iter().collect();
    assert_eq!(ids.len(), 1, "{listed}");
    assert_eq!(ids[0]["id"], *session);
    let (refused, _) = run(ACCOUNT, &format!("read {} --json", own.id));
    assert_eq!(refused["error_code"], "session_not_found");
    // Nobody gets the rights of root because it has no account.
    let (refused, _) = run(STRANGER, "new --json -- cat");
    assert_eq!(refused["error_code"], "policy_denied", "{refused}");
    let everything = home.envelope("ls");
    let tenants: Vec<_> =
        everything["data"]["sessions"].as_array().unwrap().iter().map(|it| &it["tenant"]).collect();
    assert!(tenants.contains(&&json!("uid:1")), "{everything}");
    daemon.kill().await;
}

#[tokio::test]
async fn who_may_open_a_sessions_read_only_socket_watches_that_session_and_no_other() {
    if !can_be_others() {
        return;
    }
    let home = open_home(&keys("", GROUP));
    let daemon = home.serve().await;
    let mut client = home.client().await;
    let (one, two) =
        (start(&mut client, "echo seen; exec cat").await, start(&mut client, "exec cat").await);
    let program = home.path("termgate");
    fs::copy(PROGRAM, &program).unwrap();
    let socket = home.runtime(&format!("s/{}.ro.sock", one.id));
    let run = |words: &str| {
        let words = format!("--socket {} {words} --json", socket.display());
        let output = MEMBER.run(&program, &words, &[]);
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap_or_default()
    };
    let seen = run(&format!("wait {} --text seen", one.id));
    assert_eq!(seen["ok"], true, "{seen}");
    assert_eq!(run(&format!("read {}", two.id))["error_code"], "session_not_found");
    let typed = run(&format!("send {} x", one.id));
    assert_eq!(typed["error_code"], "read_only", "{typed}");
    daemon.kill().await;
}
