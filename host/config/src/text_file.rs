//! Reads text files of a bounded size.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use super::shape::bytes;

/// Why a file was not read. Completes "cannot read it".
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it is not a regular file")]
    NotAFile,
    #[error("it is larger than {}", bytes(*.0))]
    TooLarge(u64),
    #[error("it is not UTF-8")]
    NotUtf8,
}

/// Reads a file of at most `max` bytes. A larger one is not read at all.
pub(crate) fn read(path: &Path, max: u64) -> Result<String, ReadError> {
    // Checked before opening: opening a FIFO waits for a writer.
    if !path.metadata()?.is_file() {
        return Err(ReadError::NotAFile);
    }
    let file = File::open(path)?;
    if file.metadata()?.len() > max {
        return Err(ReadError::TooLarge(max));
    }
    let mut bytes = Vec::new();
    // One more byte shows whether it grew meanwhile.
    file.take(max + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|size| size > max) {
        return Err(ReadError::TooLarge(max));
    }
    String::from_utf8(bytes).map_err(|_| ReadError::NotUtf8)
}
