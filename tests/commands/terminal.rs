//! A terminal to run the program in.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::{Winsize, openpty};

use crate::harness::waiting::SAFETY;

/// A program in a terminal; killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Terminal {
    child: Child,
    master: File,
    shown: Vec<u8>,
}

impl Terminal {
    /// Runs a program in a terminal.
    pub(crate) fn of(mut command: Command) -> Self {
        let size = Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(&size, None).unwrap();
        for end in [&pair.master, &pair.slave] {
            // Whoever else had the master would keep the terminal from ever being closed.
            fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).unwrap();
        }
        let slave = || Stdio::from(pair.slave.try_clone().unwrap());
        let child = command.stdin(slave()).stdout(slave()).stderr(slave()).spawn().unwrap();
        Self { child, master: File::from(pair.master), shown: Vec::new() }
    }

    pub(crate) fn type_in(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    /// Reads what is shown until this is among it, and forgets all up to there.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        loop {
            let shown = String::from_utf8_lossy(&self.shown).into_owned();
            if let Some(at) = shown.find(text) {
                let end = at + text.len();
                self.shown = shown.as_bytes()[end..].to_vec();
                return shown[..end].to_owned();
            }
            assert!(self.read(), "{text:?} was not shown, but {shown:?}");
        }
    }

    /// Reads until the program has ended, and gives back what was shown and its exit code.
    pub(crate) fn wait_for_end(mut self) -> (String, Option<i32>) {
        let mut status = self.child.try_wait().unwrap();
        while status.is_none() {
            self.read_within(Duration::from_millis(20));
            status = self.child.try_wait().unwrap();
        }
        while self.read_within(Duration::ZERO) {}
        (String::from_utf8_lossy(&self.shown).into_owned(), status.unwrap().code())
    }

    /// Closes the terminal, as a person closes a window; the program is left to itself.
    pub(crate) fn close(&mut self) {
        self.master = File::open("/dev/null").unwrap();
    }

    /// Whether the terminal echoes and waits for whole lines, as it does for a shell.
    pub(crate) fn is_cooked(&self) -> bool {
        let modes = nix::sys::termios::tcgetattr(&self.master).unwrap().local_flags;
        let cooked = nix::sys::termios::LocalFlags::ECHO | nix::sys::termios::LocalFlags::ICANON;
        modes.contains(cooked)
    }

    fn read(&mut self) -> bool {
        self.read_within(SAFETY)
    }

    fn read_within(&mut self, time: Duration) -> bool {
        let time = PollTimeout::try_from(time).unwrap();
        let mut ready = [PollFd::new(self.master.as_fd(), PollFlags::POLLIN)];
        if poll(&mut ready, time).unwrap() == 0 {
            return false;
        }
        let mut buffer = [0; 4096];
        // Once nobody has the other end any more, reading fails.
        let count = (&self.master).read(&mut buffer).unwrap_or(0);
        self.shown.extend_from_slice(&buffer[..count]);
        count > 0
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already, and then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
