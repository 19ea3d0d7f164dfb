//! The log on disk: opened and repaired, appended to, written anew.
//!
//! - `log`: every change, in order. What `append` has returned for is on disk.
//! - `log.new`: the log while it is written anew, without what later changes made needless. It takes the
//!   place of `log` when it is complete; left behind by an end in between, it means nothing.
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

/// A log that is shorter than this is not written anew for its length.
const MIN_REWRITE: u64 = 64 * 1024;

/// The log, open for writing at its end.
#[derive(Debug)]
pub(crate) struct LogFile {
    directory: PathBuf,
    file: FileWriter,
    /// From which length on it is worth writing anew.
    rewrite_at: u64,
    /// Whether all of the file is known to be on disk. After an error it is not, nor will a second try
    /// at the same file make it so: what could not be written may count as written from then on.
    is_sound: bool,
}

/// What was wrong with a log, and is not any more.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Bytes of an unfinished line, dropped.
    pub(crate) torn_bytes: u64,
    /// Lines that are not as they were written.
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
            // The file may be new, or moved here just before an end.
            sync_directory(directory)?;
        }
        Ok((log, damage))
    }

    /// Whether it is known to say what the entries say.
    pub(crate) fn is_sound(&self) -> bool {
        self.is_sound
    }

    /// Writes lines to disk, whose changes are in `entries` already.
    ///
    /// # Errors
    /// It is then open which of them are on disk.
    pub(crate) fn append(&mut self, lines: &[u8], entries: &Entries) -> io::Result<()> {
        if !self.is_sound {
            return self.rewrite(entries);
        }
        self.is_sound = false;
        let length = self.file.position();
        self.file.write_all(lines).inspect_err(|_| {
            // Where the disk is full, writing the log anew takes the room that a torn line has.
            let _stays = self.file.get_ref().set_len(length);
        })?;
        self.file.get_ref().sync_data()?;
        self.is_sound = true;
        Ok(())
    }

    /// From here on writing fails, as on a disk that breaks.
    #[cfg(test)]
    pub(crate) fn break_file(&mut self) {
        self.file = FileWriter::new(File::open(self.directory.join(LOG)).unwrap(), self.file.position());
    }

    /// Whether the log is much longer than what it keeps.
    pub(crate) fn is_wasteful(&self) -> bool {
        self.file.position() >= self.rewrite_at
    }

    /// Writes the log anew, with nothing but the entries.
    ///
    /// # Errors
    /// On disk is then either this log or the one before.
    pub(crate) fn rewrite(&mut self, entries: &Entries) -> io::Result<()> {
        // If this fails, the next time is when the log is longer by as much again.
        self.rewrite_at = rewrite_at(self.file.position());
        let new = self.directory.join(NEW);
        let file = write_all(&new, entries).inspect_err(|_| {
            // Where the disk is full it must not make that worse; if it stays, the next one replaces it.
            let _stays = remove(&new);
        })?;
        fs::rename(&new, self.directory.join(LOG))?;
        // From here on this is the log. But as long as its name is not on disk, a power cut brings the
        // old one back, so that nothing may be appended to this one only.
        self.file = file;
        self.is_sound = false;
        sync_directory(&self.directory)?;
        self.is_sound = true;
        self.rewrite_at = rewrite_at(self.file.position());
        Ok(())
    }
}

/// Writes a whole log to disk.
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
