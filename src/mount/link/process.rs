//! The process of a server: its pipes, and its end with all that came of it.
//!
//! A daemon that is killed closes the pipes, by which servers end. There is no signal for the daemon's death: the
//! kernel would send it when the thread ends that started the server.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, BufReader, ReadBuf};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::mount::link::lines::{BoundedLine, Lines, bounded_line, read_lines, write_lines};
use crate::mount::log::{LOG_LINE_MAX, ServerLog};

/// How long a server may take to end before it is killed, and how often it is looked at meanwhile.
const GRACE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);

/// How long the end of a server is waited for whose output has ended, so that it can be told how it ended.
const END_WAIT: Duration = Duration::from_millis(300);

/// A server that is to be started.
#[derive(Clone, Debug)]
pub struct ServerProgram {
    pub command: String,
    pub args: Vec<String>,
    /// All of its environment.
    pub environment: BTreeMap<OsString, OsString>,
    pub cwd: PathBuf,
    pub is_sandboxed: bool,
    pub host: Arc<dyn ServerHost>,
}

/// What the daemon does for the processes of servers.
pub trait ServerHost: fmt::Debug + Send + Sync {
    /// The words of a command line that runs another in a sandbox. May take a while.
    ///
    /// # Errors
    /// Why there is no sandbox.
    fn sandbox(&self) -> Result<Vec<OsString>, String>;

    /// Starts a command, at the head of a process group of its own.
    ///
    /// # Errors
    /// The system's error.
    fn start(&self, command: &mut Command) -> io::Result<(Child, Arc<dyn HostedServer>)>;
}

/// What is over when something has happened.
pub type BoxedWait<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A server that was started. It is not reaped before this is dropped.
pub trait HostedServer: fmt::Debug + Send + Sync {
    /// Waits until it has ended, whatever came of it.
    fn ended(&self) -> BoxedWait<'_>;

    /// Ends what is left of all that came of it, whatever group that is in, in bounded time.
    fn end(&self) -> BoxedWait<'_>;
}

/// The output of a server, which ends with it: what the server has started may keep the pipe open.
struct OwnOutput<R> {
    pipe: R,
    /// `None` once it has ended.
    ended: Option<BoxedWait<'static>>,
}

impl<R: AsyncRead + Unpin> AsyncRead for OwnOutput<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // What it wrote before its end comes first.
        match Pin::new(&mut self.pipe).poll_read(context, room) {
            Poll::Pending => {
                if let Some(ended) = &mut self.ended {
                    ready!(ended.as_mut().poll(context));
                    self.ended = None;
                }
                Poll::Ready(Ok(()))
            }
            read @ Poll::Ready(_) => read,
        }
    }
}

impl ServerProgram {
    /// The command line, inside of its sandbox if it has one.
    async fn command(&self) -> Result<Command, String> {
        let mut words = Vec::new();
        if self.is_sandboxed {
            let host = Arc::clone(&self.host);
            let made = spawn_blocking(move || host.sandbox()).await;
            let made = made.unwrap_or_else(|error| Err(error.to_string()));
            words = made.map_err(|why| format!("no sandbox: {why}"))?;
            words.push("--".into());
        }
        words.push(OsString::from(&self.command));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(&self.args);
        Ok(command)
    }
}

/// A running server. Dropping it kills its group.
#[derive(Debug)]
pub struct ServerProcess {
    server: Arc<dyn HostedServer>,
    group: Option<Pid>,
    /// Whether it was asked to end.
    is_asked: Arc<AtomicBool>,
    /// The last line that it wrote to standard error; closed when it writes no more.
    last_line: watch::Receiver<String>,
    /// Until when its end is waited for, once its output has ended.
    ends_until: Option<Instant>,
    _pipes: JoinSet<()>,
}

