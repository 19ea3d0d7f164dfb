//! Topics: publications and subscriptions.

use std::{
    ffi::{CString, c_char, c_void},
    future::Future,
    mem::MaybeUninit,
    pin::pin,
    ptr,
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::sync::{Mutex, oneshot};
use weir_host::{
    blocking::{wait, wait_for},
    client::{PublishOptions, ReceivedEvent, SubscribeOptions, Subscriber},
    config::Policy,
    names::harmless,
};

use crate::{
    buffer::WEIR_NO_TIMEOUT,
    c::{Bytes, Callback, Data, ErrorOut, Text, given, run, run_infallible, text, weir_drop},
    error::weir_error,
    running::weir_main,
};

/// What became of an event.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct weir_receipt {
    /// Subscriptions that have the event.
    pub delivered: u32,
    /// Events lost for want of room: this one, or older ones in its place.
    pub shed: u32,
    /// Subscriptions that refused the event for want of room, or where it waited for room in vain.
    pub refused: u32,
}

/// A subscription. Any number of threads may wait for its events; each event goes to one of them.
#[derive(Debug)]
pub struct weir_subscription(Source);

#[derive(Debug)]
enum Source {
    Waits(Mutex<Subscriber>),
    /// Dropping it ends the task that calls back.
    CallsBack {
        _stop: oneshot::Sender<()>,
    },
}

/// A received event. Any number of threads may read it.
#[derive(Debug)]
pub struct weir_event {
    payload: Bytes,
    topic: CString,
    sender: CString,
    sequence: u64,
    lost: u64,
    retained: bool,
}

/// Takes an event, which lives until the function returns. It runs on Main's thread: it must not wait, and must not throw.
pub type weir_on_event = Option<extern "C" fn(event: &weir_event, data: *mut c_void)>;

/// Publishes an event to every subscriber of its topic. `receipt` may be NULL. Subscribers with room have the event when
/// this returns. It waits only for subscribers whose policy is `block`, for at most `timeout_ms`; in a callback on Main's
/// thread it fails with `WEIR_ERROR_KIND_WOULD_BLOCK` instead, when all others have the event. Any thread.
///
/// Errors: `WEIR_ERROR_KIND_INVALID` if the topic is malformed.
#[unsafe(no_mangle)]
pub extern "C" fn weir_publish(
    main: Option<&weir_main>,
    topic: Text,
    payload: Data,
    length: usize,
    timeout_ms: u64,
    receipt: Option<&mut MaybeUninit<weir_receipt>>,
    error: ErrorOut,
) -> bool {
    run(error, || {
        let client = &given(main, "main")?.alive()?.client;
        let payload = bytes::Bytes::copy_from_slice(payload.bytes(length, "payload")?);
        let mut options = PublishOptions::default();
        options.timeout = timeout(timeout_ms);
        let weir_host::client::Receipt { delivered, shed, refused, .. } =
            now_or_wait(client.publish_with(topic.get("topic")?, payload, options))?;
        if let Some(out) = receipt {
            out.write(weir_receipt { delivered, shed, refused });
        }
        Ok(true)
    })
}

/// Subscribes to all topics that match `pattern`, such as `settings.changed.>`: `*` stands for one segment, `>` for the
/// rest. Read the events with `weir_subscription_next`. Retained values come first.
///
/// Up to `messages` events and `bytes` bytes wait; 0 means 256 and 2 MiB. `policy` says what happens to more: `block`,
/// `reject`, `drop-oldest`, `drop-newest` or `latest`; NULL means `drop-oldest`. Any thread. Does not block.
///
/// Errors: `WEIR_ERROR_KIND_INVALID` if the pattern is malformed, `WEIR_ERROR_KIND_INVALID_ARGUMENT` if there is no
/// such policy, `WEIR_ERROR_KIND_LIMIT_EXCEEDED` for the 257th subscription.
#[unsafe(no_mangle)]
pub extern "C" fn weir_subscribe(
    main: Option<&weir_main>,
    pattern: Text,
    policy: Text,
    messages: u32,
    bytes: u64,
    error: ErrorOut,
) -> Option<Box<weir_subscription>> {
    run(error, || {
        let subscriber = subscriber(given(main, "main")?, &pattern, &policy, messages, bytes)?;
        Ok(Some(Box::new(weir_subscription(Source::Waits(subscriber.into())))))
    })
}

/// Subscribes like `weir_subscribe`, but `callback` runs for each event. `data` is freed when the subscription has
/// ended: by `weir_subscription_free`, or with Main.
///
/// Errors: those of `weir_subscribe`. Also `WEIR_ERROR_KIND_LIMIT_EXCEEDED` if 4096 of these subscriptions and of calls
/// with a callback are under way.
#[unsafe(no_mangle)]
pub extern "C" fn weir_subscribe_callback(
    main: Option<&weir_main>,
    pattern: Text,
    policy: Text,
    messages: u32,
    bytes: u64,
    callback: weir_on_event,
    data: *mut c_void,
    drop: weir_drop,
    error: ErrorOut,
) -> Option<Box<weir_subscription>> {
    let callback = Callback::new(callback, data, drop);
    run(error, || {
        let (main, callback) = (given(main, "main")?, callback?);
        let room = main.alive()?.work.room()?;
        let mut subscriber = subscriber(main, &pattern, &policy, messages, bytes)?;
        let (stop, mut stopped) = oneshot::channel::<()>();
        room.spawn(async move {
            loop {
                let event = tokio::select! {
                    biased;
                    _stopped = &mut stopped => break,
                    event = subscriber.next() => event,
                };
                let Some(event) = event else { break };
                let (function, data) = callback.function();
                function(&weir_event::new(event), data);
                // Receiving an event takes nothing of tokio's budget, so other tasks would wait while events are there.
                tokio::task::coop::consume_budget().await;
            }
        });
        Ok(Some(Box::new(weir_subscription(Source::CallsBack { _stop: stop }))))
    })
}

