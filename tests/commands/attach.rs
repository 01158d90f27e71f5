//! `termgate attach` as a person meets it: the real program on a real terminal.

use std::process::Command;

use nix::sys::signal::{Signal, kill};
use termgate::core::frame::line::Attributes;
use termgate::core::frame::{ScreenMode, Size};
use termgate::core::keys::modes::MouseReporting;

use crate::commands::blocking::until;
use crate::commands::seat::{
    Seat, Shown, size, start, take_lease, told, until_holder, until_screen,
};
use crate::commands::terminal::Terminal;
use crate::harness::home::Home;

const NOT_FOUND: i32 = 3;
const UNREACHABLE: i32 = 7;

#[test]
fn a_person_sees_the_session_types_and_leaves_the_terminal_as_it_was() {
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "printf '\\033[?1h\\033[?2004hhello '; exec cat");
    take_lease(&home, "testing");
    let mut seat = Seat::attach(&home, "build");
    seat.until_text("hello");
    seat.until_status("operator termgate#p");
    seat.until("the modes that the program asked for", |shown| {
        let modes = shown.screen.modes();
        modes.application_cursor && modes.bracketed_paste
    });
    seat.types("world");
    seat.until_text("hello world");
    seat.until_status("you have the keyboard");
    seat.until_status("waits for C-\\ h");
    // One row of the terminal is the status line's.
    assert_eq!(size(&home), (80, 23));
    seat.types("\x1cd");
    assert!(seat.until_left().success());
    seat.until_text("[detached from build]");
    until_holder(&home, "operator");
}

#[test]
fn the_status_line_never_tells_what_is_not_so() {
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "printf '\\033[?1000h\\033[?1006hhello'; exec cat");
    for _ in 0..5 {
        let mut seat = Seat::attach(&home, "build");
        seat.until("the pointer to be reported", |shown| {
            shown.screen.modes().mouse == MouseReporting::Clicks
        });
        seat.until_status("build | free: type to take the keyboard");
        seat.types("\x1b[<0;1;1M");
        seat.until_status("build | you have the keyboard");
        let known = ["free: type to take the keyboard", "you have the keyboard while you type"]
            .map(|who| format!("build | {who} | C-\\ ? help"));
        let (shown, _) = &*seat.shown;
        for status in &shown.lock().unwrap().statuses {
            // A row may be seen while it is painted.
            assert!(known.iter().any(|known| known.starts_with(status)), "{status:?}");
        }
        drop(seat);
        until_holder(&home, "");
    }
}

#[test]
fn people_go_by_their_login_names_with_a_number_where_there_are_several() {
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "exec cat");
    let login = Command::new("id").arg("-un").output().unwrap().stdout;
    let login = String::from_utf8(login).unwrap().trim().to_owned();
    let mut first = Seat::attach(&home, "build");
    first.until_status("free: type to take the keyboard");
    let mut second = Seat::attach(&home, "build");
    second.until_status("free: type to take the keyboard");
    first.types("\x1ct");
    first.until_status("build | you took over");
    second.until_status(&format!("build | {login} has the keyboard"));
    second.types("\x1ct");
    second.until_status("build | you took over");
    first.until_status(&format!("build | {login} (2) has the keyboard"));
}

#[test]
fn a_person_takes_over_and_hands_back() {
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "exec cat");
    take_lease(&home, "running the tests");
    let mut seat = Seat::attach(&home, "build");
    seat.until_status("has the keyboard: running the tests");
    seat.types("\x1ct");
    seat.until_status("you took over");
    until_holder(&home, "human");
    seat.types("\x1ch");
    seat.until_status("has the keyboard: running the tests");
    until_holder(&home, "operator");
    seat.types("\x1ch");
    seat.until_status("you do not have the keyboard");
    seat.types("\x1ct");
    seat.until_status("build | you took over");
    seat.types("\x1ch");
    seat.until_status("has the keyboard: running the tests");
    seat.types("\x1cx");
    seat.until_status("unknown key");
}

