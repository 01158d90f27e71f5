//! A program, and how the shim starts it in a terminal as a session leader.
//! Between fork and exec the child makes only async-signal-safe calls.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow};
use nix::unistd::{chdir, fchown, pipe2};

use crate::shim::mark;
use crate::shim::user::ProgramUser;

const SIGNALS: i32 = 64;

/// The variable whose value only the program itself may learn: other processes can read the environment that a program
/// began with. The program finds the number of a descriptor in it, from which it can read the value once.
pub const SECRET: &str = "TERMGATE_SHELL_NONCE";

/// The mark on the number of arguments of a program with a user or a sandbox.
const CONFINED: u32 = 1 << 31;

/// What a program that is about to begin tells whoever asked for that.
pub(super) const BEGUN: u8 = b'b';

/// The lowest number of that descriptor: scripts use those up to 9.
const SECRET_FROM: i32 = 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub path: OsString,
    /// The value of `argv[0]`.
    pub name: OsString,
    pub args: Vec<OsString>,
    pub cwd: OsString,
    /// The whole environment; nothing is inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// `None` for the user of this process.
    pub user: Option<ProgramUser>,
    /// The program that makes a sandbox, with its options. None without a sandbox.
    pub sandbox: Vec<OsString>,
}

/// What a child does before it becomes another program, besides what each does.
#[derive(Debug, Default)]
pub(super) struct ChildSetup {
    /// Whether the terminal on its standard input becomes its controlling terminal.
    pub(super) terminal: bool,
    /// The soft limit of open files.
    pub(super) descriptors: Option<u64>,
    /// The descriptors that stay open.
    pub(super) kept: Vec<RawFd>,
    /// Whose mark it gets.
    pub(super) session: Option<u64>,
    pub(super) user: Option<ProgramUser>,
    /// Entered as that user.
    pub(super) cwd: Option<CString>,
    /// Told that it has begun, just before.
    pub(super) told: Option<RawFd>,
}

impl Program {
    /// Starts the program with the terminal as its standard streams and controlling terminal, without its sandbox.
    /// Returns its pid.
    ///
    /// `descriptors` sets the soft limit of open files; `None` inherits it. The program and its descendants
    /// get the mark of `session`.
    pub fn start(
        &self,
        slave: &OwnedFd,
        descriptors: Option<u64>,
        session: u64,
    ) -> io::Result<u32> {
        let setup = ChildSetup { descriptors, session: Some(session), ..ChildSetup::default() };
        self.start_with(slave, setup)
    }

    pub(super) fn start_with(&self, slave: &OwnedFd, setup: ChildSetup) -> io::Result<u32> {
        let stream = || slave.try_clone().map(File::from);
        let mut command = Command::new(&self.path);
        command
            .arg0(&self.name)
            .args(&self.args)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(stream()?)
            .stdout(stream()?)
            .stderr(stream()?);
        let mut setup = ChildSetup { terminal: true, user: self.user.clone(), ..setup };
        // Another user may not enter what this one may.
        setup.cwd = Some(CString::new(self.cwd.as_bytes())?);
        let secret = self.environment.iter().find(|(name, _)| name == SECRET);
        let handed = secret.map(|(_, value)| once_readable(value.as_bytes())).transpose()?;
        if let Some(handed) = &handed {
            command.env(SECRET, handed.as_raw_fd().to_string());
            setup.kept.push(handed.as_raw_fd());
        }
        if let Some(user) = &self.user {
            // As a login does; and scripts open the descriptor of the secret again.
            for theirs in [Some(slave), handed.as_ref()].into_iter().flatten() {
                fchown(theirs, Some(user.uid()), None)?;
            }
        }
        prepare_in_child(&mut command, setup);
        command.spawn().map(|child| child.id())
    }

    /// Serializes the program: the number of arguments, then path, name, directory, arguments, and pairs of
    /// variable and value. Each text has its length before it.
    ///
    /// With a user or a sandbox, the number has `CONFINED`, and behind the directory follow the user, the number of
    /// words of the sandbox, and these.
    pub fn encode(&self) -> Vec<u8> {
        let is_confined = self.user.is_some() || !self.sandbox.is_empty();
        let mark = if is_confined { CONFINED } else { 0 };
        let mut bytes = (self.args.len() as u32 | mark).to_le_bytes().to_vec();
        [&self.path, &self.name, &self.cwd].into_iter().for_each(|text| put_text(&mut bytes, text));
        if is_confined {
            let user = self.user.as_ref().map(ProgramUser::encode).unwrap_or_default();
            put_text(&mut bytes, OsStr::from_bytes(&user));
            bytes.extend((self.sandbox.len() as u32).to_le_bytes());
            self.sandbox.iter().for_each(|word| put_text(&mut bytes, word));
        }
        self.args.iter().for_each(|arg| put_text(&mut bytes, arg));
        for (name, value) in &self.environment {
            put_text(&mut bytes, name);
            put_text(&mut bytes, value);
        }
        bytes
    }

