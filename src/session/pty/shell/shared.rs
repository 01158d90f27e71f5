//! The scripts for shells of other users, which cannot enter the runtime directory of a daemon of root.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use uuid::Uuid;

use crate::session::pty::shell::SCRIPTS;

/// Where they are, for all daemons of root of this version: only root can make names there. Nobody else can list it.
pub const SHARED: &str = concat!("/run/termgate-shell-", env!("CARGO_PKG_VERSION"));

/// Writes the scripts where they are missing or differ.
///
/// # Errors
/// Returns the system's error, and `EPERM` if the directory is another user's.
pub fn place() -> io::Result<PathBuf> {
    let directory = Path::new(SHARED);
    make(directory)?;
    let found = directory.symlink_metadata()?;
    if !found.is_dir() || found.uid() != 0 {
        return Err(Errno::EPERM.into());
    }
    for (path, text) in SCRIPTS {
        let path = directory.join(path);
        for above in path.ancestors().skip(1).take_while(|above| *above != directory) {
            fs::create_dir_all(above)?;
            fs::set_permissions(above, Permissions::from_mode(0o755))?;
        }
        if fs::read_to_string(&path).is_ok_and(|known| known == text) {
            continue;
        }
        let fresh = path.with_extension(Uuid::new_v4().simple().to_string());
        fs::write(&fresh, text)?;
        fs::set_permissions(&fresh, Permissions::from_mode(0o644))?;
        fs::rename(&fresh, &path)?;
    }
    Ok(directory.to_owned())
}

fn make(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o711).create(directory) {
        // Whatever the mask for new files was.
        Ok(()) => fs::set_permissions(directory, Permissions::from_mode(0o711)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}
