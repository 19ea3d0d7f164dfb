//! One change as one line of the log: the checksum of the rest, a space, JSON, a newline.
//!
//! The JSON has no newlines. So the next line begins after every damaged one, and no stored value can look
//! like the start of a line.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Hexadecimal digits of the checksum.
const CHECKSUM: usize = 8;

/// A change of one key. Only written, its parts are borrowed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Change<K = String, V = Box<RawValue>> {
    Set(K, V),
    Delete(K),
}

impl<K: AsRef<str> + Serialize, V: AsRef<RawValue> + Serialize> Change<K, V> {
    pub(crate) fn key(&self) -> &str {
        match self {
            Self::Set(key, _) | Self::Delete(key) => key.as_ref(),
        }
    }

    /// The approximate length of its line.
    pub(crate) fn bytes(&self) -> usize {
        let value = match self {
            Self::Set(_, value) => value.as_ref().get().len(),
            Self::Delete(_) => 0,
        };
        self.key().len().saturating_add(value)
    }

    pub(crate) fn append_to(&self, lines: &mut Vec<u8>) -> serde_json::Result<()> {
        // In one step: growing step by step would take three times the memory of a large value.
        lines.reserve(self.bytes().saturating_add(64));
        let line = lines.len();
        let json = line.saturating_add(CHECKSUM + 1);
        lines.resize(json, b' ');
        serde_json::to_writer(&mut *lines, self)?;
        let checksum = crc32fast::hash(lines.get(json..).unwrap_or_default());
        lines.splice(line..json, format!("{checksum:0CHECKSUM$x} ").into_bytes());
        lines.push(b'\n');
        Ok(())
    }
}

impl Change {
    pub(crate) fn set(key: String, value: Box<RawValue>) -> serde_json::Result<Self> {
        // In JSON a newline is always between tokens, where a space means the same.
        let value = if value.get().contains('\n') {
            RawValue::from_string(value.get().replace('\n', " "))?
        } else {
            value
        };
        Ok(Self::Set(key, value))
    }

    /// The change of a whole line. None if a single bit of it differs.
    pub(crate) fn of_line(line: &[u8]) -> Option<Self> {
        let (checksum, rest) = line.strip_suffix(b"\n")?.split_at_checked(CHECKSUM)?;
        let json = rest.strip_prefix(b" ")?;
        let checksum = u32::from_str_radix(str::from_utf8(checksum).ok()?, 16).ok()?;
        if checksum != crc32fast::hash(json) {
            return None;
        }
        serde_json::from_slice(json).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_value_on_several_lines_is_stored_on_one() {
        let value =
            RawValue::from_string("{\r\n\t\"a\\n\":\n[1e400,\n18446744073709551616]\n}".into()).unwrap();
        let mut line = Vec::new();
        Change::set("k".into(), value.clone()).unwrap().append_to(&mut line).unwrap();
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        let Some(Change::Set(_, stored)) = Change::of_line(&line) else { panic!("not read back") };
        assert_eq!(stored.get(), value.get().replace('\n', " "));
    }

    proptest! {
        #[test]
        fn a_key_of_any_characters_is_read_back_and_no_flipped_bit_goes_unnoticed(
            key in any::<String>(),
            byte in any::<proptest::sample::Index>(),
            bit in 0..8_u8,
        ) {
            let mut line = Vec::new();
            Change::<_, Box<RawValue>>::Delete(key.clone()).append_to(&mut line).unwrap();
            match Change::of_line(&line) {
                Some(Change::Delete(read)) => prop_assert_eq!(read, key),
                other => prop_assert!(false, "{other:?}"),
            }
            let flipped = byte.index(line.len());
            line[flipped] ^= 1_u8 << bit;
            // The checksum's digits read the same in upper and lower case.
            let same = flipped < CHECKSUM && line[flipped].is_ascii_hexdigit() && bit == 5;
            prop_assert_eq!(Change::of_line(&line).is_some(), same);
        }
    }
}
