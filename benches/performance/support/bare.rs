//! The yardstick of a drain: a terminal, a thread that reads it and a thread that is the emulator.
//!
//! Nothing else: no shim, no history of our own, no lease, nobody who watches. It knows nothing of
//! what is written.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use alacritty_terminal::event::{Event, EventListener};
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::term::{Config, Term};
use alacritty_terminal::vte::ansi::Processor;
use nix::pty::{Winsize, openpty};

use crate::support::child::Owned;
use crate::support::placement::Placement;

/// How much may wait for the emulator.
const WAITING_MAX: usize = 1 << 20;

/// The emulator as a library, with as many rows of history as everybody else keeps.
pub(crate) struct Emulator {
    term: Term<Answers>,
    parser: Processor,
}

impl Emulator {
    /// One that writes its answers there, or nowhere.
    pub(crate) fn new(answers: Option<OwnedFd>) -> Self {
        let config = Config { scrolling_history: 10_000, ..Config::default() };
        Self {
            term: Term::new(config, &Cells, Answers(answers.map(Arc::new))),
            parser: Processor::new(),
        }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.parser.advance(&mut self.term, bytes);
    }
}

impl std::fmt::Debug for Emulator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Emulator").finish_non_exhaustive()
    }
}

struct Cells;

impl Dimensions for Cells {
    fn total_lines(&self) -> usize {
        24
    }

    fn screen_lines(&self) -> usize {
        24
    }

    fn columns(&self) -> usize {
        80
    }
}

#[derive(Clone)]
struct Answers(Option<Arc<OwnedFd>>);

impl EventListener for Answers {
    fn send_event(&self, event: Event) {
        if let (Event::PtyWrite(answer), Some(terminal)) = (event, &self.0) {
            // A program that has gone needs no answer.
            let _ = nix::unistd::write(terminal, answer.as_bytes());
        }
    }
}

/// Starts a program in a terminal that two threads serve until it ends.
///
/// # Errors
/// Why it does not run.
pub(crate) fn start(placement: Placement, words: &[String; 3]) -> anyhow::Result<Owned> {
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    let ends = openpty(&size, None)?;
    let [program, arguments @ ..] = words;
    let process = placement
        .command(program)
        .args(arguments)
        .stdin(ends.slave.try_clone()?)
        .stdout(ends.slave)
        .stderr(Stdio::null())
        .spawn()
        .map(Owned)?;
    let (shared, emulator) =
        (Arc::new(Shared::default()), Emulator::new(Some(ends.master.try_clone()?)));
    let reading = Arc::clone(&shared);
    std::thread::spawn(move || read(ends.master, &reading));
    std::thread::spawn(move || emulate(emulator, &shared));
    Ok(process)
}

/// What was read and waits for the emulator; none once the program has gone.
#[derive(Debug)]
struct Shared {
    waiting: Mutex<Option<Vec<u8>>>,
    changed: Condvar,
}

impl Default for Shared {
    fn default() -> Self {
        Self { waiting: Mutex::new(Some(Vec::new())), changed: Condvar::new() }
    }
}

fn read(master: OwnedFd, shared: &Shared) {
    let mut room = vec![0; 64 * 1024];
    let mut master = std::fs::File::from(master);
    loop {
        let count = master.read(&mut room).unwrap_or(0);
        let waiting = shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |waiting: &mut Option<Vec<u8>>| {
            waiting.as_ref().is_some_and(|waiting| waiting.len() > WAITING_MAX)
        };
        let waiting = shared.changed.wait_while(waiting, full);
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        if count == 0 {
            *waiting = None;
        } else if let Some(waiting) = waiting.as_mut() {
            waiting.extend_from_slice(&room[..count]);
        }
        drop(waiting);
        shared.changed.notify_all();
        if count == 0 {
            return;
        }
    }
}

fn emulate(mut emulator: Emulator, shared: &Shared) {
    let mut taken = Vec::new();
    loop {
        taken.clear();
        let waiting = shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let empty = |waiting: &mut Option<Vec<u8>>| waiting.as_ref().is_some_and(Vec::is_empty);
        let waiting = shared.changed.wait_while(waiting, empty);
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        match waiting.as_mut() {
            Some(waiting) => std::mem::swap(waiting, &mut taken),
            None => return,
        }
        drop(waiting);
        shared.changed.notify_all();
        emulator.feed(&taken);
    }
}
