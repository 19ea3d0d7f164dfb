//! One connection after its hello: reads frames, acts on them, and writes what comes for the program.
//!
//! [`weir_connection::run`] gives it its turns.

mod jobs;
mod output;

use std::{
    collections::{BTreeSet, HashMap},
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::{FutureExt, stream};
use tokio::{io::AsyncReadExt, net::UnixStream};
use weir_connection::{Operations, Protocol, Rate, Requests, UnderWay, answers};
use weir_host::{
    Error,
    client::{CallOptions, PublishOptions, PutOptions, Queue},
    peers::{PeerMessage, PeerRequest, Session, Wanted},
    traces::TraceContext,
};
use weir_peer::frame::{self, COUNTS_SINCE, FromMain, FromPeer, READ_SIZE, TRACES_SINCE, next_frame};

pub(crate) use self::output::Close;
use self::{jobs::Jobs, output::Output};
use crate::greeting::Greeted;

#[derive(Debug)]
pub(crate) struct Connection {
    stream: UnixStream,
    session: Session,
    input: BytesMut,
    /// A frame that waits for the rate.
    next: Option<Bytes>,
    /// The span that the next frame is part of.
    span: Option<TraceContext>,
    /// The count of a COUNTED frame: losses or deliveries of the next message before it came to Main.
    counted: Option<u64>,
    frame_max: usize,
    rate: Rate,
    output: Output,
    under_way: UnderWay<u32, Result<Bytes, Error>>,
    operations: Operations,
    requests: Requests,
    jobs: Jobs,
    /// Queues that the program has put into.
    queues: HashMap<Box<str>, Arc<Queue>>,
    subscriptions: BTreeSet<u32>,
    /// Events that may still be sent.
    events: u32,
}

type Step = weir_connection::Step<Close>;

impl Connection {
    pub(crate) fn new(stream: UnixStream, greeted: Greeted) -> Self {
        let Greeted { session, version, requests, events, rest } = greeted;
        let limits = session.limits();
        let message_size = u32::try_from(limits.message_size).unwrap_or(u32::MAX);
        let mut output = Output::new(limits.stall_timeout, version);
        output.send(&FromMain::Welcome {
            version,
            session: session.id().0,
            message_size,
            in_flight: limits.in_flight,
            subscriptions: limits.subscriptions,
        });
        Self {
            stream,
            input: rest,
            next: None,
            span: None,
            counted: None,
            frame_max: frame::frame_max(message_size),
            rate: Rate::new(limits.message_rate),
            output,
            under_way: UnderWay::default(),
            operations: Operations::default(),
            requests: Requests::new(requests),
            jobs: Jobs::default(),
            queues: HashMap::new(),
            subscriptions: BTreeSet::new(),
            events,
            session,
        }
    }

    /// Talks with the program until the program or Main ends the session.
    pub(crate) async fn converse(mut self) {
        let over = self.session.ended().map(Close::of);
        let close = weir_connection::run(&mut self, over, stream::empty()).await;
        let (mut stream, output) = self.into_rest();
        // A program that has gone is told nothing.
        if let Some(close) = close {
            output.finish(&mut stream, close).await;
        }
    }

    /// Ends the session, and keeps what its last words need.
    fn into_rest(self) -> (UnixStream, Output) {
        (self.stream, self.output)
    }

    /// Reads what is there. False if nothing is.
    fn fill(&mut self, context: &mut Context<'_>) -> Step {
        // An idle connection has no buffer.
        if self.input.is_empty() && self.stream.poll_read_ready(context).is_pending() {
            self.input = BytesMut::new();
            return self.nothing_came();
        }
        self.input.reserve(READ_SIZE);
        match pin!(self.stream.read_buf(&mut self.input)).poll(context) {
            Poll::Ready(Ok(0) | Err(_)) => Err(None),
            Poll::Ready(Ok(_)) => Ok(true),
            Poll::Pending => self.nothing_came(),
        }
    }

    /// A program that has closed the connection, and of which all is read, has gone.
    fn nothing_came(&self) -> Step {
        if self.output.is_closed() { Err(None) } else { Ok(false) }
    }

    fn act(&mut self, frame: FromPeer<'_>, context: &mut Context<'_>) -> Result<(), Close> {
        let since = match frame {
            FromPeer::Trace { .. } | FromPeer::Describe { .. } => TRACES_SINCE,
            FromPeer::Counted { .. } | FromPeer::Refuse { .. } => COUNTS_SINCE,
            _ => frame::OLDEST_VERSION,
        };
        if self.output.version() < since {
            return Err(Close::protocol(format!("{} is of version {since}", frame.name())));
        }
        let is_counted = matches!(frame, FromPeer::Publish { .. } | FromPeer::Put { .. });
        let is_part = is_counted || matches!(frame, FromPeer::Call { .. });
        let trace = self.span.take();
        if trace.is_some() && !is_part {
            return Err(Close::protocol(format!("TRACE before {}", frame.name())));
        }
        // A TRACE may come between COUNTED and the message.
        let counted = if matches!(frame, FromPeer::Trace { .. }) { None } else { self.counted.take() };
        if counted.is_some() && !is_counted {
            return Err(Close::protocol(format!("COUNTED before {}", frame.name())));
        }
        let counted = counted.unwrap_or_default();
        match frame {
            FromPeer::Trace { span } => self.span = Some(span),
            FromPeer::Counted { count } => self.counted = Some(count),
            FromPeer::Hello(_) => return Err(Close::protocol("a second HELLO")),
            FromPeer::Call { id, timeout_ms, contract, operation, provider, payload } => {
                let mut options = CallOptions::default();
                (options.timeout, options.trace) = (within(timeout_ms), trace);
                match self.operations.find(&self.session, contract, operation, provider) {
                    Ok(operation) => {
                        self.begin(id, context, async move { operation.call_with(payload, options).await })?;
                    }
                    Err(error) => self.answer_now(id, Err(error))?,
                }
            }
            FromPeer::Cancel { id } => {
                // What the program cancels may have ended before the frame came.
                let _known = self.under_way.cancel(&id);
                // What was given up makes room for the next frame.
                answers(self, context);
            }
            FromPeer::Publish { id, timeout_ms, to, topic, payload } => {
                let mut options = PublishOptions::default();
                (options.timeout, options.to) = (within(timeout_ms), to.map(str::to_owned));
                (options.trace, options.lost) = (trace, counted);
                let (client, topic) = (self.session.client().clone(), topic.to_owned());
                self.begin(id, context, async move {
                    let receipt = client.publish_with(&topic, payload, options).await?;
                    let mut answer = BytesMut::with_capacity(12);
                    answer.put_u32_le(receipt.delivered);
                    answer.put_u32_le(receipt.shed);
                    answer.put_u32_le(receipt.refused);
                    Ok(answer.freeze())
                })?;
            }
            FromPeer::Subscribe { id, pattern } => {
                let subscribed = self.session.subscribe(pattern);
                self.subscriptions.extend(subscribed.as_ref().ok());
                let answer = subscribed.map(|number| Bytes::copy_from_slice(&number.to_le_bytes()));
                self.answer_now(id, answer)?;
            }
            FromPeer::Unsubscribe { id, subscription } => {
                self.subscriptions.remove(&subscription);
                let answer = self.session.unsubscribe(subscription).map(|()| Bytes::new());
                self.answer_now(id, answer)?;
            }
            FromPeer::Put { id, timeout_ms, until_done, queue, payload } => {
                let queue = match self.queue(queue) {
                    Ok(queue) => queue,
                    Err(error) => return self.answer_now(id, Err(error)),
                };
                let mut options = PutOptions::default();
                (options.timeout, options.trace) = (within(timeout_ms), trace);
                options.deliveries = u32::try_from(counted).unwrap_or(u32::MAX);
                self.begin(id, context, async move {
                    if until_done {
                        queue.put_until_done(payload, options).await?;
                        return Ok(Bytes::new());
                    }
                    let id = queue.put_with(payload, options).await?;
                    Ok(Bytes::copy_from_slice(&id.0.to_le_bytes()))
                })?;
            }
            FromPeer::Take { id, jobs, queue } => {
                let taken = self.jobs.take(&self.session, queue, jobs);
                self.answer_now(id, taken.map(|()| Bytes::new()))?;
            }
            FromPeer::Done { job } => self.jobs.end(job, true)?,
            FromPeer::Return { job } => self.jobs.end(job, false)?,
            FromPeer::Serve { id, contract, operations } => {
                let operations: Vec<String> = operations.into_iter().map(str::to_owned).collect();
                let served = self.session.serve(contract, &operations);
                self.answer_now(id, served.map(|()| Bytes::new()))?;
            }
            FromPeer::Describe { id, documents } => {
                let described = self.session.describe(documents);
                self.begin(id, context, async move { described.await.map(|()| Bytes::new()) })?;
            }
            FromPeer::Reply { request, payload } => self.reply(request, Ok(payload)),
            FromPeer::Fail { request, error } => self.reply(request, Err(error.into())),
            FromPeer::Refuse { request, error } => self.reply(request, Err(error)),
            FromPeer::Credit { events } => self.events = self.events.saturating_add(events),
        }
        Ok(())
    }

    /// Begins work that may take time, and answers the program under this id when it is done. With the id 0, the
    /// program wants no answer. Fails if the id is in use.
    fn begin(
        &mut self,
        id: u32,
        context: &mut Context<'_>,
        work: impl Future<Output = Result<Bytes, Error>> + Send + 'static,
    ) -> Result<(), Close> {
        self.check(id)?;
        if let Some((id, outcome)) = self.under_way.begin((id != 0).then_some(id), Box::pin(work), context) {
            self.answer(id, outcome);
        }
        Ok(())
    }

    /// Fails if the id is in use.
    fn check(&self, id: u32) -> Result<(), Close> {
        match self.under_way.has(&id) {
            true => Err(Close::protocol(format!("the id {id} is under way already"))),
            false => Ok(()),
        }
    }

    /// Sends a request to the program.
    fn ask(&mut self, request: PeerRequest) {
        self.output.span(request.trace());
        let (number, payload, request) = self.requests.add(request);
        self.output.send(&FromMain::Request {
            request: number,
            remaining_ms: u32::try_from(request.remaining().as_millis()).unwrap_or(u32::MAX),
            message: request.id.0,
            sender: &std::mem::take(&mut request.sender),
            contract: request.contract.as_str(),
            operation: request.operation.as_str(),
            payload,
        });
    }

    fn reply(&mut self, request: u32, outcome: Result<Bytes, Error>) {
        self.requests.answer(request, outcome, &self.session);
    }

    /// The queue with this name, looked up once. What the program may do with it is asked each time.
    fn queue(&mut self, name: &str) -> Result<Arc<Queue>, Error> {
        if let Some(known) = self.queues.get(name) {
            return Ok(known.clone());
        }
        let queue = Arc::new(self.session.client().queue(name)?);
        self.queues.insert(name.into(), queue.clone());
        Ok(queue)
    }

    /// Answers at once. Fails if the id is in use.
    fn answer_now(&mut self, id: u32, outcome: Result<Bytes, Error>) -> Result<(), Close> {
        self.check(id)?;
        self.output.answer(id, outcome);
        Ok(())
    }
}

impl Protocol for Connection {
    type Id = u32;
    type Outcome = Result<Bytes, Error>;
    type Close = Close;

    fn parts(&mut self) -> (&Session, &mut UnderWay<u32, Self::Outcome>, &mut Requests) {
        (&self.session, &mut self.under_way, &mut self.requests)
    }

    fn has_room(&self) -> bool {
        self.output.has_room()
    }

    fn wanted(&self) -> Option<Wanted> {
        let wanted = Wanted { requests: self.requests.has_room(), events: self.events > 0 };
        Some(wanted).filter(|_| !self.output.is_closed())
    }

    fn answer(&mut self, id: Option<u32>, outcome: Self::Outcome) {
        self.output.answer(id.unwrap_or_default(), outcome);
    }

    fn send_job(&mut self, context: &mut Context<'_>) -> bool {
        self.jobs.poll_one(context, &mut self.output)
    }

    fn send(&mut self, message: PeerMessage) {
        match message {
            PeerMessage::Request(request) => self.ask(request),
            PeerMessage::Event(subscription, event) => {
                self.events -= 1;
                self.output.send(&FromMain::Event {
                    subscription,
                    sequence: event.sequence,
                    lost: event.lost,
                    retained: event.retained,
                    sender: &event.sender,
                    topic: event.topic.as_str(),
                    payload: event.payload,
                });
            }
            _ => {}
        }
    }

    fn send_given_up(&mut self, request: u32) {
        self.output.send(&FromMain::GivenUp { request });
    }

    fn read(&mut self, context: &mut Context<'_>) -> Step {
        if self.next.is_none() {
            let next = next_frame(&mut self.input, self.frame_max);
            self.next = next.map_err(|error| Some(Close::protocol(error)))?;
        }
        let Some(frame) = self.next.clone() else { return self.fill(context) };
        let frame = FromPeer::decode(&frame).map_err(|error| Some(Close::protocol(error)))?;
        // TRACE and COUNTED are part of the message that must follow.
        let is_message = !matches!(frame, FromPeer::Trace { .. } | FromPeer::Counted { .. });
        if is_message && self.rate.poll_one(context).is_pending() {
            return Ok(false);
        }
        self.next = None;
        self.act(frame, context).map_err(Some)?;
        Ok(true)
    }

    fn write(&mut self, context: &mut Context<'_>) -> Step {
        self.output.write(&mut self.stream, context)
    }

    /// Tells of subscriptions that ended because a grant was taken back.
    fn regranted(&mut self) {
        let left: BTreeSet<u32> = self.session.subscriptions().into_iter().collect();
        for subscription in self.subscriptions.difference(&left).copied() {
            self.output.send(&FromMain::Dropped { subscription });
        }
        self.subscriptions = left;
    }
}

/// A timeout. `None` for 0, which stands for the default.
fn within(milliseconds: u32) -> Option<Duration> {
    (milliseconds > 0).then(|| Duration::from_millis(milliseconds.into()))
}
