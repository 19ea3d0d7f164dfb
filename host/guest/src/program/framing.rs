//! Checks that a component ends where its last section does.
//!
//! Looks only at the lengths of sections, because only the process that compiles may look into them.

use std::io::{self, Write};

/// Bytes before the first section.
const HEADER: u64 = 8;

/// How many bits a section's length has.
const LENGTH_BITS: u32 = 32;

/// Takes the bytes of a component as they are written, and follows its sections.
#[derive(Debug)]
pub(super) struct Framing(Position);

#[derive(Debug)]
enum Position {
    /// Before a section.
    Between,
    /// In the length of a section, a LEB128 number, with its value so far and the number of bits read.
    Length(u64, u32),
    /// In the content of a section, or in the header, with so many bytes left.
    Within(u64),
    /// After a length of too many bits.
    Broken,
}

impl Framing {
    pub(super) fn new() -> Self {
        Self(Position::Within(HEADER))
    }

    /// Whether the bytes so far end where a section does.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.0, Position::Between)
    }
}

impl Write for Framing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while let Some((first, after)) = rest.split_first() {
            (self.0, rest) = match self.0 {
                Position::Between => (Position::Length(0, 0), after),
                Position::Length(_, LENGTH_BITS..) | Position::Broken => {
                    (Position::Broken, Default::default())
                }
                Position::Length(value, bits) => {
                    let value = value | u64::from(first & 0x7f) << bits;
                    let place =
                        if first & 0x80 != 0 { Position::Length(value, bits + 7) } else { within(value) };
                    (place, after)
                }
                Position::Within(left) => {
                    let skipped = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                    (within(left - skipped as u64), rest.get(skipped..).unwrap_or_default())
                }
            };
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the position with this many bytes of content left.
fn within(left: u64) -> Position {
    if left == 0 { Position::Between } else { Position::Within(left) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_whole(bytes: &[u8], piece: usize) -> bool {
        let mut framing = Framing::new();
        bytes.chunks(piece).for_each(|piece| framing.write_all(piece).unwrap());
        framing.is_whole()
    }

    #[test]
    fn only_a_component_with_whole_sections_is_whole() {
        let large = [&[0, 0x80 | 44, 2][..], &[b'x'; 300]].concat();
        let component = [&b"\0asm\x0d\0\x01\0"[..], &[0, 3, 1, b'v', 1], &[7, 0], &large[..]].concat();
        for piece in [1, 3, 1000] {
            assert!(is_whole(&component, piece) && is_whole(&component[..8], piece));
            for end in (0..component.len()).filter(|end| ![8, 13, 15].contains(end)) {
                assert!(!is_whole(&component[..end], piece), "{end}");
            }
            let endless = [&component[..8], &[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]].concat();
            assert!(!is_whole(&endless, piece));
        }
    }
}
