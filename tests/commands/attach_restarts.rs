//! `termgate attach` while its daemon is killed, replaced, or answers nothing.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{Signal, kill};

use crate::commands::blocking::until;
use crate::commands::seat::{Seat, start, told, until_holder};
use crate::commands::still::{Still, shim};
use crate::harness::daemon::Daemon;
use crate::harness::home::Home;
use crate::harness::processes::is_stopped;

const UNREACHABLE: i32 = 7;

/// A daemon, and a person at its session, which runs this shell line.
fn sit_down(home: &Home, line: &str) -> (Daemon, Seat) {
    let daemon = home.daemon();
    start(home, line);
    let seat = Seat::attach(home, "build");
    seat.until_status("build | free: type to take the keyboard");
    (daemon, seat)
}

#[test]
fn a_daemon_that_was_replaced_is_found_again_and_so_is_the_session() {
    let home = Home::new();
    let (daemon, mut seat) = sit_down(&home, "exec cat");
    seat.types("before ");
    seat.until_text("before");
    daemon.killed();
    seat.until_text("[build: the daemon is gone");
    let _daemon = home.daemon();
    seat.until_status("build | free: type to take the keyboard");
    seat.types("and after\r");
    seat.until_text("before and after");
}

#[test]
fn a_session_whose_shim_was_killed_while_no_daemon_was_there_is_told_to_have_ended_so() {
    let home = Home::new();
    let (daemon, mut seat) = sit_down(&home, "exec cat");
    daemon.killed();
    seat.until_text("[build: the daemon is gone");
    let shim = shim(&home);
    kill(shim, Signal::SIGKILL).unwrap();
    until("the shim to end", || !Path::new(&format!("/proc/{shim}")).exists());
    let _daemon = home.daemon();
    assert_eq!(seat.until_left().code(), Some(0));
    seat.until_text("ended, as the process that held its terminal is gone");
}

/// A person whose terminal nobody answers for, as the next daemon has told.
fn sit_in_silence(home: &Home) -> (Still, Daemon, Seat) {
    let (daemon, mut seat) = sit_down(home, "exec cat");
    seat.types("before ");
    seat.until_text("before");
    let still = Still::of(home);
    daemon.killed();
    let daemon = home.daemon();
    seat.until_status("build | its terminal does not answer | waiting, C-c leaves");
    (still, daemon, seat)
}

#[test]
fn a_person_waits_for_a_terminal_that_does_not_answer_the_next_daemon() {
    let home = Home::new();
    let (still, _daemon, mut seat) = sit_in_silence(&home);
    seat.types("and ");
    until("the keys to be read", || !seat.has_unread());
    drop(still);
    seat.until_status("you have the keyboard");
    seat.types("after\r");
    seat.until_text("before and after");
}

#[test]
fn who_does_not_want_to_wait_for_a_terminal_need_not() {
    let home = Home::new();
    let (_still, _daemon, mut seat) = sit_in_silence(&home);
    seat.types("\x03");
    assert!(seat.until_left().success());
    seat.until_text("[detached from build]");
    // Whoever comes anew does not wait.
    let refused = home.run("read build");
    assert_eq!(refused.status.code(), Some(1));
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(told.contains("terminal_silent") && told.contains("termgate doctor"), "{told}");
    assert!(home.printed("ls").contains("silent"));
}

#[test]
fn more_than_is_kept_for_a_terminal_that_does_not_answer_is_told_to_be_lost() {
    let home = Home::new();
    let (still, _daemon, mut seat) = sit_in_silence(&home);
    for _ in 0..2 {
        seat.types([b'x'; 3_000]);
        until("the keys to be read", || !seat.has_unread());
    }
    seat.until_status("does not answer, and what you type is lost");
    drop(still);
    seat.until_status("you have the keyboard");
}

#[test]
fn a_person_waits_through_one_daemon_after_the_other() {
    let home = Home::new();
    let (still, daemon, mut seat) = sit_in_silence(&home);
    seat.types("and ");
    until("the keys to be read", || !seat.has_unread());
    daemon.killed();
    seat.until_text("the daemon is gone");
    let _daemon = home.daemon();
    seat.until_status("its terminal does not answer");
    seat.types("after");
    until("the keys to be read", || !seat.has_unread());
    drop(still);
    seat.until_text("before and after");
}

