//! A disk that a test may fill up.
//!
//! It is mounted where only one process sees it, which needs no privilege where a user may make namespaces;
//! the others reach it by that process's root.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::harness::waiting::soon;

/// How often is filled up what got free.
const FILLED: Duration = Duration::from_millis(1);

/// A disk, there for as long as this is.
#[derive(Debug)]
pub(crate) struct Disk {
    /// Where it is mounted, as everybody reaches it.
    pub(crate) path: PathBuf,
    // Its end takes the mount with it.
    _keeper: Child,
    _ground: TempDir,
}

impl Disk {
    /// Mounts one of a size as `mount` has it, such as `64k`; none where the system lets nobody mount.
    pub(crate) async fn mount(size: &str) -> Option<Self> {
        let ground = tempfile::Builder::new().prefix("tgd").tempdir().unwrap();
        let mounted = Self::mount_at(ground.path(), size).await;
        let Some((path, keeper)) = mounted else {
            // `tests/run` names this among what is not there.
            eprintln!("not tested: nobody may mount anything here");
            return None;
        };
        Some(Self { path, _keeper: keeper, _ground: ground })
    }

    async fn mount_at(at: &Path, size: &str) -> Option<(PathBuf, Child)> {
        let at_text = at.display();
        let line = format!(
            "mount -t tmpfs -o size={size},mode=700 outlive {at_text} && echo mounted && exec cat"
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
        Some((root.join(at.strip_prefix("/").unwrap()), keeper))
    }

    /// Fills it up, and keeps it full.
    pub(crate) fn fill(&self) -> Filling {
        let path = self.path.join("filling");
        let filling = path.clone();
        let task = tokio::spawn(async move {
            while fill_up(&filling) {
                sleep(FILLED).await;
            }
        });
        Filling { path, task }
    }
}

/// What keeps a disk full.
#[derive(Debug)]
pub(crate) struct Filling {
    path: PathBuf,
    task: JoinHandle<()>,
}

impl Filling {
    /// Gives back all the room.
    pub(crate) async fn end(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
        fs::remove_file(self.path).unwrap();
    }
}

/// Writes until there is no room for another byte, and says whether the disk is still there.
fn fill_up(path: &Path) -> bool {
    let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path) else {
        return false;
    };
    while file.write_all(&[b'x'; 512]).is_ok() {}
    true
}