    /// Reads the output of [`Program::encode`]; `None` for anything else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let args = take_number(&mut rest)?;
        let (path, name) = (take_text(&mut rest)?, take_text(&mut rest)?);
        let cwd = take_text(&mut rest)?;
        let (mut user, mut sandbox) = (None, Vec::new());
        if args & CONFINED != 0 {
            let told = take_text(&mut rest)?;
            if !told.is_empty() {
                user = Some(ProgramUser::decode(told.as_bytes())?);
            }
            let words = take_number(&mut rest)?;
            sandbox = (0..words).map(|_| take_text(&mut rest)).collect::<Option<_>>()?;
        }
        let args = args & !CONFINED;
        let args = (0..args).map(|_| take_text(&mut rest)).collect::<Option<_>>()?;
        let mut environment = Vec::new();
        while !rest.is_empty() {
            environment.push((take_text(&mut rest)?, take_text(&mut rest)?));
        }
        Some(Self { path, name, args, cwd, environment, user, sandbox })
    }
}

fn put_text(bytes: &mut Vec<u8>, text: &OsStr) {
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text.as_bytes());
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

/// A descriptor from which these bytes can be read once, and then the end.
fn once_readable(bytes: &[u8]) -> io::Result<OwnedFd> {
    let (reader, writer) = pipe2(OFlag::O_CLOEXEC)?;
    // A pipe holds much more than a secret has.
    let mut writer = File::from(writer);
    writer.write_all(bytes)?;
    writer.write_all(b"\n")?;
    duplicate(&reader, SECRET_FROM)
}

/// Another descriptor for the same file, with this number or a higher one, closed on `exec`.
#[allow(unsafe_code)]
pub(in crate::shim) fn duplicate(of: impl AsFd, least: RawFd) -> io::Result<OwnedFd> {
    let number = fcntl(of, FcntlArg::F_DUPFD_CLOEXEC(least))?;
    // SAFETY: the call has just made the descriptor, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[allow(unsafe_code)]
pub(super) fn prepare_in_child(command: &mut Command, setup: ChildSetup) {
    // SAFETY: `become_leader` makes system calls only; it neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(move || become_leader(&setup));
    }
}

/// Runs in the child after its streams are set and before `exec`.
fn become_leader(setup: &ChildSetup) -> io::Result<()> {
    nix::unistd::setsid()?;
    if let Some(session) = setup.session {
        mark::set(session)?;
    }
    if let Some(soft) = setup.descriptors {
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
        setrlimit(Resource::RLIMIT_NOFILE, soft.min(hard), hard)?;
    }
    inherit_nothing(setup)?;
    nix::sys::signal::sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
    // All above is done with the rights of the shim.
    if let Some(user) = &setup.user {
        user.enter()?;
    }
    if let Some(cwd) = &setup.cwd {
        chdir(cwd.as_c_str())?;
    }
    if let Some(told) = setup.told {
        tell(told)?;
    }
    Ok(())
}

/// Takes the terminal, and leaves the dispositions of signals and all descriptors that are not for the program.
#[allow(unsafe_code)]
fn inherit_nothing(setup: &ChildSetup) -> io::Result<()> {
    let default = [0u64; 4];
    // SAFETY: the calls take numbers, null where it is allowed, and a kernel `sigaction` of zeros, which
    // means the default disposition and is no longer than `default`. The call fails without effect for
    // signals that have no disposition.
    unsafe {
        if setup.terminal {
            Errno::result(libc::ioctl(libc::STDIN_FILENO, libc::TIOCSCTTY, 0))?;
        }
        // `exec` keeps ignored signals ignored. The raw call is needed because the C library refuses to touch
        // two signals that it reserves.
        for number in 1..=SIGNALS {
            let (new, old) = (default.as_ptr(), std::ptr::null_mut::<u64>());
            libc::syscall(libc::SYS_rt_sigaction, number, new, old, size_of::<u64>());
        }
        // Our descriptors are close-on-exec already; a library may have opened others. A kernel without this
        // call just keeps those open.
        let flags = libc::CLOSE_RANGE_CLOEXEC;
        libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, flags);
        for kept in &setup.kept {
            Errno::result(libc::fcntl(*kept, libc::F_SETFD, 0))?;
        }
    }
    Ok(())
}

/// Sends one byte, to which the kernel adds who sends it.
#[allow(unsafe_code)]
fn tell(told: RawFd) -> io::Result<()> {
    // SAFETY: the byte outlives the call that reads it.
    let sent = unsafe { libc::write(told, [BEGUN].as_ptr().cast(), 1) };
    Errno::result(sent)?;
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
            sandbox in prop::collection::vec(text(), 0..3),
            user in prop::option::of((any::<u32>(), any::<u32>(), prop::collection::vec(any::<u32>(), 0..4))),
        ) {
            let user = user.map(|(uid, gid, groups)| ProgramUser::new(uid, gid, groups));
            let program = Program { path, name, args, cwd, environment, user, sandbox };
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
            user: None,
            sandbox: Vec::new(),
        };
        let bytes = program.encode();
        let cut = bytes.len() - 1;
        assert_eq!(Program::decode(&bytes[..cut]), None);
        assert_eq!(Program::decode(&[]), None);
    }
}
