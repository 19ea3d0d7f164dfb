//! Removes the ELF symbols from wasmtime's output.
//!
//! The symbols are a ninth of the output and nothing reads them: traces take names from a section of wasmtime's own.
//! This module knows of ELF only what it needs to cut two sections out (System V ABI, 64 bits, little-endian).

use std::ops::Range;

/// The start of a 64-bit little-endian file.
const MAGIC: &[u8] = b"\x7fELF\x02\x01";

/// Bytes of an entry in the section table. Parts after the symbols stay aligned to `ALIGNMENT`.
const ENTRY: usize = 64;
const ALIGNMENT: usize = 8;

/// The type of a section of symbols.
const SYMBOLS: usize = 2;

/// Fields of the file header: the place of the section table, and its number of entries.
const TABLE: Range<usize> = 40..48;
const ENTRIES: Range<usize> = 60..62;

/// Field of the file header: the number of the section with the names of sections.
const NAMES: Range<usize> = 62..64;

/// Fields of an entry in the section table.
const TYPE: Range<usize> = 4..8;
const OFFSET: Range<usize> = 24..32;
const SIZE: Range<usize> = 32..40;
/// In the entry of a section of symbols: the number of the section with their names.
const LINK: Range<usize> = 40..44;
const ALIGN: Range<usize> = 48..56;

/// Cuts symbols and their names out of a file. Expects wasmtime's layout: symbols, their names, then the table, and
/// nothing after the symbols aligned to more than [`ALIGNMENT`]. Leaves any other file as it is.
pub(super) fn remove(file: &mut Vec<u8>) {
    if let Some(smaller) = without(file) {
        *file = smaller;
    }
}

/// Returns the file without symbols, or none if it has none or is laid out otherwise.
fn without(file: &[u8]) -> Option<Vec<u8>> {
    if !file.starts_with(MAGIC) {
        return None;
    }
    let first = number(file, TABLE)?;
    let last = first.checked_add(number(file, ENTRIES)?.checked_mul(ENTRY)?)?;
    let table = file.get(first..last)?;
    let entry = |number| table.chunks_exact(ENTRY).nth(number);
    let symbols = table.chunks_exact(ENTRY).position(|entry| number(entry, TYPE) == Some(SYMBOLS))?;
    let names = number(entry(symbols)?, LINK)?;
    if names == number(file, NAMES)? {
        return None;
    }
    let (cut, end) = (bytes(entry(symbols)?)?.start, bytes(entry(names)?)?.end);
    let length = end.checked_sub(cut)? / ALIGNMENT * ALIGNMENT;

    let mut smaller = [file.get(..cut)?, file.get(cut + length..)?].concat();
    let moved = |offset: usize| if offset < end { None } else { offset.checked_sub(length) };
    set(&mut smaller, TABLE, moved(first)?)?;
    let table = smaller.get_mut(moved(first)?..moved(last)?)?;
    for (place, entry) in table.chunks_exact_mut(ENTRY).enumerate() {
        let bytes = bytes(entry)?;
        if place == symbols || place == names {
            // An entry without type and name is unused.
            entry.fill(0);
        } else if bytes.end > cut {
            if number(entry, ALIGN)? > ALIGNMENT {
                return None;
            }
            set(entry, OFFSET, moved(bytes.start)?)?;
        }
    }
    Some(smaller)
}

/// Returns the place of an entry's section, as a range of the file.
fn bytes(entry: &[u8]) -> Option<Range<usize>> {
    let start = number(entry, OFFSET)?;
    Some(start..start.checked_add(number(entry, SIZE)?)?)
}

/// Reads a number in a field. Returns none if the record is too short.
fn number(record: &[u8], field: Range<usize>) -> Option<usize> {
    let mut number = [0; 8];
    number.get_mut(..field.len())?.copy_from_slice(record.get(field)?);
    usize::try_from(u64::from_le_bytes(number)).ok()
}

/// Writes a number into a field. Returns none if the record is too short.
fn set(record: &mut [u8], field: Range<usize>, number: usize) -> Option<()> {
    let number = (number as u64).to_le_bytes();
    let (field, number) = (record.get_mut(field.clone())?, number.get(..field.len())?);
    field.copy_from_slice(number);
    Some(())
}

#[cfg(test)]
mod tests {
    use wasmtime::Engine;

    use super::*;
    use crate::engine::{AddressClass, EngineKind};

    const COMPONENT: &str = r#"
        (component
            (core module $m (func (export "one") (result i32) i32.const 1))
            (core instance (instantiate $m)))
    "#;

    fn compiled() -> Vec<u8> {
        let engine = Engine::new(&EngineKind::default().config(AddressClass::Large).unwrap()).unwrap();
        engine.precompile_component(&wat::parse_str(COMPONENT).unwrap()).unwrap()
    }

    /// The type and content of each section.
    fn sections(file: &[u8]) -> Vec<(usize, &[u8])> {
        let table = &file[number(file, TABLE).unwrap()..];
        let entries = table.chunks_exact(ENTRY).take(number(file, ENTRIES).unwrap());
        entries.map(|entry| (number(entry, TYPE).unwrap(), &file[bytes(entry).unwrap()])).collect()
    }

    #[test]
    fn all_but_symbols_and_their_names_stays_and_lies_where_the_table_says() {
        let before = compiled();
        let mut after = before.clone();
        remove(&mut after);
        let (before, after_sections) = (sections(&before), sections(&after));
        assert_eq!(before.len(), after_sections.len());
        let gone: Vec<_> = before.iter().zip(&after_sections).filter(|(old, new)| old != new).collect();
        assert_eq!(gone.len(), 2);
        assert!(gone.iter().all(|(_, new)| **new == (0, &[][..])), "{gone:?}");
        assert!(after_sections.iter().all(|(kind, _)| *kind != SYMBOLS));
    }

    #[test]
    fn what_has_none_or_is_laid_out_otherwise_stays_as_it_is() {
        let mut file = compiled();
        remove(&mut file);
        let without = file.clone();
        remove(&mut file);
        assert!(file == without);
        let whole = compiled();
        for length in (0..whole.len()).step_by(7) {
            let mut file = whole[..length].to_vec();
            remove(&mut file);
            assert!(file == whole[..length], "{length}");
        }
        // A part after the symbols is aligned to a page.
        let mut file = whole.clone();
        let names = number(&whole, TABLE).unwrap() + (number(&whole, ENTRIES).unwrap() - 1) * ENTRY;
        set(&mut file[names..], ALIGN, 4096).unwrap();
        let aligned = file.clone();
        remove(&mut file);
        assert!(file == aligned);
    }
}
