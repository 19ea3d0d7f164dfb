//! A mark beside the stores for each restore that is not over, by which the record of an extension knows its data again.
//! A Main without that record removes it: what it lets the extension write is not known to the record.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::SystemTime,
};

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use weir_names::ExtensionId;

use crate::{
    Versions,
    crossing::{DataHindrance, OwnData},
    record::Record,
};

/// The id of the extension follows.
const FILE: &str = "weir-stores-generation-";

/// The most bytes that are read.
const MOST: u64 = 64;

impl Versions {
    /// Gives access to the data of extensions. Called once, before any of them runs.
    pub fn set_own_data(&self, own_data: Box<dyn OwnData>) {
        if let Some(dir) = own_data.dir()
            && !self.is_in_use
            && let Err(error) = self.remove_strange_marks(dir)
        {
            tracing::error!(
                "it is not noted that extensions run without the records of their versions: {error}"
            );
        }
        // Only the first call counts.
        let _second = self.own_data.set(own_data);
    }

    /// Removes the marks beside the stores that no record of this directory has made.
    fn remove_strange_marks(&self, dir: &Path) -> io::Result<()> {
        for id in all(dir)? {
            let known = self.change(&id, |record: &mut Record| record.data.generation.clone()).flatten();
            let is_known = known.is_some() && read(dir, &id)? == known;
            // What runs without its record is noted beside that.
            if !is_known && self.unreadable(&id).is_none() {
                remove(dir, &id)?;
            }
        }
        Ok(())
    }

    /// Removes the mark of an extension whose restore is over. Blocks on files.
    pub(crate) fn remove_mark(&self, id: &ExtensionId) {
        let Some(dir) = self.own_data.get().and_then(|own_data| own_data.dir()) else { return };
        // Held until it is removed, so that the next restore makes its mark after that.
        let _marking = self.marking.lock();
        if !self.over.lock().contains(id) {
            return;
        }
        match remove(dir, id) {
            Ok(()) => drop(self.over.lock().remove(id)),
            Err(error) => {
                tracing::error!(extension = %id, "the mark beside its stores cannot be removed: {error}");
            }
        }
    }

    /// Fails if the Main that uses the directory has put data of this extension aside, or begun to restore it.
    pub(crate) fn check_mark(&self, id: &ExtensionId) -> Result<(), DataHindrance> {
        let dir = self.own_data()?.dir();
        match dir.map_or(Ok(None), |dir| read(dir, id)).map_err(no_generation)? {
            None => Ok(()),
            Some(_) => Err(DataHindrance::passes(
                "another Main has begun to restore its data, and uses `main.state-dir`".to_owned(),
            )),
        }
    }

    /// Gives up a restore that has begun, and what was put aside, if a Main without the records has used the stores since:
    /// what is there now was written later.
    pub(crate) fn know_again(&self, id: &ExtensionId) -> Result<(), DataHindrance> {
        let known = |record: &mut Record| record.data.is_between().then(|| record.data.generation.clone());
        let Some(known) = self.change(id, known).flatten() else { return Ok(()) };
        let dir = self.own_data()?.dir();
        if dir.map_or(Ok(None), |dir| read(dir, id)).map_err(no_generation)? == known {
            return Ok(());
        }
        tracing::warn!(
            extension = %id,
            "its data was written without the records of its versions, so that what was put aside is given up"
        );
        Ok(self.alter(id, |record| {
            record.data.give_up_restore();
            record.prune_data();
        })?)
    }

    /// Returns the mark beside the stores for a restore that begins: that of the one before, if that is not over.
    pub(crate) fn generation(&self, id: &ExtensionId) -> Result<Option<String>, DataHindrance> {
        let known =
            self.change(id, |record| record.data.is_between().then(|| record.data.generation.clone()));
        if let Some(known) = known.flatten() {
            return Ok(known);
        }
        let Some(dir) = self.own_data()?.dir() else { return Ok(None) };
        let _marking = self.marking.lock();
        self.over.lock().remove(id);
        make(dir, id).map(Some).map_err(no_generation)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` gives it away")]
fn no_generation(error: io::Error) -> DataHindrance {
    DataHindrance::passes(format!("the mark beside its stores cannot be read or written: {error}"))
}

/// Reads the mark of an extension in the directory of the stores, if there is one.
fn read(dir: &Path, id: &ExtensionId) -> io::Result<Option<String>> {
    let mut text = String::new();
    match File::open(path(dir, id)) {
        Ok(file) => file.take(MOST).read_to_string(&mut text).map(|_| Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes a mark like no other one, in place of an earlier one. It is on the disk then.
fn make(dir: &Path, id: &ExtensionId) -> io::Result<String> {
    let unlike_others = format!("{id} {:?} {}", SystemTime::now(), std::process::id());
    let text = hex::encode(Sha256::digest(unlike_others));
    let mut file = NamedTempFile::new_in(dir)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path(dir, id)).map_err(|error| error.error)?;
    File::open(dir)?.sync_all()?;
    Ok(text)
}

/// Removes the mark of an extension, if there is one.
fn remove(dir: &Path, id: &ExtensionId) -> io::Result<()> {
    match fs::remove_file(path(dir, id)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(()) => File::open(dir)?.sync_all(),
    }
}

/// The extensions that have a mark.
fn all(dir: &Path) -> io::Result<Vec<ExtensionId>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut ids = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let id = name.to_str().and_then(|name| name.strip_prefix(FILE)).and_then(|id| id.parse().ok());
        ids.extend(id);
    }
    Ok(ids)
}

fn path(dir: &Path, id: &ExtensionId) -> PathBuf {
    dir.join(format!("{FILE}{id}"))
}
