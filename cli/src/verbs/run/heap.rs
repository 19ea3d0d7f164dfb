//! What glibc does with freed memory.

/// Memory of this size or more, in bytes, is mapped straight from the system.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BLOCK: libc::c_int = 1024 * 1024;

/// Makes glibc return the memory of large payloads to the system as soon as it is freed. By default glibc raises its
/// threshold for that, up to 32 MiB, after the first large block.
pub(super) fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "`libc` declares this function of glibc as unsafe")]
    // SAFETY: `mallopt` is given no pointer, and only this thread calls it.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BLOCK);
    }
}

/// Returns freed memory to the system. A start or reload takes several times the memory of what it loads, and glibc
/// would keep it.
pub(super) fn give_back_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "`libc` declares this function of glibc as unsafe")]
    // SAFETY: `malloc_trim` is given no pointer, and any thread may call it at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
