//! Shared queues: each job goes to one reader.

use std::{
    ffi::{CString, c_char},
    mem::MaybeUninit,
    ptr,
    time::Duration,
};

use tokio::sync::Mutex;
use weir_host::{
    blocking::wait_for,
    client::{Job, PutOptions, Queue},
};

use crate::{
    c::{Bytes, Data, ErrorOut, Text, given, run, run_infallible, text},
    error::weir_error,
    running::weir_main,
    topics::{now_or_wait, timeout},
};

/// A shared queue of the configuration. Any number of threads may put. All threads that take from one `weir_queue` are
/// one reader, and take one after the other: open the queue once for each thread that takes.
#[derive(Debug)]
pub struct weir_queue {
    puts: Queue,
    takes: Mutex<Queue>,
}

/// A job in hand. One thread at a time may use it.
#[derive(Debug)]
pub struct weir_job {
    payload: Bytes,
    sender: CString,
    job: Job,
}

/// Opens a queue. Any thread. Does not block. Free it with `weir_queue_free`.
///
/// Errors: `WEIR_ERROR_KIND_INVALID` if no such queue is configured.
#[unsafe(no_mangle)]
pub extern "C" fn weir_queue_open(
    main: Option<&weir_main>,
    name: Text,
    error: ErrorOut,
) -> Option<Box<weir_queue>> {
    run(error, || {
        let puts = given(main, "main")?.alive()?.client.queue(name.get("name")?)?;
        let takes = puts.clone().into();
        Ok(Some(Box::new(weir_queue { puts, takes })))
    })
}

/// Puts a job at the end. `id`, which may be NULL, gets its number. A full queue does what its `when-full` says; for
/// `block` this waits, for at most `timeout_ms`, but in a callback on Main's thread it fails with
/// `WEIR_ERROR_KIND_WOULD_BLOCK` instead. Any thread.
///
/// Errors: `WEIR_ERROR_KIND_OVERLOADED`, `WEIR_ERROR_KIND_TIMEOUT`, `WEIR_ERROR_KIND_TOO_LARGE`,
/// `WEIR_ERROR_KIND_NO_PROVIDER` if the queue is no longer configured, `WEIR_ERROR_KIND_ENDED` if Main has ended.
#[unsafe(no_mangle)]
pub extern "C" fn weir_queue_put(
    queue: Option<&weir_queue>,
    payload: Data,
    length: usize,
    timeout_ms: u64,
    id: Option<&mut MaybeUninit<u64>>,
    error: ErrorOut,
) -> bool {
    run(error, || {
        let queue = given(queue, "queue")?;
        let payload = bytes::Bytes::copy_from_slice(payload.bytes(length, "payload")?);
        let mut options = PutOptions::default();
        options.timeout = timeout(timeout_ms);
        let put = now_or_wait(queue.puts.put_with(payload, options))?;
        if let Some(id) = id {
            id.write(put.0);
        }
        Ok(true)
    })
}

/// Waits for a job, for at most `timeout_ms`, or without end for `WEIR_NO_TIMEOUT`. NULL without an error means that
/// the time is over. 0 does not wait. Any other time blocks: not in a callback on Main's thread. End the job with
/// `weir_job_done` or `weir_job_give_back`.
///
/// Errors: `WEIR_ERROR_KIND_ENDED` if Main has ended, or the queue is empty and no longer configured. With 0, NULL
/// comes without an error then, too.
#[unsafe(no_mangle)]
pub extern "C" fn weir_queue_take(
    queue: Option<&weir_queue>,
    timeout_ms: u64,
    error: ErrorOut,
) -> Option<Box<weir_job>> {
    run(error, || {
        let queue = given(queue, "queue")?;
        let job = if timeout_ms == 0 {
            // If another thread waits for a job, that thread has the lock, and gets the next job.
            queue.takes.try_lock().ok().and_then(|mut queue| queue.try_take())
        } else {
            let take = async { queue.takes.lock().await.take().await };
            match wait_for(timeout(timeout_ms).unwrap_or(Duration::MAX), take)? {
                None => None,
                Some(None) => return Err(weir_error::ended()),
                Some(job) => job,
            }
        };
        Ok(job.map(|job| {
            let (payload, sender) = (Bytes::new(job.payload()), text(&*job.sender()));
            Box::new(weir_job { payload, sender, job })
        }))
    })
}

/// Frees a queue; its jobs stay. Any thread. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn weir_queue_free(queue: Option<Box<weir_queue>>) {
    run_infallible(|| drop(queue));
}

/// The payload. `length`, which may be NULL, gets its number of bytes. A NUL follows it. The payload lives as long as
/// `job`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_job_payload(
    job: Option<&weir_job>,
    length: Option<&mut MaybeUninit<usize>>,
) -> *const c_char {
    Bytes::give(job.map(|job| &job.payload), length)
}

/// The id of the extension that put the job, the name of a peer, or `main`. The text lives as long as `job`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_job_sender(job: Option<&weir_job>) -> *const c_char {
    job.map_or(ptr::null(), |job| job.sender.as_ptr())
}

/// The number of the job, the same at each delivery. 0 for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn weir_job_id(job: Option<&weir_job>) -> u64 {
    job.map_or(0, |job| job.job.id().0)
}

/// Deliveries so far, this one included.
#[unsafe(no_mangle)]
pub extern "C" fn weir_job_deliveries(job: Option<&weir_job>) -> u32 {
    job.map_or(0, |job| job.job.deliveries())
}

/// Finishes a job, and frees it: it is not delivered again. Any thread. Does not block. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn weir_job_done(job: Option<Box<weir_job>>) {
    run_infallible(|| {
        if let Some(job) = job {
            job.job.done();
        }
    });
}

/// Gives a job back, and frees it: a reader gets the job again, or after `max-deliveries` it is a dead letter. Any
/// thread. Does not block. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn weir_job_give_back(job: Option<Box<weir_job>>) {
    run_infallible(|| drop(job));
}
