//! A daemon of root and other users of the machine: who reaches which socket, and as whom programs run. Only root can
//! try that.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use nix::unistd::getuid;
use serde_json::{Value, json};

use crate::harness::daemon::Daemon;
use crate::harness::home::{Home, is_installed};
use crate::harness::processes::PROGRAM;
use crate::harness::waiting::until;

/// System users that are everywhere, each with a group of its number.
const ADA: u32 = 1;
const BEN: u32 = 2;
const CAT: u32 = 3;

/// The name of a user or group in such a file.
fn name_in(file: &str, number: u32) -> String {
    let text = fs::read_to_string(file).unwrap();
    let number = number.to_string();
    let found = text.lines().find(|line| line.split(':').nth(2) == Some(&number)).unwrap();
    found.split(':').next().unwrap().to_owned()
}

/// A user of the machine in one group.
#[derive(Clone, Copy)]
struct Somebody {
    user: u32,
    group: u32,
}

impl Somebody {
    fn new(user: u32, group: u32) -> Self {
        Self { user, group }
    }

    /// The program with these words, for this user.
    fn command(self, words: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", "/nonexistent");
        command.args([format!("--reuid={}", self.user), "--regid=60000".to_owned()]);
        command.arg(format!("--groups={}", self.group)).arg(PROGRAM).args(words);
        command.current_dir("/");
        command
    }

    fn run(self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }
}

/// A daemon of root that lets two groups in.
struct Place {
    home: Home,
    daemon: Daemon,
}

impl Place {
    /// `None` where only root could try it, or others cannot run the program.
    async fn new(tenants: &str) -> Option<Self> {
        let runs = || Somebody::new(ADA, ADA).run(&["--version"]).status.success();
        if !getuid().is_root() || !is_installed("setpriv") || !runs() {
            eprintln!("other users cannot be tried here");
            return None;
        }
        let home = Home::new();
        let group = |number| name_in("/etc/group", number);
        let sockets =
            format!("[sockets]\nclients = '{}'\nobservers = '{}'\n", group(ADA), group(BEN));
        let configured = home.configure(&sockets);
        fs::write(configured.with_file_name("tenants.toml"), tenants).unwrap();
        let runtime = home.runtime("");
        for directory in [home.ground(), runtime.parent().unwrap()] {
            fs::set_permissions(directory, PermissionsExt::from_mode(0o711)).unwrap();
        }
        let daemon = home.serve().await;
        Some(Self { home, daemon })
    }

    /// What somebody is answered at a socket.
    fn asks(&self, who: Somebody, socket: &str, words: &[&str]) -> Value {
        let socket = self.home.runtime(socket).display().to_string();
        let mut all = vec!["--socket", &socket];
        all.extend(words);
        all.push("--json");
        let output = who.run(&all);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{words:?}: {output:?}"))
    }

    /// Whether somebody gets in at a socket.
    fn lets_in(&self, who: Somebody, socket: &str) -> bool {
        let answer = self.asks(who, socket, &["ls"]);
        let is_in = answer["ok"] == true;
        assert!(is_in || answer["error_code"] == "daemon_unreachable", "{answer}");
        is_in
    }

    /// Makes a session that tells who runs it, and gives back its id.
    fn session_of(&self, who: Somebody, name: &str) -> String {
        let named = format!("name={name}");
        let line =
            "command=id -u; id -G; echo $HOME; kill -0 $PPID 2>&1 | grep -c permitted; exec cat";
        let words = ["call", "create_session", &named, "cwd=/", line];
        let created = self.asks(who, "gateway.sock", &words);
        assert_eq!(created["ok"], true, "{created}");
        created["data"]["session"]["id"].as_str().unwrap().to_owned()
    }

