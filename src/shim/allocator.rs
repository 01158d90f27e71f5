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

/// Gives free memory back to the kernel, that between buffers in use as well.
///
/// glibc keeps it otherwise, for each thread apart, see malloc_trim(3). Elsewhere this does nothing.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
pub fn give_back() {
    // SAFETY: the allocator gives back only what nobody uses, at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(not(target_env = "gnu"))]
pub fn give_back() {}

#[cfg(test)]
mod tests {
    #[cfg(target_env = "gnu")]
    #[test]
    fn free_memory_between_buffers_in_use_goes_back_to_the_kernel() {
        let resident_kib = || -> u64 {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
            line.trim().trim_end_matches(" kB").parse().unwrap()
        };
        let mut buffers = vec![vec![1_u8; 1_024]; 64 * 1_024];
        for (at, buffer) in buffers.iter_mut().enumerate() {
            // What is in use keeps the allocator from giving back the end of its memory.
            if at % 64 > 0 {
                *buffer = Vec::new();
            }
        }
        let before = resident_kib();
        super::give_back();
        let given_back = before.saturating_sub(resident_kib());
        assert!(given_back > 32 * 1_024, "{given_back} KiB of 63 MiB");
        assert!(buffers.iter().step_by(64).all(|buffer| buffer.len() == 1_024));
    }
}
