//! The sandbox of a session: what its programs cannot see, change, signal or trace.
//! bubblewrap makes it, from the words that are put together here. `docs/SECURITY.md` says what it promises.

mod mounts;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::{AccessFlags, faccessat};

use crate::session::pty::account::own_uid;
use crate::session::pty::command::{DEFAULT_PATH, find_program};
use crate::session::pty::environment::Environment;
use crate::session::pty::sandbox::mounts::Mounts;
use crate::shim::sandbox::trial;

/// The program that makes sandboxes.
const MAKER: &str = "bwrap";

/// Processes and terminals of its own, no rights of an administrator, and devices that are nobody's.
const BASE: [&str; 15] = [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--cap-drop",
    "ALL",
    "--bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    // Whoever may write to control groups can end processes there.
    "--ro-bind",
    "/sys",
    "/sys",
];

/// Where services listen that run programs for their users, outside of any sandbox.
const SERVICES: [&str; 1] = ["/run/dbus"];
const SERVICE_SOCKET: &str = "/run/systemd/private";

/// The directories of the daemon that matter to sandboxes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxPlaces {
    /// Those that no sandboxed program may see.
    pub hidden: Vec<PathBuf>,
    /// Those that it may read, but not change.
    pub protected: Vec<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("a sandbox needs the program {MAKER}, which is not installed")]
    NotInstalled,
    #[error("{MAKER} cannot make a sandbox here: {0}")]
    NotWorking(String),
    #[error("{} is a symbolic link, and a sandboxed program could replace it or what it leads to", .0.display())]
    Link(PathBuf),
    #[error("cannot prepare {} for a sandbox: {source}", path.display())]
    Place { path: PathBuf, source: io::Error },
    #[error("sessions that end with their daemon cannot be sandboxed")]
    NoShim,
}

impl SandboxError {
    fn place(path: &Path, source: io::Error) -> Self {
        Self::Place { path: path.to_owned(), source }
    }
}

/// What a place is replaced by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mask {
    /// Nothing can be made there.
    Hidden,
    /// A directory for the sandbox alone.
    Private,
    ReadOnly,
    /// A file or socket that is none.
    NoFile,
}

/// A sandbox that is asked for. All is looked at with the rights of the user whose programs it is for.
#[derive(Debug)]
pub struct SandboxRequest<'a> {
    pub places: &'a SandboxPlaces,
    /// What the sandbox may read below a hidden directory.
    pub readable: &'a [PathBuf],
    pub uid: u32,
    /// The daemon's.
    pub environment: &'a Environment,
}

impl SandboxRequest<'_> {
    /// The command line that makes the sandbox, without the program in it.
    pub fn words(&self) -> Result<Vec<OsString>, SandboxError> {
        let masks = self.masks()?;
        let mut words = vec![maker(self.environment)?.into_os_string()];
        let mut put = |parts: &[&OsStr]| words.extend(parts.iter().map(OsString::from));
        put(&BASE.map(OsStr::new));
        if self.uid == 0 {
            // Root owns the kernel's settings there, whatever its rights are.
            put(&["--remount-ro", "/proc"].map(OsStr::new));
        }
        for pinned in pins(&masks) {
            put(&["--bind".as_ref(), pinned.as_os_str(), pinned.as_os_str()]);
        }
        for (path, mask) in &masks {
            let path = path.as_os_str();
            match mask {
                Mask::Hidden => put(&["--perms", "0500", "--tmpfs"].map(OsStr::new)),
                Mask::Private => put(&["--perms", "0700", "--tmpfs"].map(OsStr::new)),
                Mask::ReadOnly => put(&["--ro-bind".as_ref(), path]),
                Mask::NoFile => put(&["--ro-bind", "/dev/null"].map(OsStr::new)),
            }
            put(&[path]);
        }
        for path in self.readable {
            let path = real(path)?;
            put(&["--ro-bind".as_ref(), path.as_os_str(), path.as_os_str()]);
        }
        for (path, _) in masks.iter().filter(|(_, mask)| *mask == Mask::Hidden) {
            put(&["--remount-ro".as_ref(), path.as_os_str()]);
        }
        Ok(words)
    }

    /// Each place once, those above before those below, and none below one that is replaced as a whole.
    fn masks(&self) -> Result<Vec<(PathBuf, Mask)>, SandboxError> {
        let (mut found, mounts) = (Vec::new(), Mounts::read());
        for (paths, mask) in
            [(&self.places.hidden, Mask::Hidden), (&self.places.protected, Mask::ReadOnly)]
        {
            for path in paths {
                // What its user cannot reach needs no mask.
                if let Some(path) = self.pinnable(path)? {
                    check_links_in(&path)?;
                    found.extend(mounts.aliases(&path).into_iter().map(|alias| (alias, mask)));
                    found.push((path, mask));
                }
            }
        }
        found.extend(self.services());
        let of_kernel = mounts.of_kernel().filter(|point| point.is_dir());
        found.extend(of_kernel.map(|point| (point.to_owned(), Mask::Hidden)));
        found.sort();
        let mut masks: Vec<(PathBuf, Mask)> = Vec::new();
        for (path, mask) in found {
            let is_covered = masks.iter().any(|(above, by)| {
                let replaced = matches!(by, Mask::Hidden | Mask::Private);
                *above == path || replaced && path.starts_with(above)
            });
            if !is_covered {
                masks.push((path, mask));
            }
        }
        Ok(masks)
    }

    /// Where services of this machine and this user listen, as far as they are there.
    fn services(&self) -> Vec<(PathBuf, Mask)> {
        let uid = self.uid;
        let own = self.environment.get(OsStr::new("XDG_RUNTIME_DIR")).map(PathBuf::from);
        let own = own.filter(|_| own_uid() == uid);
        let private = [format!("/run/user/{uid}").into(), format!("/tmp/tmux-{uid}").into()];
        let private = private.into_iter().chain(own).map(|path| (path, Mask::Private));
        let hidden = SERVICES.map(|path| (PathBuf::from(path), Mask::Hidden));
        let socket = (PathBuf::from(SERVICE_SOCKET), Mask::NoFile);
        let all = private.chain(hidden).chain([socket]);
        all.filter_map(|(path, mask)| Some((fs::canonicalize(path).ok()?, mask))).collect()
    }

    /// The real path of a directory that nobody in the sandbox can replace; `None` if its user cannot reach it. Makes
    /// a missing one, which could be made in the sandbox otherwise. Other users' daemons read those of the system.
    fn pinnable(&self, path: &Path) -> Result<Option<PathBuf>, SandboxError> {
        let is_own = self.uid == own_uid();
        if !path.exists() && is_own {
            let made = DirBuilder::new().recursive(true).mode(0o755).create(path);
            match made {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => return Ok(None),
                made => made.map_err(|error| SandboxError::place(path, error))?,
            }
        }
        let Ok(real) = fs::canonicalize(path) else { return Ok(None) };
        let is_replaceable = |at: &&Path| at.is_symlink() && at.parent().is_some_and(may_change);
        match path.ancestors().find(is_replaceable) {
            Some(link) => Err(SandboxError::Link(link.to_owned())),
            None => Ok(Some(real)),
        }
    }
}

