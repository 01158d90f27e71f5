//! A program and how it is started in a terminal, as the leader of a new session.
//!
//! It knows no screen and no lease. Between fork and exec the child may share a copy of a process
//! with many threads, so only calls that are safe in a signal handler are made there.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::errno::Errno;
use nix::libc;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow};

use crate::shim::mark;

/// How many signals the kernel has.
const SIGNALS: i32 = 64;

/// All that is needed to start a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// An absolute path.
    pub path: OsString,
    /// The name it is called by.
    pub name: OsString,
    /// What follows the name.
    pub args: Vec<OsString>,
    /// An absolute path.
    pub cwd: OsString,
    /// All there is of it: names and values.
    pub environment: Vec<(OsString, OsString)>,
}

impl Program {
    /// Starts it with the terminal as its standard streams and its controlling terminal, and says
    /// its number.
    ///
    /// `descriptors` is how many it may open at first, when that is not what this process may. Whatever
    /// comes of it is marked as of the session with the number `session`.
    ///
    /// # Errors
    /// What the kernel said; nothing is left behind then.
    pub fn start(
        &self,
        slave: &OwnedFd,
        descriptors: Option<u64>,
        session: u64,
    ) -> io::Result<u32> {
        let stream = || slave.try_clone().map(File::from);
        let mut command = Command::new(&self.path);
        command
            .arg0(&self.name)
            .args(&self.args)
            .current_dir(&self.cwd)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(stream()?)
            .stdout(stream()?)
            .stderr(stream()?);
        prepare_in_child(&mut command, descriptors, session);
        command.spawn().map(|child| child.id())
    }

    /// Writes it down for another process: the number of arguments, then path, name, directory,
    /// arguments, and names and values in turns, each with its length before it.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = (self.args.len() as u32).to_le_bytes().to_vec();
        let mut put = |text: &OsStr| {
            bytes.extend((text.len() as u32).to_le_bytes());
            bytes.extend(text.as_bytes());
        };
        [&self.path, &self.name, &self.cwd].into_iter().chain(&self.args).for_each(|one| put(one));
        for (name, value) in &self.environment {
            put(name);
            put(value);
        }
        bytes
    }

    /// Reads what [`Program::encode`] wrote; none for anything else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let args = take_number(&mut rest)?;
        let (path, name) = (take_text(&mut rest)?, take_text(&mut rest)?);
        let cwd = take_text(&mut rest)?;
        let args = (0..args).map(|_| take_text(&mut rest)).collect::<Option<_>>()?;
        let mut environment = Vec::new();
        while !rest.is_empty() {
            environment.push((take_text(&mut rest)?, take_text(&mut rest)?));
        }
        Some(Self { path, name, args, cwd, environment })
    }
}

fn take_number(rest: &mut &[u8]) -> Option<u32> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_le_bytes(*number))
}

fn take_text(rest: &mut &[u8]) -> Option<OsString> {
    let length = take_number(rest)? as usize;
    let (text, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(OsString::from_vec(text.to_vec()))
}

#[allow(unsafe_code)]
fn prepare_in_child(command: &mut Command, descriptors: Option<u64>, session: u64) {
    // SAFETY: `become_leader` makes system calls only; it neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(move || become_leader(descriptors, session));
    }
}

/// Runs in the child, after its streams were set and before the program takes over.
#[allow(unsafe_code)]
fn become_leader(descriptors: Option<u64>, session: u64) -> io::Result<()> {
    nix::unistd::setsid()?;
    mark::set(session)?;
    if let Some(soft) = descriptors {
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
        setrlimit(Resource::RLIMIT_NOFILE, soft.min(hard), hard)?;
    }
    let default = [0u64; 4];
    // SAFETY: the calls take numbers, null where it is allowed, and a kernel `sigaction` of zeros,
    // which means the default disposition and is no longer than `default`. Signals that have no
    // disposition to set refuse, which changes nothing.
    unsafe {
        Errno::result(libc::ioctl(libc::STDIN_FILENO, libc::TIOCSCTTY, 0))?;
        // What is ignored stays so over exec. By the kernel's own call, because the C library
        // refuses to touch two signals that it keeps for itself.
        for number in 1..=SIGNALS {
            let (new, old) = (default.as_ptr(), std::ptr::null_mut::<u64>());
            libc::syscall(libc::SYS_rt_sigaction, number, new, old, size_of::<u64>());
        }
        // Ours are close-on-exec already; this takes in what a library opened otherwise. A kernel
        // that does not know the call loses nothing else.
        let flags = libc::CLOSE_RANGE_CLOEXEC;
        libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, flags);
    }
    nix::sys::signal::sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text() -> impl Strategy<Value = OsString> {
        prop::collection::vec(1_u8.., 0..20).prop_map(OsString::from_vec)
    }

    proptest! {
        #[test]
        fn a_program_comes_back_as_it_was_written(
            (path, name, cwd) in (text(), text(), text()),
            args in prop::collection::vec(text(), 0..5),
            environment in prop::collection::vec((text(), text()), 0..5),
        ) {
            let program = Program { path, name, args, cwd, environment };
            prop_assert_eq!(Program::decode(&program.encode()), Some(program));
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = Program::decode(&bytes);
        }
    }

    #[test]
    fn a_program_that_was_cut_off_is_none() {
        let program = Program {
            path: "/bin/sh".into(),
            name: "sh".into(),
            args: vec!["-c".into(), "true".into()],
            cwd: "/".into(),
            environment: vec![("A".into(), "1".into())],
        };
        let bytes = program.encode();
        let cut = bytes.len() - 1;
        assert_eq!(Program::decode(&bytes[..cut]), None);
        assert_eq!(Program::decode(&[]), None);
    }
}
