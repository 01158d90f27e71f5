//! Memory that several processes share: files that are nowhere on a disk, and views of them.
//!
//! It knows nothing of what is in them. A file whose size is sealed cannot be cut off under whoever
//! looks at it.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr::NonNull;

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::libc;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use crate::shim::stat::read;

/// Makes a file of zeros in memory that can still be sealed; nobody inherits it.
///
/// # Errors
/// What the kernel said.
pub fn create(name: &CStr, bytes: u64) -> io::Result<File> {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let file = File::from(memfd_create(name, flags)?);
    file.set_len(bytes)?;
    Ok(file)
}

/// Fixes the size of such a file for ever.
///
/// # Errors
/// What the kernel said.
pub fn seal_size(file: impl AsFd) -> io::Result<()> {
    add_seals(file, SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL)
}

/// Fixes the content of such a file for ever, its size included.
///
/// # Errors
/// What the kernel said; `ResourceBusy` when somebody could write to it by a view.
pub fn seal(file: impl AsFd) -> io::Result<()> {
    add_seals(
        file,
        SealFlag::F_SEAL_SHRINK
            | SealFlag::F_SEAL_GROW
            | SealFlag::F_SEAL_WRITE
            | SealFlag::F_SEAL_SEAL,
    )
}

/// Keeps other processes of the user from looking at the memory and the descriptors of this one, as by
/// `/proc/PID/fd`, and from tracing it. A copy made by `fork` is hidden from its first moment; a program
/// that this one starts is not concerned.
///
/// Whoever opened its memory before keeps it.
///
/// # Errors
/// What the kernel said.
pub fn hide() -> io::Result<()> {
    Ok(nix::sys::prctl::set_dumpable(false)?)
}

/// Whether a process traces this one, or nobody can say. None begins to once this one is hidden.
pub fn is_traced() -> bool {
    /// The line is among the first of a text that is longer.
    const ROOM: usize = 1_024;
    let mut room = [0; ROOM];
    let status = read(std::process::id().cast_signed(), "status", &mut room);
    let lines =
        |status: &[u8]| status.split(|byte| *byte == b'\n').any(|line| line == b"TracerPid:\t0");
    !status.is_ok_and(lines)
}

fn add_seals(file: impl AsFd, seals: SealFlag) -> io::Result<()> {
    fcntl(file, FcntlArg::F_ADD_SEALS(seals))?;
    Ok(())
}

/// Opens such a file a second time, so that it can only be read by the new descriptor.
///
/// # Errors
/// What the kernel said.
pub fn read_only(file: impl AsFd) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    Ok(OpenOptions::new().read(true).open(path)?.into())
}

/// Whether a process may look at such a file, and at how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// A view of a file in memory, shared with everybody else who has one.
#[derive(Debug)]
pub struct View {
    start: NonNull<u8>,
    bytes: NonZeroUsize,
}

impl View {
    /// Maps the first bytes of a file whose size is sealed.
    ///
    /// # Errors
    /// `InvalidData` for a file that is shorter or could become so; otherwise what the kernel said.
    pub fn new(file: impl AsFd, bytes: usize, access: Access) -> io::Result<Self> {
        let seals = fcntl(&file, FcntlArg::F_GET_SEALS)?;
        let long_enough = nix::sys::stat::fstat(&file)?.st_size as usize >= bytes;
        let sealed = SealFlag::from_bits_truncate(seals).contains(SealFlag::F_SEAL_SHRINK);
        let bytes = NonZeroUsize::new(bytes).filter(|_| sealed && long_enough);
        let bytes = bytes.ok_or(io::ErrorKind::InvalidData)?;
        let protection = match access {
            Access::Read => ProtFlags::PROT_READ,
            Access::Write => ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
        };
        Ok(Self { start: map(file, bytes, protection)?, bytes })
    }

    /// How many bytes can be seen.
    pub fn len(&self) -> usize {
        self.bytes.get()
    }

    /// A view is never empty.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Where it begins. What is behind it may change at any time.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }
}

#[allow(unsafe_code)]
fn map(
    file: impl AsFd,
    bytes: NonZeroUsize,
    protection: ProtFlags,
) -> Result<NonNull<u8>, nix::Error> {
    // SAFETY: the kernel chooses a place of its own for the view, so it covers nothing of ours.
    unsafe { mmap(None, bytes, protection, MapFlags::MAP_SHARED, file, 0).map(NonNull::cast) }
}

#[allow(unsafe_code)]
impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: the view was mapped with this length, and whoever looks at it borrows it.
        let unmapped = unsafe { munmap(self.start.cast::<libc::c_void>(), self.bytes.get()) };
        debug_assert!(unmapped.is_ok(), "a view can be given back");
    }
}

// SAFETY: a view is an address and a length; reading and writing behind it is unsafe by itself, and
// whoever does it answers for races, with other threads as with other processes.
#[allow(unsafe_code)]
unsafe impl Send for View {}
#[allow(unsafe_code)]
unsafe impl Sync for View {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_could_be_cut_off_is_not_looked_at() {
        let file = create(c"test", 4_096).unwrap();
        let refused = View::new(&file, 4_096, Access::Read).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
        seal_size(&file).unwrap();
        assert_eq!(View::new(&file, 4_096, Access::Read).unwrap().len(), 4_096);
        let refused = View::new(&file, 4_097, Access::Read).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn what_is_sealed_cannot_be_written() {
        use std::os::unix::fs::FileExt;

        let file = create(c"test", 10).unwrap();
        file.write_all_at(b"0123456789", 0).unwrap();
        seal(&file).unwrap();
        assert!(file.write_all_at(b"x", 0).is_err());
        assert!(file.set_len(11).is_err());
    }

    #[test]
    fn the_reading_end_cannot_write() {
        use std::os::unix::fs::FileExt;

        let file = create(c"test", 10).unwrap();
        let reading = File::from(read_only(&file).unwrap());
        assert!(reading.write_all_at(b"x", 0).is_err());
        seal_size(&file).unwrap();
        assert!(View::new(&reading, 10, Access::Write).is_err());
    }
}