#[test]
fn who_finds_no_daemon_is_told_that_sessions_wait_for_one() {
    let home = Home::new();
    let daemon = home.daemon();
    start(&home, "exec cat");
    daemon.killed();
    let refused = home.run("ls");
    assert_eq!(refused.status.code(), Some(UNREACHABLE));
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(told.contains("sessions wait for the next daemon"), "{told}");
    let _daemon = home.daemon();
    home.printed("kill build");
}

#[test]
fn a_person_sees_no_more_than_a_pause_when_the_daemon_is_upgraded() {
    let home = Home::new();
    let (_daemon, mut seat) = sit_down(&home, "exec cat");
    seat.types("before ");
    seat.until_text("before");
    home.printed("upgrade");
    seat.types("and after\r");
    seat.until_text("before and after");
    seat.until_status("you have the keyboard");
    seat.types("\x1cd");
    assert!(seat.until_left().success());
    // The terminal was never given back meanwhile.
    assert!(!seat.shown().contains("the daemon is gone"));
}

#[test]
fn what_is_typed_while_the_daemon_is_away_is_not_left_to_the_shell() {
    let home = Home::new();
    let (daemon, mut seat) = sit_down(&home, "exec cat");
    daemon.killed();
    seat.until_status("the daemon is gone; looking for it");
    seat.types("rm -r .\r");
    until("the line to be there", || seat.has_unread());
    assert_eq!(seat.until_left().code(), Some(UNREACHABLE));
    assert!(!seat.has_unread());
}

#[test]
fn who_does_not_want_to_wait_for_a_daemon_need_not() {
    let home = Home::new();
    let (daemon, mut seat) = sit_down(&home, "exec cat");
    daemon.killed();
    seat.until_text("C-c to stop]");
    seat.types("\x03");
    assert_eq!(seat.until_left().code(), Some(UNREACHABLE));
    // Who waits to the end is told where the daemon was looked for.
    seat.until_text("termgate: the daemon has gone (daemon_unreachable)");
}

#[test]
fn a_person_can_leave_a_daemon_that_answers_nothing() {
    let home = Home::new();
    let daemon = home.daemon();
    start(&home, "printf hello; exec cat");
    let mut seat = Seat::attach(&home, "build");
    seat.until_status("build | free: type to take the keyboard");
    daemon.signal(Signal::SIGSTOP);
    until("the daemon to stand still", || is_stopped(daemon.pid()));
    // As many requests as may wait, and one key that is not read at first.
    for _ in 0..=16 {
        seat.types("x");
        until("the key to be read", || {
            !seat.has_unread() || seat.shown().contains("does not answer")
        });
    }
    seat.until_status("the daemon does not answer");
    seat.types("\x1cd");
    assert!(seat.until_left().success());
}

/// Types one key after the other, each once the one before was read or while the daemon is away, until
/// it is told to stop, and gives back all that was typed.
fn type_on(mut seat: Seat, away: &AtomicBool, stop: &AtomicBool) -> (Seat, String) {
    let mut typed = String::new();
    for number in 0_u32.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        for key in format!("{number} ").bytes() {
            seat.types([key]);
            until("a key to be read", || !seat.has_unread() || away.load(Ordering::SeqCst));
        }
        write!(typed, "{number} ").unwrap();
    }
    (seat, typed)
}

/// Waits until a file has become longer by so many bytes.
fn grows(path: &Path, bytes: u64) {
    let length = || fs::metadata(path).unwrap().len();
    let before = length();
    until("the program to read on", || length() >= before + bytes);
}

