//! Frames that a peer sends.

use bytes::Bytes;
use weir_names::{Error, HandlerError, TraceContext};

use super::{
    FrameError,
    fields::{Fields, Out},
};

/// The first bytes of a HELLO.
const MAGIC: [u8; 4] = *b"WEIR";

frames! {
    /// A frame that a peer sends.
    ///
    /// An `id` is the peer's own number, and not 0 except where said. It may be used again once Main has answered. A timeout is
    /// in milliseconds; 0 is the default.
    FromPeer {
        @Hello(Hello) = 0x01 "HELLO" "The first frame.",
        /// Calls an operation.
        Call = 0x10 "CALL" {
            /// The peer's own number, which the answer has.
            id: u32 = id("id"),
            /// Time for the answer.
            timeout_ms: u32 = u32("timeout"),
            /// Contract, such as `settings@1`.
            contract: &'a str = str8("contract"),
            /// Operation of the contract.
            operation: &'a str = str8("operation"),
            /// An extension, a peer or `main`. `None`: the owner of the contract.
            provider: Option<&'a str> = optional_str8("provider"),
            /// Arguments.
            payload: Bytes = payload("payload"),
        },
        /// Gives up the call, publish or put with that id. Main need not answer it any more, but an answer may be on
        /// its way.
        Cancel = 0x11 "CANCEL" {
            /// The id of what is given up.
            id: u32 = id("id"),
        },
        /// Publishes an event.
        Publish = 0x12 "PUBLISH" {
            /// The peer's own number, which the answer has; 0: no answer is wanted.
            id: u32 = u32("id"),
            /// Time to wait for room.
            timeout_ms: u32 = u32("timeout"),
            /// The only receiver. `None`: every subscriber.
            to: Option<&'a str> = optional_str8("to"),
            /// Topic, without wildcards.
            topic: &'a str = str16("topic"),
            /// Bytes of the event.
            payload: Bytes = payload("payload"),
        },
        /// Subscribes to topics.
        Subscribe = 0x13 "SUBSCRIBE" {
            /// The peer's own number, which the answer has.
            id: u32 = id("id"),
            /// Topic, or pattern of topics.
            pattern: &'a str = str16("pattern"),
        },
        /// Ends a subscription.
        Unsubscribe = 0x14 "UNSUBSCRIBE" {
            /// The peer's own number, which the answer has; 0: no answer is wanted.
            id: u32 = u32("id"),
            /// The number that the answer to `Subscribe` gave.
            subscription: u32 = u32("subscription"),
        },
        /// Puts a job into a queue.
        Put = 0x15 "PUT" {
            /// The peer's own number, which the answer has.
            id: u32 = id("id"),
            /// Time to wait for room. Means nothing with `until_done`.
            timeout_ms: u32 = u32("timeout"),
            /// Whether the answer comes when a reader has finished the job.
            until_done: bool = flag("flags"),
            /// Name of the queue.
            queue: &'a str = str8("queue"),
            /// Bytes of the job.
            payload: Bytes = payload("payload"),
        },
        /// Lets more jobs come.
        Take = 0x16 "TAKE" {
            /// The peer's own number, which the answer has; 0: no answer is wanted.
            id: u32 = u32("id"),
            /// How many more.
            jobs: u32 = u32("jobs"),
            /// Name of the queue.
            queue: &'a str = str8("queue"),
        },
        /// Says that a job is done.
        Done = 0x17 "DONE" {
            /// Main's number of the job.
            job: u32 = id("job"),
        },
        /// Gives a job back to its queue.
        Return = 0x18 "RETURN" {
            /// Main's number of the job.
            job: u32 = id("job"),
        },
        /// Serves a contract from now on.
        Serve = 0x19 "SERVE" {
            /// The peer's own number, which the answer has.
            id: u32 = id("id"),
            /// Contract.
            contract: &'a str = str8("contract"),
            /// All its operations.
            operations: Vec<&'a str> = operations("operation"),
        },
        /// Answers a request.
        Reply = 0x1a "REPLY" {
            /// Main's number of the request.
            request: u32 = id("request"),
            /// The answer.
            payload: Bytes = payload("payload"),
        },
        /// Answers a request with an error.
        Fail = 0x1b "FAIL" {
            /// Main's number of the request.
            request: u32 = id("request"),
            /// The code and message of the error.
            error: HandlerError = handler_error("message"),
        },
        /// Lets more events come.
        Credit = 0x1c "CREDIT" {
            /// How many more.
            events: u32 = u32("events"),
        },
        /// Says which span the next frame is part of: a `Call`, a `Publish` or a `Put`. Since version 2.
        Trace = 0x1d "TRACE" {
            /// The span.
            span: TraceContext = traceparent("traceparent"),
        },
        /// Describes contracts that the session serves. Since version 2.
        Describe = 0x1e "DESCRIBE" {
            /// The peer's own number, which the answer has.
            id: u32 = id("id"),
            /// An OpenRPC document as JSON, or a list of them.
            documents: Bytes = payload("documents"),
        },
        /// Says what was counted of the next frame before it came to Main. Since version 3.
        Counted = 0x1f "COUNTED" {
            /// For a `Put`: deliveries of the job. For a `Publish`: events lost before it.
            count: u64 = u64("count"),
        },
        /// Answers a request with one of Weir's own errors. Since version 3.
        Refuse = 0x20 "REFUSE" {
            /// Main's number of the request.
            request: u32 = id("request"),
            /// Why. At most 64 bytes of a code are kept, and 4096 of a text.
            error: Error = cut_error("case"),
        },
    }
}

/// What a peer says first.
///
/// It has this form in every version. Bytes after the token are ignored: a later version may add fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello<'a> {
    /// Oldest version that the peer speaks.
    pub oldest: u16,
    /// Newest version that the peer speaks.
    pub newest: u16,
    /// Most requests that it takes before it answers one; 0: none.
    pub requests: u32,
    /// Events that may come before the first `Credit`.
    pub events: u32,
    /// Name of the peer.
    pub name: &'a str,
    /// `None`: the user of the process shows which peer it is.
    pub token: Option<&'a str>,
}

impl<'a> Hello<'a> {
    fn read(fields: &mut Fields<'a>) -> Result<Self, FrameError> {
        if fields.array("magic")? != MAGIC {
            return Err(fields.malformed("magic", "is not `WEIR`"));
        }
        Ok(Self {
            oldest: fields.u16("oldest")?,
            newest: fields.u16("newest")?,
            requests: fields.u32("requests")?,
            events: fields.u32("events")?,
            name: fields.str8("name")?,
            token: fields.optional_str8("token")?,
        })
    }

    fn write(&self, out: &mut Out<'_>) {
        out.payload(&MAGIC);
        out.u16(&self.oldest);
        out.u16(&self.newest);
        out.u32(&self.requests);
        out.u32(&self.events);
        out.str8(self.name);
        out.optional_str8(&self.token);
    }
}
