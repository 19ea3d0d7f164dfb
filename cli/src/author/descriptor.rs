//! Waiting for a file descriptor.

use std::{io, os::fd::OwnedFd};

use tokio::io::{Interest, unix::AsyncFd};

pub(super) fn readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    #[expect(
        unsafe_code,
        reason = "the only way to wait for a descriptor that is neither a pipe nor a socket"
    )]
    // SAFETY: the descriptor is owned by the result, so it stays open and the same.
    unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.map_err(Into::into)
}
