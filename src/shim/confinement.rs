//! The seccomp filter of a shim: the only system calls that it may make once it runs.
//! A compromised shim cannot start a program, connect to a socket or write a file.
//! Other calls fail with EPERM but do not kill the shim, so a forgotten call does little harm.

use std::io;

use nix::errno::Errno;
use nix::libc::{self, sock_filter, sock_fprog};

/// The audit number of this architecture; `None` where the system calls are not known.
#[cfg(target_arch = "x86_64")]
const MACHINE: Option<u32> = Some(0xC000_003E);
#[cfg(target_arch = "aarch64")]
const MACHINE: Option<u32> = Some(0xC000_00B7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINE: Option<u32> = None;

/// The offsets in seccomp data: the call's number, the architecture, and the low half of an argument.
const NUMBER_AT: u32 = 0;
const MACHINE_AT: u32 = 4;
const fn argument_at(index: u32) -> u32 {
    16 + 8 * index
}

/// Calls that are allowed with any arguments.
const ALLOWED: &[libc::c_long] = &[
    // Waiting, the terminal, the daemon, new connections.
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_accept4,
    libc::SYS_shutdown,
    libc::SYS_getsockopt,
    // A new socket, if the old one was removed.
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_fchmod,
    libc::SYS_linkat,
    libc::SYS_geteuid,
    libc::SYS_close,
    libc::SYS_fcntl,
    libc::SYS_fallocate,
    // The memory for the input of the next daemon.
    libc::SYS_memfd_create,
    libc::SYS_ftruncate,
    libc::SYS_clock_gettime,
    // Children, and the search for them.
    libc::SYS_wait4,
    libc::SYS_kill,
    libc::SYS_getpid,
    libc::SYS_getdents64,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    libc::SYS_statx,
    libc::SYS_lseek,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    // Memory and exit.
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_futex,
    libc::SYS_gettid,
    libc::SYS_tgkill,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// The calls that open a file, each with the index of its flags. musl still uses the older one.
const OPENING: &[(libc::c_long, u32)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
    (libc::SYS_openat, 2),
];
/// The flags that are denied to them.
const WRITES: i32 = libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;
/// The only socket family that is allowed.
const LOCAL: u32 = libc::AF_UNIX.cast_unsigned();
/// The only `ioctl` requests that are allowed.
const TERMINAL: [libc::Ioctl; 2] = [libc::TIOCGWINSZ, libc::TIOCGPGRP];

/// Confines this thread and its descendants for good. Does nothing on an unknown architecture.
///
/// # Errors
/// Returns the kernel's error; nothing is confined then.
#[allow(unsafe_code)]
pub fn enter() -> io::Result<()> {
    let Some(machine) = MACHINE else { return Ok(()) };
    let mut filter = filter(machine);
    let length = u16::try_from(filter.len()).expect("the list is short");
    let program = sock_fprog { len: length, filter: filter.as_mut_ptr() };
    nix::sys::prctl::set_no_new_privs()?;
    // SAFETY: the program points at the filter, both outlive the call, and the kernel copies them.
    let entered =
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    Errno::result(entered)?;
    Ok(())
}

/// The filter. Its last two instructions deny and allow.
fn filter(machine: u32) -> Vec<sock_filter> {
    let ioctl = libc::SYS_ioctl as u32;
    let requests = TERMINAL.len();
    // 4 instructions before the list, 3 to open, 3 for `socket`, 2 and the requests for `ioctl`.
    let no = 4 + ALLOWED.len() + 3 * OPENING.len() + 3 + 2 + requests;
    let yes = no + 1;
    let mut filter = Vec::with_capacity(yes + 1);
    let load = |at| instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at, 0, 0);
    let answer = |with| instruction(libc::BPF_RET | libc::BPF_K, with, 0, 0);
    filter.push(load(MACHINE_AT));
    filter.push(is(machine, 1, 0));
    filter.push(answer(DENY));
    filter.push(load(NUMBER_AT));
    for call in ALLOWED {
        let over = yes - filter.len() - 1;
        filter.push(is(*call as u32, over, 0));
    }
    let any_of = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
    for (call, flags_at) in OPENING {
        filter.push(is(*call as u32, 0, 2));
        filter.push(load(argument_at(*flags_at)));
        let (if_writes, if_not) = (no - filter.len() - 1, yes - filter.len() - 1);
        filter.push(instruction(any_of, WRITES.cast_unsigned(), if_writes, if_not));
    }
    filter.push(is(libc::SYS_socket as u32, 0, 2));
    filter.push(load(argument_at(0)));
    let (if_local, if_not) = (yes - filter.len() - 1, no - filter.len() - 1);
    filter.push(is(LOCAL, if_local, if_not));
    filter.push(is(ioctl, 0, 1 + requests));
    filter.push(load(argument_at(1)));
    for request in TERMINAL {
        let over = yes - filter.len() - 1;
        filter.push(is(request as u32, over, 0));
    }
    debug_assert_eq!(filter.len(), no, "the jumps were counted from here");
    filter.push(answer(DENY));
    filter.push(answer(libc::SECCOMP_RET_ALLOW));
    filter
}

/// The call fails with EPERM.
const DENY: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();

/// Skips `then` instructions if the loaded number equals `number`, otherwise `otherwise` instructions.
fn is(number: u32, then: usize, otherwise: usize) -> sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, number, then, otherwise)
}

