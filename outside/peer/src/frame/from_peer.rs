//! Frames that a peer sends.

use bytes::{BufMut, Bytes, BytesMut};
use weir_names::{Error, HandlerError, TraceContext};

use super::{FrameError, message_error::Parts, read::Fields, write};

kinds! {
    HELLO = 0x01;
    CALL = 0x10;
    CANCEL = 0x11;
    PUBLISH = 0x12;
    SUBSCRIBE = 0x13;
    UNSUBSCRIBE = 0x14;
    PUT = 0x15;
    TAKE = 0x16;
    DONE = 0x17;
    RETURN = 0x18;
    SERVE = 0x19;
    REPLY = 0x1a;
    FAIL = 0x1b;
    CREDIT = 0x1c;
    TRACE = 0x1d;
    DESCRIBE = 0x1e;
    COUNTED = 0x1f;
    REFUSE = 0x20;
}

/// The first bytes of a HELLO.
const MAGIC: [u8; 4] = *b"WEIR";

/// A frame that a peer sends.
///
/// An `id` is the peer's own number, and not 0 except where said. It may be used again once Main has answered. A timeout is
/// in milliseconds; 0 is the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromPeer<'a> {
    /// The first frame.
    Hello(Hello<'a>),
    /// Calls an operation.
    Call {
        /// For the answer.
        id: u32,
        /// Time for the answer.
        timeout_ms: u32,
        /// Contract, such as `settings@1`.
        contract: &'a str,
        /// Operation of the contract.
        operation: &'a str,
        /// An extension, a peer or `main`. `None`: the owner of the contract.
        provider: Option<&'a str>,
        /// Arguments.
        payload: Bytes,
    },
    /// Gives up the call, publish or put of that id. No answer to it need come; one may be on its way.
    Cancel {
        /// Its id.
        id: u32,
    },
    /// Publishes an event.
    Publish {
        /// For the answer; 0: none is wanted.
        id: u32,
        /// Time to wait for room.
        timeout_ms: u32,
        /// The only receiver. `None`: every subscriber.
        to: Option<&'a str>,
        /// Topic, without wildcards.
        topic: &'a str,
        /// Bytes of the event.
        payload: Bytes,
    },
    /// Subscribes to topics.
    Subscribe {
        /// For the answer.
        id: u32,
        /// Topic, or pattern of topics.
        pattern: &'a str,
    },
    /// Ends a subscription.
    Unsubscribe {
        /// For the answer; 0: none is wanted.
        id: u32,
        /// The number that the answer to `Subscribe` gave.
        subscription: u32,
    },
    /// Puts a job into a queue.
    Put {
        /// For the answer.
        id: u32,
        /// Time to wait for room. Means nothing with `until_done`.
        timeout_ms: u32,
        /// Whether the answer comes when a reader has finished the job.
        until_done: bool,
        /// Name of the queue.
        queue: &'a str,
        /// Bytes of the job.
        payload: Bytes,
    },
    /// Lets more jobs come.
    Take {
        /// For the answer; 0: none is wanted.
        id: u32,
        /// How many more.
        jobs: u32,
        /// Name of the queue.
        queue: &'a str,
    },
    /// Says that a job is done.
    Done {
        /// Main's number of the job.
        job: u32,
    },
    /// Gives a job back to its queue.
    Return {
        /// Main's number of the job.
        job: u32,
    },
    /// Serves a contract from now on.
    Serve {
        /// For the answer.
        id: u32,
        /// Contract.
        contract: &'a str,
        /// All its operations.
        operations: Vec<&'a str>,
    },
    /// Answers a request.
    Reply {
        /// Main's number of the request.
        request: u32,
        /// The answer.
        payload: Bytes,
    },
    /// Answers a request with an error.
    Fail {
        /// Main's number of the request.
        request: u32,
        /// Its code and message.
        error: HandlerError,
    },
    /// Lets more events come.
    Credit {
        /// How many more.
        events: u32,
    },
    /// Says which span the next frame is part of: a `Call`, a `Publish` or a `Put`. Since version 2.
    Trace {
        /// The span.
        span: TraceContext,
    },
    /// Describes contracts that the session serves. Since version 2.
    Describe {
        /// For the answer.
        id: u32,
        /// An OpenRPC document as JSON, or a list of them.
        documents: Bytes,
    },
    /// Says what was counted of the next frame before it came to Main. Since version 3.
    Counted {
        /// Of a `Put` deliveries of the job, of a `Publish` events lost before it.
        count: u64,
    },
    /// Answers a request with one of Weir's own errors. Since version 3.
    Refuse {
        /// Main's number of the request.
        request: u32,
        /// Why. At most 64 bytes of a code are kept, and 4096 of a text.
        error: Error,
    },
}

