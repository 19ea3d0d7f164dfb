//! Frames that Main sends.

use bytes::{BufMut, Bytes, BytesMut};
use weir_names::{Error, TraceContext};

use super::{FrameError, message_error::Parts, read::Fields, write};

kinds! {
    WELCOME = 0x81;
    CLOSE = 0x82;
    ANSWER = 0x90;
    ERROR = 0x91;
    REQUEST = 0xa0;
    GIVEN_UP = 0xa1;
    EVENT = 0xa2;
    JOB = 0xa3;
    DROPPED = 0xa4;
    NO_JOBS = 0xa5;
    TRACE = 0xa6;
}

/// Bytes of a CLOSE's text, so that it fits a frame before the welcome.
const CLOSE_TEXT_MAX: usize = 400;

/// A frame that Main sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromMain<'a> {
    /// The session begins. Bytes after the last field are ignored: a later version may add fields.
    Welcome {
        /// Version of the protocol from here on.
        version: u16,
        /// Main's number of the session.
        session: u64,
        /// Largest payload either way, in bytes.
        message_size: u32,
        /// Calls, puts and the like that may be under way at once.
        in_flight: u32,
        /// Subscriptions that the session may have.
        subscriptions: u32,
    },
    /// The last frame.
    Close {
        /// A code of [`close`](super::close).
        code: &'a str,
        /// For people. Cut to 400 bytes.
        text: &'a str,
    },
    /// Success of what the peer sent with this id.
    Answer {
        /// The peer's id.
        id: u32,
        /// Depends on what is answered.
        payload: Bytes,
    },
    /// Failure of what the peer sent with this id.
    Error {
        /// The peer's id.
        id: u32,
        /// Why.
        error: Error,
    },
    /// A request to a contract that the peer serves.
    Request {
        /// For the answer.
        request: u32,
        /// Milliseconds for the answer.
        remaining_ms: u32,
        /// Main's id of the message.
        message: u64,
        /// Sender.
        sender: &'a str,
        /// Contract.
        contract: &'a str,
        /// Operation of the contract.
        operation: &'a str,
        /// Arguments.
        payload: Bytes,
    },
    /// The caller of a request waits no more.
    GivenUp {
        /// Main's number of the request.
        request: u32,
    },
    /// An event of a subscription.
    Event {
        /// Number of the subscription.
        subscription: u32,
        /// Place among the events of its topic; 0: sent to this peer alone.
        sequence: u64,
        /// Events of the subscription lost just before.
        lost: u64,
        /// Whether it is the last value of a topic that Main retains.
        retained: bool,
        /// Publisher.
        sender: &'a str,
        /// Topic.
        topic: &'a str,
        /// Bytes of the event.
        payload: Bytes,
    },
    /// A job of a queue that the peer takes from.
    Job {
        /// For `DONE` and `RETURN`.
        job: u32,
        /// Main's id of the message.
        message: u64,
        /// Deliveries so far, this one included.
        deliveries: u32,
        /// Sender.
        sender: &'a str,
        /// Name of the queue.
        queue: &'a str,
        /// Bytes of the job.
        payload: Bytes,
    },
    /// A subscription ended, since its grant was taken back.
    Dropped {
        /// Number of the subscription.
        subscription: u32,
    },
    /// No jobs come of a queue, since its grant or the queue was taken back. The peer's credit for it is gone.
    NoJobs {
        /// Name of the queue.
        queue: &'a str,
    },
    /// The span of the next frame, a `Request` or a `Job` that is recorded. Since version 2.
    Trace {
        /// The span.
        span: TraceContext,
    },
}