#[test]
fn what_a_person_did_at_a_session_is_in_the_daemons_log() {
    let home = Home::new();
    let daemon = home.daemon();
    let logged = || daemon.said();
    start(&home, "exec cat");
    let session = told(&home)["id"].as_str().unwrap().to_owned();
    let mut seat = Seat::attach(&home, "build");
    seat.until_status("free: type to take the keyboard");
    for (typed, status) in
        [("\x1ct", "you took over"), ("\x1ch", "free: type to take the keyboard")]
    {
        seat.types(typed);
        seat.until_status(status);
    }
    seat.types("\x1cd");
    assert!(seat.until_left().success());
    until("all that the person did", || logged().contains(": detached"));
    for did in ["attached", "took over", "handed back", "detached"] {
        let told = |line: &&str| line.contains(&format!(": {did} session={session} by="));
        assert_eq!(logged().lines().filter(told).count(), 1, "{did}\n{}", logged());
    }
}

#[test]
fn the_list_of_keys_covers_nothing_of_the_status_and_goes_with_the_next_key() {
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "for n in $(seq 50); do echo line-$n-; done; exec cat");
    let mut seat = Seat::attach(&home, "build");
    seat.until_text("line-50-");
    seat.resize(Size { rows: 16, cols: 60 });
    seat.types("\x1c?");
    seat.until("all keys below each other", |shown| {
        shown.text().contains("C-\\ C-\\ type C-\\\nbuild | free: type to take the keyboard")
    });
    let is_closed = |shown: &Shown| !shown.text().contains("d detach");
    seat.types("q");
    seat.until("the list to close", is_closed);
    seat.types("\x1c?");
    seat.until_text("d detach");
    seat.types("\x1c[");
    seat.until("history without the list", |shown| {
        shown.status().contains("q leaves") && is_closed(shown)
    });
    seat.types("q");
    seat.until("the program's screen", |shown| !shown.status().contains("history"));
    assert_eq!(told(&home)["lease"]["held"], false, "nothing of this was typed");
}

#[test]
fn the_session_follows_the_window_while_the_person_has_the_keyboard() {
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "exec cat");
    let mut seat = Seat::attach(&home, "build");
    seat.until_status("free: type to take the keyboard");
    seat.types("\x1ct");
    seat.until_status("you took over");
    seat.resize(Size { rows: 20, cols: 60 });
    until("the session to follow", || size(&home) == (60, 19));
    seat.types("\x1ch");
    seat.until_status("free: type to take the keyboard");
    seat.resize(Size { rows: 10, cols: 30 });
    seat.types("\x1c?");
    seat.until_text("d detach");
    assert_eq!(size(&home), (60, 19));
}

#[test]
fn a_window_that_is_dragged_ends_at_its_last_size() {
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "exec cat");
    let mut seat = Seat::attach(&home, "build");
    seat.until_status("free: type to take the keyboard");
    seat.types("\x1ct");
    seat.until_status("you took over");
    for cols in (40..=100).rev() {
        seat.resize(Size { rows: 20, cols });
    }
    while size(&home) != (40, 19) {}
}

#[test]
fn history_can_be_looked_at_while_the_session_goes_on() {
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "for n in $(seq 300); do echo line-$n-; done; exec cat");
    let mut seat = Seat::attach(&home, "build");
    seat.until_text("line-300-");
    seat.types("\x1c[");
    seat.until_status("q leaves");
    seat.types("g");
    seat.until_text("line-1-\nline-2-");
    seat.types("\x1b[6~");
    seat.until_text("line-23-\nline-24-");
    seat.types("G/LINE-77\x7f\x7f\x7f\x7f\x7f\x7f\x7fline-7");
    seat.until_status("/line-7_");
    seat.types("7-\r");
    seat.until("the row to stand out", |shown| {
        let row = shown.frame.lines.iter().find(|row| &*row.value.text == "line-77-");
        row.is_some_and(|row| row.value.style_at(0).attributes == Attributes::INVERSE)
    });
    seat.types("n");
    seat.until_status("not found above: line-77-");
    seat.types("N");
    seat.until_status("not found below: line-77-");
    // What was not found is told until the next key.
    seat.types("k");
    seat.until("the notice to go", |shown| !shown.status().contains("not found"));
    seat.types("n");
    seat.until_status("not found above: line-77-");
    // Nothing of this is the program's.
    assert_eq!(told(&home)["lease"]["held"], false);
    seat.types("q");
    seat.until_text("line-300-");
    seat.until_status("build | free: type to take the keyboard");
}

