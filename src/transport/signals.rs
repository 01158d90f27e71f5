//! The signals that end the process, and SIGHUP, which means a reload of the configuration or the loss of the terminal.
//!
//! The sender of SIGHUP does not tell the two apart, because a shell that loses its terminal forwards the signal. So
//! this module watches the terminal. Listening must start before any work that the end must undo.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use nix::libc;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use crate::session::pty::watch::watch;
use crate::transport::unix::handed::onward::ignores_hangup;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndSignal {
    /// Exit and end everything that was started: SIGTERM and SIGINT.
    End,
    /// Exit and leave the sessions running: SIGUSR1.
    Leave,
}

#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    leave: Signal,
}

impl Signals {
    /// Starts listening. Call it inside a runtime.
    pub fn listen() -> io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { terminate, interrupt, leave: signal(SignalKind::user_defined1())? })
    }

    /// Waits for the first signal.
    pub async fn told(mut self) -> EndSignal {
        tokio::select! {
            _ = self.terminate.recv() => EndSignal::End,
            _ = self.interrupt.recv() => EndSignal::End,
            _ = self.leave.recv() => EndSignal::Leave,
        }
    }
}

/// The longest time between a signal and the end of the terminal that belong together. The shell between them may be
/// slow.
const TOGETHER: Duration = Duration::from_secs(5);

/// The meaning of a SIGHUP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hangup {
    /// A user or program requested a reload.
    Reload,
    TerminalGone,
}

/// Receives every SIGHUP and determines its meaning.
#[derive(Debug)]
pub struct Hangups {
    signal: Signal,
    /// The controlling terminal. `None` when the process should outlive it.
    terminal: Option<AsyncFd<OwnedFd>>,
    signs: Signs,
}

impl Hangups {
    /// Starts listening. Call it inside a runtime.
    pub fn listen() -> io::Result<Self> {
        // A process started with SIGHUP ignored, as by `nohup`, outlives the terminal.
        let terminal = if ignores_hangup() { None } else { controlling_terminal() };
        let signal = signal(SignalKind::hangup())?;
        Ok(Self { signal, terminal, signs: Signs::default() })
    }

    /// Waits for the next one. Cancel-safe.
    pub async fn next(&mut self) -> Hangup {
        loop {
            tokio::select! {
                biased;
                () = gone(self.terminal.as_ref()) => {
                    self.terminal = None;
                    if let Some(hangup) = self.signs.on_terminal_gone(Instant::now()) {
                        return hangup;
                    }
                }
                Some(()) = self.signal.recv() => return self.signs.on_signal(Instant::now()),
            }
        }
    }
}

/// The last events, which determine the meaning of a signal.
#[derive(Debug, Default)]
struct Signs {
    heard: Option<Instant>,
    gone: Option<Instant>,
}

impl Signs {
    fn on_signal(&mut self, now: Instant) -> Hangup {
        self.heard = Some(now);
        if is_recent(self.gone, now) { Hangup::TerminalGone } else { Hangup::Reload }
    }

    /// Without a signal, the terminal closed after the shell had detached this process.
    fn on_terminal_gone(&mut self, now: Instant) -> Option<Hangup> {
        self.gone = Some(now);
        is_recent(self.heard, now).then_some(Hangup::TerminalGone)
    }
}

fn is_recent(then: Option<Instant>, now: Instant) -> bool {
    then.is_some_and(|then| now.duration_since(then) <= TOGETHER)
}

/// Completes when the terminal has hung up. Never completes without a terminal.
async fn gone(terminal: Option<&AsyncFd<OwnedFd>>) {
    if let Some(terminal) = terminal {
        while let Ok(mut ready) = terminal.ready(Interest::READABLE).await {
            if ready.ready().is_read_closed() {
                return;
            }
            // Input typed here is ignored.
            ready.clear_ready();
        }
    }
    std::future::pending().await
}

/// The controlling terminal, whose end causes a SIGHUP.
fn controlling_terminal() -> Option<AsyncFd<OwnedFd>> {
    let flags = libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let terminal = OpenOptions::new().read(true).custom_flags(flags).open("/dev/tty").ok()?;
    watch(terminal, Interest::READABLE).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn a_signal_alone_asks_for_the_configuration_to_be_read() {
        let (mut signs, start) = (Signs::default(), Instant::now());
        assert_eq!(signs.on_signal(start), Hangup::Reload);
        assert_eq!(signs.on_signal(after(start, 1)), Hangup::Reload);
    }

    #[tokio::test(start_paused = true)]
    async fn a_signal_about_the_end_of_the_terminal_tells_of_it_whichever_comes_first() {
        let (mut signs, start) = (Signs::default(), Instant::now());
        assert_eq!(signs.on_terminal_gone(start), None);
        assert_eq!(signs.on_signal(after(start, 4)), Hangup::TerminalGone);
        let mut signs = Signs::default();
        assert_eq!(signs.on_signal(start), Hangup::Reload);
        assert_eq!(signs.on_terminal_gone(after(start, 1)), Some(Hangup::TerminalGone));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_was_let_go_of_before_the_terminal_went_is_only_asked_to_read() {
        let (mut signs, start) = (Signs::default(), Instant::now());
        assert_eq!(signs.on_terminal_gone(start), None);
        assert_eq!(signs.on_signal(after(start, 3600)), Hangup::Reload);
        let mut signs = Signs::default();
        assert_eq!(signs.on_signal(start), Hangup::Reload);
        assert_eq!(signs.on_terminal_gone(after(start, 3600)), None);
    }
}
