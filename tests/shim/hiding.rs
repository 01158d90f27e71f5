//! Programs that look at a process of ours before it holds anything.

use std::fs;
use std::io::pipe;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, write};
use termgate::shim::{WORD, socket};

use crate::harness::processes::PROGRAM;
use crate::harness::waiting::until;

/// Nobody's number, as root may look at everybody.
const NOBODY: u32 = 65_534;

/// The end of a pipe in which there is no room.
fn full() -> (impl Sized, Stdio) {
    let (reading, writing) = pipe().unwrap();
    let flags = |flags| fcntl(&writing, FcntlArg::F_SETFL(flags)).unwrap();
    flags(OFlag::O_NONBLOCK);
    while write(&writing, &[0; 4_096]).is_ok() {}
    flags(OFlag::empty());
    (reading, writing.into())
}

#[tokio::test]
async fn every_process_of_the_program_is_hidden_before_it_does_anything() {
    let ground = tempfile::tempdir().unwrap();
    let own = ground.path().metadata().unwrap().uid();
    let copy = ground.path().join("termgate");
    fs::copy(PROGRAM, &copy).unwrap();
    fs::set_permissions(ground.path(), PermissionsExt::from_mode(0o755)).unwrap();
    // Each stops where it writes, which a shim does before it makes the copy that holds.
    for word in [WORD, "--version"] {
        let ((_stdout, stdout), (_stderr, stderr)) = (full(), full());
        let mut command = Command::new(&copy);
        command.arg(word).stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        if own == 0 {
            command.uid(NOBODY);
        }
        let mut child = command.spawn().unwrap();
        let memory = format!("/proc/{}/mem", child.id());
        until(word, || fs::metadata(&memory).unwrap().uid() == 0).await;
        assert_eq!(child.try_wait().unwrap(), None, "{word}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
#[allow(unsafe_code)]
fn a_process_that_is_traced_becomes_no_shim() {
    let ground = tempfile::tempdir().unwrap();
    let (_ours, theirs) = socket::pair().unwrap();
    let mut command = Command::new(PROGRAM);
    command.arg(WORD).arg(ground.path().join("0123456789ab.sock"));
    command.stdin(Stdio::from(theirs));
    // SAFETY: it makes one system call.
    unsafe {
        command.pre_exec(|| {
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            Ok(())
        });
    }
    let pid = Pid::from_raw(command.spawn().unwrap().id().cast_signed());
    assert!(matches!(waitpid(pid, None), Ok(WaitStatus::Stopped(..))), "where it begins");
    // SAFETY: it goes on, and no memory of ours is named.
    unsafe {
        libc::ptrace(libc::PTRACE_CONT, pid.as_raw(), 0, 0);
    }
    assert_eq!(waitpid(pid, None), Ok(WaitStatus::Exited(pid, 1)));
}
