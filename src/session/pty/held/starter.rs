//! The daemon's side of the process that forks its shims. It runs from the first session on, and is started again if it
//! has ended.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::errno::Errno;

use crate::shim::readiness::{self, WRITABLE};
use crate::shim::{NAME, WORD, socket, title};

/// How often to start the process for one shim: somebody may have ended it since the last one.
const STARTS_MAX: usize = 2;

/// How long the process may take no order.
const ORDERED_WITHIN: Duration = Duration::from_secs(2);

/// Has shims forked. All copies share one process.
#[derive(Clone, Debug)]
pub struct ShimStarter {
    program: Arc<Path>,
    running: Arc<Mutex<Option<Running>>>,
}

/// A shim that is about to be forked.
#[derive(Debug)]
pub struct OrderedShim {
    /// The connection to it, on which it waits for *start*. Closed if it cannot be forked.
    pub connection: OwnedFd,
    /// The number of the process that forks it.
    pub forked_by: u32,
}

/// The process, and the connection to it. It ends with this.
#[derive(Debug)]
struct Running {
    process: Child,
    orders: OwnedFd,
}

impl ShimStarter {
    /// The program that forks shims, and becomes them. It is not started yet.
    pub fn of(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into().into(), running: Arc::default() }
    }

    /// One whose process is played by whoever has the other end of `orders`.
    #[cfg(test)]
    pub(crate) fn played_by(orders: OwnedFd) -> Self {
        let process = Command::new("true").spawn().expect("it is there");
        let running = Some(Running { process, orders });
        Self { program: Path::new("false").into(), running: Arc::new(Mutex::new(running)) }
    }

    /// Has a shim forked that listens at `path`.
    ///
    /// # Errors
    /// Returns the kernel's error if the process cannot be started.
    pub fn fork(&self, path: &Path) -> io::Result<OrderedShim> {
        let (connection, theirs) = socket::pair()?;
        let mut running = self.running();
        for _ in 0..STARTS_MAX {
            let starter = match running.take() {
                Some(starter) => starter,
                None => Running::start(&self.program)?,
            };
            let forked_by = starter.process.id();
            match starter.order(path, &theirs) {
                Ok(()) => {
                    *running = Some(starter);
                    return Ok(OrderedShim { connection, forked_by });
                }
                // It has ended, or does not take what it is sent.
                Err(Errno::EPIPE | Errno::ECONNRESET | Errno::EAGAIN) => {}
                Err(errno) => {
                    *running = Some(starter);
                    return Err(errno.into());
                }
            }
        }
        Err(ErrorKind::BrokenPipe.into())
    }

    /// Ends the process with this number, because a shim that it was to fork has not answered. The next shim is
    /// forked by another.
    pub(super) fn give_up(&self, forked_by: u32) {
        drop(self.running().take_if(|running| running.process.id() == forked_by));
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    fn start(program: &Path) -> io::Result<Self> {
        let (orders, theirs) = socket::pair()?;
        let process = Command::new(program)
            .arg0(NAME)
            .args([WORD, &title::room()])
            .env_clear()
            .stdin(Stdio::from(File::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { process, orders })
    }

    /// Sends an order. Waits a while if many are there already.
    fn order(&self, path: &Path, connection: &OwnedFd) -> Result<(), Errno> {
        let order = || {
            let path = path.as_os_str().as_bytes();
            socket::send(self.orders.as_fd(), path, &[connection.as_fd()])
        };
        match order() {
            Err(Errno::EAGAIN) => {
                readiness::wait([(Some(self.orders.as_fd()), WRITABLE)], Some(ORDERED_WITHIN))?;
                order()
            }
            ordered => ordered,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may be stopped, and would not see that its connection is closed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
