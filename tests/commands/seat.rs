//! A person's terminal with `termgate attach` on it, and the session that is attached to.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::pty::openpty;
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{Termios, tcgetattr};
use nix::unistd::{Pid, ttyname};
use serde_json::Value;
use termgate::core::frame::{Frame, ScreenMode, Size};
use termgate::core::keys::modes::InputModes;
use termgate::core::moment::Moment;
use termgate::core::screen::{Facts, Origin, Screen, ScreenLimits};

use crate::commands::blocking::until;
use crate::harness::home::Home;
use crate::harness::processes::{PROGRAM, is_stopped};
use crate::harness::waiting::SAFETY;

pub(crate) const SIZE: Size = Size { rows: 24, cols: 80 };

/// What the person's terminal shows.
pub(crate) struct Shown {
    pub(crate) screen: Screen,
    pub(crate) frame: Arc<Frame>,
    /// Every status line that was shown, one after the other.
    pub(crate) statuses: Vec<String>,
}

impl Shown {
    pub(crate) fn text(&self) -> String {
        let lines: Vec<&str> = self.frame.lines.iter().map(|line| &*line.value.text).collect();
        lines.join("\n")
    }

    pub(crate) fn status(&self) -> &str {
        self.frame.lines.last().map_or("", |line| &line.value.text)
    }
}

/// A person's terminal with `termgate attach` on it.
pub(crate) struct Seat {
    master: File,
    /// Kept open, so that the terminal outlives the program, as a window does.
    slave: File,
    path: PathBuf,
    before: Termios,
    pub(crate) shown: Arc<(Mutex<Shown>, Condvar)>,
    pub(crate) child: Child,
}

impl Seat {
    pub(crate) fn attach(home: &Home, words: &str) -> Self {
        let terminal = openpty(None, None).unwrap();
        let (master, slave) = (File::from(terminal.master), File::from(terminal.slave));
        let path = ttyname(&slave).unwrap();
        stty(&path, SIZE);
        let before = tcgetattr(&slave).unwrap();
        let shown = Arc::new((Mutex::new(blank()), Condvar::new()));
        show_what_comes(master.try_clone().unwrap(), Arc::clone(&shown));
        let stream = || Stdio::from(slave.try_clone().unwrap());
        let child = home
            .command("setsid")
            .args(["--ctty", "--wait", PROGRAM, "attach", "--no-spawn"])
            .args(words.split_whitespace())
            .stdin(stream())
            .stdout(stream())
            .stderr(stream())
            .spawn()
            .unwrap();
        Self { master, slave, path, before, shown, child }
    }

    pub(crate) fn types(&mut self, bytes: impl AsRef<[u8]>) {
        self.master.write_all(bytes.as_ref()).unwrap();
    }

    /// Makes the window another size, as a person does with the mouse.
    pub(crate) fn resize(&self, size: Size) {
        let (shown, _) = &*self.shown;
        shown.lock().unwrap().screen.resize(size);
        stty(&self.path, size);
    }

    /// Waits until the terminal shows what is wanted.
    pub(crate) fn until(&self, what: &str, wanted: impl Fn(&Shown) -> bool) {
        let (shown, changed) = &*self.shown;
        let shown = shown.lock().unwrap();
        let (shown, late) =
            changed.wait_timeout_while(shown, SAFETY, |shown| !wanted(shown)).unwrap();
        assert!(!late.timed_out(), "waited in vain for {what}:\n{}", shown.text());
    }

    pub(crate) fn until_text(&self, text: &str) {
        self.until(text, |shown| shown.text().contains(text));
    }

    pub(crate) fn until_status(&self, text: &str) {
        self.until(text, |shown| shown.status().contains(text));
    }

    /// Waits until the program has ended, and says how; the terminal must be as it was before.
    pub(crate) fn until_left(&mut self) -> ExitStatus {
        let ended = self.child.wait().unwrap();
        assert!(self.is_as_before(), "the line discipline is another");
        self.until("the terminal to be as it was", |shown| {
            shown.frame.mode.value == ScreenMode::Normal
                && shown.screen.modes() == InputModes::default()
                && shown.frame.cursor.value.visible
        });
        ended
    }

