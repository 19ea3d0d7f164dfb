//! Messages and answers, written into a guest's memory in one piece.
//!
//! wasmtime looks up the guest's memory again for each field of a record, and a request has nine with the variants
//! around it. Here the payload is copied first, then all fields at once. Rare values are left to wasmtime's own code.
//!
//! Every type here is aligned to 8 bytes, so a value is a row of 64-bit words: the canonical ABI's `alignment`,
//! `elem_size` and `store` say which field is where.

#[cfg(test)]
mod tests;

use std::mem::MaybeUninit;

use bytes::Bytes;
use wasmtime::{
    Result,
    component::{
        __internal::{CanonicalAbiInfo, InstanceType, InterfaceType, LowerContext},
        ComponentType, Lower,
    },
    format_err,
};

use super::{Error, Event, Job, Message, Request, Response};

/// The number of words in the largest row: an event in an `option` in a `result`.
const MOST: usize = 10;

const WORD: usize = size_of::<u64>();

/// A value that goes into a guest's memory in one piece where that is possible.
#[derive(Debug)]
pub(crate) struct OnePiece<T>(pub(crate) T);

/// A type of which the usual values are written as a row of words.
pub(crate) trait Words: Lower {
    /// Appends this value and copies its payload into the guest. Returns false, and copies nothing, if wasmtime must
    /// write the value field by field.
    fn append<S>(&self, row: &mut Row, cx: &mut LowerContext<'_, S>) -> Result<bool>;
}

/// The words of one value, in order.
#[derive(Debug, Default)]
pub(crate) struct Row {
    words: [u64; MOST],
    length: usize,
}

impl Row {
    fn extend<const N: usize>(&mut self, words: [u64; N]) -> Result<()> {
        let place = self.words.get_mut(self.length..).and_then(|rest| rest.first_chunk_mut());
        *place.ok_or_else(|| format_err!("a row of more than {MOST} words"))? = words;
        self.length += N;
        Ok(())
    }

    fn write<S>(&self, cx: &mut LowerContext<'_, S>, offset: usize) -> Result<()> {
        let place = slice(cx.as_slice_mut(), offset, self.length * WORD)?;
        for (place, word) in place.chunks_exact_mut(WORD).zip(self.words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        Ok(())
    }
}

impl<T: Words> Words for Option<T> {
    fn append<S>(&self, row: &mut Row, cx: &mut LowerContext<'_, S>) -> Result<bool> {
        // Asserts that the content comes one word after the tag.
        const { assert!(Self::SIZE32 == T::SIZE32 + WORD) };
        let Some(value) = self else { return row.extend([0]).map(|()| true) };
        row.extend([1])?;
        value.append(row, cx)
    }
}

impl<T: Words> Words for Result<T, Error> {
    fn append<S>(&self, row: &mut Row, cx: &mut LowerContext<'_, S>) -> Result<bool> {
        let Ok(value) = self else { return Ok(false) };
        row.extend([0])?;
        value.append(row, cx)
    }
}

impl Words for Bytes {
    fn append<S>(&self, row: &mut Row, cx: &mut LowerContext<'_, S>) -> Result<bool> {
        row.extend([copy(cx, self)?])?;
        Ok(true)
    }
}

impl Words for Message {
    fn append<S>(&self, row: &mut Row, cx: &mut LowerContext<'_, S>) -> Result<bool> {
        match self {
            Self::Request(Request { id, sender, operation, remaining_ms, waited_us, payload }) => {
                let times = pair(*remaining_ms, *waited_us);
                row.extend([0, *id, pair(*sender, *operation), times, copy(cx, payload)?])?;
            }
            Self::Response(Response { id, outcome: Ok(payload) }) => {
                row.extend([1, *id, 0, copy(cx, payload)?])?;
            }
            Self::Event(event) if event.topic.is_none() => {
                let Event { sender, subscription, sequence, lost, retained, waited_us, payload, .. } = event;
                let (names, kept) = (pair(*sender, *subscription), pair((*retained).into(), *waited_us));
                row.extend([2, names, 0, 0, *sequence, *lost, kept, copy(cx, payload)?])?;
            }
            Self::Job(Job { id, queue, sender, deliveries, waited_us, payload }) => {
                let counts = pair(*deliveries, *waited_us);
                row.extend([3, *id, pair(*queue, *sender), counts, copy(cx, payload)?])?;
            }
            Self::Response(_) | Self::Event(_) => return Ok(false),
        }
        Ok(true)
    }
}

/// Copies bytes into memory that the guest allocates. Returns their pointer and length in one word.
fn copy<S>(cx: &mut LowerContext<'_, S>, bytes: &[u8]) -> Result<u64> {
    let pointer = cx.realloc(0, 0, 1, bytes.len())?;
    slice(cx.as_slice_mut(), pointer, bytes.len())?.copy_from_slice(bytes);
    Ok(pair(u32::try_from(pointer)?, u32::try_from(bytes.len())?))
}

/// Returns this part of the guest's memory. Fails if the memory does not hold all of it.
fn slice(memory: &mut [u8], offset: usize, length: usize) -> Result<&mut [u8]> {
    let place = memory.get_mut(offset..).and_then(|rest| rest.get_mut(..length));
    place.ok_or_else(|| format_err!("{length} bytes at {offset} are not in the guest's memory"))
}

/// Puts two fields of four bytes into a word, the first one first in memory.
fn pair(first: u32, second: u32) -> u64 {
    u64::from(first) | u64::from(second) << u32::BITS
}

#[expect(unsafe_code, reason = "wasmtime asks for it: the type has the layout of `T`")]
// SAFETY: `OnePiece` is checked, laid out and flattened as `T`, whose implementation is wasmtime's.
unsafe impl<T: ComponentType> ComponentType for OnePiece<T> {
    type Lower = T::Lower;

    const ABI: CanonicalAbiInfo = T::ABI;
    const MAY_REQUIRE_REALLOC: bool = T::MAY_REQUIRE_REALLOC;

    fn typecheck(ty: &InterfaceType, types: &InstanceType<'_>) -> Result<()> {
        T::typecheck(ty, types)
    }
}

#[expect(unsafe_code, reason = "a record is written in one piece")]
// SAFETY: flat values are lowered by `T`. Values in memory are written through checked slices, inside the value's own
// bytes. The tests beside this file compare these bytes with wasmtime's for each kind of value.
unsafe impl<T: Words> Lower for OnePiece<T> {
    fn linear_lower_to_flat<S>(
        &self,
        cx: &mut LowerContext<'_, S>,
        ty: InterfaceType,
        to: &mut MaybeUninit<T::Lower>,
    ) -> Result<()> {
        self.0.linear_lower_to_flat(cx, ty, to)
    }

    fn linear_lower_to_memory<S>(
        &self,
        cx: &mut LowerContext<'_, S>,
        ty: InterfaceType,
        offset: usize,
    ) -> Result<()> {
        const { assert!(T::ALIGN32 as usize == WORD && T::SIZE32 <= WORD * MOST) };
        let mut row = Row::default();
        match self.0.append(&mut row, cx)? {
            true => row.write(cx, offset),
            false => self.0.linear_lower_to_memory(cx, ty, offset),
        }
    }
}
