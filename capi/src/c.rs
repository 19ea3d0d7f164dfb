//! What C passes: texts, payloads, callbacks. The only module that follows pointers of C.
//!
//! Knows nothing of Weir. `Text`, `Data` and `ErrorOut` are `const char *`, `const void *` and `weir_error **` in the
//! header. Rust cannot make a `Text` or a `Data`, so only C can pass a wrong one.

use std::{
    any::Any,
    ffi::{CStr, CString, c_char, c_void},
    mem::MaybeUninit,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr, slice,
};

use crate::error::weir_error;

/// A text in UTF-8 that ends with NUL, or NULL. It lives at least as long as the call that gets it.
#[derive(Debug)]
#[repr(transparent)]
pub struct Text(*const c_char);

/// The first of some bytes, or NULL. They live at least as long as the call that gets them.
#[derive(Debug)]
#[repr(transparent)]
pub struct Data(*const c_void);

/// Where an error goes, or NULL. What is there is not read.
pub type ErrorOut<'a> = Option<&'a mut MaybeUninit<Option<Box<weir_error>>>>;

/// Frees the `data` of a callback. It is called exactly once, after the last call of the callback, on any thread, also
/// if the function that got the callback fails. NULL if nothing is to be freed.
pub type weir_drop = Option<extern "C" fn(data: *mut c_void)>;

impl Text {
    /// The text of the argument with this name.
    pub(crate) fn get(&self, name: &str) -> Result<&str, weir_error> {
        self.optional(name)?.ok_or_else(|| weir_error::null(name))
    }

    /// The text of the argument with this name, or `None` for NULL.
    pub(crate) fn optional(&self, name: &str) -> Result<Option<&str>, weir_error> {
        if self.0.is_null() {
            return Ok(None);
        }
        // SAFETY: only C makes a `Text`. The header asks for a text that ends with NUL and lives as long as the call,
        // and the result borrows from `self`, which ends with the call.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map(Some).map_err(|error| {
            weir_error::argument(format!("`{name}` is not UTF-8: byte {} is wrong", error.valid_up_to()))
        })
    }
}

impl Data {
    /// The first `length` bytes of the argument with this name.
    pub(crate) fn bytes(&self, length: usize, name: &str) -> Result<&[u8], weir_error> {
        if length == 0 {
            return Ok(&[]);
        }
        if self.0.is_null() {
            return Err(weir_error::null(name));
        }
        if isize::try_from(length).is_err() {
            let message = format!("`{name}` cannot have {length} bytes: is the length negative?");
            return Err(weir_error::argument(message));
        }
        // SAFETY: only C makes a `Data`. The header asks for `length` bytes that live, and do not change, as long as
        // the call, and the result borrows from `self`, which ends with the call. No object is larger than
        // `isize::MAX`.
        Ok(unsafe { slice::from_raw_parts(self.0.cast(), length) })
    }
}

/// A function of C with its data. When this is dropped, the data is freed.
#[derive(Debug)]
pub(crate) struct Callback<F> {
    function: F,
    data: UserData,
}

/// The `data` of a callback. Rust hands it back, and never looks at it.
#[derive(Debug)]
struct UserData(*mut c_void, weir_drop);

// SAFETY: Rust does not follow the pointer. The header says that callbacks and `drop` run on any thread.
unsafe impl Send for UserData {}

// SAFETY: Rust does not follow the pointer, and the header says which callbacks run on several threads at once.
unsafe impl Sync for UserData {}

impl Drop for UserData {
    fn drop(&mut self) {
        if let Some(free) = self.1 {
            free(self.0);
        }
    }
}

impl<F: Copy> Callback<F> {
    /// Takes `data` over. If `function` is NULL, this frees `data` and fails.
    pub(crate) fn new(function: Option<F>, data: *mut c_void, drop: weir_drop) -> Result<Self, weir_error> {
        let data = UserData(data, drop);
        Ok(Self { function: function.ok_or_else(|| weir_error::null("callback"))?, data })
    }

    pub(crate) fn function(&self) -> (F, *mut c_void) {
        (self.function, self.data.0)
    }
}

/// Bytes with a NUL behind them, so that C can read text as such.
#[derive(Debug)]
pub(crate) struct Bytes(Box<[u8]>);

impl Bytes {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let mut owned = Vec::with_capacity(bytes.len() + 1);
        owned.extend_from_slice(bytes);
        owned.push(0);
        Self(owned.into())
    }

    /// A pointer to the first byte, or NULL for `None`. The number of bytes goes to `length`.
    pub(crate) fn give(bytes: Option<&Self>, length: Option<&mut MaybeUninit<usize>>) -> *const c_char {
        if let Some(length) = length {
            length.write(bytes.map_or(0, |bytes| bytes.0.len().saturating_sub(1)));
        }
        bytes.map_or(ptr::null(), |bytes| bytes.0.as_ptr().cast())
    }
}

/// A text for C. A NUL in it becomes U+FFFD.
pub(crate) fn text(text: impl Into<String>) -> CString {
    let text = text.into();
    CString::new(text).unwrap_or_else(|error| {
        let text = String::from_utf8_lossy(&error.into_vec()).replace('\0', "\u{fffd}");
        CString::new(text).unwrap_or_default()
    })
}

/// An argument that may not be NULL.
pub(crate) fn given<T>(argument: Option<T>, name: &str) -> Result<T, weir_error> {
    argument.ok_or_else(|| weir_error::null(name))
}

/// Runs the body of a function. If it fails or panics, `error` gets an object, and C gets the default: NULL, `false` or
/// 0.
pub(crate) fn run<T: Default>(error: ErrorOut, body: impl FnOnce() -> Result<T, weir_error>) -> T {
    let (value, failure) = match caught(body) {
        Ok(value) => (value, None),
        Err(failure) => (T::default(), Some(Box::new(failure))),
    };
    if let Some(error) = error {
        error.write(failure);
    }
    value
}

/// The outcome of `body`. A panic becomes an error.
pub(crate) fn caught<T>(body: impl FnOnce() -> Result<T, weir_error>) -> Result<T, weir_error> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

/// Runs the body of a function that cannot fail. After a panic C gets the default.
pub(crate) fn run_infallible<T: Default>(body: impl FnOnce() -> T) -> T {
    run(None, || Ok(body()))
}

fn panicked(panic: &(dyn Any + Send)) -> weir_error {
    let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
    weir_error::panic(&said.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_for_c_ends_at_its_nul_and_nowhere_before() {
        assert_eq!(text("a\0b").to_str(), Ok("a\u{fffd}b"));
        let bytes = Bytes::new(b"a\0b");
        let mut length = MaybeUninit::uninit();
        assert!(!Bytes::give(Some(&bytes), Some(&mut length)).is_null());
        assert_eq!((&*bytes.0, Bytes::give(None, None)), (&b"a\0b\0"[..], ptr::null()));
    }
}
