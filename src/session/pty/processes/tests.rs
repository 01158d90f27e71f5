//! How `/proc` is read, and that a number alone names nobody.

use super::*;

fn this_process() -> Process {
    let pid = ProcessId(i32::try_from(std::process::id()).unwrap());
    Process::find(pid).unwrap()
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
