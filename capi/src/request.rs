//! Requests to contracts that the program serves.

use std::{
    ffi::{CString, c_char, c_void},
    mem::MaybeUninit,
    ptr,
};

use futures_util::FutureExt;
use tokio::sync::oneshot;
use weir_host::{
    Error, HandlerError,
    service::{Answer, ServedRequest},
};

use crate::{
    c::{Bytes, Callback, Data, ErrorOut, Text, given, run, run_infallible, text},
    error::weir_error,
};

/// Serves a request. It owns `request`, and ends it with `weir_request_answer`, `weir_request_fail` or
/// `weir_request_free`, at once or later, on any thread. It must not throw.
pub type weir_handler = Option<extern "C" fn(request: Box<weir_request>, data: *mut c_void)>;

pub(crate) type OnRequest = extern "C" fn(request: Box<weir_request>, data: *mut c_void);

/// A request in hand. One thread at a time may use it.
#[derive(Debug)]
pub struct weir_request {
    payload: Bytes,
    sender: CString,
    operation: CString,
    served: ServedRequest,
    answer: oneshot::Sender<Answer>,
}

/// The arguments. `length`, which may be NULL, gets their number of bytes. A NUL follows them. They live as long as
/// `request`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_request_payload(
    request: Option<&weir_request>,
    length: Option<&mut MaybeUninit<usize>>,
) -> *const c_char {
    Bytes::give(request.map(|request| &request.payload), length)
}

/// The id of the extension that asks, the name of a peer, or `main`. Main has checked it. The text lives as long as
/// `request`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_request_sender(request: Option<&weir_request>) -> *const c_char {
    request.map_or(ptr::null(), |request| request.sender.as_ptr())
}

/// The contract and the operation, such as `platform.info@1 model`. The text lives as long as `request`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_request_operation(request: Option<&weir_request>) -> *const c_char {
    request.map_or(ptr::null(), |request| request.operation.as_ptr())
}

/// Milliseconds that are left for the answer. 0 if the caller waits no longer.
#[unsafe(no_mangle)]
pub extern "C" fn weir_request_remaining_ms(request: Option<&weir_request>) -> u64 {
    run_infallible(|| request.map_or(0, weir_request::remaining_ms))
}

/// Answers with a value, and frees the request, even if this function fails. Any thread. Does not block.
///
/// Errors: `WEIR_ERROR_KIND_TIMEOUT` if the caller has given up or the deadline has passed.
#[unsafe(no_mangle)]
pub extern "C" fn weir_request_answer(
    request: Option<Box<weir_request>>,
    payload: Data,
    length: usize,
    error: ErrorOut,
) -> bool {
    run(error, || {
        let request = given(request, "request")?;
        request.give(Ok(bytes::Bytes::copy_from_slice(payload.bytes(length, "payload")?)))
    })
}

/// Answers with an error, and frees the request, even if this function fails. `code` is a short word of the contract,
/// such as `not-found`, of at most 64 bytes; `message` is for people, of at most 4096 bytes. Longer ones are cut. Any
/// thread. Does not block.
///
/// Errors: `WEIR_ERROR_KIND_TIMEOUT` if the caller has given up or the deadline has passed.
#[unsafe(no_mangle)]
pub extern "C" fn weir_request_fail(
    request: Option<Box<weir_request>>,
    code: Text,
    message: Text,
    error: ErrorOut,
) -> bool {
    run(error, || {
        let request = given(request, "request")?;
        request.give(Err(HandlerError::new(code.get("code")?, message.get("message")?)))
    })
}

/// Frees a request without an answer. The caller gets a handler's error with the code `unanswered`. Any thread. NULL is
/// fine.
#[unsafe(no_mangle)]
pub extern "C" fn weir_request_free(request: Option<Box<weir_request>>) {
    run_infallible(|| drop(request));
}

impl weir_request {
    /// Hands a request for this operation to a handler. Its answer comes unless C frees the request.
    pub(crate) fn hand_over(
        served: ServedRequest,
        operation: &str,
        handler: &Callback<OnRequest>,
    ) -> oneshot::Receiver<Answer> {
        let (answer, answered) = oneshot::channel();
        let payload = Bytes::new(&served.payload);
        let (sender, operation) = (text(&*served.sender), text(operation));
        let (function, data) = handler.function();
        function(Box::new(Self { payload, sender, operation, served, answer }), data);
        answered
    }

    fn remaining_ms(&self) -> u64 {
        if self.served.given_up().now_or_never().is_some() {
            return 0;
        }
        // The time is rounded up, so that it is not 0 as long as any is left.
        u64::try_from(self.served.remaining().as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
    }

    fn give(self, answer: Answer) -> Result<bool, weir_error> {
        let given_up = self.remaining_ms() == 0;
        let given = self.answer.send(answer);
        if given_up || given.is_err() { Err(Error::Timeout.into()) } else { Ok(true) }
    }
}

pub(crate) fn unanswered() -> Answer {
    Err(HandlerError::new("unanswered", "the program freed the request without an answer"))
}