impl<'a> FromMain<'a> {
    /// The frame that [`next_frame`](super::next_frame) cut off.
    ///
    /// # Errors
    /// Bytes that are no frame of Main's.
    #[inline]
    pub fn decode(frame: &'a Bytes) -> Result<Self, FrameError> {
        let (kind, mut fields) = Fields::of(frame, name)?;
        let decoded = match kind {
            ANSWER => return Ok(Self::Answer { id: fields.id("id")?, payload: fields.payload() }),
            REQUEST => {
                return Ok(Self::Request {
                    request: fields.id("request")?,
                    remaining_ms: fields.u32("remaining")?,
                    message: fields.u64("message")?,
                    sender: fields.str8("sender")?,
                    contract: fields.str8("contract")?,
                    operation: fields.str8("operation")?,
                    payload: fields.payload(),
                });
            }
            EVENT => {
                return Ok(Self::Event {
                    subscription: fields.u32("subscription")?,
                    sequence: fields.u64("sequence")?,
                    lost: fields.u64("lost")?,
                    retained: fields.flag("flags")?,
                    sender: fields.str8("sender")?,
                    topic: fields.str16("topic")?,
                    payload: fields.payload(),
                });
            }
            JOB => {
                return Ok(Self::Job {
                    job: fields.id("job")?,
                    message: fields.u64("message")?,
                    deliveries: fields.u32("deliveries")?,
                    sender: fields.str8("sender")?,
                    queue: fields.str8("queue")?,
                    payload: fields.payload(),
                });
            }
            WELCOME => {
                return Ok(Self::Welcome {
                    version: fields.u16("version")?,
                    session: fields.u64("session")?,
                    message_size: fields.u32("message-size")?,
                    in_flight: fields.u32("in-flight")?,
                    subscriptions: fields.u32("subscriptions")?,
                });
            }
            CLOSE => Self::Close { code: fields.str8("code")?, text: fields.str16("text")? },
            ERROR => {
                let id = fields.id("id")?;
                let error = Parts::read(&mut fields)?.error();
                Self::Error { id, error: error.ok_or_else(|| fields.malformed("case", "is unknown"))? }
            }
            GIVEN_UP => Self::GivenUp { request: fields.id("request")? },
            DROPPED => Self::Dropped { subscription: fields.u32("subscription")? },
            NO_JOBS => Self::NoJobs { queue: fields.str8("queue")? },
            TRACE => Self::Trace { span: fields.traceparent("traceparent")? },
            kind => return Err(FrameError::UnknownKind(kind)),
        };
        fields.end()?;
        Ok(decoded)
    }

    /// Puts the whole frame at the end of `out`. A text that is too long for its field is cut.
    #[inline]
    pub fn encode(&self, out: &mut BytesMut) {
        match self {
            Self::Welcome { version, session, message_size, in_flight, subscriptions } => {
                write::frame(out, WELCOME, &[], |out| {
                    out.put_u16_le(*version);
                    out.put_u64_le(*session);
                    out.put_u32_le(*message_size);
                    out.put_u32_le(*in_flight);
                    out.put_u32_le(*subscriptions);
                });
            }
            Self::Close { code, text } => write::frame(out, CLOSE, &[], |out| {
                write::str8(out, code);
                write::str16(out, text.get(..text.floor_char_boundary(CLOSE_TEXT_MAX)).unwrap_or_default());
            }),
            Self::Answer { id, payload } => write::frame(out, ANSWER, payload, |out| out.put_u32_le(*id)),
            Self::Error { id, error } => write::frame(out, ERROR, &[], |out| {
                out.put_u32_le(*id);
                Parts::from(error).encode(out);
            }),
            Self::Request { request, remaining_ms, message, sender, contract, operation, payload } => {
                write::frame(out, REQUEST, payload, |out| {
                    out.put_u32_le(*request);
                    out.put_u32_le(*remaining_ms);
                    out.put_u64_le(*message);
                    write::str8(out, sender);
                    write::str8(out, contract);
                    write::str8(out, operation);
                });
            }
            Self::GivenUp { request } => write::frame(out, GIVEN_UP, &[], |out| out.put_u32_le(*request)),
            Self::Event { subscription, sequence, lost, retained, sender, topic, payload } => {
                write::frame(out, EVENT, payload, |out| {
                    out.put_u32_le(*subscription);
                    out.put_u64_le(*sequence);
                    out.put_u64_le(*lost);
                    out.put_u8((*retained).into());
                    write::str8(out, sender);
                    write::str16(out, topic);
                });
            }
            Self::Job { job, message, deliveries, sender, queue, payload } => {
                write::frame(out, JOB, payload, |out| {
                    out.put_u32_le(*job);
                    out.put_u64_le(*message);
                    out.put_u32_le(*deliveries);
                    write::str8(out, sender);
                    write::str8(out, queue);
                });
            }
            Self::Dropped { subscription } => {
                write::frame(out, DROPPED, &[], |out| out.put_u32_le(*subscription));
            }
            Self::NoJobs { queue } => write::frame(out, NO_JOBS, &[], |out| write::str8(out, queue)),
            Self::Trace { span } => {
                write::frame(out, TRACE, &[], |out| write::str8(out, &span.to_string()));
            }
        }
    }

    /// The frame's name in the specification.
    #[must_use]
    pub fn name(&self) -> &'static str {
        let kind = match self {
            Self::Welcome { .. } => WELCOME,
            Self::Close { .. } => CLOSE,
            Self::Answer { .. } => ANSWER,
            Self::Error { .. } => ERROR,
            Self::Request { .. } => REQUEST,
            Self::GivenUp { .. } => GIVEN_UP,
            Self::Event { .. } => EVENT,
            Self::Job { .. } => JOB,
            Self::Dropped { .. } => DROPPED,
            Self::NoJobs { .. } => NO_JOBS,
            Self::Trace { .. } => TRACE,
        };
        name(kind).unwrap_or_default()
    }
}