#[test]
fn escape_alone_leaves_history_and_closes_the_list_of_keys_at_once() {
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "printf hello; exec cat");
    let mut seat = Seat::attach(&home, "build");
    seat.until_text("hello");
    seat.types("\x1c[");
    seat.until_status("q leaves");
    seat.types("\x1b");
    seat.until("the program's screen", |shown| !shown.status().contains("history"));
    seat.types("\x1c?");
    seat.until_text("d detach");
    seat.types("\x1b");
    seat.until("the list to close", |shown| !shown.text().contains("d detach"));
    assert_eq!(told(&home)["lease"]["held"], false, "nothing of this was typed");
}

/// What a person may be in the middle of, and whether it has the keyboard then.
const DOINGS: [(&[u8], bool); 7] = [
    (b"\x1b[200~half a paste", true),
    (b"a key", true),
    (b"\x1ct", true),
    (b"\x1ct\x1ch", false),
    (b"\x1c", false),
    (b"\x1c[", false),
    (b"\x1c?\x1b[", false),
];

#[test]
fn a_person_killed_at_any_moment_holds_nothing_up() {
    const MOMENTS: u64 = 25;
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "printf '\\033[?2004h'; exec cat");
    take_lease(&home, "testing");
    for moment in 0..MOMENTS {
        // Any sequence that visits many combinations will do.
        let luck = moment.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let (doing, has_keyboard) = DOINGS[moment as usize % DOINGS.len()];
        let mut seat = Seat::attach(&home, "build");
        // Every fifth is killed while it connects.
        if moment % 5 != 0 {
            seat.until_status("has the keyboard: testing");
            seat.types(doing);
        }
        if moment % 5 > 2 && has_keyboard {
            until_holder(&home, "human");
        }
        for _ in 0..luck % 400 {
            std::thread::yield_now();
        }
        kill(seat.pid(), Signal::SIGKILL).unwrap();
        seat.child.wait().unwrap();
        until_holder(&home, "operator");
    }
}

#[test]
fn a_terminated_program_leaves_the_terminal_as_it_was() {
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT] {
        let home = Home::new();
        let _daemon = home.daemon();
        start(&home, "printf '\\033[?1000hhello'; exec cat");
        let mut seat = Seat::attach(&home, "build");
        seat.until_text("hello");
        kill(seat.pid(), signal).unwrap();
        assert!(seat.until_left().success(), "{signal}");
    }
}

#[test]
fn a_stopped_program_gives_the_terminal_back_and_takes_it_again() {
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "printf hello; exec cat");
    let mut seat = Seat::attach(&home, "build");
    seat.until_text("hello");
    kill(seat.pid(), Signal::SIGTSTP).unwrap();
    until("the program to stop", || seat.is_stopped());
    assert!(seat.is_as_before());
    seat.until("the screen before", |shown| shown.frame.mode.value == ScreenMode::Normal);
    kill(seat.pid(), Signal::SIGCONT).unwrap();
    seat.until_text("hello");
    seat.types("\x1cd");
    assert!(seat.until_left().success());
}

#[test]
fn the_end_of_the_program_and_of_the_daemon_are_told() {
    let home = Home::new();
    let daemon = home.daemon();
    start(&home, "exec cat");
    let mut seat = Seat::attach(&home, "build");
    seat.until_status("free: type to take the keyboard");
    seat.types("\x04");
    assert!(seat.until_left().success());
    seat.until_text("[build exited with code 0]");

    home.printed("kill build");
    start(&home, "exec cat");
    let mut seat = Seat::attach(&home, "build");
    seat.until_status("free: type to take the keyboard");
    daemon.killed();
    assert_eq!(seat.until_left().code(), Some(UNREACHABLE));
}

