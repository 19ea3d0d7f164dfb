//! One WebSocket with its session: reads messages, acts on them, and writes what comes for the app.
//!
//! [`weir_connection::run`] gives the conversation its turns, and says what an app that does not read can cost. Beside
//! that it costs the events in its [`Outbox`].

mod output;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::{FutureExt, StreamExt, stream};
use tokio_tungstenite::tungstenite::{self, Message, Utf8Bytes};
use weir_connection::{Protocol, Rate, Requests, UnderWay, answers};
use weir_host::{
    Error,
    peers::{PeerMessage, Session, Wanted},
};

use self::output::{Close, Output};
use crate::{
    methods::{Begun, Methods, Outcome, Reply},
    outbox::Outbox,
    rpc::{self, Id, Incoming, Refusal, Request, RpcError},
    shared::Shared,
    stream::Flow,
    websocket::{WebSocket, fault_of},
};

/// Bytes that a message may have beside twice the size of a payload.
const ENVELOPE: usize = 64 * 1024;

/// Most bytes of a message of the session's app: twice `limits.message-size`, since base64 and escapes make a payload
/// longer, and room for the rest of the message.
pub(crate) fn message_max(session: &Session) -> usize {
    let payload = usize::try_from(session.limits().message_size).unwrap_or(usize::MAX);
    payload.saturating_mul(2).saturating_add(ENVELOPE)
}

/// Serves a WebSocket until the app leaves, or the session or the gateway ends.
pub(crate) async fn converse(shared: Arc<Shared>, session: Session, socket: WebSocket, flow: Arc<Flow>) {
    let pings = stream::unfold(shared.pings(), |pings| async move {
        let mut pings = pings?;
        pings.changed().await.ok()?;
        Some(((), Some(pings)))
    });
    let mut conversation = Conversation::new(shared, session, socket, flow);
    let over = Close::coming(&conversation.methods);
    let close = weir_connection::run(&mut conversation, over, pings).await;
    let Conversation { output, mut socket, methods, outbox, requests, under_way, .. } = conversation;
    methods.session().count_events(0, outbox.take_uncounted());
    // What the app had in hand goes back before the app learns why the WebSocket ends.
    drop((requests, under_way, methods));
    output.finish(&mut socket, close).await;
}

#[derive(Debug)]
struct Conversation {
    socket: WebSocket,
    methods: Methods,
    output: Output,
    outbox: Arc<Outbox>,
    under_way: UnderWay<Id, Answered>,
    batches: HashMap<u32, Batch>,
    last_batch: u32,
    /// The number of answers that wait for the rest of their batch, in all batches together.
    held: usize,
    requests: Requests,
    rate: Rate,
    /// A message that waits for the rate.
    next: Option<Utf8Bytes>,
    /// Messages that were read and that the rate has not counted: the rest of a batch, a ping or a pong.
    owed: usize,
    /// Most entries of a batch, and most requests of the app under way: `limits.in-flight`.
    max_batch: usize,
    /// Whether a ping was sent to which no pong has come.
    is_silent: bool,
}

/// The number of the batch that a request came in, if it came in one, and its outcome.
type Answered = (Option<u32>, Outcome);

/// A batch of requests, some of which are under way.
#[derive(Debug, Default)]
struct Batch {
    /// The answers so far: the JSON of an array without its end.
    answers: String,
    /// The number of answers in `answers`.
    held: usize,
    /// The number of entries that have not ended.
    open: usize,
    /// The ids of requests that are under way, or whose answers wait here.
    ids: HashSet<Id>,
}

type Step = weir_connection::Step<Close>;

impl Conversation {
    fn new(shared: Arc<Shared>, session: Session, socket: WebSocket, flow: Arc<Flow>) -> Self {
        let limits = session.limits().clone();
        let in_flight = usize::try_from(limits.in_flight).unwrap_or(usize::MAX);
        let outbox = shared.outbox(&session);
        Self {
            output: Output::new(limits.stall_timeout, flow),
            rate: Rate::new(limits.message_rate),
            requests: Requests::new(limits.in_flight),
            max_batch: in_flight,
            methods: Methods::new(shared, session, Some(outbox.clone())),
            socket,
            outbox,
            under_way: UnderWay::default(),
            batches: HashMap::new(),
            last_batch: 0,
            held: 0,
            next: None,
            owed: 0,
            is_silent: false,
        }
    }

    /// Whether the gateway reads what the app sends. While it does not, a pong may wait among the bytes that are not
    /// read.
    fn listens(&self) -> bool {
        self.output.has_room() && self.next.is_none() && self.owed == 0
    }

