//! Calls of contracts.

use std::{ffi::c_void, mem::MaybeUninit};

use tokio::sync::oneshot;
use weir_host::{CallOptions, blocking::wait};

use crate::{
    buffer::weir_buffer,
    c::{Callback, Data, ErrorOut, Text, given, run, run_infallible, weir_drop},
    error::weir_error,
    running::weir_main,
    topics::timeout,
};

/// Takes an answer, or an error. It owns both, and one of them is NULL. It runs once, on Main's thread: it must not wait,
/// and must not throw.
pub type weir_on_answer = Option<
    extern "C" fn(answer: Option<Box<weir_buffer>>, error: Option<Box<weir_error>>, data: *mut c_void),
>;

type OnAnswer = extern "C" fn(Option<Box<weir_buffer>>, Option<Box<weir_error>>, *mut c_void);

/// A call under way. Any thread may cancel it, one may free it.
#[derive(Debug)]
pub struct weir_call_handle(parking_lot::Mutex<Option<oneshot::Sender<Cancel>>>);

/// What a cancel ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cancel {
    Wait,
    Work,
}

/// Calls an operation of a contract, and waits for the answer, for at most `timeout_ms` or as `WEIR_NO_TIMEOUT` says.
/// Blocks: not in a callback on Main's thread.
///
/// Errors: any kind from `WEIR_ERROR_KIND_PERMISSION_DENIED` to `WEIR_ERROR_KIND_HANDLER`, and `WEIR_ERROR_KIND_ENDED`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_call(
    main: Option<&weir_main>,
    contract: Text,
    operation: Text,
    payload: Data,
    length: usize,
    timeout_ms: u64,
    error: ErrorOut,
) -> Option<Box<weir_buffer>> {
    run(error, || {
        let client = &given(main, "main")?.alive()?.client;
        let (contract, operation) = (contract.get("contract")?, operation.get("operation")?);
        let payload = bytes::Bytes::copy_from_slice(payload.bytes(length, "payload")?);
        let answer = wait(client.call_with(contract, operation, payload, options(timeout_ms)))?;
        Ok(Some(weir_buffer::new(&answer)))
    })
}

/// Calls an operation of a contract, and returns at once. `callback` runs exactly once if this returns true, and never
/// if it returns false. `call`, which may be NULL, gets a handle to cancel the call; free it with
/// `weir_call_handle_free`. Any thread, also in callbacks.
///
/// Errors: `WEIR_ERROR_KIND_LIMIT_EXCEEDED` if 4096 of these calls and of subscriptions with a callback are under way.
/// `WEIR_ERROR_KIND_ENDED` if Main has ended. Later errors go to the callback: those of `weir_call`,
/// `WEIR_ERROR_KIND_CANCELLED`, and `WEIR_ERROR_KIND_ENDED` if Main ends meanwhile.
#[unsafe(no_mangle)]
pub extern "C" fn weir_call_async(
    main: Option<&weir_main>,
    contract: Text,
    operation: Text,
    payload: Data,
    length: usize,
    timeout_ms: u64,
    callback: weir_on_answer,
    data: *mut c_void,
    drop: weir_drop,
    call: Option<&mut MaybeUninit<Option<Box<weir_call_handle>>>>,
    error: ErrorOut,
) -> bool {
    let callback = Callback::new(callback, data, drop);
    let (cancel, mut cancelled) = oneshot::channel();
    let started = run(error, || {
        let main = given(main, "main")?;
        let (contract, operation) =
            (contract.get("contract")?.to_owned(), operation.get("operation")?.to_owned());
        let payload = bytes::Bytes::copy_from_slice(payload.bytes(length, "payload")?);
        let (client, callback) = (main.alive()?.client.clone(), callback?);
        let room = main.alive()?.work.room()?;
        let mut completion = Completion(Some(callback));
        room.spawn(async move {
            let mut call = match client.begin(&contract, &operation, payload, options(timeout_ms)) {
                Ok(call) => call,
                Err(error) => return completion.complete(Err(error.into())),
            };
            tokio::select! {
                biased;
                Ok(cancel) = &mut cancelled => {
                    if cancel == Cancel::Work {
                        call.cancel();
                    }
                    completion.complete(Err(weir_error::cancelled()));
                }
                answer = call.answer() => completion.complete(answer.map_err(|error| error.error.into())),
            }
        });
        Ok(true)
    });
    if let Some(call) = call {
        call.write(started.then(|| Box::new(weir_call_handle(Some(cancel).into()))));
    }
    started
}

/// Cancels a call, if its callback has not run. The callback then gets `WEIR_ERROR_KIND_CANCELLED`, on Main's thread; a
/// later answer is discarded. The provider may have carried it out. Any thread. Does not block. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn weir_call_cancel(call: Option<&weir_call_handle>) {
    cancel(call, Cancel::Wait);
}

/// Cancels a call as `weir_call_cancel` does, if its callback has not run, and ends the work for it: the extension that has
/// it in hand is ended, and comes again at once. That is on record as a failure, but counts as none for a quarantine. Other
/// calls that it has in hand fail with `WEIR_ERROR_KIND_TRAPPED`. A call in a session, or to a program, is only cancelled.
/// Any thread. Does not block. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn weir_call_kill(call: Option<&weir_call_handle>) {
    cancel(call, Cancel::Work);
}

fn cancel(call: Option<&weir_call_handle>, what: Cancel) {
    run_infallible(|| {
        let cancel = call.and_then(|call| call.0.lock().take());
        if let Some(cancel) = cancel {
            // Fails if the call is over.
            let _over = cancel.send(what);
        }
    });
}

/// Frees the handle of a call, and lets the call go on. Any thread. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn weir_call_handle_free(call: Option<Box<weir_call_handle>>) {
    run_infallible(|| drop(call));
}

/// Tells C the outcome once. If this is dropped before, it tells C that Main has ended.
#[derive(Debug)]
struct Completion(Option<Callback<OnAnswer>>);

impl Completion {
    fn complete(&mut self, outcome: Result<bytes::Bytes, weir_error>) {
        let Some(callback) = self.0.take() else { return };
        let (function, data) = callback.function();
        match outcome {
            Ok(answer) => function(Some(weir_buffer::new(&answer)), None, data),
            Err(error) => function(None, Some(Box::new(error)), data),
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        self.complete(Err(weir_error::ended()));
    }
}

fn options(timeout_ms: u64) -> CallOptions {
    let mut options = CallOptions::default();
    options.timeout = timeout(timeout_ms);
    options
}