/// Waits for the next event, for at most `timeout_ms`, or without end for `WEIR_NO_TIMEOUT`. NULL without an error
/// means that the time is over. No event is lost by that. Blocks: not in a callback on Main's thread. Free the event
/// with `weir_event_free`.
///
/// Errors: `WEIR_ERROR_KIND_ENDED` when Main has ended and all earlier events are read,
/// `WEIR_ERROR_KIND_INVALID_ARGUMENT` if the subscription has a callback.
#[unsafe(no_mangle)]
pub extern "C" fn weir_subscription_next(
    subscription: Option<&weir_subscription>,
    timeout_ms: u64,
    error: ErrorOut,
) -> Option<Box<weir_event>> {
    run(error, || {
        let Source::Waits(subscriber) = &given(subscription, "subscription")?.0 else {
            return Err(weir_error::argument("the events of this subscription go to its callback"));
        };
        let next = async { subscriber.lock().await.next().await };
        match wait_for(timeout(timeout_ms).unwrap_or(Duration::MAX), next)? {
            None => Ok(None),
            Some(None) => Err(weir_error::ended()),
            Some(Some(event)) => Ok(Some(Box::new(weir_event::new(event)))),
        }
    })
}

/// Ends a subscription. A callback that runs now may still run after this has returned; the next does not begin. Any
/// thread, also in its callback. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn weir_subscription_free(subscription: Option<Box<weir_subscription>>) {
    run_infallible(|| drop(subscription));
}

/// The payload. `length`, which may be NULL, gets its number of bytes. A NUL follows it. The payload lives as long as
/// `event`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_event_payload(
    event: Option<&weir_event>,
    length: Option<&mut MaybeUninit<usize>>,
) -> *const c_char {
    Bytes::give(event.map(|event| &event.payload), length)
}

/// The topic. The text lives as long as `event`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_event_topic(event: Option<&weir_event>) -> *const c_char {
    event.map_or(ptr::null(), |event| event.topic.as_ptr())
}

/// The id of the extension that published the event, the name of a peer, or `main`. The text lives as long as `event`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_event_sender(event: Option<&weir_event>) -> *const c_char {
    event.map_or(ptr::null(), |event| event.sender.as_ptr())
}

/// The event's number in its topic, greater than that of the event before. 0 if it was published to this program alone.
#[unsafe(no_mangle)]
pub extern "C" fn weir_event_sequence(event: Option<&weir_event>) -> u64 {
    event.map_or(0, |event| event.sequence)
}

/// Events of this subscription that were lost just before this one.
#[unsafe(no_mangle)]
pub extern "C" fn weir_event_lost(event: Option<&weir_event>) -> u64 {
    event.map_or(0, |event| event.lost)
}

/// Whether the event is a retained value, published before the subscription began.
#[unsafe(no_mangle)]
pub extern "C" fn weir_event_retained(event: Option<&weir_event>) -> bool {
    event.is_some_and(|event| event.retained)
}

/// Frees an event of `weir_subscription_next`, and never that of a callback. Any thread. NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn weir_event_free(event: Option<Box<weir_event>>) {
    run_infallible(|| drop(event));
}

impl weir_event {
    fn new(event: ReceivedEvent) -> Self {
        let ReceivedEvent { topic, sender, sequence, lost, retained, payload, .. } = event;
        let (topic, sender) = (text(topic.as_str()), text(sender));
        Self { payload: Bytes::new(&payload), topic, sender, sequence, lost, retained }
    }
}

fn subscriber(
    main: &weir_main,
    pattern: &Text,
    policy: &Text,
    messages: u32,
    bytes: u64,
) -> Result<Subscriber, weir_error> {
    let mut options = SubscribeOptions::default();
    if let Some(policy) = policy.optional("policy")? {
        options.policy = Policy::ALL.into_iter().find(|known| known.name() == policy).ok_or_else(|| {
            let (policy, known) = (harmless(policy, 64), Policy::ALL.map(Policy::name).join("`, `"));
            weir_error::argument(format!("there is no policy `{policy}`: there are `{known}`"))
        })?;
    }
    if messages > 0 {
        options.messages = messages;
    }
    if bytes > 0 {
        options.bytes = bytes;
    }
    Ok(main.alive()?.client.subscribe_with(pattern.get("pattern")?, options)?)
}

/// The outcome of `work`, if it is there at once. Otherwise waits for it, or fails on Main's thread.
pub(crate) fn now_or_wait<T, E>(work: impl Future<Output = Result<T, E>>) -> Result<T, weir_error>
where
    E: Into<weir_error>,
{
    let mut work = pin!(work);
    match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome.map_err(Into::into),
        Poll::Pending => wait(work).map_err(Into::into),
    }
}

/// The duration, or `None` for [`WEIR_NO_TIMEOUT`].
pub(crate) fn timeout(timeout_ms: u64) -> Option<Duration> {
    (timeout_ms != WEIR_NO_TIMEOUT).then(|| Duration::from_millis(timeout_ms))
}