    fn receive(&mut self, message: Option<tungstenite::Result<Message>>) -> Result<(), Option<Close>> {
        match message {
            None | Some(Ok(Message::Close(_))) => return Err(None),
            Some(Err(error)) => return Err(Close::of_error(&fault_of(error))),
            // The library puts frames together to messages, so `Frame` never comes.
            Some(Ok(Message::Binary(_) | Message::Frame(_))) => return Err(Some(Close::BINARY)),
            Some(Ok(Message::Text(text))) => self.next = Some(text),
            // The library holds the pong that answers the ping, and needs a flush to send it. Pings and pongs count as
            // messages.
            Some(Ok(Message::Ping(_))) => {
                self.output.flush();
                self.owed = 1;
            }
            Some(Ok(Message::Pong(_))) => (self.is_silent, self.owed) = (false, 1),
        }
        Ok(())
    }

    fn act(&mut self, text: &str, context: &mut Context<'_>) {
        match rpc::parse(text, self.max_batch) {
            Err(refusal) => self.refuse(None, &refusal),
            Ok(Incoming::Single(message)) => self.message(message, None, context),
            Ok(Incoming::Batch(messages)) => {
                self.owed = messages.len().saturating_sub(1);
                self.last_batch = self.last_batch.wrapping_add(1);
                let batch = self.last_batch;
                // One entry more counts as open, so that the batch does not end before all entries have begun.
                self.batches.insert(batch, Batch { open: 1, ..Batch::default() });
                for message in messages {
                    self.message(message, Some(batch), context);
                }
                self.end_batch(Some(batch));
            }
        }
    }

    fn message(
        &mut self,
        message: Result<rpc::Message<'_>, Refusal>,
        batch: Option<u32>,
        context: &mut Context<'_>,
    ) {
        match message {
            Err(refusal) => {
                self.open(batch);
                self.refuse(batch, &refusal);
            }
            Ok(rpc::Message::Response(response)) => {
                let outcome = response.outcome.map_err(Error::from);
                self.requests.answer(response.id, outcome, self.methods.session());
            }
            Ok(rpc::Message::Stray) => self.methods.session().count_late(),
            Ok(rpc::Message::Request(request)) if request.method == "rpc.cancel" => {
                self.open(batch);
                self.cancel(&request, batch);
                // The request that was given up makes room for the next one.
                answers(self, context);
            }
            Ok(rpc::Message::Request(request)) => {
                self.open(batch);
                self.begin(&request, batch, context);
            }
        }
    }

    fn begin(&mut self, request: &Request<'_>, batch: Option<u32>, context: &mut Context<'_>) {
        let id = request.id.clone();
        // For an entry of a batch, the answers that other batches hold count, too. Otherwise batches with one slow
        // entry each would collect answers without a bound.
        let held = batch.and_then(|batch| self.batches.get(&batch)).map_or(0, |own| self.held - own.held);
        let used = self.under_way.len() + held;
        if used >= self.max_batch {
            let (used, allowed) = (used as u64 + 1, self.max_batch as u64);
            let error = Error::LimitExceeded { name: "in-flight".into(), used, allowed };
            return self.answer(id, (batch, Err(error.into())));
        }
        if id.as_ref().is_some_and(|id| self.is_in_use(id)) {
            return self.answer(id, (batch, Err(RpcError::id_in_use())));
        }
        if let (Some(id), Some(batch)) = (&id, batch.and_then(|batch| self.batches.get_mut(&batch))) {
            batch.ids.insert(id.clone());
        }
        let work = match self.methods.begin(request) {
            Begun::Now(outcome) => return self.answer(id, (batch, outcome)),
            Begun::Later(work) => work.map(move |outcome| (batch, outcome)),
        };
        if let Some((id, answered)) = self.under_way.begin(id, work, context) {
            self.answer(id, answered);
        }
    }

    /// Whether an answer to this id is still to come, or waits for the rest of its batch.
    fn is_in_use(&self, id: &Id) -> bool {
        self.under_way.has(id) || self.batches.values().any(|batch| batch.ids.contains(id))
    }

    fn cancel(&mut self, request: &Request<'_>, batch: Option<u32>) {
        // Parameters that are wrong or name nothing under way are no error. Most cancels are notifications, which get
        // no answer.
        if let Some(id) = rpc::cancelled(request.params)
            && self.under_way.cancel(&id)
            && let Some(own) =
                self.batches.iter_mut().find_map(|(own, batch)| batch.ids.remove(&id).then_some(*own))
        {
            // The batch does not wait for this request any more.
            self.end_batch(Some(own));
        }
        self.answer(request.id.clone(), (batch, Ok(Reply::Job(None))));
    }

    fn refuse(&mut self, batch: Option<u32>, refusal: &Refusal) {
        let out = self.answer_text(batch);
        rpc::write_refusal(out, refusal);
        self.end_answer(batch);
        self.end_batch(batch);
    }

    /// The text where the next answer is written: that of its batch, where it counts as held, or that of a single
    /// message.
    fn answer_text(&mut self, batch: Option<u32>) -> &mut String {
        match batch.and_then(|batch| self.batches.get_mut(&batch)) {
            Some(Batch { answers, held, .. }) => {
                (*held, self.held) = (*held + 1, self.held + 1);
                answers.push(if answers.is_empty() { '[' } else { ',' });
                answers
            }
            None => self.output.text(),
        }
    }

