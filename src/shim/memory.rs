//! Memory that several processes share: memfd files and mappings of them.
//! A sealed file cannot shrink, so a mapping of it never faults.

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

/// Makes a close-on-exec memfd of zeros that can still be sealed.
pub fn create(name: &CStr, bytes: u64) -> io::Result<File> {
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let file = File::from(memfd_create(name, flags)?);
    file.set_len(bytes)?;
    Ok(file)
}

/// Fixes the size of a memfd for good.
pub fn seal_size(file: impl AsFd) -> io::Result<()> {
    add_seals(file, SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL)
}

/// Fixes the content and the size of a memfd for good.
///
/// # Errors
/// Returns the kernel's error: `ResourceBusy` while a writable mapping exists.
pub fn seal(file: impl AsFd) -> io::Result<()> {
    add_seals(
        file,
        SealFlag::F_SEAL_SHRINK
            | SealFlag::F_SEAL_GROW
            | SealFlag::F_SEAL_WRITE
            | SealFlag::F_SEAL_SEAL,
    )
}

/// Makes this process undumpable, so that other processes of the user can neither trace it nor read its
/// memory or descriptors. A forked copy is hidden too; a program after `exec` is not.
///
/// A process that has already opened this memory keeps its access.
pub fn hide() -> io::Result<()> {
    Ok(nix::sys::prctl::set_dumpable(false)?)
}

/// Whether another process traces this one; true if `/proc` cannot say. A hidden process cannot become
/// traced.
pub fn is_traced() -> bool {
    /// `TracerPid` is among the first lines, so the rest of the file is not needed.
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

/// Opens a memfd again, so that the new descriptor can only read.
pub fn read_only(file: impl AsFd) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    Ok(OpenOptions::new().read(true).open(path)?.into())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// A shared mapping of a memfd.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: NonZeroUsize,
}

impl Mapping {
    /// Maps the first bytes of a memfd with a sealed size.
    ///
    /// # Errors
    /// `InvalidData` if the file is shorter or could shrink; otherwise the kernel's error.
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

    pub fn len(&self) -> usize {
        self.bytes.get()
    }

    pub fn is_empty(&self) -> bool {
        false
    }

    /// The address of the mapping. Another process may change the bytes at any time.
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
    // SAFETY: the kernel chooses a free address, so the mapping covers no memory of ours.
    unsafe { mmap(None, bytes, protection, MapFlags::MAP_SHARED, file, 0).map(NonNull::cast) }
}

#[allow(unsafe_code)]
impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping has this length, and every user of it borrows the view.
        let unmapped = unsafe { munmap(self.start.cast::<libc::c_void>(), self.bytes.get()) };
        debug_assert!(unmapped.is_ok(), "a view can be given back");
    }
}

// SAFETY: a view is an address and a length. Access to the bytes is unsafe by itself, and that code answers
// for races between threads and processes.
#[allow(unsafe_code)]
unsafe impl Send for Mapping {}
#[allow(unsafe_code)]
unsafe impl Sync for Mapping {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_could_be_cut_off_is_not_looked_at() {
        let file = create(c"test", 4_096).unwrap();
        let refused = Mapping::new(&file, 4_096, Access::Read).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
        seal_size(&file).unwrap();
        assert_eq!(Mapping::new(&file, 4_096, Access::Read).unwrap().len(), 4_096);
        let refused = Mapping::new(&file, 4_097, Access::Read).unwrap_err();
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
        assert!(Mapping::new(&reading, 10, Access::Write).is_err());
    }
}