/// Refuses a directory with a link to a file that the sandbox could change where it really is.
fn check_links_in(directory: &Path) -> Result<(), SandboxError> {
    let entries = match fs::read_dir(directory) {
        // Who may not even list it changes nothing there.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
        entries => entries.map_err(|error| SandboxError::place(directory, error))?,
    };
    let leads_out = |path: &PathBuf| {
        let target = fs::canonicalize(path).ok().filter(|target| !target.starts_with(directory));
        target.is_some_and(|target| may_change(&target) || target.parent().is_some_and(may_change))
    };
    let mut links = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_symlink());
    links.find(leads_out).map_or(Ok(()), |link| Err(SandboxError::Link(link)))
}

/// The directories above those with masks that could be renamed, and so take their masks away. Mount points cannot.
fn pins(masks: &[(PathBuf, Mask)]) -> BTreeSet<PathBuf> {
    let is_masked = |path: &Path| masks.iter().any(|(masked, _)| path.starts_with(masked));
    let above = masks.iter().flat_map(|(path, _)| path.ancestors().skip(1));
    let renamable = |path: &&Path| path.parent().is_some_and(may_change) && !is_masked(path);
    above.filter(renamable).map(Path::to_owned).collect()
}

/// Whether names in a directory may be changed, by the user by whose rights this thread looks.
fn may_change(directory: &Path) -> bool {
    faccessat(AT_FDCWD, directory, AccessFlags::W_OK, AtFlags::AT_EACCESS).is_ok()
}

fn real(path: &Path) -> Result<PathBuf, SandboxError> {
    fs::canonicalize(path).map_err(|error| SandboxError::place(path, error))
}

/// The program that makes sandboxes, preferably where only root can put it.
fn maker(environment: &Environment) -> Result<PathBuf, SandboxError> {
    let usual = Environment::from([("PATH".into(), DEFAULT_PATH.into())]);
    let find = |environment| find_program(MAKER, Path::new("/"), environment);
    find(&usual).or_else(|_| find(environment)).map_err(|_| SandboxError::NotInstalled)
}

/// Makes a sandbox with these words once, and remembers if that worked. May take some hundredths of a second.
pub fn try_once(words: &[OsString]) -> Result<(), SandboxError> {
    static WORKS: AtomicBool = AtomicBool::new(false);
    if WORKS.load(Ordering::Relaxed) {
        return Ok(());
    }
    let mut command = trial(words).ok_or(SandboxError::NotInstalled)?;
    let tried = command.env_clear().env("PATH", DEFAULT_PATH).current_dir("/").output();
    let tried = tried.map_err(|error| SandboxError::NotWorking(error.to_string()))?;
    if tried.status.success() {
        WORKS.store(true, Ordering::Relaxed);
        return Ok(());
    }
    let said = String::from_utf8_lossy(&tried.stderr).trim().to_owned();
    Err(SandboxError::NotWorking(if said.is_empty() { tried.status.to_string() } else { said }))
}

/// Whether sandboxes can be made here, and by which program.
pub fn check(environment: &Environment) -> Result<PathBuf, SandboxError> {
    let places = SandboxPlaces::default();
    let uid = own_uid();
    let request = SandboxRequest { places: &places, readable: &[], uid, environment };
    try_once(&request.words()?)?;
    maker(environment)
}

#[cfg(test)]
mod tests;