    /// Sends the answer that was just written, unless it waits in a batch.
    fn end_answer(&mut self, batch: Option<u32>) {
        if batch.is_none() {
            self.output.end_text();
        }
    }

    /// Notes that an entry of a batch has begun.
    fn open(&mut self, batch: Option<u32>) {
        if let Some(batch) = batch.and_then(|batch| self.batches.get_mut(&batch)) {
            batch.open += 1;
        }
    }

    /// Notes that an entry of a batch has ended. After the last one, sends the answers of the batch.
    fn end_batch(&mut self, number: Option<u32>) {
        let Some(batch) = number.and_then(|number| self.batches.get_mut(&number)) else { return };
        batch.open -= 1;
        if batch.open > 0 {
            return;
        }
        let whole = number.and_then(|number| self.batches.remove(&number));
        let Some(Batch { mut answers, held, .. }) = whole else { return };
        self.held -= held;
        if !answers.is_empty() {
            answers.push(']');
            self.output.send(answers);
        }
    }
}

impl Protocol for Conversation {
    type Id = Id;
    type Outcome = Answered;
    type Close = Close;

    fn parts(&mut self) -> (&Session, &mut UnderWay<Id, Answered>, &mut Requests) {
        (self.methods.session(), &mut self.under_way, &mut self.requests)
    }

    fn has_room(&self) -> bool {
        self.output.has_room()
    }

    fn wanted(&self) -> Option<Wanted> {
        Some(Wanted { requests: self.requests.has_room(), events: false })
    }

    fn begin_round(&mut self, context: &mut Context<'_>) -> Result<(), Option<Close>> {
        self.outbox.register(context);
        if self.outbox.is_overrun() { Err(Some(Close::SLOW)) } else { Ok(()) }
    }

    fn answer(&mut self, id: Option<Id>, (batch, outcome): Answered) {
        let outcome = match outcome {
            // A notification has no answer that could bring the job, so the job goes back.
            Ok(Reply::Job(Some(_))) if id.is_none() => return self.end_batch(batch),
            Ok(Reply::Job(Some(job))) => Ok(self.methods.hand_over(job)),
            outcome => outcome,
        };
        if let Some(id) = id {
            write(self.answer_text(batch), &id, outcome);
            self.end_answer(batch);
        }
        self.end_batch(batch);
    }

    fn send(&mut self, message: PeerMessage) {
        // Events come through the outbox.
        let PeerMessage::Request(request) = message else { return };
        let (number, payload, request) = self.requests.add(request);
        rpc::write_request(
            self.output.text(),
            number,
            request.contract.as_str(),
            request.operation.as_str(),
            &payload,
            &rpc::Envelope {
                sender: &std::mem::take(&mut request.sender),
                timeout_ms: u64::try_from(request.remaining().as_millis()).unwrap_or(u64::MAX),
                trace: request.trace(),
            },
        );
        self.output.end_text();
    }

    fn send_given_up(&mut self, number: u32) {
        rpc::write_cancel(self.output.text(), number);
        self.output.end_text();
    }

    fn read(&mut self, context: &mut Context<'_>) -> Step {
        while self.owed > 0 {
            if self.rate.poll_one(context).is_pending() {
                return Ok(false);
            }
            self.owed -= 1;
        }
        if self.next.is_none() {
            match self.socket.poll_next_unpin(context) {
                Poll::Pending => return Ok(false),
                Poll::Ready(message) => self.receive(message)?,
            }
        }
        if self.next.is_some() && self.rate.poll_one(context).is_pending() {
            return Ok(false);
        }
        if let Some(text) = self.next.take() {
            self.act(&text, context);
        }
        Ok(true)
    }

    fn write(&mut self, context: &mut Context<'_>) -> Step {
        self.output.write(&mut self.socket, &self.outbox, self.methods.session(), context)
    }

    /// Ends subscriptions of which the grant was taken back.
    fn regranted(&mut self) {
        for (pattern, form) in self.outbox.subscriptions() {
            if self.methods.session().may_subscribe(&pattern).is_ok() {
                continue;
            }
            self.methods.leave(&pattern, &form);
            rpc::write_ended(self.output.text(), &pattern);
            self.output.end_text();
        }
    }

    fn tick(&mut self) -> Result<(), Option<Close>> {
        if self.is_silent && self.listens() {
            return Err(Some(Close::SILENT));
        }
        self.is_silent = true;
        self.output.ping();
        Ok(())
    }
}

/// Writes the answer to a request. A `Reply::Job` becomes `null`: `Methods::hand_over` has made a value of each job
/// that the app gets.
pub(crate) fn write(out: &mut String, id: &Id, outcome: Outcome) {
    match outcome {
        Ok(Reply::Payload(payload)) => rpc::write_result(out, id, &payload),
        Ok(Reply::Value(value)) => rpc::write_value(out, id, &value),
        Ok(Reply::Job(_)) => rpc::write_value(out, id, &()),
        Err(error) => rpc::write_error(out, id, &error),
    }
}
