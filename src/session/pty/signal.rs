//! The signals that a client may send to the program in a terminal.

use std::fmt;
use std::str::FromStr;

use nix::libc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Signal {
    Hangup = libc::SIGHUP,
    Interrupt = libc::SIGINT,
    Quit = libc::SIGQUIT,
    Kill = libc::SIGKILL,
    User1 = libc::SIGUSR1,
    User2 = libc::SIGUSR2,
    Terminate = libc::SIGTERM,
    Continue = libc::SIGCONT,
    Stop = libc::SIGSTOP,
    TerminalStop = libc::SIGTSTP,
    WindowChange = libc::SIGWINCH,
}

impl Signal {
    pub const ALL: [Self; 11] = [
        Self::Hangup,
        Self::Interrupt,
        Self::Quit,
        Self::Kill,
        Self::User1,
        Self::User2,
        Self::Terminate,
        Self::Continue,
        Self::Stop,
        Self::TerminalStop,
        Self::WindowChange,
    ];

    /// The name as in `kill -l`, such as `TERM`.
    pub fn name(self) -> &'static str {
        let name = name_of_signal(self.number()).and_then(|name| name.strip_prefix("SIG"));
        name.expect("the system has a name for each of these")
    }

    pub fn number(self) -> i32 {
        self as i32
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name of a signal number, such as `SIGSEGV`; `None` if it has none.
pub fn name_of_signal(number: i32) -> Option<&'static str> {
    nix::sys::signal::Signal::try_from(number).ok().map(nix::sys::signal::Signal::as_str)
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name:?} is no signal that can be sent; known are HUP INT QUIT KILL USR1 USR2 TERM CONT STOP \
     TSTP WINCH"
)]
pub struct UnknownSignal {
    pub name: String,
}

impl FromStr for Signal {
    type Err = UnknownSignal;

    /// Parses a name in either case, with or without `SIG`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        Self::ALL
            .into_iter()
            .find(|signal| signal.name() == name)
            .ok_or_else(|| UnknownSignal { name: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_named_in_either_case_with_or_without_its_prefix() {
        for text in ["TERM", "term", "SIGTERM", "sigterm"] {
            assert_eq!(text.parse(), Ok(Signal::Terminate), "{text}");
        }
    }

    #[test]
    fn every_signal_is_found_by_its_own_name() {
        for signal in Signal::ALL {
            assert_eq!(signal.name().parse(), Ok(signal));
        }
    }

    #[test]
    fn an_unknown_name_is_refused_as_it_was_written() {
        let refused = "sigfoo".parse::<Signal>();
        assert_eq!(refused, Err(UnknownSignal { name: "sigfoo".to_owned() }));
    }

    #[test]
    fn a_refusal_names_every_signal_there_is() {
        let refusal = UnknownSignal { name: String::new() }.to_string();
        for signal in Signal::ALL {
            assert!(refusal.contains(signal.name()), "{signal}");
        }
    }
}