fn instruction(code: u32, k: u32, then: usize, otherwise: usize) -> sock_filter {
    let over = |count: usize| u8::try_from(count).expect("the list is short");
    sock_filter { code: code as u16, jt: over(then), jf: over(otherwise), k }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, OpenOptions};
    use std::net::UdpSocket;
    use std::os::unix::net::UnixStream;
    use std::process::Command;

    use super::*;

    /// Does something in a thread that is confined.
    fn confined<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
        let acting = std::thread::spawn(|| {
            enter().unwrap();
            act()
        });
        acting.join().unwrap()
    }

    fn is_denied<T>(done: io::Result<T>) -> bool {
        done.is_err_and(|error| error.raw_os_error() == Some(libc::EPERM))
    }

    #[test]
    fn no_program_is_started_and_no_socket_of_a_network_is_opened() {
        assert!(Command::new("true").status().is_ok());
        assert!(confined(|| is_denied(Command::new("true").status())));
        assert!(confined(|| is_denied(UdpSocket::bind("127.0.0.1:0"))));
        assert!(confined(|| is_denied(UnixStream::pair())));
    }

    #[test]
    fn its_own_socket_is_made_again_and_nobody_is_connected_with() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("0123456789ab.sock");
        let place = path.clone();
        let listener = confined(move || crate::shim::socket::listen_at(&place).unwrap());
        crate::shim::socket::connect_to(&path).unwrap();
        assert!(confined(move || is_denied(crate::shim::socket::connect_to(&path))));
        drop(listener);
    }

    #[test]
    fn memory_for_input_is_made() {
        confined(|| crate::shim::input::InputMap::create().map(drop).unwrap());
    }

    #[test]
    fn files_are_read_and_not_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "text").unwrap();
        let reading = path.clone();
        assert_eq!(confined(move || fs::read_to_string(reading).unwrap()), "text");
        let writing = path.clone();
        assert!(confined(move || is_denied(OpenOptions::new().append(true).open(writing))));
        let new = directory.path().join("new");
        assert!(confined(move || is_denied(File::create(new))));
    }

    #[test]
    fn of_a_terminal_only_the_size_is_read() {
        use nix::sys::termios::{SetArg, tcgetattr, tcsetattr};

        use crate::shim::terminal::{open_terminal, size};
        use crate::shim::wire::Window;

        let ends = open_terminal(Window { rows: 5, cols: 5 }).unwrap();
        let modes = tcgetattr(&ends.slave).unwrap();
        let (found, changed) = confined(move || {
            use std::os::fd::AsFd;

            let found = size(ends.master.as_fd()).unwrap();
            (found, tcsetattr(&ends.slave, SetArg::TCSANOW, &modes))
        });
        assert_eq!(found, Window { rows: 5, cols: 5 });
        assert_eq!(changed, Err(Errno::EPERM));
    }
}
