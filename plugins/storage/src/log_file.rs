//! The log on disk: opened and repaired, appended to, rewritten.
//!
//! - `log`: every change, in order. When `append` returns, its changes are on disk.
//! - `log.new`: the log during a rewrite, without changes that later ones replaced. Complete, it replaces
//!   `log`. Left behind by a crash, it means nothing.
//! - `log.damaged`: the last log that was found damaged, for people.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufReader, BufWriter, Write},
    path::{Path, PathBuf},
};

use weir_sdk::FileWriter;

use crate::{
    entries::Entries,
    recovery::{Recovery, recover},
};

const LOG: &str = "log";
const NEW: &str = "log.new";
const DAMAGED: &str = "log.damaged";

/// A shorter log is not rewritten for its length.
const MIN_REWRITE: u64 = 64 * 1024;

#[derive(Debug)]
pub(crate) struct LogFile {
    directory: PathBuf,
    file: FileWriter,
    /// The length from which a rewrite is worthwhile.
    rewrite_at: u64,
    /// Whether all of the file is known to be on disk. After an error it is not, and a second attempt on the
    /// same file cannot tell: the system may then count lost pages as written.
    is_sound: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Bytes of an unfinished line, dropped.
    pub(crate) torn_bytes: u64,
    /// Lines that differ from what was written.
    pub(crate) bad_lines: u64,
    /// The name of the file that has them.
    pub(crate) kept_as: Option<&'static str>,
}

impl LogFile {
    /// Opens the log of a directory, or makes one, and repairs it. Its changes go to `entries`.
    pub(crate) fn open(directory: &Path, entries: &mut Entries) -> io::Result<(Self, Damage)> {
        let path = directory.join(LOG);
        remove(&directory.join(NEW))?;
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path)?;
        let Recovery { length, torn_bytes, bad_lines } = recover(BufReader::new(&file), entries)?;
        let file = FileWriter::new(file, length);
        let mut log = Self { directory: directory.to_owned(), file, rewrite_at: 0, is_sound: true };
        log.rewrite_at = rewrite_at(entries.bytes() as u64);
        let mut damage = Damage { torn_bytes, bad_lines, kept_as: None };
        if bad_lines > 0 {
            fs::copy(&path, directory.join(DAMAGED))?;
            damage.kept_as = Some(DAMAGED);
            log.rewrite(entries)?;
        } else {
            log.file.get_ref().set_len(length)?;
            log.file.get_ref().sync_all()?;
            // The file may be new, or renamed just before a crash.
            sync_directory(directory)?;
        }
        Ok((log, damage))
    }

    /// Whether it is known to agree with the entries.
    pub(crate) fn is_sound(&self) -> bool {
        self.is_sound
    }

    /// Writes lines to disk. Their changes are in `entries` already.
    ///
    /// # Errors
    /// Any of the lines may then be on disk.
    pub(crate) fn append(&mut self, lines: &[u8], entries: &Entries) -> io::Result<()> {
        if !self.is_sound {
            return self.rewrite(entries);
        }
        self.is_sound = false;
        let length = self.file.position();
        self.file.write_all(lines).inspect_err(|_| {
            // On a full disk, the rewrite takes the room of the torn line.
            let _stays = self.file.get_ref().set_len(length);
        })?;
        self.file.get_ref().sync_data()?;
        self.is_sound = true;
        Ok(())
    }

    /// Makes writing fail from now on, as on a broken disk.
    #[cfg(test)]
    pub(crate) fn break_file(&mut self) {
        self.file = FileWriter::new(File::open(self.directory.join(LOG)).unwrap(), self.file.position());
    }

    /// Whether the log is much longer than its entries.
    pub(crate) fn is_wasteful(&self) -> bool {
        self.file.position() >= self.rewrite_at
    }

    /// Rewrites the log with only the entries.
    ///
    /// # Errors
    /// This log or the one before is then on disk.
    pub(crate) fn rewrite(&mut self, entries: &Entries) -> io::Result<()> {
        // After a failure, the next attempt is at twice the length.
        self.rewrite_at = rewrite_at(self.file.position());
        let new = self.directory.join(NEW);
        let file = write_all(&new, entries).inspect_err(|_| {
            // On a full disk, it must not take more room. If it stays, the next one replaces it.
            let _stays = remove(&new);
        })?;
        fs::rename(&new, self.directory.join(LOG))?;
        // This is the log from now on. Until its name is on disk, a power cut brings the old one back, so
        // nothing may be appended to it.
        self.file = file;
        self.is_sound = false;
        sync_directory(&self.directory)?;
        self.is_sound = true;
        self.rewrite_at = rewrite_at(self.file.position());
        Ok(())
    }
}

fn write_all(path: &Path, entries: &Entries) -> io::Result<FileWriter> {
    remove(path)?;
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let mut writer = BufWriter::new(FileWriter::new(file, 0));
    let mut line = Vec::new();
    for change in entries.as_changes() {
        line.clear();
        change.append_to(&mut line)?;
        writer.write_all(&line)?;
    }
    let writer = writer.into_inner()?;
    writer.get_ref().sync_all()?;
    Ok(writer)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn rewrite_at(length: u64) -> u64 {
    length.saturating_mul(2).max(MIN_REWRITE)
}

/// Makes sure that the names in a directory are on disk.
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