#[test]
fn moving_the_pointer_takes_the_keyboard_from_nobody_and_a_click_does() {
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "printf '\\033[?1003h\\033[?1006hhello'; exec cat");
    take_lease(&home, "testing");
    let mut seat = Seat::attach(&home, "build");
    seat.until("the pointer to be reported", |shown| {
        shown.screen.modes().mouse == MouseReporting::Motion
    });
    seat.until_status("has the keyboard: testing");
    seat.types("\x1b[<35;5;5M\x1c?");
    seat.until_text("d detach");
    assert_eq!(told(&home)["lease"]["kind"], "operator");
    seat.types("q\x1b[<0;5;5M");
    until_holder(&home, "human");
}

#[test]
fn the_focus_of_the_window_takes_the_keyboard_from_nobody_and_is_told_to_who_has_it() {
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "stty raw -echo; printf '\\033[?1004hready'; exec cat -v");
    take_lease(&home, "testing");
    let mut seat = Seat::attach(&home, "build");
    seat.until_text("ready");
    seat.until_status("has the keyboard: testing");
    seat.types("\x1b[O\x1b[I\x1c?");
    seat.until_text("d detach");
    assert_eq!(told(&home)["lease"]["kind"], "operator");
    seat.types("qx");
    seat.until_status("you have the keyboard");
    seat.until_text("readyx");
    seat.types("\x1b[O");
    seat.until_text("readyx^[[O");
}

#[test]
fn a_click_means_the_cell_that_the_person_sees_and_the_bar_is_not_the_programs() {
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "stty raw -echo; printf '\\033[?1000h\\033[?1006h\\033[28;90Hx'; exec cat -v");
    let mut seat = Seat::attach(&home, "build");
    seat.resize(Size { rows: 12, cols: 40 });
    seat.until("the pointer to be reported in the smaller window", |shown| {
        shown.screen.modes().mouse == MouseReporting::Clicks
            && shown.frame.lines.len() == 12
            && shown.frame.lines[10].value.text.ends_with('x')
            && shown.status().contains("free: type to take it")
    });
    // The cursor is behind column 90 of row 28, and the lower right corner of the window shows it.
    seat.types("\x1b[<0;9;12M\x1b[<0;9;12m\x1b[<0;5;5M\x1b[<0;5;5m");
    until_holder(&home, "human");
    until_screen(&home, "^[[<0;56;22M^[[<0;56;22m");
    assert_eq!(size(&home), (120, 40), "what is pointed at stays where it is");
    seat.types("y");
    until("the session to take the size", || size(&home) == (40, 11));
    assert!(!home.printed("read build").contains("12M"));
}

#[test]
fn the_wheel_looks_back_in_history_and_types_nothing() {
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "seq -f 'line-%.0f-' 100; stty raw -echo; exec cat -v");
    take_lease(&home, "testing");
    let mut seat = Seat::attach(&home, "build");
    seat.until_text("line-100-");
    seat.until("the wheel to be reported", |shown| {
        shown.screen.modes().mouse == MouseReporting::Clicks
    });
    seat.until_status("has the keyboard");
    seat.types("\x1b[<0;5;5M\x1b[<0;5;5m\x1b[<65;5;5M\x1b[<64;5;5M");
    // A row of the status and an empty one stand below the last line.
    seat.until("three rows above the screen", |shown| shown.text().starts_with("line-76-"));
    seat.types("\x1b[<64;5;5M");
    seat.until("six rows above it", |shown| shown.text().starts_with("line-73-"));
    seat.types("\x1b[<65;5;5M\x1b[<65;5;5M");
    seat.until("the end of history", |shown| shown.text().starts_with("line-79-"));
    seat.types("\x1b[<65;5;5M");
    seat.until("the screen", |shown| !shown.status().contains("history"));
    assert_eq!(told(&home)["lease"]["kind"], "operator", "nothing of this was typed");
    assert!(!home.printed("read build").contains('^'));
}

