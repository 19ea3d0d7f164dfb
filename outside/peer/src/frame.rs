//! Frames of the protocol as values, and as bytes. Does no I/O.
//!
//! A frame is a `u32` length, a kind of one byte, and a body. Integers are little-endian. [`next_frame`] cuts a frame off
//! what was read; [`FromPeer`] and [`FromMain`] decode what it gives, and encode whole frames. Strings are borrowed, and a
//! payload of [`SHARED_MIN`] bytes or more shares the memory that it was read into.

/// Declares the frames that one side sends: an enum, whose frames can be decoded and encoded. A frame is its variant,
/// its kind, its name in the specification, and its fields in their order: each with its form, as [`fields`] has it,
/// and its name in the specification. The fields of an `@` frame are those of a struct. After `..ignored`, bytes that
/// follow are ignored: a later version may add fields.
macro_rules! frames {
    (
        $(#[$about:meta])*
        $frames:ident {
            $(@$whole:ident($of:ident) = $whole_kind:literal $whole_name:literal $whole_about:literal,)?
            $(
                $(#[$frame_about:meta])*
                $frame:ident = $kind:literal $name:literal {
                    $($(#[$field_about:meta])* $field:ident: $type:ty = $form:ident($said:literal),)*
                    $(..$open:ident)?
                },
            )*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $frames<'a> {
            $(#[doc = $whole_about] $whole($of<'a>),)?
            $(
                $(#[$frame_about])*
                $frame { $($(#[$field_about])* $field: $type,)* },
            )*
        }

        impl<'a> $frames<'a> {
            /// The frame that [`next_frame`](super::next_frame) cut off. Names are not checked.
            ///
            /// # Errors
            /// Bytes that are no frame of the side that sends these frames.
            #[inline]
            pub fn decode(frame: &'a bytes::Bytes) -> Result<Self, super::FrameError> {
                use super::{FrameError, fields::Fields};
                let (kind, rest) = frame.split_first().ok_or(FrameError::Empty)?;
                match kind {
                    $($whole_kind => $of::read(&mut Fields::of(frame, rest, $whole_name)).map(Self::$whole),)?
                    $($kind => {
                        let mut fields = Fields::of(frame, rest, $name);
                        let decoded = Self::$frame { $($field: fields.$form($said)?,)* };
                        frames!(@end fields $($open)?);
                        Ok(decoded)
                    })*
                    kind => Err(FrameError::UnknownKind(*kind)),
                }
            }

            /// Puts the whole frame at the end of `out`. A text that is too long for its field is cut.
            #[inline]
            pub fn encode(&self, out: &mut bytes::BytesMut) {
                use super::fields::Out;
                match self {
                    $(Self::$whole(whole) => Out::frame(out, $whole_kind, 0, |out| whole.write(out)),)?
                    $(Self::$frame { $($field),* } => {
                        Out::frame(out, $kind, 0 $(+ frames!(@room $form $field))*, |out| {
                            $(out.$form($field);)*
                        });
                    })*
                }
            }

            /// The frame's name in the specification.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$whole(_) => $whole_name,)?
                    $(Self::$frame { .. } => $name,)*
                }
            }
        }
    };
    (@end $fields:ident) => { $fields.end()? };
    (@end $fields:ident ignored) => {};
    (@room payload $field:ident) => { $field.len() };
    (@room $form:ident $field:ident) => { 0 };
}

mod fields;
mod from_main;
mod from_peer;
mod message_error;

use bytes::{Buf, Bytes, BytesMut};

pub use self::{
    from_main::FromMain,
    from_peer::{FromPeer, Hello},
};

/// The newest version of the protocol that this crate speaks.
pub const VERSION: u16 = 3;

/// The oldest version of the protocol that this crate speaks.
pub const OLDEST_VERSION: u16 = 1;

/// The version that added `TRACE`, either way, and `DESCRIBE`.
pub const TRACES_SINCE: u16 = 2;

/// The version that added `COUNTED` and `REFUSE`.
pub const COUNTS_SINCE: u16 = 3;

/// The largest length of a frame before the welcome, in bytes, either way.
pub const HELLO_MAX: usize = 512;

/// Bytes that a frame may have beside a payload of the largest size.
pub const OVERHEAD: usize = 1024;

/// Bytes for which there is room in every frame, for lists of operations and for texts of errors.
pub const ROOM_MIN: usize = 64 * 1024;

/// A smaller payload is copied out of the buffer that it was read into. A payload that waits then keeps no more memory
/// than its own size, and a larger one at most its frame and what one read brought with that.
pub const SHARED_MIN: usize = 4096;

/// Bytes to make room for before a read, by both sides.
pub const READ_SIZE: usize = 16 * 1024;

/// Most bytes by which [`next_frame`] grows the buffer for a frame that has not come yet.
const GROW_MAX: usize = 64 * 1024;

/// Bytes of the length before a frame.
const PREFIX: usize = 4;

/// Codes of [`FromMain::Close`].
pub mod close {
    /// Main and the peer speak no version in common.
    pub const VERSION: &str = "version";
    /// The operator has no peer of this name with this token or user.
    pub const DENIED: &str = "denied";
    /// Too many sessions of this name, or connections without a hello.
    pub const BUSY: &str = "busy";
    /// A frame broke the protocol. The text says how.
    pub const PROTOCOL: &str = "protocol";
    /// The peer did not read for too long.
    pub const STALLED: &str = "stalled";
    /// The operator took back the token, the uid, the peer or a contract that it serves.
    pub const REVOKED: &str = "revoked";
    /// The operator ended the session.
    pub const ENDED: &str = "ended";
    /// Main ends.
    pub const STOPPING: &str = "stopping";
}

/// Why bytes are no frame of the protocol. It ends the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Longer than a frame may be.
    #[error("a frame of {length} bytes, where at most {max} are allowed")]
    TooLong {
        /// Length that the frame claims.
        length: u32,
        /// Length that is allowed.
        max: usize,
    },
    /// A frame without a kind.
    #[error("an empty frame")]
    Empty,
    /// A kind that this side of the protocol does not have.
    #[error("a frame of the unknown kind {0:#04x}")]
    UnknownKind(u8),
    /// A field of a frame is not as it must be.
    #[error("{frame}: `{field}` {fault}")]
    Malformed {
        /// Name of the frame, such as `CALL`.
        frame: &'static str,
        /// Name of the field.
        field: &'static str,
        /// Its fault, such as `is cut short`.
        fault: &'static str,
    },
}

/// The largest length of a frame after the welcome, in bytes, for payloads of at most `message_size`.
///
/// A frame within it may have a payload over `message_size`. Such a payload is refused with `too-large`, and the session
/// goes on.
#[must_use]
pub fn frame_max(message_size: u32) -> usize {
    usize::try_from(message_size).unwrap_or(usize::MAX).max(ROOM_MIN).saturating_add(OVERHEAD)
}

/// Bytes of the first frame in `frames`, with the prefix that tells its length. If the prefix is not whole yet, returns
/// the number of all bytes that are there, and at least 1.
#[must_use]
pub fn size(frames: &[u8]) -> usize {
    let length = frames.first_chunk::<PREFIX>().map(|prefix| u32::from_le_bytes(*prefix));
    let size = length.and_then(|length| usize::try_from(length).ok()?.checked_add(PREFIX));
    size.unwrap_or(frames.len().max(1))
}

/// Cuts the first frame off `buffer`: its kind and body, without its length. `None` if it is not all there.
///
/// Makes room for the rest of a frame as the rest comes: a length alone reserves no more than 64 KiB.
///
/// # Errors
/// A frame that is longer than `max` or empty, as soon as its length has come.
#[inline]
pub fn next_frame(buffer: &mut BytesMut, max: usize) -> Result<Option<Bytes>, FrameError> {
    let Some(prefix) = buffer.first_chunk::<PREFIX>() else { return Ok(None) };
    let length = u32::from_le_bytes(*prefix);
    let size = usize::try_from(length).unwrap_or(usize::MAX);
    if size > max {
        return Err(FrameError::TooLong { length, max });
    }
    if size == 0 {
        return Err(FrameError::Empty);
    }
    let missing = size.saturating_add(PREFIX).saturating_sub(buffer.len());
    if missing > 0 {
        buffer.reserve(missing.min(GROW_MAX));
        return Ok(None);
    }
    buffer.advance(PREFIX);
    let frame = buffer.split_to(size).freeze();
    if size > GROW_MAX {
        // Otherwise each small payload that comes next and waits would keep memory of a large frame's size.
        let mut rest = BytesMut::with_capacity(buffer.len().saturating_add(READ_SIZE));
        rest.extend_from_slice(buffer);
        *buffer = rest;
    }
    Ok(Some(frame))
}
