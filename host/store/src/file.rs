//! A store's file: opened, checked and repaired.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::Path,
    sync::Arc,
};

use redb::{
    Database, DatabaseError, ReadableDatabase, ReadableTable, StorageBackend, StorageError, Table,
    TableDefinition, TableError, WriteTransaction, backends::FileBackend,
};

use rustix::fs::OFlags;

use crate::{
    OpenError,
    bound::{Bound, Bounded},
    entries,
};

/// The flag with which a symlink is not opened. Another user may have put one in the place of the file.
const NOFOLLOW: i32 = OFlags::NOFOLLOW.bits().cast_signed();

/// The table of entries: values by owner and key.
pub(crate) const ENTRIES: TableDefinition<'_, (&str, &str), &[u8]> = TableDefinition::new("entries");

/// The table of what the file says of itself, with the rows [`VERSION`], [`USAGE`] and [`NUMBER`].
pub(crate) const META: TableDefinition<'_, &str, (u64, u64)> = TableDefinition::new("weir-store");

/// The row of the version: its key, and the value of a closed file of this version. The second number is 1 while the
/// file is in use.
const VERSION: (&str, (u64, u64)) = ("version", (2, 0));

/// The version before this one. It counted neither owners nor what an entry takes beside its content.
const UNCOUNTED: u64 = 1;

/// A table that a transaction fills and deletes, so that it leaves free pages for its commit. No committed file has it.
const ROOM: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("room");

/// Bytes of a value of [`ROOM`] that takes one page.
const SMALL: usize = 4_000;

/// Bytes of a value of [`ROOM`] that takes [`PAGES_AT_ONCE`] pages.
const LARGE: usize = 64_000;
const PAGES_AT_ONCE: u64 = 16;

/// The row of what the entries take: keys and bytes.
pub(crate) const USAGE: &str = "usage";

/// The row with the number of the last transaction that changed entries. The second number of its value is 0.
const NUMBER: &str = "number";

/// The state in which a file was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// The file did not exist, and was made.
    New,
    /// The file was closed by its last user.
    Whole,
    /// The file was not closed by its last user. It was checked, and has the state of its last whole transaction.
    Repaired,
}

/// Opens the file at `path`, and makes it and its directory if they do not exist. Reads the whole file to check it.
pub(crate) fn open(path: &Path, cache: u64, bound: &Arc<Bound>) -> Result<(Database, Opened), OpenError> {
    let failed = |error: io::Error| OpenError::Io { path: path.into(), reason: error.to_string() };
    if let Some(dir) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
        warn_of(dir).map_err(failed)?;
    }
    let is_new = !path.try_exists().map_err(failed)?;
    if is_new {
        make(path)?;
    }
    let file = OpenOptions::new().read(true).write(true).custom_flags(NOFOLLOW).open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(failed(io::Error::other("it is not a file")));
    }
    // Files of stores are never made empty: this one has lost its content, and its operator may have a copy.
    if found.len() == 0 {
        let reason = "it has no bytes".to_owned();
        return Err(OpenError::Damaged { path: path.into(), reason });
    }
    let (database, repaired) = open_file(path, cache, bound, file)?;
    let opened = match (is_new, repaired) {
        (true, _) => Opened::New,
        (_, true) => Opened::Repaired,
        (_, false) => Opened::Whole,
    };
    Ok((database, opened))
}

/// Logs a warning if other users may put files into the directory.
fn warn_of(dir: &Path) -> io::Result<()> {
    let found = dir.metadata()?;
    let is_ours = found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o022 == 0;
    if !is_ours {
        tracing::warn!(
            "{} belongs to another user, or others may write to it: `chown` it and `chmod 700` it",
            dir.display()
        );
    }
    Ok(())
}

