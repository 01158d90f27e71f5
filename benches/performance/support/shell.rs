//! A shell in a terminal with nothing around it: lines are typed, and its prompt is waited for.
//!
//! It looks at nothing else.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::ensure;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::{Winsize, openpty};

use crate::support::child::Owned;
use crate::support::samples::now;

/// How long a prompt may take.
const PROMPT_MAX: Duration = Duration::from_secs(20);
/// The files of a user whose shells have a prompt that tells how many there have been. zsh asks who has
/// no file of its own, and fish reads all manuals once where it finds no completions.
const FILES: [(&str, &str); 4] = [
    (".bashrc", "PROMPTS=0; PS1='READY $((++PROMPTS))> '\n"),
    (".zshrc", "setopt prompt_subst; PROMPTS=0; PS1='READY $((++PROMPTS))> '\n"),
    (
        ".config/fish/config.fish",
        "set -g PROMPTS 0; function fish_prompt; set -g PROMPTS (math $PROMPTS + 1); \
         echo \"READY $PROMPTS> \"; end\n",
    ),
    (".local/share/fish/generated_completions/true.fish", ""),
];

/// Puts the files of a user into an empty home, which any shell here reads.
///
/// # Errors
/// When they cannot be written.
pub(crate) fn settle_in(home: &Path) -> anyhow::Result<()> {
    for (name, text) in FILES {
        let path = home.join(name);
        fs::create_dir_all(path.parent().unwrap_or(home))?;
        fs::write(path, text)?;
    }
    Ok(())
}

/// A shell at its prompt.
#[derive(Debug)]
pub(crate) struct BareShell {
    terminal: File,
    /// How many prompts were seen.
    prompts: u64,
    _process: Owned,
}

impl BareShell {
    /// Starts it in a home of [`settle_in`], and waits for its prompt.
    ///
    /// # Errors
    /// When there is no such shell, or none that prompts.
    pub(crate) fn start(shell: &str, home: &Path) -> anyhow::Result<Self> {
        let mut started = Self::spawn(shell, home)?;
        started.prompted()?;
        Ok(started)
    }

    /// Starts it with a home, and waits for nothing.
    ///
    /// # Errors
    /// When there is no such shell.
    pub(crate) fn spawn(shell: &str, home: &Path) -> anyhow::Result<Self> {
        let size = Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        let ends = openpty(&size, None)?;
        // A shell that has the other end as well never learns that it is gone.
        fcntl(ends.master.as_fd(), FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
        let process = Command::new("setsid")
            .args(["--ctty", shell])
            .env("HOME", home)
            .env("XDG_CONFIG_HOME", home.join(".config"))
            .env_remove("XDG_DATA_HOME")
            .env_remove("ZDOTDIR")
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .stdin(ends.slave.try_clone()?)
            .stdout(ends.slave.try_clone()?)
            .stderr(ends.slave)
            .spawn()
            .map(Owned)?;
        Ok(Self { terminal: ends.master.into(), prompts: 0, _process: process })
    }

    /// Types a command and waits until the next prompt is there.
    ///
    /// # Errors
    /// When it does not come.
    pub(crate) fn run(&mut self, command: &str) -> anyhow::Result<()> {
        self.terminal.write_all(format!("{command}\r").as_bytes())?;
        self.prompted()
    }

    /// A line editor paints its prompt anew at will, so that it is known by its number.
    fn prompted(&mut self) -> anyhow::Result<()> {
        self.prompts += 1;
        let wanted = format!("READY {}> ", self.prompts);
        let give_up = now() + PROMPT_MAX;
        let mut seen = String::new();
        let mut room = [0; 16 * 1024];
        while !seen.contains(&wanted) {
            let left: i32 = give_up.saturating_sub(now()).as_millis().try_into()?;
            let mut readable = [PollFd::new(self.terminal.as_fd(), PollFlags::POLLIN)];
            ensure!(
                poll(&mut readable, PollTimeout::try_from(left)?)? > 0,
                "no {wanted:?}: {seen:?}"
            );
            let count = self.terminal.read(&mut room)?;
            ensure!(count > 0, "the shell has ended: {seen:?}");
            seen.push_str(&String::from_utf8_lossy(&room[..count]));
        }
        Ok(())
    }
}
