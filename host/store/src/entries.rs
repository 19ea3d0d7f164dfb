//! The entries of a store: changed within its quota, read, and counted.

use std::{collections::BTreeMap, ops::Bound};

use bytes::Bytes;
use redb::{ReadOnlyTable, ReadableTable, StorageError, Table};
use sha2::{Digest, Sha256};

use crate::{
    ENTRY_BYTES, MAX_KEY, MAX_KEYS_AT_ONCE, MAX_PAGE, StoreConfig, StoreError,
    work::{Change, Hash, Owner, Page, Row, Rows, StoreUsage, Write, WriteOutcome, Written},
};

/// Bytes at which a page of entries is full. Its last entry may exceed them.
const PAGE_BYTES: u64 = 1 << 20;

/// Bytes of a page of the file.
pub(crate) const PAGE: u64 = 4096;

/// The most bytes of an entry that shares a page with others. Larger ones have pages of their own.
const SHARES_PAGE: u64 = PAGE / 2;

/// The most bytes of an owner and a key together that count as they are. The file repeats them in the pages that lead
/// to the entry, where few longer ones have room.
const SHORT_KEY: u64 = 512;

/// Entries that one call of `rows` looks through for a prefix before it returns what it has found.
const SEEN: usize = 20_000;

/// The table of entries while it is written.
pub(crate) type Entries<'t> = Table<'t, (&'static str, &'static str), &'static [u8]>;

/// The table of entries in a snapshot.
pub(crate) type Read = ReadOnlyTable<(&'static str, &'static str), &'static [u8]>;

/// A change of a key that a transaction made. The value is `None` if the key was deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) owner: Owner,
    pub(crate) key: String,
    pub(crate) value: Option<Bytes>,
}

/// Carries out one write of a transaction. The inner error refuses this write alone. The outer one means that the file
/// failed, and that nothing of the transaction holds.
pub(crate) fn write(
    entries: &mut Entries<'_>,
    usage: &mut StoreUsage,
    config: &StoreConfig,
    owner: &Owner,
    write: Write,
    made: &mut Vec<Made>,
) -> Result<WriteOutcome, StorageError> {
    match write {
        Write::Change(changes) => {
            change(entries, usage, config, changes, made).map(|outcome| outcome.map(Written::Changed))
        }
        Write::Increment { key, delta, range } => {
            let before = match get(entries, owner, &key)?.as_deref().map(number).transpose() {
                Ok(before) => before.unwrap_or_default(),
                Err(error) => return Ok(Err(error)),
            };
            let Some(sum) = before.checked_add(delta).filter(|sum| range.contains(sum)) else {
                return Ok(Err(StoreError::OutOfRange));
            };
            let change_of = vec![(owner.clone(), key, Some(sum.to_string().into()))];
            let outcome = change(entries, usage, config, change_of, made)?;
            Ok(outcome.map(|_| Written::Number(sum)))
        }
        Write::Swap { key, expected, value } => {
            let current = get(entries, owner, &key)?;
            if current != expected {
                return Ok(Ok(Written::Swapped(Err(current))));
            }
            let outcome = change(entries, usage, config, vec![(owner.clone(), key, value)], made)?;
            Ok(outcome.map(|_| Written::Swapped(Ok(()))))
        }
        Write::SwapSeen { key, seen, value } => {
            let current = hash(entries, owner, &key)?;
            if current != seen {
                return Ok(Ok(Written::SwappedSeen(Err(current))));
            }
            let outcome = change(entries, usage, config, vec![(owner.clone(), key, value)], made)?;
            Ok(outcome.map(|_| Written::SwappedSeen(Ok(()))))
        }
        Write::Flush | Write::Compact | Write::Close => Ok(Ok(Written::Done)),
    }
}

/// Repeats the changes that earlier transactions made, without regard to the quota.
pub(crate) fn again(
    entries: &mut Entries<'_>,
    usage: &mut StoreUsage,
    made: &[Made],
) -> Result<(), StorageError> {
    for Made { owner, key, value } in made {
        count(usage, owner, key, length(entries, owner, key)?, value.as_ref());
        put(entries, owner, key, value.as_ref())?;
    }
    Ok(())
}

