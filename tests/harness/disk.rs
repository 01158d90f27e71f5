//! A small disk that can be filled up.
//!
//! It is mounted where only one process sees it, which needs no privilege where a user may make namespaces; the
//! others reach it by that process's root.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::harness::waiting::soon;

/// How often is filled up what got free.
const FILLED: Duration = Duration::from_millis(1);

/// Such a disk, there for as long as this is.
#[derive(Debug)]
pub(crate) struct Disk {
    /// Where it is mounted, as everybody reaches it.
    pub(crate) path: PathBuf,
    // Its end takes the mount with it.
    _keeper: Child,
}

impl Disk {
    /// Mounts one of this size, in KiB, at a directory; none where the system lets nobody mount.
    pub(crate) async fn mount(at: &Path, kib: u64) -> Option<Self> {
        let line = format!(
            "mount -t tmpfs -o size={kib}k,mode=700 outlive {} && echo mounted && exec cat",
            at.display()
        );
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", &line]);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut keeper = command.spawn().ok()?;
        let mut said = [0; 8];
        let reading = keeper.stdout.as_mut().unwrap().read_exact(&mut said);
        soon("the disk to be mounted", reading).await.ok()?;
        let root = PathBuf::from(format!("/proc/{}/root", keeper.id().unwrap()));
        Some(Self { path: root.join(at.strip_prefix("/").unwrap()), _keeper: keeper })
    }

    /// What fills it up.
    pub(crate) fn filling(&self) -> PathBuf {
        self.path.join("filling")
    }

    /// Fills it up, and keeps it full until this is aborted.
    pub(crate) fn fill(&self) -> JoinHandle<()> {
        let filling = self.filling();
        tokio::spawn(async move {
            while fill_up(&filling) {
                sleep(FILLED).await;
            }
        })
    }
}

/// Writes until there is no room for another byte, and says whether the disk is still there.
fn fill_up(path: &Path) -> bool {
    let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path) else {
        return false;
    };
    for piece in [&[b'x'; 1 << 16][..], &[b'x'; 512][..]] {
        while file.write_all(piece).is_ok() {}
    }
    true
}