/// What a peer says first.
///
/// Its form is that of every version. Bytes after the token are ignored: a later version may add fields.
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

impl<'a> FromPeer<'a> {
    /// The frame that [`next_frame`](super::next_frame) cut off. Names are not checked.
    ///
    /// # Errors
    /// Bytes that are no frame of a peer.
    #[inline]
    pub fn decode(frame: &'a Bytes) -> Result<Self, FrameError> {
        let (kind, mut fields) = Fields::of(frame, name)?;
        let decoded = match kind {
            CALL => {
                return Ok(Self::Call {
                    id: fields.id("id")?,
                    timeout_ms: fields.u32("timeout")?,
                    contract: fields.str8("contract")?,
                    operation: fields.str8("operation")?,
                    provider: fields.optional_str8("provider")?,
                    payload: fields.payload(),
                });
            }
            DESCRIBE => return Ok(Self::Describe { id: fields.id("id")?, documents: fields.payload() }),
            REPLY => return Ok(Self::Reply { request: fields.id("request")?, payload: fields.payload() }),
            PUBLISH => {
                return Ok(Self::Publish {
                    id: fields.u32("id")?,
                    timeout_ms: fields.u32("timeout")?,
                    to: fields.optional_str8("to")?,
                    topic: fields.str16("topic")?,
                    payload: fields.payload(),
                });
            }
            PUT => {
                return Ok(Self::Put {
                    id: fields.id("id")?,
                    timeout_ms: fields.u32("timeout")?,
                    until_done: fields.flag("flags")?,
                    queue: fields.str8("queue")?,
                    payload: fields.payload(),
                });
            }
            HELLO => return Hello::decode(fields).map(Self::Hello),
            CANCEL => Self::Cancel { id: fields.id("id")? },
            SUBSCRIBE => Self::Subscribe { id: fields.id("id")?, pattern: fields.str16("pattern")? },
            UNSUBSCRIBE => {
                Self::Unsubscribe { id: fields.u32("id")?, subscription: fields.u32("subscription")? }
            }
            TAKE => {
                Self::Take { id: fields.u32("id")?, jobs: fields.u32("jobs")?, queue: fields.str8("queue")? }
            }
            DONE => Self::Done { job: fields.id("job")? },
            RETURN => Self::Return { job: fields.id("job")? },
            SERVE => {
                let (id, contract) = (fields.id("id")?, fields.str8("contract")?);
                let count = fields.u16("count")?;
                // A list grows as it is read: a count alone reserves nothing.
                let mut operations = Vec::new();
                for _ in 0..count {
                    operations.push(fields.str8("operation")?);
                }
                Self::Serve { id, contract, operations }
            }
            FAIL => {
                let request = fields.id("request")?;
                let error = HandlerError::new(fields.str8("code")?, fields.str16("message")?);
                Self::Fail { request, error }
            }
            CREDIT => Self::Credit { events: fields.u32("events")? },
            TRACE => Self::Trace { span: fields.traceparent("traceparent")? },
            COUNTED => Self::Counted { count: fields.u64("count")? },
            REFUSE => {
                let request = fields.id("request")?;
                let error = Parts::read(&mut fields)?.cut().error();
                Self::Refuse { request, error: error.ok_or_else(|| fields.malformed("case", "is unknown"))? }
            }
            kind => return Err(FrameError::UnknownKind(kind)),
        };
        fields.end()?;
        Ok(decoded)
    }

