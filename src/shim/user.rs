//! The user that a program runs as, if that is another one than the shim's.
//! The shim stays as it is, so that the user can neither signal nor trace it.

use std::io;

use nix::errno::Errno;
use nix::unistd::{Gid, Uid, getresuid, setgroups, setresgid, setresuid, setuid};

/// The numbers that the kernel checks, complete: nothing of the shim's own stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramUser {
    uid: Uid,
    gid: Gid,
    /// All groups, the first one included.
    groups: Vec<Gid>,
}

impl ProgramUser {
    pub fn new(uid: u32, gid: u32, groups: impl IntoIterator<Item = u32>) -> Self {
        let groups = groups.into_iter().map(Gid::from_raw).collect();
        Self { uid: Uid::from_raw(uid), gid: Gid::from_raw(gid), groups }
    }

    pub fn uid(&self) -> Uid {
        self.uid
    }

    /// Becomes this user for good. The last call takes the right to make the other ones.
    ///
    /// Makes system calls only, so it may run between fork and exec.
    ///
    /// # Errors
    /// Returns the kernel's error, or `EPERM` if this process could still go back. It must not go on then.
    pub fn enter(&self) -> io::Result<()> {
        setgroups(&self.groups)?;
        setresgid(self.gid, self.gid, self.gid)?;
        setresuid(self.uid, self.uid, self.uid)?;
        let now = getresuid()?;
        let is_whole = [now.real, now.effective, now.saved].iter().all(|id| *id == self.uid);
        let could_return = !self.uid.is_root() && setuid(Uid::from_raw(0)).is_ok();
        if is_whole && !could_return { Ok(()) } else { Err(Errno::EPERM.into()) }
    }

    /// The numbers, each of four bytes: user, group, groups.
    pub(super) fn encode(&self) -> Vec<u8> {
        let groups = self.groups.iter().map(|group| group.as_raw());
        let numbers = [self.uid.as_raw(), self.gid.as_raw()].into_iter().chain(groups);
        numbers.flat_map(u32::to_le_bytes).collect()
    }

    /// Reads the output of [`ProgramUser::encode`]; `None` for anything else.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.as_chunks();
        let mut numbers = numbers.iter().map(|number| u32::from_le_bytes(*number));
        let (uid, gid) = (numbers.next()?, numbers.next()?);
        rest.is_empty().then(|| Self::new(uid, gid, numbers))
    }
}
