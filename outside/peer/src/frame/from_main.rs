//! Frames that Main sends.

use bytes::Bytes;
use weir_names::{Error, TraceContext};

frames! {
    /// A frame that Main sends.
    FromMain {
        /// The session begins. Bytes after the last field are ignored: a later version may add fields.
        Welcome = 0x81 "WELCOME" {
            /// Version of the protocol from here on.
            version: u16 = u16("version"),
            /// Main's number of the session.
            session: u64 = u64("session"),
            /// Largest payload either way, in bytes.
            message_size: u32 = u32("message-size"),
            /// Calls, puts and the like that may be under way at once.
            in_flight: u32 = u32("in-flight"),
            /// Subscriptions that the session may have.
            subscriptions: u32 = u32("subscriptions"),
            ..ignored
        },
        /// The last frame.
        Close = 0x82 "CLOSE" {
            /// A code of [`close`](super::close).
            code: &'a str = str8("code"),
            /// The reason, for people. Cut to 400 bytes.
            text: &'a str = close_text("text"),
        },
        /// Success of what the peer sent with this id.
        Answer = 0x90 "ANSWER" {
            /// The peer's id.
            id: u32 = id("id"),
            /// Depends on what is answered.
            payload: Bytes = payload("payload"),
        },
        /// Failure of what the peer sent with this id.
        Error = 0x91 "ERROR" {
            /// The peer's id.
            id: u32 = id("id"),
            /// Why.
            error: Error = error("case"),
        },
        /// A request to a contract that the peer serves.
        Request = 0xa0 "REQUEST" {
            /// Main's number of the request, for the answer.
            request: u32 = id("request"),
            /// Milliseconds for the answer.
            remaining_ms: u32 = u32("remaining"),
            /// Main's id of the message.
            message: u64 = u64("message"),
            /// Sender.
            sender: &'a str = str8("sender"),
            /// Contract.
            contract: &'a str = str8("contract"),
            /// Operation of the contract.
            operation: &'a str = str8("operation"),
            /// Arguments.
            payload: Bytes = payload("payload"),
        },
        /// The caller of a request waits no more.
        GivenUp = 0xa1 "GIVEN_UP" {
            /// Main's number of the request.
            request: u32 = id("request"),
        },
        /// An event of a subscription.
        Event = 0xa2 "EVENT" {
            /// Number of the subscription.
            subscription: u32 = u32("subscription"),
            /// Place among the events of its topic; 0: sent to this peer alone.
            sequence: u64 = u64("sequence"),
            /// Events of the subscription lost just before.
            lost: u64 = u64("lost"),
            /// Whether it is the last value of a topic that Main retains.
            retained: bool = flag("flags"),
            /// Publisher.
            sender: &'a str = str8("sender"),
            /// Topic.
            topic: &'a str = str16("topic"),
            /// Bytes of the event.
            payload: Bytes = payload("payload"),
        },
        /// A job of a queue that the peer takes from.
        Job = 0xa3 "JOB" {
            /// Main's number of the job, for `DONE` and `RETURN`.
            job: u32 = id("job"),
            /// Main's id of the message.
            message: u64 = u64("message"),
            /// Deliveries so far, this one included.
            deliveries: u32 = u32("deliveries"),
            /// Sender.
            sender: &'a str = str8("sender"),
            /// Name of the queue.
            queue: &'a str = str8("queue"),
            /// Bytes of the job.
            payload: Bytes = payload("payload"),
        },
        /// A subscription ended, since its grant was taken back.
        Dropped = 0xa4 "DROPPED" {
            /// Number of the subscription.
            subscription: u32 = u32("subscription"),
        },
        /// No jobs come of a queue, since its grant or the queue was taken back. The peer's credit for it is gone.
        NoJobs = 0xa5 "NO_JOBS" {
            /// Name of the queue.
            queue: &'a str = str8("queue"),
        },
        /// The span of the next frame, a `Request` or a `Job` that is recorded. Since version 2.
        Trace = 0xa6 "TRACE" {
            /// The span.
            span: TraceContext = traceparent("traceparent"),
        },
    }
}
