//! How `/proc` is read, and that a number alone names nobody.

use super::*;

fn this_process() -> Process {
    let pid = ProcessId(i32::try_from(std::process::id()).unwrap());
    Process::find(pid).unwrap()
}

/// A `stat` line with the given name and state, and telling numbers in the fields that are read.
fn stat(name: &str, state: &str) -> String {
    let between = ["0"; 13].join(" ");
    format!("42 ({name}) {state} 7 40 30 1025 41 {between} 999 0 0")
}

#[test]
fn a_stat_line_is_read_by_its_fields() {
    let expected = Process {
        pid: ProcessId(42),
        parent: ProcessId(7),
        group: ProcessId(40),
        session: ProcessId(30),
        foreground: Some(ProcessId(41)),
        ended: false,
        started: 999,
    };
    assert_eq!(Process::parse(&stat("bash", "S")), Some(expected));
}

#[test]
fn a_process_without_a_terminal_has_no_foreground() {
    let stat = stat("sh", "S").replace(" 1025 41 ", " 0 -1 ");
    assert_eq!(Process::parse(&stat).unwrap().foreground, None);
}

#[test]
fn a_program_cannot_pretend_by_its_name() {
    let process = Process::parse(&stat("x) Z 1 1 1", "R")).unwrap();
    assert_eq!((process.parent, process.ended), (ProcessId(7), false));
}

#[test]
fn a_zombie_has_ended() {
    assert!(Process::parse(&stat("sh", "Z")).unwrap().ended);
}

#[test]
fn a_broken_stat_line_is_no_process() {
    for broken in ["", "42", "42 (sh", "42 (sh) S 1 2", "x (sh) S 1 2 3"] {
        assert_eq!(Process::parse(broken), None, "{broken}");
    }
}

#[test]
fn the_table_holds_this_process() {
    assert!(table().unwrap().contains(&this_process()));
}

#[test]
fn a_process_with_the_number_of_another_is_not_opened() {
    let this = this_process();
    let earlier = Process { started: this.started - 1, ..this };
    assert_eq!(earlier.open().unwrap_err().kind(), io::ErrorKind::NotFound);
    assert!(this.open().is_ok());
}

#[test]
fn the_memory_of_a_process_is_read_from_its_own_line() {
    assert_eq!(resident("VmHWM:\t  20 kB\nVmRSS:\t  12 kB\nThreads:\t1\n"), Some(12 * 1024));
    assert_eq!(resident("VmRSS:\t  12 MB\n"), None);
    assert!(own_memory().is_some_and(|bytes| bytes > 100_000));
}
