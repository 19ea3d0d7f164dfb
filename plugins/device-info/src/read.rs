//! Reading the small text files of the system, and saying which one was not as expected.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use weir_sdk::Error;

/// More than the longest of them has: about 1.5 KiB of `/proc/cpuinfo` for each core.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// A file was not read, or not understood.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The system, or the sandbox, did not let it be read.
    #[error("cannot read `{path}`: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It lacks a value, or has another where that should be.
    #[error("`{path}` does not say {what}")]
    Missing {
        /// Which file.
        path: PathBuf,
        /// Which value.
        what: &'static str,
    },
}

/// The text of a file; what is not UTF-8 in it is replaced.
pub(crate) fn read(path: &Path) -> Result<String, ReadError> {
    let read = |path| {
        let mut bytes = Vec::new();
        // Files of the kernel say that their size is 0: read to the end, wherever that is.
        File::open(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(source) => Err(ReadError::Io { path: path.to_owned(), source }),
    }
}

/// What a parser, which may miss something, finds in a file.
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
