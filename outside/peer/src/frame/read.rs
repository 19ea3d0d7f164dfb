//! The fields of a frame, read one after the other. Nothing here trusts a length.

use std::str;

use bytes::Bytes;
use weir_names::TraceContext;

use super::{FrameError, SHARED_MIN};

/// What has not been read of a frame.
pub(super) struct Fields<'a> {
    whole: &'a Bytes,
    rest: &'a [u8],
    frame: &'static str,
}

impl<'a> Fields<'a> {
    /// The kind of a frame, and its fields. `name_of` gives the frame's name, `None` for an unknown kind.
    #[inline]
    pub(super) fn of(
        whole: &'a Bytes,
        name_of: impl FnOnce(u8) -> Option<&'static str>,
    ) -> Result<(u8, Self), FrameError> {
        let (kind, rest) = whole.split_first().ok_or(FrameError::Empty)?;
        let frame = name_of(*kind).ok_or(FrameError::UnknownKind(*kind))?;
        Ok((*kind, Self { whole, rest, frame }))
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

    /// The one flag that there is.
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

    /// All that is left.
    #[inline]
    pub(super) fn payload(self) -> Bytes {
        if self.rest.len() < SHARED_MIN {
            Bytes::copy_from_slice(self.rest)
        } else {
            self.whole.slice_ref(self.rest)
        }
    }

    /// Nothing is left.
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
