//! Bytes that C owns, and the version.

use std::{
    ffi::{CStr, c_char},
    mem::MaybeUninit,
};

use serde::Serialize;

use crate::{
    c::{Bytes, run_infallible},
    error::weir_error,
};

/// No time of the caller's own. A call then has the time of the contract's owner or of `main.request-timeout`, and a
/// publication or put that of `main.request-timeout`. A wait for an event or a job has no end but Main's.
pub const WEIR_NO_TIMEOUT: u64 = 0xFFFF_FFFF_FFFF_FFFF;

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => c"",
};

/// Bytes that the caller owns: an answer, or JSON. Free it with `weir_buffer_free`.
#[derive(Debug)]
pub struct weir_buffer(Bytes);

/// The version of this library, such as `0.1.0`. Any thread. The text lives for ever.
#[unsafe(no_mangle)]
pub extern "C" fn weir_version() -> *const c_char {
    VERSION.as_ptr()
}

/// The bytes of a buffer. `length`, which may be NULL, gets their number. A NUL follows them, so text can be read as
/// such. Any thread. They live as long as `buffer`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_buffer_data(
    buffer: Option<&weir_buffer>,
    length: Option<&mut MaybeUninit<usize>>,
) -> *const c_char {
    Bytes::give(buffer.map(|buffer| &buffer.0), length)
}

/// Frees a buffer. Any thread. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn weir_buffer_free(buffer: Option<Box<weir_buffer>>) {
    run_infallible(|| drop(buffer));
}

impl weir_buffer {
    pub(crate) fn new(bytes: &[u8]) -> Box<Self> {
        Box::new(Self(Bytes::new(bytes)))
    }

    pub(crate) fn json(value: &impl Serialize) -> Result<Option<Box<Self>>, weir_error> {
        let json = serde_json::to_vec(value).map_err(|error| weir_error::panic(&error.to_string()))?;
        Ok(Some(Self::new(&json)))
    }
}
