//! `top`: one table, a table that is painted anew, and the terminal as it was before.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;

use crate::commands::blocking::until;
use crate::commands::seat::start;
use crate::commands::terminal::Terminal;
use crate::harness::home::Home;

/// How every picture begins.
const PAINTED: &str = "\x1b[H";
/// How the terminal is given back.
const GIVEN_BACK: &str = "\x1b[?25h\x1b[?1049l";

fn top(home: &Home, options: &str) -> Terminal {
    let mut terminal = Terminal::of(home.termgate(&format!("top {options}")));
    terminal.wait_for(PAINTED);
    terminal
}

#[test]
fn once_prints_one_table_of_all_that_there_is_to_know() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name build --lease -- cat");
    home.printed("new --name gone -- true");
    home.printed("wait gone --exit");
    home.printed("wait build --needs-input --since 0");
    let lease = home.envelope("lease ls");
    let holder = lease["data"]["sessions"][0]["lease"]["by"].as_str().unwrap_or("termgate#");
    let table = home.printed("top --once");
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "2 sessions, 1 running, 1 held, 0 B/s");
    let head: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!(head[..9].join(" "), "NAME STATE FOR HOLDER KIND WAITERS OBSERVERS IDLE OUTPUT/S");
    let cells: Vec<&str> = lines[2].split_whitespace().collect();
    assert_eq!((cells[0], cells[1], cells[4], cells[5]), ("build", "asks", "operator", "0"));
    assert!(cells[2].ends_with('s'), "{table}");
    assert!(cells[3].starts_with(holder.split('#').next().unwrap()), "{table}");
    assert!(lines[3].contains("exited 0"), "{table}");
    assert_eq!(lines.len(), 4, "{table}");
}

#[test]
fn once_with_json_is_one_envelope() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name build -- cat");
    let told = home.envelope("top --once");
    let session = &told["data"]["sessions"][0];
    assert_eq!((&session["name"], &session["bytes_per_second"]), (&"build".into(), &0.into()));
    assert!(session["state_ms"].is_u64(), "{session}");
}

#[test]
fn sessions_that_come_and_what_they_show_are_painted() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name first -- cat");
    let mut terminal = top(&home, "--interval 100ms");
    terminal.wait_for("first");
    home.printed("new --name second -- cat");
    terminal.wait_for("second");
    home.printed("send second a-line-that-is-shown --enter");
    terminal.wait_for("a-line-that-is-shown");
    home.printed("lease acquire first");
    terminal.wait_for("1 held");
}

#[test]
fn what_a_session_does_is_followed_also_where_it_prints_nothing() {
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "until [ -e go ]; do sleep 0.1; done; stty -echo; read line");
    let mut terminal = top(&home, "--interval 100ms");
    terminal.wait_for("running");
    // The kernel is asked again and again while somebody waits.
    let mut waiting = home.termgate("wait build --needs-input").spawn().unwrap();
    for _ in 0..5 {
        terminal.wait_for(PAINTED);
    }
    fs::write(home.path("home/go"), "").unwrap();
    terminal.wait_for("asks secret");
    assert!(waiting.wait().unwrap().success());
}

#[test]
fn a_key_leaves_and_gives_the_terminal_back() {
    let home = Home::new();
    let _daemon = home.daemon();
    for key in ["q", "\x03"] {
        let mut terminal = top(&home, "");
        assert!(!terminal.is_cooked());
        terminal.type_in(key);
        terminal.wait_for(GIVEN_BACK);
        assert!(terminal.is_cooked());
        let (_, exit) = terminal.wait_for_end();
        assert_eq!(exit, Some(0), "{key:?}");
    }
}

#[test]
fn other_keys_do_not_leave() {
    let home = Home::new();
    let _daemon = home.daemon();
    let mut terminal = top(&home, "--interval 100ms");
    terminal.type_in(&"x".repeat(200));
    for _ in 0..3 {
        terminal.wait_for(PAINTED);
    }
    terminal.type_in("q");
    assert_eq!(terminal.wait_for_end().1, Some(0));
}

#[test]
fn the_selected_session_is_attached_to_and_killed() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name build -- cat");
    home.printed("new --name gone -- true");
    home.printed("wait gone --exit");
    home.printed("send build hello --enter");
    let mut terminal = top(&home, "--interval 100ms");
    terminal.wait_for("> build");
    terminal.wait_for("Enter: attach");
    terminal.type_in("\x1b[B");
    terminal.wait_for("> gone");
    terminal.type_in("k");
    terminal.wait_for("remove gone?");
    terminal.type_in("n\x1b[A");
    terminal.wait_for("> build");
    terminal.type_in("\r");
    terminal.wait_for(GIVEN_BACK);
    terminal.wait_for("hello");
    terminal.type_in("\x1cd");
    terminal.wait_for("[detached from");
    assert!(!terminal.is_cooked());
    terminal.type_in("k");
    terminal.wait_for("kill build?");
    terminal.type_in("y");
    terminal.wait_for("\"build\": killed");
    terminal.type_in("q");
    assert_eq!(terminal.wait_for_end().1, Some(0));
    assert!(home.printed("ls").contains("killed SIG"), "{}", home.printed("ls"));
}

