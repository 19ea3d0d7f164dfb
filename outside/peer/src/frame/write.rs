//! The fields of a frame, written one after the other.

use bytes::{BufMut, BytesMut};

use super::PREFIX;

/// Writes a frame: its length, its kind, and what `body` puts.
///
/// A frame over 4 GiB would get a wrong length. `message-size` is far below that, and the sender checks it first.
#[inline]
pub(super) fn frame(out: &mut BytesMut, kind: u8, payload: &[u8], body: impl FnOnce(&mut BytesMut)) {
    let start = out.len();
    out.reserve(payload.len().saturating_add(128));
    out.put_u32_le(0);
    out.put_u8(kind);
    body(out);
    out.put_slice(payload);
    let length = u32::try_from(out.len() - start - PREFIX).unwrap_or(u32::MAX);
    if let Some(prefix) = out.get_mut(start..start + PREFIX) {
        prefix.copy_from_slice(&length.to_le_bytes());
    }
}

/// A text of at most 255 bytes; the rest is cut off.
#[inline]
pub(super) fn str8(out: &mut BytesMut, text: &str) {
    let (length, text) = cut(text, u8::MAX);
    out.put_u8(length);
    out.put_slice(text);
}

/// A text of at most 65535 bytes; the rest is cut off.
#[inline]
pub(super) fn str16(out: &mut BytesMut, text: &str) {
    let (length, text) = cut(text, u16::MAX);
    out.put_u16_le(length);
    out.put_slice(text);
}

/// The start of a text up to `max` bytes, and its length.
#[inline]
fn cut<L: Copy + TryFrom<usize> + Into<usize>>(text: &str, max: L) -> (L, &[u8]) {
    if let Ok(length) = L::try_from(text.len()) {
        return (length, text.as_bytes());
    }
    let kept = text.get(..text.floor_char_boundary(max.into())).unwrap_or_default();
    (L::try_from(kept.len()).unwrap_or(max), kept.as_bytes())
}