    /// Puts the whole frame at the end of `out`. A text that is too long for its field is cut.
    #[inline]
    pub fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Hello(hello) => hello.encode(out),
            Self::Call { id, timeout_ms, contract, operation, provider, payload } => {
                write::frame(out, CALL, payload, |out| {
                    out.put_u32_le(*id);
                    out.put_u32_le(*timeout_ms);
                    write::str8(out, contract);
                    write::str8(out, operation);
                    write::str8(out, provider.unwrap_or_default());
                });
            }
            Self::Cancel { id } => write::frame(out, CANCEL, &[], |out| out.put_u32_le(*id)),
            Self::Publish { id, timeout_ms, to, topic, payload } => {
                write::frame(out, PUBLISH, payload, |out| {
                    out.put_u32_le(*id);
                    out.put_u32_le(*timeout_ms);
                    write::str8(out, to.unwrap_or_default());
                    write::str16(out, topic);
                });
            }
            Self::Subscribe { id, pattern } => write::frame(out, SUBSCRIBE, &[], |out| {
                out.put_u32_le(*id);
                write::str16(out, pattern);
            }),
            Self::Unsubscribe { id, subscription } => write::frame(out, UNSUBSCRIBE, &[], |out| {
                out.put_u32_le(*id);
                out.put_u32_le(*subscription);
            }),
            Self::Put { id, timeout_ms, until_done, queue, payload } => {
                write::frame(out, PUT, payload, |out| {
                    out.put_u32_le(*id);
                    out.put_u32_le(*timeout_ms);
                    out.put_u8((*until_done).into());
                    write::str8(out, queue);
                });
            }
            Self::Take { id, jobs, queue } => write::frame(out, TAKE, &[], |out| {
                out.put_u32_le(*id);
                out.put_u32_le(*jobs);
                write::str8(out, queue);
            }),
            Self::Done { job } => write::frame(out, DONE, &[], |out| out.put_u32_le(*job)),
            Self::Return { job } => write::frame(out, RETURN, &[], |out| out.put_u32_le(*job)),
            Self::Serve { id, contract, operations } => write::frame(out, SERVE, &[], |out| {
                out.put_u32_le(*id);
                write::str8(out, contract);
                let count = u16::try_from(operations.len()).unwrap_or(u16::MAX);
                out.put_u16_le(count);
                operations.iter().take(count.into()).for_each(|operation| write::str8(out, operation));
            }),
            Self::Reply { request, payload } => {
                write::frame(out, REPLY, payload, |out| out.put_u32_le(*request));
            }
            Self::Fail { request, error } => write::frame(out, FAIL, &[], |out| {
                out.put_u32_le(*request);
                write::str8(out, &error.code);
                write::str16(out, &error.message);
            }),
            Self::Credit { events } => write::frame(out, CREDIT, &[], |out| out.put_u32_le(*events)),
            Self::Describe { id, documents } => {
                write::frame(out, DESCRIBE, documents, |out| out.put_u32_le(*id));
            }
            Self::Trace { span } => {
                write::frame(out, TRACE, &[], |out| write::str8(out, &span.to_string()));
            }
            Self::Counted { count } => write::frame(out, COUNTED, &[], |out| out.put_u64_le(*count)),
            Self::Refuse { request, error } => write::frame(out, REFUSE, &[], |out| {
                out.put_u32_le(*request);
                Parts::from(error).encode(out);
            }),
        }
    }

    /// The frame's name in the specification.
    #[must_use]
    pub fn name(&self) -> &'static str {
        let kind = match self {
            Self::Hello(_) => HELLO,
            Self::Call { .. } => CALL,
            Self::Cancel { .. } => CANCEL,
            Self::Publish { .. } => PUBLISH,
            Self::Subscribe { .. } => SUBSCRIBE,
            Self::Unsubscribe { .. } => UNSUBSCRIBE,
            Self::Put { .. } => PUT,
            Self::Take { .. } => TAKE,
            Self::Done { .. } => DONE,
            Self::Return { .. } => RETURN,
            Self::Serve { .. } => SERVE,
            Self::Reply { .. } => REPLY,
            Self::Fail { .. } => FAIL,
            Self::Credit { .. } => CREDIT,
            Self::Trace { .. } => TRACE,
            Self::Describe { .. } => DESCRIBE,
            Self::Counted { .. } => COUNTED,
            Self::Refuse { .. } => REFUSE,
        };
        name(kind).unwrap_or_default()
    }
}

impl<'a> Hello<'a> {
    fn decode(mut fields: Fields<'a>) -> Result<Self, FrameError> {
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

    fn encode(&self, out: &mut BytesMut) {
        write::frame(out, HELLO, &[], |out| {
            out.put_slice(&MAGIC);
            out.put_u16_le(self.oldest);
            out.put_u16_le(self.newest);
            out.put_u32_le(self.requests);
            out.put_u32_le(self.events);
            write::str8(out, self.name);
            write::str8(out, self.token.unwrap_or_default());
        });
    }
}
