//! Clients in processes of their own, which can be made to stand still: an observer, and one who keeps a lease.
//!
//! They are this program, started again.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::harness::line_client::hello;
use crate::harness::processes::stands_still;
use crate::soak::world::World;

/// The word that makes this program one of them; what it is, the socket and the session follow.
pub(crate) const WORD: &str = "--puppet";
/// How long the lease of one who keeps it lasts without use.
pub(crate) const TTL: Duration = Duration::from_secs(1);
const RENEWS: Duration = Duration::from_millis(200);
const LOOKS: Duration = Duration::from_millis(50);

/// Such a process; it ends with this.
#[derive(Debug)]
pub(crate) struct Puppet(Child);

impl Puppet {
    /// Starts one: `observe` or `hold`.
    pub(crate) fn start(world: &World, role: &str, session: &str) -> Self {
        let mut command = world.home.command(std::env::current_exe().unwrap());
        command.args([WORD, role]).arg(&world.home.gateway().path).arg(session);
        Self(command.stdout(Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).unwrap()
    }

    pub(crate) async fn stands_still(&self) {
        stands_still(self.pid()).await;
    }

    pub(crate) fn goes_on(&self) {
        kill(Pid::from_raw(self.pid()), Signal::SIGCONT).unwrap();
    }

    /// Whether it has ended, which it does not by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }
}

impl Drop for Puppet {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Is such a process, for as long as it is let.
pub(crate) fn serve(words: &[String]) -> ! {
    let [role, socket, session] = words else { panic!("three words follow {WORD}") };
    loop {
        // Whoever hung up is looked for again.
        let _ = match role.as_str() {
            "observe" => observe(socket, session),
            _ => hold(socket, session),
        };
        std::thread::park_timeout(LOOKS);
    }
}

struct Line {
    reader: BufReader<UnixStream>,
    asked: u64,
}

impl Line {
    fn greet(socket: &str) -> std::io::Result<Self> {
        let mut line = Self { reader: BufReader::new(UnixStream::connect(socket)?), asked: 0 };
        line.ask("initialize", &hello("puppet"))?;
        let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        writeln!(line.reader.get_mut(), "{told}")?;
        Ok(line)
    }

    fn send(&mut self, method: &str, params: &Value) -> std::io::Result<()> {
        self.asked += 1;
        let asked = json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params});
        writeln!(self.reader.get_mut(), "{asked}")
    }

    fn ask(&mut self, method: &str, params: &Value) -> std::io::Result<Value> {
        self.send(method, params)?;
        loop {
            let message: Value = serde_json::from_str(&self.read()?)?;
            if message["id"] == self.asked {
                return Ok(message["result"]["structuredContent"].clone());
            }
        }
    }

    fn read(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        match self.reader.read_line(&mut line)? {
            0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line),
        }
    }
}

fn observe(socket: &str, session: &str) -> std::io::Result<()> {
    let mut line = Line::greet(socket)?;
    line.send("termgate/observe", &json!({"session": session, "lane": "recent"}))?;
    loop {
        line.read()?;
    }
}

fn hold(socket: &str, session: &str) -> std::io::Result<()> {
    let mut line = Line::greet(socket)?;
    let ttl = u64::try_from(TTL.as_millis()).unwrap();
    loop {
        let asked = json!({"session": session, "ttl_ms": ttl, "wait_ms": 5_000});
        line.ask("tools/call", &json!({"name": "acquire_lease", "arguments": asked}))?;
        std::thread::park_timeout(RENEWS);
    }
}