#[test]
fn the_wheel_is_the_programs_only_where_it_reads_the_mouse_and_the_person_types() {
    let home = Home::new();
    let _daemon = home.daemon();
    let line = "seq -f 'line-%.0f-' 50; stty raw -echo; printf '\\033[?1049h\\033[?1000h\\033[?1006hready'";
    start(&home, &format!("{line}; exec cat -v"));
    let mut seat = Seat::attach(&home, "build");
    seat.until_text("ready");
    seat.until_status("free: type to take the keyboard");
    seat.types("\x1b[<64;5;5M");
    seat.until_status("q leaves");
    seat.until_text("line-11-");
    assert_eq!(told(&home)["lease"]["held"], false, "looking back takes no keyboard");
    seat.types("q");
    seat.until_status("free: type to take the keyboard");
    seat.types("x");
    seat.until_text("readyx");
    seat.types("\x1b[<64;5;5M");
    seat.until_text("readyx^[[<64;5;5M");
}

#[test]
fn who_is_in_a_paste_without_end_can_leave_once_it_is_quiet() {
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "stty raw -echo; printf '\\033[?2004hready'; exec cat -v");
    let mut seat = Seat::attach(&home, "build");
    seat.until_text("ready");
    seat.types("\x1b[200~half\x1cd");
    until_screen(&home, "^[[200~half^\\d^[[201~");
    seat.types("\x1cd");
    assert!(seat.until_left().success());
}

#[test]
fn who_may_type_again_is_no_longer_told_otherwise() {
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "printf hello; exec cat");
    home.printed("allow-write off");
    let mut seat = Seat::attach(&home, "build");
    seat.until_status("read-only until `termgate allow-write on`");
    seat.types("x");
    seat.until_status("this daemon is read-only");
    let is_told = |shown: &Shown| shown.status().contains("read-only");
    // Nobody has to try first.
    home.printed("allow-write on");
    seat.until("the status to follow", |shown| !is_told(shown));
    seat.types("x");
    seat.until_text("hellox");
    home.printed("allow-write off");
    seat.until_status("read-only until `termgate allow-write on`");
}

#[test]
fn who_looks_at_a_protected_session_is_told_the_command_that_lifts_it_and_when_it_is_lifted() {
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "printf hello; exec cat");
    let mut seat = Seat::attach(&home, "build");
    seat.until_status("free: type to take the keyboard");
    for _ in 0..2 {
        home.printed("allow-write off --session build");
        seat.until_status("read-only until `termgate allow-write on --session build`");
        home.printed("allow-write on --session build");
        seat.until_status("build | free: type to take the keyboard");
    }
    home.printed("allow-write off --session build");
    seat.until_status("--session build`");
    seat.types("x");
    seat.until_status("writing is switched off for this session");
    home.printed("allow-write on --session build");
    seat.until_status("build | free: type to take the keyboard");
}

#[test]
fn who_took_over_is_told_with_a_way_to_do_it_too_until_the_keyboard_goes_elsewhere() {
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "exec cat");
    let mut first = Seat::attach(&home, "build");
    first.until_status("free: type to take the keyboard");
    let mut second = Seat::attach(&home, "build");
    second.until_status("free: type to take the keyboard");
    for ends in ["the first hands back", "the second takes over"] {
        first.types("\x1ct");
        first.until_status("you took over");
        second.types("x");
        second.until_status(" has taken over, C-\\ t takes");
        match ends {
            "the first hands back" => first.types("\x1ch"),
            _ => second.types("\x1ct"),
        }
        first.until("the keyboard to go", |shown| !shown.status().contains("you took"));
        second.until(ends, |shown| !shown.status().contains("has taken over"));
    }
    second.until_status("you took over");
}

#[test]
fn who_may_not_type_is_told_so() {
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "printf hello; exec cat");
    let mut seat = Seat::attach(&home, "build --view-only");
    seat.until_status("watching only");
    seat.types("x");
    seat.until_status("you are attached to watch only");
    drop(seat);
    home.printed("allow-write off");
    let mut seat = Seat::attach(&home, "build");
    seat.until_text("hello");
    seat.until_status("read-only");
    seat.types("x");
    seat.until_status("this daemon is read-only");
}

