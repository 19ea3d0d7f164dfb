//! Reading a log that may end anywhere and be damaged anywhere.

use std::io::{self, BufRead, Read};

use crate::{MAX_KEY, MAX_VALUE, change::Change, entries::Entries};

/// Longer than any line: the checksum, and JSON with up to six bytes for each byte of the key.
const MAX_LINE: usize = MAX_VALUE + 6 * MAX_KEY + 64;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Recovery {
    /// The end of its last whole line.
    pub(crate) length: u64,
    /// Bytes after that, of an interrupted write.
    pub(crate) torn_bytes: u64,
    /// Whole lines that differ from what was written. Their changes are left out.
    pub(crate) bad_lines: u64,
}

/// Carries out the changes of a log, one after the other.
pub(crate) fn recover(mut log: impl BufRead, entries: &mut Entries) -> io::Result<Recovery> {
    let mut recovery = Recovery::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        // A file of zeros, or any file without newlines, must not fill the memory.
        log.by_ref().take(MAX_LINE as u64).read_until(b'\n', &mut line)?;
        let bytes = line.len() as u64;
        if line.is_empty() {
            return Ok(recovery);
        }
        match Change::of_line(&line) {
            Some(change) => {
                entries.apply(change);
                // The line that seemed torn has more after it.
                recovery.bad_lines += u64::from(recovery.torn_bytes > 0);
            }
            None if line.ends_with(b"\n") => recovery.bad_lines += 1,
            None => {
                recovery.torn_bytes += bytes;
                continue;
            }
        }
        recovery.length += recovery.torn_bytes + bytes;
        recovery.torn_bytes = 0;
    }
}
