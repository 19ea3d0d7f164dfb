//! Packs the small module that measures fuel, by leaving out the zeros that align it to pages.
//!
//! The packed form is a row of pieces. A piece is a number of zeros, a number of other bytes, and these other bytes.
//! The numbers have 4 bytes in little-endian order.

/// The fewest zeros for which a new piece begins.
#[cfg(any(feature = "compiler", test))]
const RUN: [u8; 16] = [0; 16];

/// The most bytes that the unpacked form may have.
#[cfg(any(not(feature = "compiler"), test))]
const MAX: usize = 1 << 20;

#[cfg(any(feature = "compiler", test))]
pub(super) fn pack(bytes: &[u8]) -> Vec<u8> {
    let length = |length: usize| u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
    let (mut packed, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let (zeros, others) = rest.split_at(rest.iter().take_while(|byte| **byte == 0).count());
        let run = others.windows(RUN.len()).position(|window| window == RUN);
        let (others, after) = others.split_at(run.unwrap_or(others.len()));
        packed.extend([length(zeros.len()), length(others.len())].as_flattened());
        packed.extend(others);
        rest = after;
    }
    packed
}

/// Returns the bytes before they were packed. Returns none if these bytes are no packed form, or stand for more than
/// [`MAX`] bytes.
#[cfg(any(not(feature = "compiler"), test))]
pub(super) fn unpack(mut packed: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while !packed.is_empty() {
        let mut length = || {
            let (length, rest) = packed.split_first_chunk()?;
            packed = rest;
            usize::try_from(u32::from_le_bytes(*length)).ok()
        };
        let (zeros, others) = (length()?, length()?);
        let (others, rest) = packed.split_at_checked(others)?;
        let total = bytes.len().checked_add(zeros)?;
        total.checked_add(others.len()).filter(|total| *total <= MAX)?;
        bytes.resize(total, 0);
        bytes.extend(others);
        packed = rest;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unpacked_is_what_was_packed() {
        let page = [&[1, 0, 2][..], &[0; 5000], &[3, 4], &[0; 17], &[5], &[0; 100]].concat();
        for bytes in [&page[..], &[], &[0], &[7], &[0; 16], &RUN] {
            assert_eq!(unpack(&pack(bytes)).as_deref(), Some(bytes));
        }
        assert!(pack(&page).len() < 60, "{}", pack(&page).len());
    }

    #[test]
    fn other_bytes_unpack_to_nothing_or_to_little() {
        assert_eq!(unpack(&[1, 2, 3]), None);
        assert_eq!(unpack(&[0xff; 8]), None);
        assert_eq!(unpack(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]), None);
        assert_eq!(unpack(&[0, 0, 0, 0, 9, 0, 0, 0, 1]), None);
    }
}
