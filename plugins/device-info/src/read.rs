//! Reading the small text files of the system, with errors that name the file.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use weir_sdk::Error;

/// The most bytes that are read of a file. None is longer: `/proc/cpuinfo` has about 1.5 KiB for each core.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The system or the sandbox refused to open or to read the file.
    #[error("cannot read `{path}`: {source}")]
    Io { path: PathBuf, source: io::Error },
    /// A value is missing or malformed.
    #[error("`{path}` does not say {what}")]
    Missing { path: PathBuf, what: &'static str },
}

/// The text of a file. Bytes that are not UTF-8 are replaced.
pub(crate) fn read(path: &Path) -> Result<String, ReadError> {
    let read = |path| {
        let mut bytes = Vec::new();
        // The kernel's files give their size as 0: read to the end.
        File::open(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(source) => Err(ReadError::Io { path: path.to_owned(), source }),
    }
}

pub(crate) fn parse<T>(
    path: &Path,
    parser: impl FnOnce(&str) -> Result<T, &'static str>,
) -> Result<T, ReadError> {
    parser(&read(path)?).map_err(|what| ReadError::Missing { path: path.to_owned(), what })
}

/// The code is `unavailable`.
impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        Self::handler("unavailable", error)
    }
}
