//! Opens a socket or directory of ours to its audience, and to nobody else on the way there.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::Path;

use crate::config::sockets::SocketAudience;

/// The bits of a mode that give access.
const ACCESS_BITS: u32 = 0o1777;

/// Opens a socket's file, which has mode 0600.
///
/// # Errors
/// Returns the kernel's error; `PermissionDenied` when our user is not in the group of the audience.
pub fn open_socket(path: &Path, audience: SocketAudience) -> io::Result<()> {
    open(path, audience.group(), audience.socket_mode())
}

/// Opens a directory to pass through, or closes one that was open to another audience.
///
/// # Errors
/// As [`open_socket`].
pub fn open_directory(path: &Path, audience: SocketAudience) -> io::Result<()> {
    open(path, audience.group(), audience.directory_mode())
}

fn open(path: &Path, group: Option<u32>, mode: u32) -> io::Result<()> {
    let found = path.symlink_metadata()?;
    let other_group = group.filter(|group| *group != found.gid());
    if other_group.is_none() && found.mode() & ACCESS_BITS == mode {
        return Ok(());
    }
    if let Some(group) = other_group {
        // The new group gets nothing of what an earlier one was given.
        fs::set_permissions(path, Permissions::from_mode(found.mode() & 0o700))?;
        lchown(path, None, Some(group))?;
    }
    fs::set_permissions(path, Permissions::from_mode(mode))
}
