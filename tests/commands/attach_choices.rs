//! What a person chooses at `termgate attach`: the session, and the key before termgate's own keys.

use crate::commands::seat::{Seat, start, told};
use crate::commands::terminal::Terminal;
use crate::harness::home::Home;

const USAGE: i32 = 2;

/// Two sessions, of which the second was created last.
fn start_two(home: &Home) {
    start(home, "printf first; exec cat");
    home.printed("new --name second -- sh -c printf${IFS}other;exec${IFS}cat");
}

#[test]
fn who_names_no_session_of_several_chooses_one() {
    let home = Home::new();
    let _daemon = home.daemon();
    start_two(&home);
    for (keys, text) in [
        ("\r", "first"),
        ("\x1b[B\r", "other"),
        ("2\r", "other"),
        ("sec\r", "other"),
        ("21\r\x7f\x7fbuild\r", "first"),
    ] {
        let mut seat = Seat::attach(&home, "");
        seat.until_status("choose with arrows, a number or a name | Enter attaches | q leaves");
        seat.until_text("1  build");
        seat.types(keys);
        seat.until_status("free: type to take the keyboard");
        seat.until_text(text);
        seat.types("\x1cd");
        assert!(seat.until_left().success());
    }
    for key in ["q", "\x1b", "\x03"] {
        let mut seat = Seat::attach(&home, "");
        seat.until_status("q leaves");
        seat.types(key);
        assert!(seat.until_left().success());
    }
    assert_eq!(told(&home)["lease"]["held"], false);
}

#[test]
fn who_has_one_session_or_asks_for_json_chooses_nothing() {
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "printf first; exec cat");
    let mut seat = Seat::attach(&home, "");
    seat.until_status("build | free");
    seat.types("\x1cd");
    assert!(seat.until_left().success());
    home.printed("new --name second -- sh -c printf${IFS}other;exec${IFS}cat");
    let mut seat = Seat::attach(&home, "--json");
    seat.until_status("second | free");
    seat.types("\x1cd");
    assert!(seat.until_left().success());
    home.printed("kill second");
    let seat = Seat::attach(&home, "");
    seat.until_status("build | free");
}

/// The prefix is C-a: it is shown, begins chords, and is typed when it comes twice.
fn has_prefix(home: &Home, mut seat: Seat) {
    seat.until_status("free: type to take the keyboard | C-a ? help");
    seat.types("\x01?");
    seat.until_text("C-a d detach");
    seat.types("q\x01\x01\x1cd");
    seat.until_text("ready^A^\\d");
    seat.types("\x01d");
    assert!(seat.until_left().success());
    assert_eq!(told(home)["lease"]["held"], false);
}

#[test]
fn the_prefix_is_a_flag_and_a_key_of_the_configuration() {
    let home = Home::new();
    let _daemon = home.daemon();
    let line = "stty raw -echo; printf '\\033[2J\\033[Hready'; exec cat -v";
    start(&home, line);
    has_prefix(&home, Seat::attach(&home, "build --prefix C-a"));
    home.printed("kill build");
    home.printed("kill build");
    start(&home, line);
    home.configure("attach.prefix = 'C-a'\n");
    assert!(home.printed("config show").contains("prefix = 'C-a'"));
    has_prefix(&home, Seat::attach(&home, "build"));
    let mut seat = Seat::attach(&home, "build --prefix C-i");
    assert_eq!(seat.until_left().code(), Some(USAGE));
    seat.until_text("expected C-a to C-z");
    home.configure("attach.prefix = 'C-1'\n");
    let mut seat = Seat::attach(&home, "build");
    assert!(!seat.until_left().success());
    seat.until_text("the configuration has 1 problem");
}

#[test]
fn a_program_writes_to_the_clipboard_only_where_the_person_permits_it() {
    let home = Home::new();
    let _daemon = home.daemon();
    let line = "stty raw -echo; while read -r key; do printf '\\033]52;c;aGk=\\007%s.' $key; done";
    for (permits, count) in [(false, 0), (true, 1)] {
        start(&home, line);
        let mut attach = home.termgate("attach build");
        attach.env("TERMGATE_ATTACH__CLIPBOARD", permits.to_string());
        let mut terminal = Terminal::of(attach);
        let mut shown = terminal.wait_for("free: type to take the keyboard");
        terminal.type_in("1\n");
        shown += &terminal.wait_for("1.");
        terminal.type_in("\x1cd");
        shown += &terminal.wait_for_end().0;
        assert_eq!(shown.matches("\x1b]52;c;aGk=\x1b\\").count(), count, "{shown:?}");
        home.printed("kill build");
        home.printed("kill build");
    }
}

#[test]
fn a_link_of_a_program_is_a_link_on_the_persons_terminal() {
    let home = Home::new();
    let _daemon = home.daemon();
    let target = "https://example.org/a";
    start(
        &home,
        &format!("printf 'see \\033]8;;{target}\\033\\\\here\\033]8;;\\007 now'; exec cat"),
    );
    let mut terminal = Terminal::of(home.termgate("attach build"));
    let shown = terminal.wait_for(" now");
    let link = format!("see \x1b]8;;{target}\x1b\\here\x1b]8;;\x1b\\ now");
    assert!(shown.contains(&link), "{shown:?}");
    let read = home.printed("read build --format ansi");
    assert!(read.contains(&link), "{read:?}");
    let read = home.printed("read build --format styled");
    let line: serde_json::Value = serde_json::from_str(read.lines().next().unwrap()).unwrap();
    assert_eq!(line["links"][0], serde_json::json!({"col": 4, "len": 4, "target": target}));
}

#[test]
fn the_terminal_notifies_of_chosen_events_in_every_session_where_the_person_asks_for_it() {
    let home = Home::new();
    let _daemon = home.daemon();
    start(&home, "printf ready; exec cat");
    home.configure("[notify]\nevents = ['notification']\nterminal = true\n");
    let mut terminal = Terminal::of(home.termgate("attach build"));
    let mut shown = terminal.wait_for("free: type to take the keyboard");
    // Events are heard of on a connection of their own, which may not be there yet.
    let bells = "while sleep 0.1; do printf '\\007\\033]9;all\\003; done\\007'; done";
    let new = home.termgate("new --name other").args(["--", "sh", "-c", bells]).output().unwrap();
    assert!(new.status.success(), "{new:?}");
    shown += &terminal.wait_for("\x1b]9;termgate other: all; done\x1b\\");
    assert!(!shown.contains("bell"), "{shown:?}");
}