/// Makes all of the changes, or none. The last change of a key wins. Returns how many keys had a value.
fn change(
    entries: &mut Entries<'_>,
    usage: &mut StoreUsage,
    config: &StoreConfig,
    changes: Vec<(Owner, String, Option<Bytes>)>,
    made: &mut Vec<Made>,
) -> Result<Result<usize, StoreError>, StorageError> {
    let last: BTreeMap<(Owner, String), Option<Bytes>> =
        changes.into_iter().map(|(owner, key, value)| ((owner, key), value)).collect();
    let (mut after, mut existed) = (*usage, 0);
    let mut absent = Vec::with_capacity(last.len());
    for ((owner, key), value) in &last {
        let bytes = value.as_ref().map_or(0, |value| value.len() as u64);
        if bytes > config.value_size {
            return Ok(Err(StoreError::ValueTooLarge { bytes, allowed: config.value_size }));
        }
        let before = length(entries, owner, key)?;
        existed += usize::from(before.is_some());
        absent.push(before.is_none());
        count(&mut after, owner, key, before, value.as_ref());
    }
    // The operator may have made the quota smaller than what is there. Changes that add nothing are still allowed.
    if after.bytes > config.bytes && after.bytes > usage.bytes {
        return Ok(Err(StoreError::Bytes { used: after.bytes, allowed: config.bytes }));
    }
    if after.keys > config.keys.into() && after.keys > usage.keys {
        return Ok(Err(StoreError::Keys { used: after.keys, allowed: config.keys.into() }));
    }
    for (((owner, key), value), is_absent) in last.into_iter().zip(absent) {
        if is_absent && value.is_none() {
            // A delete of nothing changes nothing: it takes no commit, no memory and no event.
            continue;
        }
        put(entries, &owner, &key, value.as_ref())?;
        made.push(Made { owner, key, value });
    }
    *usage = after;
    Ok(Ok(existed))
}

fn put(entries: &mut Entries<'_>, owner: &str, key: &str, value: Option<&Bytes>) -> Result<(), StorageError> {
    match value {
        Some(value) => entries.insert((owner, key), &**value).map(drop),
        None => entries.remove((owner, key)).map(drop),
    }
}

/// Updates `usage` for a key whose value had `before` bytes and becomes `after`. `None` stands for no value.
fn count(usage: &mut StoreUsage, owner: &str, key: &str, before: Option<u64>, after: Option<&Bytes>) {
    if let Some(bytes) = before {
        usage.keys = usage.keys.saturating_sub(1);
        usage.bytes = usage.bytes.saturating_sub(size(owner, key, bytes));
    }
    if let Some(value) = after {
        usage.keys = usage.keys.saturating_add(1);
        usage.bytes = usage.bytes.saturating_add(size(owner, key, value.len() as u64));
    }
}

/// Bytes that an entry counts: about what it takes in the file. Small entries share pages of 4 KiB. Each larger entry,
/// or one with a long key, has a page of its own, whose size is a power of two.
pub(crate) fn size(owner: &str, key: &str, value: u64) -> u64 {
    let whole_key = (owner.len() as u64).saturating_add(key.len() as u64);
    let bytes = whole_key.saturating_add(ENTRY_BYTES).saturating_add(value);
    match bytes <= SHARES_PAGE && whole_key <= SHORT_KEY {
        true => bytes,
        false => bytes.max(PAGE).checked_next_power_of_two().unwrap_or(u64::MAX),
    }
}

/// Goes through all entries, and returns how many there are and the bytes that they count.
pub(crate) fn counted(
    entries: &impl ReadableTable<(&'static str, &'static str), &'static [u8]>,
) -> Result<StoreUsage, StorageError> {
    let mut usage = StoreUsage::default();
    for entry in entries.iter()? {
        let (key, value) = entry?;
        let (owner, key) = key.value();
        usage.keys = usage.keys.saturating_add(1);
        usage.bytes = usage.bytes.saturating_add(size(owner, key, value.value().len() as u64));
    }
    Ok(usage)
}

fn length(entries: &Entries<'_>, owner: &str, key: &str) -> Result<Option<u64>, StorageError> {
    Ok(entries.get((owner, key))?.map(|value| value.value().len() as u64))
}

fn get(
    entries: &impl ReadableTable<(&'static str, &'static str), &'static [u8]>,
    owner: &str,
    key: &str,
) -> Result<Option<Bytes>, StorageError> {
    Ok(entries.get((owner, key))?.map(|value| Bytes::copy_from_slice(value.value())))
}

pub(crate) fn hash(
    entries: &impl ReadableTable<(&'static str, &'static str), &'static [u8]>,
    owner: &str,
    key: &str,
) -> Result<Option<Hash>, StorageError> {
    Ok(entries.get((owner, key))?.map(|value| Sha256::digest(value.value()).into()))
}

