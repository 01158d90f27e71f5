//! The first process of a sandbox: it starts the program there, reaps orphans, and tells the shim how the program
//! ended. Programs in the sandbox can neither signal nor trace it. All of them end with it.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::process::ExitCode;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::libc;
use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout, getpid};

use crate::shim::children::wait_for_child;
use crate::shim::program::{ChildSetup, Program, duplicate};
use crate::shim::readiness::{self, READABLE};
use crate::shim::sandbox::Report;
use crate::shim::socket::{self, Descriptors};
use crate::shim::wire::frame;

/// Runs the first process of a sandbox: `termgate inside PLAN REPORTS`, two numbers of descriptors. The terminal is on
/// standard output.
pub fn run(words: &[OsString]) -> ExitCode {
    let numbers: Vec<RawFd> =
        words.iter().skip(2).filter_map(|word| word.to_str()?.parse().ok()).collect();
    let [plan, reports] = numbers[..] else { return ExitCode::from(2) };
    if getpid().as_raw() != 1 {
        return ExitCode::from(2);
    }
    let Ok([plan, reports]) = take([plan, reports]) else { return ExitCode::from(2) };
    let tell = |report: Report| {
        // The shim may be gone. The program goes on then, until the session is ended.
        let _ = socket::send(reports.as_fd(), &report.encode(), &[]);
    };
    match start(File::from(plan), &reports) {
        Ok(leader) => {
            tell(Report::Started);
            // Until the shim has looked at the program, its number must stay its own, even if it has ended.
            let _ = readiness::wait([(Some(reports.as_fd()), READABLE)], None).map(|_| {
                socket::receive(reports.as_fd(), &mut frame(), &mut Descriptors::default())
            });
            let mut is_running = true;
            while let Some((child, ended)) = wait_for_child() {
                if child == leader && is_running {
                    is_running = false;
                    tell(Report::Ended(ended));
                }
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            tell(Report::Failed(error.raw_os_error().unwrap_or(libc::EINVAL)));
            ExitCode::FAILURE
        }
    }
}

/// Takes over descriptors that no program in the sandbox may have.
#[allow(unsafe_code)]
fn take(numbers: [RawFd; 2]) -> Result<[OwnedFd; 2], Errno> {
    // SAFETY: no value in this process owns these descriptors, and a number that is none fails below.
    let taken = numbers.map(|number| unsafe { OwnedFd::from_raw_fd(number) });
    for one in &taken {
        fcntl(one, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    }
    Ok(taken)
}

fn start(mut plan: File, reports: &OwnedFd) -> io::Result<i32> {
    let _ = nix::sys::prctl::set_name(c"termgate-inside");
    plan.rewind()?;
    let mut descriptors = [0; 8];
    plan.read_exact(&mut descriptors)?;
    let mut text = Vec::new();
    plan.read_to_end(&mut text)?;
    let program = Program::decode(&text).ok_or(Errno::EPROTO)?;
    let descriptors = Some(u64::from_le_bytes(descriptors)).filter(|count| *count > 0);
    let slave = duplicate(io::stdout(), 3)?;
    // The terminal must be able to end while this process runs.
    let nothing = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&nothing)?;
    dup2_stdout(&nothing)?;
    dup2_stderr(&nothing)?;
    let told = Some(reports.as_raw_fd());
    let setup = ChildSetup { descriptors, told, ..ChildSetup::default() };
    let leader = program.start_with(&slave, setup)?;
    i32::try_from(leader).map_err(io::Error::other)
}