#[test]
fn a_daemon_that_goes_ends_it_with_the_terminal_as_it_was() {
    let home = Home::new();
    let daemon = home.daemon();
    let mut terminal = top(&home, "");
    daemon.killed();
    terminal.wait_for(GIVEN_BACK);
    assert!(terminal.is_cooked());
    let (text, exit) = terminal.wait_for_end();
    assert_eq!(exit, Some(7));
    assert!(text.contains("the daemon has gone"), "{text}");
}

#[test]
fn it_goes_on_under_the_next_daemon() {
    let home = Home::new();
    let daemon = home.daemon();
    home.printed("new --name first -- cat");
    let mut terminal = top(&home, "--interval 100ms");
    terminal.wait_for("first");
    daemon.killed();
    let _daemon = home.daemon();
    home.printed("new --name second -- cat");
    terminal.wait_for("second");
    terminal.type_in("q");
    assert_eq!(terminal.wait_for_end().1, Some(0));
}

/// A socket behind which the daemon is. It hangs up at the second list, then at the first subscription, then never.
fn hanging_up_twice(home: &Home) -> PathBuf {
    let (socket, daemon) = (home.path("proxy.sock"), home.path("run/termgate/operator.sock"));
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        for (word, passed) in [("list_sessions", 1), ("resources/subscribe", 0), ("", usize::MAX)] {
            let (client, _) = listener.accept().unwrap();
            let mut daemon = UnixStream::connect(&daemon).unwrap();
            let (mut told, mut to_client) =
                (daemon.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut told, &mut to_client));
            let mut asked = 0;
            for line in BufReader::new(&client).lines().map_while(Result::ok) {
                asked += usize::from(line.contains(word));
                if asked > passed {
                    break;
                }
                writeln!(daemon, "{line}").unwrap();
            }
            client.shutdown(Shutdown::Both).unwrap();
        }
    });
    socket
}

#[test]
fn it_goes_on_when_the_next_daemon_ends_at_once() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name first -- cat");
    let socket = hanging_up_twice(&home);
    let mut terminal = top(&home, &format!("--socket {} --interval 100ms", socket.display()));
    home.printed("new --name second -- cat");
    terminal.wait_for("second");
    terminal.type_in("q");
    assert_eq!(terminal.wait_for_end().1, Some(0));
}

#[test]
fn nothing_is_asked_while_nothing_changes() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name build -- cat");
    let mut terminal = top(&home, "--interval 100ms");
    let mut asked = || {
        for _ in 0..5 {
            terminal.wait_for(PAINTED);
        }
        home.envelope("ls --daemon")["data"]["calls"]["list_sessions"]["ok"].as_u64().unwrap()
    };
    // What a new session shows at first has come by then.
    asked();
    let before = asked();
    assert_eq!(asked(), before);
}

#[test]
fn without_a_terminal_tables_follow_each_other_when_something_changed() {
    let home = Home::new();
    let _daemon = home.daemon();
    let mut command = home.termgate("top --interval 100ms --json");
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["data"]["sessions"], Value::Array(Vec::new()));
    home.printed("new --name build -- cat");
    while next()["data"]["sessions"][0]["name"] != "build" {}
    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn who_reads_no_further_is_not_waited_for_until_something_changes() {
    let home = Home::new();
    let _daemon = home.daemon();
    home.printed("new --name build -- cat");
    home.printed("send build hello --enter");
    for words in ["top", "top --json", "watch build", "watch build --json"] {
        let mut child = home.termgate(words).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        lines.next().unwrap().unwrap();
        drop(lines);
        until(words, || child.try_wait().unwrap().is_some());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{words}");
    }
}

#[test]
fn colours_are_left_out_where_nobody_wants_them() {
    let home = Home::new();
    let _daemon = home.daemon();
    let mut command = home.termgate("top --interval 100ms");
    command.env("NO_COLOR", "1");
    let shown = Terminal::of(command).wait_for("LAST LINE");
    assert!(!shown.contains("\x1b[7m"), "{shown:?}");
    let shown = Terminal::of(home.termgate("top --interval 100ms")).wait_for("LAST LINE");
    assert!(shown.contains("\x1b[7m  NAME"), "{shown:?}");
}

#[test]
fn an_interval_that_is_too_short_and_no_daemon_are_told() {
    let home = Home::new();
    assert_eq!(home.run("top --interval 10ms").status.code(), Some(2));
    assert_eq!(home.run("top --once").status.code(), Some(7));
}
