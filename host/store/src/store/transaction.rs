//! One transaction: its changes, within the bound of the file, and its commit.

use redb::{Database, Durability, ReadableTable};

use crate::{
    StoreConfig,
    bound::Bound,
    entries::{self, Made, PAGE},
    file::{self, ENTRIES, META, USAGE},
    work::{Owner, StoreUsage, Write, WriteOutcome},
};

/// Pages that each commit may take for itself.
const PAGES_OF_COMMIT: u64 = 12;

/// Pages that the file lists on one page: those that were replaced, and those that replace them.
const PAGES_LISTED: u64 = 128;

/// What is known of a transaction so far.
#[derive(Default)]
pub(super) struct Attempt {
    pub(super) outcomes: Vec<WriteOutcome>,
    /// The number of the transaction, once its commit begins. `None` if it is not committed.
    pub(super) number: Option<u64>,
    /// Whether the transaction needed a larger file than the bound allows, and was undone.
    pub(super) is_over: bool,
    /// Bytes that the entries counted before the transaction.
    pub(super) counted: u64,
}

/// How a transaction is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    /// Whether the changes, and all earlier ones, are on disk when the commit returns.
    pub(super) is_durable: bool,
    /// Whether to commit even without changes, as a flush of earlier changes needs it.
    pub(super) must_commit: bool,
    /// The most bytes that the file may have with the changes.
    pub(super) most: u64,
    /// Pages that the changes of the transaction and the pending ones may replace.
    pub(super) replaced: u64,
}

/// Makes `works` one transaction. Puts the changes into `made`, and what became of the transaction into `attempt`. One
/// that exceeds the bound is undone without an error.
pub(super) fn in_transaction(
    database: &Database,
    bound: &Bound,
    config: &StoreConfig,
    how: &How,
    works: Vec<(Owner, Write)>,
    made: &mut Vec<Made>,
    attempt: &mut Attempt,
) -> Result<(), redb::Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(if how.is_durable { Durability::Immediate } else { Durability::None })?;
    let held = bound.hold(how.most);
    let number = {
        let mut entries = transaction.open_table(ENTRIES)?;
        let mut meta = transaction.open_table(META)?;
        let before = meta.get(USAGE)?.map(|row| row.value()).unwrap_or_default();
        let mut usage = StoreUsage { keys: before.0, bytes: before.1, file: 0 };
        attempt.counted = usage.bytes;
        for (owner, work) in works {
            // A transaction over the bound will be undone: further writes would only lengthen the file.
            attempt.is_over = held.is_exceeded();
            if attempt.is_over {
                break;
            }
            attempt.outcomes.push(entries::write(&mut entries, &mut usage, config, &owner, work, made)?);
        }
        if before != (usage.keys, usage.bytes) {
            meta.insert(USAGE, (usage.keys, usage.bytes))?;
        }
        if made.is_empty() && !how.must_commit { None } else { Some(file::count_up(&mut meta)?) }
    };
    // The commit needs pages, too, and cannot be undone for lack of them. A file that may double has them.
    if !made.is_empty() && !held.is_exceeded() && bound.length() > how.most / 2 {
        file::keep_room(&transaction, how.pages(bound.length()))?;
    }
    attempt.is_over |= held.is_exceeded();
    if attempt.is_over {
        made.clear();
        transaction.abort()?;
        return Ok(());
    }
    drop(held);
    attempt.number = number;
    if number.is_some() {
        transaction.commit()?;
    } else {
        transaction.abort()?;
    }
    Ok(())
}

/// Makes changes that the file has lost once more, in one transaction that is on disk when this returns.
pub(super) fn make_again(database: &Database, made: &[Made]) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut entries = transaction.open_table(ENTRIES)?;
        let mut meta = transaction.open_table(META)?;
        let (keys, bytes) = meta.get(USAGE)?.map(|row| row.value()).unwrap_or_default();
        let mut usage = StoreUsage { keys, bytes, file: 0 };
        entries::again(&mut entries, &mut usage, made)?;
        meta.insert(USAGE, (usage.keys, usage.bytes))?;
    }
    transaction.commit()?;
    Ok(())
}

impl How {
    /// Pages that the commit may take, in a file of this length.
    fn pages(&self, length: u64) -> u64 {
        PAGES_OF_COMMIT.saturating_add(self.replaced.min(length / PAGE) / PAGES_LISTED)
    }
}