impl ServerProcess {
    /// Starts a server.
    ///
    /// # Errors
    /// Why that failed.
    pub async fn start(program: &ServerProgram, log: &ServerLog) -> Result<(Lines, Self), String> {
        let wrong = |why: String| format!("cannot start {}: {why}", program.command);
        let mut command = program.command().await.map_err(wrong)?;
        command.env_clear().envs(&program.environment);
        command.current_dir(&program.cwd);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = program.host.start(&mut command);
        let (mut child, server) = started.map_err(|error| wrong(error.to_string()))?;
        let group = Some(Pid::from_raw(child.id().cast_signed()));
        let (lines, unwritten, read) = Lines::new();
        let (is_asked, (said, last_line)) = (Arc::default(), watch::channel(String::new()));
        let (ends_until, _pipes) = (None, JoinSet::new());
        let mut process = Self { server, group, is_asked, last_line, ends_until, _pipes };
        let pipes = &mut process._pipes;
        let join = || -> io::Result<()> {
            if let Some(stdin) = child.stdin.take() {
                pipes.spawn(write_lines(ChildStdin::from_std(stdin)?, unwritten));
            }
            if let Some(stdout) = child.stdout.take() {
                let pipe = ChildStdout::from_std(stdout)?;
                let is_asked = program.is_sandboxed.then(|| Arc::clone(&process.is_asked));
                let ended: BoxedWait<'_> = Box::pin(ended(Arc::clone(&process.server), is_asked));
                pipes.spawn(read_lines(OwnOutput { pipe, ended: Some(ended) }, read));
            }
            if let Some(stderr) = child.stderr.take() {
                pipes.spawn(keep_log(ChildStderr::from_std(stderr)?, log.clone(), said));
            }
            Ok(())
        };
        join().map_err(|error| wrong(error.to_string()))?;
        Ok((lines, process))
    }

    pub fn pid(&self) -> Option<u32> {
        self.group.map(|group| group.as_raw().cast_unsigned())
    }

    /// How it has ended by itself, after its output has ended. Waits a moment for its end, and for its last line. Cancelling
    /// this does not begin the wait anew.
    pub async fn how_it_ended(&mut self) -> String {
        let until = *self.ends_until.get_or_insert_with(|| Instant::now() + END_WAIT);
        let ended = async {
            self.server.ended().await;
            while self.last_line.changed().await.is_ok() {}
        };
        let _ = timeout_at(until, ended).await;
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        match self.group.map(|group| waitid(Id::Pid(group), flags)) {
            Some(Ok(WaitStatus::Exited(_, code))) => format!("it exited with status {code}"),
            Some(Ok(WaitStatus::Signaled(_, signal, _))) => format!("it was ended by {signal}"),
            Some(Ok(WaitStatus::StillAlive)) => "it closed its output".to_owned(),
            // Nothing else ends a process.
            Some(Ok(_) | Err(_)) | None => "it ended".to_owned(),
        }
    }

    /// The last line that it wrote to standard error, if it wrote one.
    pub fn last_line(&self) -> Option<String> {
        Some(self.last_line.borrow().clone()).filter(|line| !line.is_empty())
    }

    /// Ends it with all that came of it: asks its group, waits two seconds, and kills.
    pub async fn end(mut self, mut lines: Lines) {
        lines.close();
        let Some(group) = self.group else { return };
        self.is_asked.store(true, Ordering::Relaxed);
        let _ = killpg(group, Signal::SIGTERM);
        let ending = async {
            while lines.next().await.is_some() {}
            while !has_ended(group) {
                sleep(LOOK).await;
            }
        };
        let _ = timeout(GRACE, ending).await;
        // It is not reaped yet, so the number of the group is still its own.
        let _ = killpg(group, Signal::SIGKILL);
        self.server.end().await;
        self.group = None;
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}

/// Waits for the end of a server. The maker of a sandbox ends with the server in it, but before it once both were asked to
/// end: then only its output says when it has ended.
async fn ended(server: Arc<dyn HostedServer>, of_sandbox: Option<Arc<AtomicBool>>) {
    server.ended().await;
    if of_sandbox.is_some_and(|is_asked| is_asked.load(Ordering::Relaxed)) {
        std::future::pending().await
    }
}

/// Whether a child has ended, without reaping it.
fn has_ended(child: Pid) -> bool {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    !matches!(waitid(Id::Pid(child), flags), Ok(WaitStatus::StillAlive))
}

async fn keep_log(stderr: ChildStderr, log: ServerLog, said: watch::Sender<String>) {
    let mut reader = BufReader::new(stderr);
    loop {
        match bounded_line(&mut reader, LOG_LINE_MAX).await {
            Ok(BoundedLine::Whole(line) | BoundedLine::Cut(line)) => {
                log.add(&line);
                let line = ServerLog::kept(&line);
                if !line.is_empty() {
                    said.send_replace(line);
                }
            }
            Ok(BoundedLine::End) | Err(_) => return,
        }
    }
}