    pub(crate) fn is_as_before(&self) -> bool {
        let now = tcgetattr(&self.slave).unwrap();
        let modes = |it: &Termios| {
            (it.input_flags, it.output_flags, it.control_flags, it.local_flags, it.control_chars)
        };
        modes(&now) == modes(&self.before)
    }

    /// The process of the program itself, below the one that gave it the terminal.
    pub(crate) fn pid(&self) -> Pid {
        let own = self.child.id();
        let path = format!("/proc/{own}/task/{own}/children");
        let children = std::fs::read_to_string(path).unwrap();
        let program = children.split_whitespace().next();
        Pid::from_raw(program.map_or(own as i32, |pid| pid.parse().unwrap()))
    }

    /// Whether something was typed that the program has not read.
    pub(crate) fn has_unread(&self) -> bool {
        let mut poll = [PollFd::new(self.slave.as_fd(), PollFlags::POLLIN)];
        nix::poll::poll(&mut poll, PollTimeout::ZERO).unwrap() > 0
    }

    pub(crate) fn shown(&self) -> String {
        self.shown.0.lock().unwrap().text()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        is_stopped(self.pid().as_raw())
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = kill(self.pid(), Signal::SIGKILL);
            let _ = self.child.wait();
        }
    }
}

pub(crate) fn blank() -> Shown {
    let mut screen = Screen::new(SIZE, ScreenLimits::default(), Origin::default());
    let frame = screen.first_frame(Moment::default(), &Facts::default());
    Shown { screen, frame, statuses: Vec::new() }
}

pub(crate) fn show_what_comes(mut master: File, shown: Arc<(Mutex<Shown>, Condvar)>) {
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = master.read(&mut bytes) {
            let (shown, changed) = &*shown;
            let mut shown = shown.lock().unwrap();
            shown.screen.feed(Moment::default(), &bytes[..count]);
            if let Some(frame) = shown.screen.publish(Moment::default(), &Facts::default()) {
                shown.frame = frame;
                let status = shown.status().to_owned();
                if shown.statuses.last() != Some(&status) {
                    shown.statuses.push(status);
                }
            }
            changed.notify_all();
        }
    });
}

/// Gives a terminal a size, as its window does; the program on it is told.
pub(crate) fn stty(path: &PathBuf, size: Size) {
    let (rows, cols) = (size.rows.to_string(), size.cols.to_string());
    let mut set = Command::new("stty");
    set.arg("-F").arg(path).args(["rows", &rows, "cols", &cols]);
    assert!(set.status().unwrap().success());
}

/// The session as `list_sessions` tells it.
pub(crate) fn told(home: &Home) -> Value {
    let mut answer = home.envelope("call list_sessions session=build");
    answer["data"]["sessions"][0].take()
}

/// Waits until the lease is held by somebody of this kind, or by nobody for an empty one.
pub(crate) fn until_holder(home: &Home, kind: &str) {
    let holder = || told(home)["lease"]["kind"].as_str().unwrap_or_default() == kind;
    until(&format!("a holder of kind `{kind}`"), holder);
}

/// Waits until the session shows a text.
pub(crate) fn until_screen(home: &Home, text: &str) {
    let wait = home.termgate("wait build --since 0 --timeout 30s --text").arg(text).output();
    let waited = wait.unwrap();
    assert!(waited.status.success(), "{}\n{waited:?}", home.printed("read build"));
}

pub(crate) fn size(home: &Home) -> (u64, u64) {
    let session = told(home);
    (session["cols"].as_u64().unwrap(), session["rows"].as_u64().unwrap())
}

/// A session named build that runs a shell line.
pub(crate) fn start(home: &Home, line: &str) {
    let output = home.termgate("new --no-spawn --name build --").args(["sh", "-c", line]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Somebody works in the session, as an agent would.
pub(crate) fn take_lease(home: &Home, reason: &str) {
    let mut acquire = home.termgate("call acquire_lease session=build ttl_ms=600000");
    let output = acquire.arg(format!("reason={reason}")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