fn number(value: &[u8]) -> Result<i128, StoreError> {
    let text = str::from_utf8(value).ok();
    text.and_then(|text| text.parse().ok()).ok_or(StoreError::NotANumber)
}

/// Refuses a key of a length that no store takes. Called before the work waits for its thread.
pub(crate) fn check_key(key: &str) -> Result<(), StoreError> {
    if (1..=MAX_KEY).contains(&key.len()) { Ok(()) } else { Err(StoreError::Key(key.len())) }
}

pub(crate) fn check_changes(changes: &[Change]) -> Result<(), StoreError> {
    check_number(changes.len())?;
    changes.iter().try_for_each(|(key, _)| check_key(key))
}

/// Refuses more keys than one call may have.
pub(crate) fn check_number(keys: usize) -> Result<(), StoreError> {
    if keys <= MAX_KEYS_AT_ONCE { Ok(()) } else { Err(StoreError::KeysAtOnce(keys)) }
}

/// The values of keys. Fails if those that exist have more than `allowed` bytes together with their keys.
pub(crate) fn get_many(
    entries: &Read,
    owner: &str,
    keys: Vec<String>,
    allowed: u64,
) -> Result<Result<Vec<Option<Bytes>>, StoreError>, StorageError> {
    let (mut values, mut bytes) = (Vec::with_capacity(keys.len()), 0_u64);
    for key in keys {
        // The length is checked before a value is copied: the values of many keys may have gigabytes.
        let Some(value) = entries.get((owner, &*key))? else {
            values.push(None);
            continue;
        };
        bytes = bytes.saturating_add(key.len() as u64).saturating_add(value.value().len() as u64);
        if bytes > allowed {
            return Ok(Err(StoreError::AnswerTooLarge { allowed }));
        }
        values.push(Some(Bytes::copy_from_slice(value.value())));
    }
    Ok(Ok(values))
}

/// Up to `limit` keys of one owner that have the prefix and come after the key `after`, in order: at least 1, and at
/// most [`MAX_PAGE`].
pub(crate) fn list(
    entries: &Read,
    owner: &str,
    after: Option<String>,
    prefix: &str,
    limit: usize,
) -> Result<Page, StorageError> {
    let after = after.map(|key| (owner.to_owned(), key));
    let found = rows(entries, Some(owner), after, prefix, limit, false)?;
    let keys = found.rows.into_iter().map(|row| row.key).collect();
    Ok(Page { keys, next: found.next.map(|(_, key)| key) })
}

/// Up to `limit` entries whose keys have the prefix and that come after the entry `after`, in order. They are of one
/// owner, or of all if `owner` is `None`, and have their values if `values` is set. The list ends earlier, and
/// says where the next begins, at [`MAX_PAGE`] entries, at [`PAGE_BYTES`], and once [`SEEN`] entries of all owners were
/// looked through. A `limit` of 0 counts as 1.
pub(crate) fn rows(
    entries: &Read,
    owner: Option<&str>,
    after: Option<(String, String)>,
    prefix: &str,
    limit: usize,
    values: bool,
) -> Result<Rows, StorageError> {
    let of_prefix = (owner.unwrap_or_default(), if owner.is_some() { prefix } else { "" });
    let start = match &after {
        Some((owner, key)) if (&**owner, &**key) >= of_prefix => Bound::Excluded((&**owner, &**key)),
        _ => Bound::Included(of_prefix),
    };
    let (limit, mut found, mut bytes) = (limit.clamp(1, MAX_PAGE), Rows::default(), 0_u64);
    for (seen, entry) in entries.range::<(&str, &str)>((start, Bound::Unbounded))?.enumerate() {
        let (key, value) = entry?;
        let (of, key) = key.value();
        let has_prefix = key.starts_with(prefix);
        if owner.is_some_and(|owner| of != owner || !has_prefix) {
            break;
        }
        if found.rows.len() >= limit || bytes >= PAGE_BYTES {
            found.next = found.rows.last().map(|row| (row.owner.clone(), row.key.clone()));
            break;
        }
        if !has_prefix {
            if seen >= SEEN {
                found.next = Some((of.to_owned(), key.to_owned()));
                break;
            }
            continue;
        }
        let value = value.value();
        bytes = bytes.saturating_add(key.len() as u64);
        if values {
            bytes = bytes.saturating_add(value.len() as u64);
        }
        found.rows.push(Row {
            owner: of.to_owned(),
            key: key.to_owned(),
            bytes: value.len() as u64,
            value: values.then(|| Bytes::copy_from_slice(value)),
        });
    }
    Ok(found)
}