#[test]
fn without_a_terminal_or_a_session_it_says_what_to_do() {
    const USAGE: i32 = 2;
    let home = Home::new();
    let output = home.run("attach");
    assert_eq!(output.status.code(), Some(USAGE));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("standard input is not a terminal"), "{message}");
    assert!(!home.run("ls").status.success(), "a daemon was started for it");
    let _daemon = home.daemon();
    let mut seat = Seat::attach(&home, "nosuch");
    assert_eq!(seat.until_left().code(), Some(NOT_FOUND));
    seat.until_text("no session `nosuch`");
    let mut seat = Seat::attach(&home, "");
    assert_eq!(seat.until_left().code(), Some(NOT_FOUND));
    seat.until_text("no session is running");
}

#[test]
fn a_daemon_that_attach_started_has_no_session_and_writes_where_that_was_asked_for() {
    for (words, writes) in [("attach", false), ("attach --allow-write", true)] {
        let home = Home::new();
        let (shown, code) = Terminal::of(home.termgate(words)).wait_for_end();
        assert_eq!(code, Some(NOT_FOUND), "{shown}");
        assert!(shown.contains("no session is running"), "{shown}");
        assert!(shown.contains("`termgate new` creates one"), "{shown}");
        let switches = home.envelope("allow-write status");
        let on = switches["data"]["on"].as_array().unwrap();
        assert_eq!(!on.is_empty(), writes, "{switches}");
        home.printed("stop");
    }
}

#[test]
fn status_and_keys_are_whole_on_terminals_of_any_size() {
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "exec cat");
    take_lease(&home, "running the tests");
    let mut seat = Seat::attach(&home, "build");
    for (cols, rows, status) in [
        (20, 5, "operator | C-\\ ?"),
        (40, 10, "build | operator termgate#p"),
        (80, 24, " has the keyboard: running the tests | C-\\ ? help"),
        (200, 50, " has the keyboard: running the tests | C-\\ ? help"),
    ] {
        seat.resize(Size { rows, cols });
        seat.until(status, |shown| {
            let has_size = shown.frame.lines.len() == usize::from(rows);
            has_size && shown.status().contains(status)
        });
        let (mut told, mut page) = (String::new(), String::new());
        seat.types("\x1c?");
        let is_last = |text: &str| text.contains("C-\\ C-\\ type");
        while !is_last(&page) {
            seat.until("the next page", |shown| {
                let text = shown.text();
                // The names are shown until the second key is read.
                let names = text.contains("C-\\ then");
                text != page && !names && (is_last(&text) || text.contains("? more"))
            });
            page = seat.shown();
            told.push_str(&page);
            if !is_last(&page) {
                seat.types("?");
            }
        }
        seat.types("q");
        seat.until("the list to close", |shown| !shown.text().contains("C-\\ C-\\ type"));
        let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in ["d detach;", "keep the", "C-\\ C-\\ type C-\\"] {
            assert!(told.contains(part), "{cols}x{rows}: {told}");
        }
    }
    assert_eq!(told(&home)["lease"]["kind"], "operator", "nothing of this was typed");
}

#[test]
fn a_key_that_takes_the_keyboard_from_an_agent_is_told_at_once_and_so_is_taking_over() {
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "exec cat");
    take_lease(&home, "testing");
    let mut seat = Seat::attach(&home, "build");
    seat.until_status("has the keyboard: testing");
    let look = |shown: &Shown| shown.frame.lines.last().unwrap().value.style_at(0);
    let plain = look(&seat.shown.0.lock().unwrap());
    seat.types("x");
    seat.until("the key to be told", |shown| {
        let status = shown.status();
        status.contains("you have the keyboard")
            && status.contains("waits for C-\\ h")
            && look(shown) != plain
    });
    let typing = look(&seat.shown.0.lock().unwrap());
    seat.types("\x1ct");
    seat.until("taking over to look different", |shown| {
        let status = shown.status();
        status.contains("you took over")
            && status.contains("waits for C-\\ h")
            && ![plain, typing].contains(&look(shown))
    });
    seat.types("\x1ch");
    seat.until("the agent to have it again", |shown| {
        shown.status().contains("has the keyboard") && look(shown) == plain
    });
}
