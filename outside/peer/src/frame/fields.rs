//! The fields of frames: [`Fields`] reads them one after the other, and trusts no length; [`Out`] writes them.
//!
//! Both have a method for each form of a field, by the same name.

use std::str;

use bytes::{BufMut, Bytes, BytesMut};
use weir_names::{Error, HandlerError, TraceContext};

use super::{FrameError, PREFIX, SHARED_MIN, message_error::Parts};

/// Most bytes of a CLOSE's text, so that it fits a frame before the welcome.
const CLOSE_TEXT_MAX: usize = 400;

/// The fields of a frame that have not been read.
pub(super) struct Fields<'a> {
    whole: &'a Bytes,
    rest: &'a [u8],
    frame: &'static str,
}

impl<'a> Fields<'a> {
    /// The fields of a frame of this name, after its kind.
    #[inline]
    pub(super) fn of(whole: &'a Bytes, rest: &'a [u8], frame: &'static str) -> Self {
        Self { whole, rest, frame }
    }

    #[inline]
    pub(super) fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], FrameError> {
        let (array, rest) = self.rest.split_first_chunk().ok_or_else(|| self.cut_short(field))?;
        self.rest = rest;
        Ok(*array)
    }

    #[inline]
    pub(super) fn u8(&mut self, field: &'static str) -> Result<u8, FrameError> {
        Ok(u8::from_le_bytes(self.array(field)?))
    }

    #[inline]
    pub(super) fn u16(&mut self, field: &'static str) -> Result<u16, FrameError> {
        Ok(u16::from_le_bytes(self.array(field)?))
    }

    #[inline]
    pub(super) fn u32(&mut self, field: &'static str) -> Result<u32, FrameError> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    #[inline]
    pub(super) fn u64(&mut self, field: &'static str) -> Result<u64, FrameError> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    /// A number that is not 0.
    #[inline]
    pub(super) fn id(&mut self, field: &'static str) -> Result<u32, FrameError> {
        let id = self.u32(field)?;
        if id == 0 { Err(self.malformed(field, "is 0")) } else { Ok(id) }
    }

    /// A byte of flags, of which only the first bit has a meaning.
    #[inline]
    pub(super) fn flag(&mut self, field: &'static str) -> Result<bool, FrameError> {
        match self.u8(field)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.malformed(field, "has unknown bits")),
        }
    }

    #[inline]
    pub(super) fn str8(&mut self, field: &'static str) -> Result<&'a str, FrameError> {
        let length = self.u8(field)?;
        self.text(length.into(), field)
    }

    #[inline]
    pub(super) fn str16(&mut self, field: &'static str) -> Result<&'a str, FrameError> {
        let length = self.u16(field)?;
        self.text(length.into(), field)
    }

    /// A text that is absent if it is empty.
    #[inline]
    pub(super) fn optional_str8(&mut self, field: &'static str) -> Result<Option<&'a str>, FrameError> {
        self.str8(field).map(|text| (!text.is_empty()).then_some(text))
    }

    #[inline]
    pub(super) fn traceparent(&mut self, field: &'static str) -> Result<TraceContext, FrameError> {
        self.str8(field)?.parse().map_err(|_| self.malformed(field, "is no traceparent"))
    }

    /// The operations of a contract. A list grows as it is read: its count alone reserves nothing.
    pub(super) fn operations(&mut self, field: &'static str) -> Result<Vec<&'a str>, FrameError> {
        let count = self.u16("count")?;
        let mut operations = Vec::new();
        for _ in 0..count {
            operations.push(self.str8(field)?);
        }
        Ok(operations)
    }

    pub(super) fn close_text(&mut self, field: &'static str) -> Result<&'a str, FrameError> {
        self.str16(field)
    }

    pub(super) fn handler_error(&mut self, message: &'static str) -> Result<HandlerError, FrameError> {
        Ok(HandlerError::new(self.str8("code")?, self.str16(message)?))
    }

    pub(super) fn error(&mut self, case: &'static str) -> Result<Error, FrameError> {
        let error = Parts::read(self)?.error();
        error.ok_or_else(|| self.malformed(case, "is unknown"))
    }

    /// An error whose code and text are cut to the lengths of a handler's error.
    pub(super) fn cut_error(&mut self, case: &'static str) -> Result<Error, FrameError> {
        let error = Parts::read(self)?.cut().error();
        error.ok_or_else(|| self.malformed(case, "is unknown"))
    }

    /// Reads all that is left.
    #[inline]
    pub(super) fn payload(&mut self, _field: &'static str) -> Result<Bytes, FrameError> {
        let rest = std::mem::take(&mut self.rest);
        Ok(if rest.len() < SHARED_MIN { Bytes::copy_from_slice(rest) } else { self.whole.slice_ref(rest) })
    }

    /// Fails if anything is left.
    #[inline]
    pub(super) fn end(self) -> Result<(), FrameError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.malformed("end", "is followed by more bytes")) }
    }

    #[inline]
    fn text(&mut self, length: usize, field: &'static str) -> Result<&'a str, FrameError> {
        let (text, rest) = self.rest.split_at_checked(length).ok_or_else(|| self.cut_short(field))?;
        self.rest = rest;
        str::from_utf8(text).map_err(|_| self.malformed(field, "is not UTF-8"))
    }

    #[cold]
    fn cut_short(&self, field: &'static str) -> FrameError {
        self.malformed(field, "is cut short")
    }

    #[cold]
    pub(super) fn malformed(&self, field: &'static str, fault: &'static str) -> FrameError {
        FrameError::Malformed { frame: self.frame, field, fault }
    }
}

/// The end of a buffer, where a frame is written. A text that is too long for its field is cut.
pub(super) struct Out<'o>(&'o mut BytesMut);

impl Out<'_> {
    /// Writes a frame: its length, its kind, and what `body` puts. `payload` is the size of the payload in it, to make
    /// room for.
    ///
    /// A frame over 4 GiB would get a wrong length. `message-size` is far below that, and the sender checks it first.
    #[inline]
    pub(super) fn frame(out: &mut BytesMut, kind: u8, payload: usize, body: impl FnOnce(&mut Out<'_>)) {
        let start = out.len();
        out.reserve(payload.saturating_add(128));
        out.put_u32_le(0);
        out.put_u8(kind);
        body(&mut Out(out));
        let length = u32::try_from(out.len() - start - PREFIX).unwrap_or(u32::MAX);
        if let Some(prefix) = out.get_mut(start..start + PREFIX) {
            prefix.copy_from_slice(&length.to_le_bytes());
        }
    }

    #[inline]
    pub(super) fn payload(&mut self, payload: &[u8]) {
        self.0.put_slice(payload);
    }

    #[inline]
    pub(super) fn u16(&mut self, number: &u16) {
        self.0.put_u16_le(*number);
    }

    #[inline]
    pub(super) fn u32(&mut self, number: &u32) {
        self.0.put_u32_le(*number);
    }

    #[inline]
    pub(super) fn u64(&mut self, number: &u64) {
        self.0.put_u64_le(*number);
    }

    #[inline]
    pub(super) fn id(&mut self, id: &u32) {
        self.u32(id);
    }

    #[inline]
    pub(super) fn flag(&mut self, flag: &bool) {
        self.0.put_u8((*flag).into());
    }

    #[inline]
    pub(super) fn str8(&mut self, text: &str) {
        let (length, text) = cut(text, u8::MAX);
        self.0.put_u8(length);
        self.0.put_slice(text);
    }

    #[inline]
    pub(super) fn str16(&mut self, text: &str) {
        let (length, text) = cut(text, u16::MAX);
        self.0.put_u16_le(length);
        self.0.put_slice(text);
    }

    #[inline]
    pub(super) fn optional_str8(&mut self, text: &Option<&str>) {
        self.str8(text.unwrap_or_default());
    }

    pub(super) fn traceparent(&mut self, span: &TraceContext) {
        self.str8(&span.to_string());
    }

    pub(super) fn operations(&mut self, operations: &[&str]) {
        let count = u16::try_from(operations.len()).unwrap_or(u16::MAX);
        self.u16(&count);
        operations.iter().take(count.into()).for_each(|operation| self.str8(operation));
    }

    pub(super) fn close_text(&mut self, text: &str) {
        self.str16(text.get(..text.floor_char_boundary(CLOSE_TEXT_MAX)).unwrap_or_default());
    }

    pub(super) fn handler_error(&mut self, HandlerError { code, message }: &HandlerError) {
        self.str8(code);
        self.str16(message);
    }

    pub(super) fn error(&mut self, error: &Error) {
        Parts::from(error).write(self);
    }

    /// Writes the whole error: the side that reads it cuts its code and text.
    pub(super) fn cut_error(&mut self, error: &Error) {
        self.error(error);
    }
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