    /// What the screen of a session shows to somebody, once it has so many lines.
    async fn shown(&self, who: Somebody, socket: &str, session: &str, lines: usize) -> Vec<String> {
        let mut shown = Vec::new();
        until("the program to tell who it is", || {
            let read = self.asks(who, socket, &["read", session]);
            let text = read["data"]["text"].as_str().unwrap_or_else(|| panic!("{read}"));
            shown = text.lines().map(str::to_owned).collect();
            shown.len() >= lines
        })
        .await;
        shown
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_kernel_lets_users_in_by_their_groups() {
    let Some(place) = Place::new("").await else { return };
    let session = place.session_of(Somebody::new(ADA, ADA), "of-ada");
    let (own, watched) = (format!("s/{session}.sock"), format!("s/{session}.ro.sock"));
    for (who, at_gateway, at_watched) in [
        (Somebody::new(ADA, ADA), true, false),
        (Somebody::new(CAT, ADA), true, false),
        (Somebody::new(CAT, BEN), false, true),
        (Somebody::new(CAT, CAT), false, false),
    ] {
        let (user, group) = (who.user, who.group);
        for (socket, expected) in [
            ("gateway.sock", at_gateway),
            (&*own, at_gateway),
            ("gateway.ro.sock", at_watched),
            (&*watched, at_watched),
            ("operator.sock", false),
        ] {
            assert_eq!(place.lets_in(who, socket), expected, "{user} of {group} at {socket}");
        }
    }
    // The list of sockets is hidden, and so is what else is there.
    for directory in ["", "s", "h"] {
        let path = place.home.runtime(directory);
        let mut looking = Command::new("setpriv");
        looking.args(["--reuid=1", "--regid=1", "--groups=1", "ls"]).arg(path);
        assert!(!looking.output().unwrap().status.success(), "{directory}");
    }
    place.daemon.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_user_has_sessions_of_its_own_that_run_as_this_user() {
    let Some(place) = Place::new("").await else { return };
    let (ada, cat) = (Somebody::new(ADA, ADA), Somebody::new(CAT, ADA));
    let of_ada = place.session_of(ada, "build");
    // The name is taken for nobody else.
    let of_cat = place.session_of(cat, "build");
    for (who, session) in [(ada, &of_ada), (cat, &of_cat)] {
        let shown = place.shown(who, "gateway.sock", session, 4).await;
        let user = who.user.to_string();
        assert_eq!((&shown[0], shown[1].split(' ').next()), (&user, Some(&*user)), "{shown:?}");
        assert!(shown[2].starts_with('/') && shown[2] != "/nonexistent", "{shown:?}");
        assert_eq!(shown[3], "1", "it signals what holds its terminal");
        let listed = place.asks(who, "gateway.sock", &["ls"]);
        let sessions = listed["data"]["sessions"].as_array().unwrap();
        assert_eq!((sessions.len(), &sessions[0]["id"]), (1, &json!(session)));
    }
    for words in [["read", &of_cat], ["kill", &of_cat], ["read", "build"]] {
        let answer = place.asks(ada, "gateway.sock", &words);
        let is_own = words[1] == "build";
        assert_eq!(answer["ok"], is_own, "{words:?}: {answer}");
    }
    // Whoever may watch sees any session by its socket, and by the gateway those of its tenant alone.
    let watcher = Somebody::new(CAT, BEN);
    let shown = place.shown(watcher, &format!("s/{of_ada}.ro.sock"), &of_ada, 4).await;
    assert_eq!(shown[0], ADA.to_string());
    let read = place.asks(watcher, "gateway.ro.sock", &["read", &of_ada]);
    assert_eq!(read["error_code"], "session_not_found", "{read}");
    // A user without an entry gets the rights of nobody.
    let refused = place.asks(
        Somebody::new(60_001, ADA),
        "gateway.sock",
        &["call", "create_session", "command=id", "cwd=/"],
    );
    assert_eq!(refused["error_code"], "policy_denied", "{refused}");
    place.daemon.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tenants_of_users_and_groups_run_programs_as_the_configuration_says() {
    let user = if getuid().is_root() { name_in("/etc/passwd", CAT) } else { String::new() };
    let group = if getuid().is_root() { name_in("/etc/group", ADA) } else { String::new() };
    let tenants = format!(
        "
        [tenant.web]
        groups = ['{group}']
        run_as = '{user}'
        visibility = 'private'

        [tenant.guests]
        users = [{CAT}]
        roles = ['view']
    "
    );
    let Some(place) = Place::new(&tenants).await else { return };
    let (ada, ben) = (Somebody::new(ADA, ADA), Somebody::new(BEN, ADA));
    let session = place.session_of(ada, "build");
    let shown = place.shown(ada, "gateway.sock", &session, 4).await;
    assert_eq!(shown[0], CAT.to_string(), "{shown:?}");
    // It is private to its user, also at its own socket.
    let read = place.asks(ben, "gateway.sock", &["read", &session]);
    assert_eq!(read["error_code"], "session_not_found", "{read}");
    let socket = format!("s/{session}.ro.sock");
    let read = place.asks(Somebody::new(CAT, BEN), &socket, &["read", &session]);
    assert_eq!(read["error_code"], "session_not_found", "{read}");
    // Who is named belongs to no tenant of its groups.
    let refused = place.asks(
        Somebody::new(CAT, ADA),
        "gateway.sock",
        &["call", "create_session", "command=id", "cwd=/"],
    );
    assert_eq!(refused["error_code"], "policy_denied", "{refused}");
    place.daemon.kill().await;
}
