//! A program in a terminal that writes as much as it is told, and says when all of it was taken in.
//!
//! It is the bench itself, started again inside the terminal. It does not know whose terminal it is:
//! it asks the emulator where the cursor is, and whoever answers has read all that came before. So
//! every contender is timed by the same program, in the same way.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use nix::sys::termios::{OutputFlags, SetArg, cfmakeraw, tcgetattr, tcsetattr};
use tempfile::TempDir;

use crate::support::samples::now;
use crate::support::streams::{BLOCK, Stream};

/// How much is written at once.
const WRITE: usize = 64 * 1024;
/// The argument that makes the bench a pump.
const SERVE: &str = "--pump";
/// How long it may take to start, and to write.
const START_MAX: Duration = Duration::from_secs(30);
const DRAIN_MAX: Duration = Duration::from_secs(120);
/// What ends all styles and the alternate screen and asks where the cursor is.
const ASK: &[u8] = b"\x1b[0m\x1b[?1049l\x1b[6n";

/// What the kernel does with line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It makes a carriage return and a line feed of each.
    Cooked,
    /// Nothing; the program writes both.
    Raw,
}

impl Mode {
    pub(crate) const ALL: [Self; 2] = [Self::Cooked, Self::Raw];

    /// The name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cooked => "cooked",
            Self::Raw => "raw",
        }
    }

    /// What a program writes at the end of a line.
    pub(crate) fn line_end(self) -> &'static str {
        match self {
            Self::Cooked => "\n",
            Self::Raw => "\r\n",
        }
    }
}

/// Where a pump that is yet to be started will come to.
#[derive(Debug)]
pub(crate) struct Door {
    listener: UnixListener,
    directory: TempDir,
}

impl Door {
    /// Opens one.
    ///
    /// # Errors
    /// What the kernel said.
    pub(crate) fn open() -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let listener = UnixListener::bind(directory.path().join("pump.sock"))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, directory })
    }

    /// The program to start in the terminal, and its arguments; none has a blank in it.
    ///
    /// # Errors
    /// When nobody knows where this program is.
    pub(crate) fn words(&self) -> anyhow::Result<[String; 3]> {
        let program = std::env::current_exe()?.display().to_string();
        let socket = self.directory.path().join("pump.sock").display().to_string();
        Ok([program, SERVE.to_owned(), socket])
    }

    /// Waits for it.
    ///
    /// # Errors
    /// When it does not come.
    pub(crate) fn accept(self) -> anyhow::Result<Pump> {
        let give_up = now() + START_MAX;
        let stream = loop {
            match self.listener.accept() {
                Ok((stream, _)) => break stream,
                Err(error) => ensure!(now() < give_up, "nothing was started: {error}"),
            }
            std::thread::park_timeout(Duration::from_millis(1));
        };
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(DRAIN_MAX))?;
        let mut pump = Pump(stream);
        pump.hear().context("the pump does not start")?;
        Ok(pump)
    }
}

/// A pump that waits for orders.
#[derive(Debug)]
pub(crate) struct Pump(UnixStream);

impl Pump {
    /// Has it write so many blocks, and waits until the emulator has taken all of them in.
    ///
    /// # Errors
    /// When it has gone, or takes too long.
    pub(crate) fn drain(&mut self, stream: Stream, mode: Mode, blocks: u8) -> anyhow::Result<()> {
        self.0.write_all(&[stream as u8, mode as u8, blocks])?;
        self.hear().context("not all was taken in")
    }

    fn hear(&mut self) -> anyhow::Result<()> {
        Ok(self.0.read_exact(&mut [0])?)
    }
}

/// Is a pump, if that is what this process was started for, until the bench has gone.
///
/// # Errors
/// Why it cannot be one.
pub(crate) fn serve_if_asked() -> anyhow::Result<bool> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, asked, socket] = arguments.as_slice() else { return Ok(false) };
    if asked != SERVE {
        return Ok(false);
    }
    let mut orders = UnixStream::connect(PathBuf::from(socket))?;
    let made = Stream::ALL.map(|stream| Mode::ALL.map(|mode| stream.make(mode.line_end())));
    let mut order = [0; 3];
    loop {
        orders.write_all(b".")?;
        if orders.read_exact(&mut order).is_err() {
            return Ok(true);
        }
        let [stream, mode, blocks] = order.map(usize::from);
        set(Mode::ALL[mode])?;
        write(&made[stream][mode], blocks * BLOCK)?;
    }
}

fn set(mode: Mode) -> anyhow::Result<()> {
    let terminal = std::io::stdin();
    let mut modes = tcgetattr(&terminal)?;
    cfmakeraw(&mut modes);
    let cooked = OutputFlags::OPOST | OutputFlags::ONLCR;
    modes.output_flags.set(cooked, mode == Mode::Cooked);
    Ok(tcsetattr(&terminal, SetArg::TCSANOW, &modes)?)
}

fn write(block: &[u8], bytes: usize) -> anyhow::Result<()> {
    let terminal = std::io::stdout();
    let mut rest = bytes;
    while rest > 0 {
        for piece in block[..rest.min(block.len())].chunks(WRITE) {
            write_all(&terminal, piece)?;
        }
        rest -= rest.min(block.len());
    }
    write_all(&terminal, ASK)?;
    let mut answer = [0; 64];
    while nix::unistd::read(std::io::stdin().as_fd(), &mut answer)? > 0 {
        if answer.contains(&b'R') {
            return Ok(());
        }
    }
    anyhow::bail!("the terminal has gone")
}

/// Writes past the buffer of the standard library, which would look for line ends.
fn write_all(terminal: &impl AsFd, mut bytes: &[u8]) -> anyhow::Result<()> {
    while !bytes.is_empty() {
        bytes = &bytes[nix::unistd::write(terminal, bytes)?..];
    }
    Ok(())
}
