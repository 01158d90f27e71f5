//! How the allocator uses memory.

#[cfg(target_env = "gnu")]
use nix::libc;

/// Makes the allocator take each buffer of at least so many bytes from the kernel, and give it back when it is freed.
///
/// The kernel counts only pages that are written, while recycled memory would have to be zeroed and so counts at once.
/// glibc begins with 128 KiB but raises that to the size of each such buffer that is freed, and keeps smaller ones, see
/// mallopt(3). Elsewhere this does nothing.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
pub fn take_buffers_fresh(bytes: i32) {
    // SAFETY: the allocator accepts this option at any time.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, bytes);
    }
}

#[cfg(not(target_env = "gnu"))]
pub fn take_buffers_fresh(_bytes: i32) {}