/// Lets a person type through one after the other of what `each` does to the daemon, and finds out
/// whether each key was typed once and in its place.
fn types_through(rounds: usize, each: impl Fn(&Home, Daemon) -> Daemon) {
    let home = Home::new();
    let first = home.daemon();
    let log = home.path("typed");
    start(&home, &format!("stty raw -echo; : > {0}; exec cat >> {0}", log.display()));
    let seat = Seat::attach(&home, "build");
    seat.until_status("build | free: type to take the keyboard");
    until("the program to be there", || log.exists());
    let (away, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    let (seat, typed, _daemon) = std::thread::scope(|scope| {
        let typing = scope.spawn(|| type_on(seat, &away, &stop));
        let mut daemon = first;
        for _ in 0..rounds {
            grows(&log, 40);
            away.store(true, Ordering::SeqCst);
            daemon = each(&home, daemon);
            away.store(false, Ordering::SeqCst);
        }
        grows(&log, 40);
        stop.store(true, Ordering::SeqCst);
        let (seat, typed) = typing.join().unwrap();
        (seat, typed, daemon)
    });
    let read = || fs::read_to_string(&log).unwrap();
    until("all keys to be read", || read().len() >= typed.len());
    let read = read();
    let same = read.bytes().zip(typed.bytes()).take_while(|(read, typed)| read == typed).count();
    let around =
        |text: &str| text.get(same.saturating_sub(20)..).map(|it| it.chars().take(60).collect());
    let told: [Option<String>; 2] = [around(&read), around(&typed)];
    assert!(read == typed, "read and typed are the same up to {same}: {told:?}");
    assert!(!seat.shown().contains("the daemon is gone;"), "{}", seat.shown());
}

#[test]
fn what_is_typed_while_the_daemon_is_killed_is_typed_once_and_in_its_order() {
    types_through(12, |home, daemon| {
        daemon.killed();
        home.daemon()
    });
}

#[test]
fn what_is_typed_while_the_daemon_is_upgraded_is_typed_once_and_in_its_order() {
    types_through(8, |home, daemon| {
        home.printed("upgrade");
        daemon
    });
}

/// Types more than the kernel keeps for a program that does not read yet, has the daemon replaced, types
/// on, and looks at what the program reads at last.
fn type_at_who_does_not_read(replace: impl Fn(&Home, Daemon) -> Daemon) {
    let home = Home::new();
    let (go, read) = (home.path("go"), home.path("read"));
    let typed: String = (0..4_000).map(|number| format!("{number:05}")).collect();
    let line = format!(
        "stty raw -echo; until test -e {}; do sleep 0.1; done; head -c {} >{}; echo read; exec cat",
        go.display(),
        typed.len(),
        read.display(),
    );
    let (daemon, mut seat) = sit_down(&home, &line);
    let (first, rest) = typed.split_at(15_000);
    let (second, third) = rest.split_at(10);
    seat.types(first);
    seat.types(second);
    until("all to be read", || !seat.has_unread());
    seat.until_status("you have the keyboard");
    // A write is answered after a second, whatever the kernel took of it.
    home.printed("wait build --idle 2s");
    let _daemon = replace(&home, daemon);
    seat.types(third);
    until("all to be read", || !seat.has_unread());
    std::fs::write(go, "").unwrap();
    seat.until_text("read");
    assert_eq!(std::fs::read_to_string(read).unwrap(), typed);
    let statuses = seat.shown.0.lock().unwrap().statuses.join("\n");
    assert!(!statuses.contains("did not reach"), "{statuses}");
}

#[test]
fn what_the_program_had_not_taken_when_the_daemon_was_killed_is_typed_by_the_next() {
    type_at_who_does_not_read(|home, daemon| {
        daemon.killed();
        home.daemon()
    });
}

#[test]
fn what_the_program_had_not_taken_when_the_daemon_was_upgraded_is_typed_by_the_next() {
    type_at_who_does_not_read(|home, daemon| {
        home.printed("upgrade");
        daemon
    });
}

#[test]
fn who_has_taken_over_has_the_keyboard_under_the_next_daemon_too() {
    let home = Home::new();
    let (daemon, mut seat) = sit_down(&home, "exec cat");
    seat.types("\x1ct");
    seat.until_status("you took over");
    let before = told(&home)["lease"]["epoch"].clone();
    daemon.killed();
    let _daemon = home.daemon();
    until("the keyboard to be taken over again", || {
        let lease = &told(&home)["lease"];
        lease["kind"] == "human" && lease["epoch"] != before
    });
    seat.types("\x1ch");
    until_holder(&home, "");
}

#[test]
fn who_looks_at_history_goes_on_looking_under_the_next_daemon() {
    let home = Home::new();
    let daemon = home.daemon();
    start(&home, "seq 1 100; stty -echo; exec cat");
    let mut seat = Seat::attach(&home, "build");
    seat.until_text("100");
    seat.types("\x1c[");
    seat.until_status("history");
    seat.until_text("\n60");
    daemon.killed();
    let _daemon = home.daemon();
    seat.until_status("the keyboard is free");
    seat.types("g");
    seat.until("the oldest rows", |shown| shown.text().starts_with("1\n2\n"));
    seat.types("q");
    seat.until("the screen", |shown| {
        shown.text().contains("100") && !shown.status().contains("history")
    });
}