/// Makes an empty store under another name and links it to `path`. So a crash leaves no half-made file at `path`.
fn make(path: &Path) -> Result<(), OpenError> {
    let failed = |error: io::Error| OpenError::Io { path: path.into(), reason: error.to_string() };
    let new = path.with_extension(format!("redb.new-{}", std::process::id()));
    let mut options = OpenOptions::new();
    // A crash may have left a file under this name. A symlink is removed, and not followed.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let file = options.read(true).write(true).create_new(true).custom_flags(NOFOLLOW).mode(0o600);
    let file = file.open(&new).map_err(failed)?;
    let synced = file.try_clone().map_err(failed)?;
    let (database, _) = open_file(path, 64 << 10, &Arc::default(), file)?;
    end(&database).map_err(|error| failed(io::Error::other(error)))?;
    drop(database);
    let dir = path.parent().unwrap_or(Path::new("."));
    synced
        .sync_all()
        .and_then(|()| match fs::hard_link(&new, path) {
            // Another process has made the store meanwhile: that one is used.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        })
        .and_then(|()| fs::remove_file(&new))
        .and_then(|()| File::open(dir)?.sync_all())
        .map_err(failed)
}

/// Opens the database in a file. Also returns whether its last user did not close it.
fn open_file(path: &Path, cache: u64, bound: &Arc<Bound>, file: File) -> Result<(Database, bool), OpenError> {
    let failed = |error: io::Error| OpenError::Io { path: path.into(), reason: error.to_string() };
    let other = file.try_clone().map_err(failed)?;
    let backend = FileBackend::new(file).map_err(|error| explained(path, &error))?;
    open_backend(path, cache, bound, backend, Some(other))
}

/// Opens the database on any storage, whose file on disk is `file`, if it has one. Also returns whether its last user
/// did not close it.
pub(crate) fn open_backend(
    path: &Path,
    cache: u64,
    bound: &Arc<Bound>,
    backend: impl StorageBackend,
    file: Option<File>,
) -> Result<(Database, bool), OpenError> {
    let failed = |error: io::Error| OpenError::Io { path: path.into(), reason: error.to_string() };
    let backend = Bounded::new(backend, bound.clone(), file).map_err(failed)?;
    let mut builder = Database::builder();
    builder.set_cache_size(usize::try_from(cache).unwrap_or(usize::MAX));
    // Without this check, only the call that reads a damaged page would find the damage, or not even that one.
    builder.set_check_integrity_on_open(true);
    let database = builder.create_with_backend(backend).map_err(|error| explained(path, &error))?;
    let was_used = begin(path, &database)?;
    Ok((database, was_used))
}

/// Checks the version of the file, or writes it into a new one, and marks the file as in use. Returns whether it was
/// marked already, because its last user did not close it.
fn begin(path: &Path, database: &Database) -> Result<bool, OpenError> {
    let failed = |error: redb::Error| OpenError::Io { path: path.into(), reason: error.to_string() };
    let (version, was_used) = match found(database).map_err(failed)? {
        Some(found) => found,
        None if is_empty(database).map_err(failed)? => VERSION.1,
        None => {
            let reason = "it is not a store of Weir's".to_owned();
            return Err(OpenError::Damaged { path: path.into(), reason });
        }
    };
    match version {
        UNCOUNTED => count_anew(database, was_used).map_err(failed)?,
        version if version == VERSION.1.0 => {}
        _ => return Err(OpenError::Version { path: path.into(), found: format!("version {version}") }),
    }
    let was_used = was_used == 1;
    // A file that is marked is not written, so that after a failure it can be opened even on a full disk.
    if !was_used {
        note(database, true).map_err(failed)?;
    }
    Ok(was_used)
}

/// Brings a file of the version before up to this version, with its entries counted anew.
fn count_anew(database: &Database, is_used: u64) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let usage = entries::counted(&transaction.open_table(ENTRIES)?)?;
        let mut meta = transaction.open_table(META)?;
        meta.insert(USAGE, (usage.keys, usage.bytes))?;
        meta.insert(VERSION.0, (VERSION.1.0, is_used))?;
    }
    transaction.commit()?;
    Ok(())
}

/// Marks the file as closed. Otherwise its next opening reports that it was not.
pub(crate) fn end(database: &Database) -> Result<(), redb::Error> {
    note(database, false)
}

/// Writes this version into the file, with whether the file is in use, and makes the table of entries if there is none.
fn note(database: &Database, is_used: bool) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    transaction.open_table(META)?.insert(VERSION.0, (VERSION.1.0, u64::from(is_used)))?;
    transaction.open_table(ENTRIES)?;
    transaction.commit()?;
    Ok(())
}

/// Bytes of the file's pages that are not free.
pub(crate) fn taken(database: &Database) -> Result<u64, redb::Error> {
    let transaction = database.begin_write()?;
    let stats = transaction.stats()?;
    transaction.abort()?;
    Ok(stats.allocated_pages().saturating_add(1).saturating_mul(entries::PAGE))
}

/// Takes this many pages and frees them again, so that the file has them for the commit. Called after the changes of
/// a transaction.
pub(crate) fn keep_room(transaction: &WriteTransaction, pages: u64) -> Result<(), redb::Error> {
    let mut room = transaction.open_table(ROOM)?;
    // Large values first: one of them is taken as quickly as a single page.
    let large = pages / PAGES_AT_ONCE;
    for piece in 0..large {
        room.insert(piece, vec![0_u8; LARGE].as_slice())?;
    }
    for piece in 0..pages % PAGES_AT_ONCE {
        room.insert(large + piece, [0_u8; SMALL].as_slice())?;
    }
    drop(room);
    transaction.delete_table(ROOM)?;
    Ok(())
}

/// The number of the last transaction that changed entries: 0 before the first.
pub(crate) fn number(database: &Database) -> Result<u64, redb::Error> {
    let transaction = database.begin_read()?;
    let row = transaction.open_table(META)?.get(NUMBER)?;
    Ok(row.map_or(0, |row| row.value().0))
}

/// Numbers a transaction that changes entries: one more than the last. Returns the number.
pub(crate) fn count_up(meta: &mut Table<'_, &'static str, (u64, u64)>) -> Result<u64, StorageError> {
    let before = meta.get(NUMBER)?.map_or(0, |row| row.value().0);
    let number = before.wrapping_add(1);
    meta.insert(NUMBER, (number, 0))?;
    Ok(number)
}

/// The row of the version in the file, or nothing if the file has none.
fn found(database: &Database) -> Result<Option<(u64, u64)>, redb::Error> {
    let transaction = database.begin_read()?;
    let meta = match transaction.open_table(META) {
        Ok(meta) => meta,
        Err(TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok(meta.get(VERSION.0)?.map(|row| row.value()))
}

fn is_empty(database: &Database) -> Result<bool, redb::Error> {
    Ok(database.begin_read()?.list_tables()?.next().is_none())
}

fn explained(path: &Path, error: &DatabaseError) -> OpenError {
    let (path, reason) = (path.to_owned(), error.to_string());
    match error {
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => OpenError::InUse { path },
        DatabaseError::UpgradeRequired(version) => {
            OpenError::Version { path, found: format!("file format {version}") }
        }
        DatabaseError::Storage(StorageError::Io(error)) if !is_of_content(error) => {
            OpenError::Io { path, reason }
        }
        _ => OpenError::Damaged { path, reason },
    }
}

/// Whether the error means that the content is damaged, rather than that the disk failed.
fn is_of_content(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}
