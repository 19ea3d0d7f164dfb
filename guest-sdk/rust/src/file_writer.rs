//! Writing to files with errors that say what failed.

use std::{
    fs::File,
    io::{self, Write},
};

/// The most bytes of one call into the host. An extension may pass little more than its `message-size` at once.
const AT_ONCE: usize = 64 * 1024;

/// Writes to a file from a given position on, with errors that give the reason.
///
/// In a component, a failed write of [`File`] itself is always `I/O error (os error 29)`: the C library drops
/// the reason. This writer gives the host's error, such as [`StorageFull`](io::ErrorKind::StorageFull) for a
/// full disk or for a directory over the `max-bytes` of its grant.
///
/// Nothing is buffered: bytes written without an error are with the host, and on disk after
/// [`File::sync_data`].
///
/// ```no_run
/// # fn main() -> std::io::Result<()> {
/// use std::{fs::OpenOptions, io::Write};
///
/// let file = OpenOptions::new().write(true).create(true).truncate(false).open("/data/log")?;
/// let length = file.metadata()?.len();
/// let mut log = weir_sdk::FileWriter::new(file, length);
/// log.write_all(b"another line\n")?;
/// log.get_ref().sync_data()
/// # }
/// ```
#[derive(Debug)]
pub struct FileWriter {
    file: File,
    position: u64,
}

impl FileWriter {
    /// Writes from byte `position` on. The file must be open for writing, not for appending.
    #[must_use]
    pub fn new(file: File, position: u64) -> Self {
        Self { file, position }
    }

    /// The file. Its own position stays where it is.
    #[must_use]
    pub fn get_ref(&self) -> &File {
        &self.file
    }

    /// The position of the next byte.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }
}

impl Write for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = bytes.chunks(AT_ONCE).next().unwrap_or_default();
        let written = rustix::io::pwrite(&self.file, bytes, self.position)?;
        self.position += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn bytes_go_where_they_are_to_go_and_errors_say_why() {
        let path = std::env::temp_dir().join(format!("weir-file-writer-{}", std::process::id()));
        fs::write(&path, "abcdef").unwrap();
        let mut writer = FileWriter::new(File::options().write(true).open(&path).unwrap(), 4);
        writer.write_all(b"12").unwrap();
        writer.write_all(b"34").unwrap();
        assert_eq!((writer.position(), fs::read(&path).unwrap()), (8, b"abcd1234".to_vec()));
        fs::remove_file(&path).unwrap();

        let mut full = FileWriter::new(File::options().write(true).open("/dev/full").unwrap(), 0);
        assert_eq!(full.write_all(b"x").unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(full.position(), 0);
    }
}
