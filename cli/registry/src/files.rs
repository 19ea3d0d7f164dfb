//! Reads files that may be anything: never a pipe, and never more than a bound. Links are followed, as systems have them
//! to certificates and credentials.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use rustix::fs::{Mode, OFlags};

/// Reads a file of at most so many bytes. Does not wait for a FIFO.
pub(crate) fn read(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut bytes = Vec::new();
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|size| size > max) {
        return Err(io::Error::other(format!("it has more than {max} bytes")));
    }
    Ok(bytes)
}
