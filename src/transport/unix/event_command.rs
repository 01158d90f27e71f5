//! Runs the operator's command for one event.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

use crate::transport::notify::VARIABLES;

/// How long a command may take.
const TIME_MAX: Duration = Duration::from_secs(10);

/// How a command ended.
#[derive(Debug)]
pub enum EventCommandEnd {
    Exited(ExitStatus),
    /// It took too long, and was killed with all processes of its group.
    Killed,
}

/// Runs a shell line with these variables and this standard input, and waits until it has ended.
///
/// # Errors
/// Returns the system's error if it cannot be started.
pub async fn run_event_command(
    line: &str,
    variables: &[(&str, String)],
    input: &str,
) -> io::Result<EventCommandEnd> {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(line).envs(variables.iter().map(|(name, value)| (name, value)));
    // A service manager means them for the daemon alone.
    for name in VARIABLES {
        command.env_remove(name);
    }
    if let Some(home) = std::env::home_dir().filter(|home| home.is_dir()) {
        command.current_dir(home);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.process_group(0).kill_on_drop(true).spawn()?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
    let stdin = child.stdin.take();
    let running = async {
        if let Some(mut stdin) = stdin {
            // One that reads no input need not.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        child.wait().await
    };
    match timeout(TIME_MAX, running).await {
        Ok(ended) => Ok(EventCommandEnd::Exited(ended?)),
        Err(_) => {
            if let Some(group) = group {
                // It has not been waited for, so that the number is still its own.
                let _ = killpg(group, Signal::SIGKILL);
            }
            child.wait().await?;
            Ok(EventCommandEnd::Killed)
        }
    }
}
