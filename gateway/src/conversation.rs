//! One WebSocket with its session: reads messages, acts on them, and writes what comes for the app.
//!
//! What it does takes turns in one task. It reads nothing more while too much waits to be written, so an app that does
//! not read costs no more than one buffer, its events, the inbox of its session, and what it has under way.

mod close;
mod output;

use std::{
    collections::{HashMap, HashSet},
    future::poll_fn,
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::StreamExt;
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::{self, Message, Utf8Bytes};
use weir_connection::{Rate, Requests, UnderWay};
use weir_host::{
    Error,
    peers::{PeerMessage, PeerRequest, Session, Wanted},
};

use self::{close::Close, output::Output};
use crate::{
    methods::{Begun, Methods, Outcome, Reply},
    outbox::Outbox,
    rpc::{self, Id, Incoming, Refusal, Request, RpcError},
    shared::Shared,
    stream::Flow,
    websocket::{WebSocket, fault_of},
};

/// Rounds in one go, before others on the thread have their turn.
const ROUNDS: usize = 4;

/// Messages read in one round.
const READS: usize = 16;

/// What a message may have beside twice the size of a payload.
const ENVELOPE: usize = 64 * 1024;

/// The largest text message for payloads of so many bytes: they may come as base64 or with escapes.
pub(crate) fn message_max(session: &Session) -> usize {
    let payload = usize::try_from(session.limits().message_size).unwrap_or(usize::MAX);
    payload.saturating_mul(2).saturating_add(ENVELOPE)
}

/// Talks with an app until one of them ends it.
pub(crate) async fn converse(shared: Arc<Shared>, session: Session, socket: WebSocket, flow: Arc<Flow>) {
    let mut conversation = Conversation::new(shared, session, socket, flow);
    let close = conversation.run().await;
    let Conversation { output, mut socket, methods, outbox, requests, under_way, .. } = conversation;
    methods.session().count_events(0, outbox.take_uncounted());
    // What the app had in hand ends before it reads why.
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
    /// Answers that wait for the rest of their batch.
    held: usize,
    requests: Requests,
    rate: Rate,
    /// A message that waits for the rate.
    next: Option<Utf8Bytes>,
    /// Further messages of a batch, which the rate has not counted.
    owed: usize,
    max_batch: usize,
    pings: Option<watch::Receiver<()>>,
    /// A ping was sent, and no pong has come.
    is_silent: bool,
}

/// The outcome of a request, and where its answer goes.
#[derive(Debug)]
struct Answered {
    id: Option<Id>,
    batch: Option<u32>,
    outcome: Outcome,
}

/// A batch of requests, some of which are under way.
#[derive(Debug)]
struct Batch {
    answers: String,
    /// Answers in it.
    held: usize,
    open: usize,
    /// Of its requests that are under way, and of those whose answers wait here.
    ids: HashSet<Id>,
}

/// Whether a step did something, or why the session ends. `None` in the error: the app has gone.
type Step = Result<bool, Option<Close>>;

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
            pings: shared.pings(),
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

    /// Runs until the session ends, and says why. None: the app has gone.
    async fn run(&mut self) -> Option<Close> {
        let mut over = pin!(Close::coming(&self.methods));
        let mut pings = self.pings.take();
        loop {
            let mut regranted = pin!(self.methods.session().regranted());
            let mut ping = pin!(next_ping(&mut pings));
            let what = poll_fn(|context| {
                if let Poll::Ready(close) = over.as_mut().poll(context) {
                    return Poll::Ready(What::Close(Some(close)));
                }
                if regranted.as_mut().poll(context).is_ready() {
                    return Poll::Ready(What::Regranted);
                }
                if ping.as_mut().poll(context).is_ready() {
                    return Poll::Ready(What::Ping);
                }
                self.poll(context).map(What::Close)
            })
            .await;
            match what {
                What::Close(close) => return close,
                What::Regranted => self.drop_subscriptions(),
                What::Ping if self.is_silent && self.listens() => return Some(Close::SILENT),
                What::Ping => {
                    self.is_silent = true;
                    self.output.ping();
                }
            }
        }
    }

    /// Whether all that the app sent is read. Else its pong may still be there.
    fn listens(&self) -> bool {
        self.output.has_room() && self.next.is_none() && self.owed == 0
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Close>> {
        match self.steps(context) {
            Ok(true) => {
                // Others first.
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Ok(false) => Poll::Pending,
            Err(close) => Poll::Ready(close),
        }
    }

    /// Goes on until nothing is left to do, which leaves the task's waker everywhere, or others must have their turn.
    fn steps(&mut self, context: &mut Context<'_>) -> Step {
        self.outbox.register(context);
        for _ in 0..ROUNDS {
            if self.outbox.is_overrun() {
                return Err(Some(Close::SLOW));
            }
            let mut busy = self.answers(context);
            busy |= self.ask(context);
            busy |= self.read(context)?;
            busy |= self.output.write(&mut self.socket, &self.outbox, self.methods.session(), context)?;
            if !busy {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sends answers to what the app has under way.
    fn answers(&mut self, context: &mut Context<'_>) -> bool {
        let mut busy = false;
        while self.output.has_room()
            && let Some((_, answered)) = self.under_way.poll_one(context)
        {
            self.answer(answered);
            busy = true;
        }
        busy
    }

    /// Sends requests to contracts that the app serves.
    fn ask(&mut self, context: &mut Context<'_>) -> bool {
        let mut busy = false;
        while self.output.has_room() {
            if let Some(number) = self.requests.poll_given_up(context) {
                rpc::write_cancel(self.output.text(), number);
                self.output.end_text();
                busy = true;
                continue;
            }
            let wanted = Wanted { requests: self.requests.has_room(), events: false };
            let message = self.methods.session().poll_next(wanted, context);
            let Poll::Ready(Some(PeerMessage::Request(request))) = message else { break };
            self.send_request(request);
            busy = true;
        }
        busy
    }

    fn send_request(&mut self, mut request: PeerRequest) {
        let remaining_ms = u64::try_from(request.remaining().as_millis()).unwrap_or(u64::MAX);
        let (sender, trace) = (std::mem::take(&mut request.sender), request.trace());
        let (contract, operation) = (request.contract.clone(), request.operation.clone());
        let (number, payload) = self.requests.add(request);
        let out = self.output.text();
        rpc::write_request(
            out,
            number,
            contract.as_str(),
            operation.as_str(),
            &payload,
            &rpc::Envelope { sender: &sender, timeout_ms: remaining_ms, trace },
        );
        self.output.end_text();
    }

    /// Reads and acts on messages, as far as the rate and the output allow.
    fn read(&mut self, context: &mut Context<'_>) -> Step {
        let mut busy = false;
        for _ in 0..READS {
            if !self.output.has_room() {
                return Ok(busy);
            }
            while self.owed > 0 {
                if self.rate.poll_one(context).is_pending() {
                    return Ok(busy);
                }
                self.owed -= 1;
            }
            if self.next.is_none() {
                match self.socket.poll_next_unpin(context) {
                    Poll::Pending => return Ok(busy),
                    Poll::Ready(message) => self.receive(message)?,
                }
            }
            if self.next.is_some() {
                if self.rate.poll_one(context).is_pending() {
                    return Ok(busy);
                }
                if let Some(text) = self.next.take() {
                    self.act(&text, context);
                }
            }
            busy = true;
        }
        // More may be there, and nothing wakes the task for that.
        Ok(true)
    }

    fn receive(&mut self, message: Option<tungstenite::Result<Message>>) -> Result<(), Option<Close>> {
        match message {
            None => Err(None),
            Some(Err(error)) => Err(Close::of_error(&fault_of(error))),
            Some(Ok(Message::Text(text))) => {
                self.next = Some(text);
                Ok(())
            }
            // Frames come put together.
            Some(Ok(Message::Binary(_) | Message::Frame(_))) => Err(Some(Close::BINARY)),
            Some(Ok(Message::Close(_))) => Err(None),
            Some(Ok(Message::Ping(_))) => {
                // The answer is on its way, and counts as a message.
                self.output.flush();
                self.owed = 1;
                Ok(())
            }
            Some(Ok(Message::Pong(_))) => {
                self.is_silent = false;
                self.owed = 1;
                Ok(())
            }
        }
    }

    fn act(&mut self, text: &str, context: &mut Context<'_>) {
        match rpc::parse(text, self.max_batch) {
            Err(refusal) => self.refuse(None, &refusal),
            Ok(Incoming::Single(message)) => self.message(message, None, context),
            Ok(Incoming::Batch(messages)) => {
                self.owed = messages.len().saturating_sub(1);
                self.last_batch = self.last_batch.wrapping_add(1);
                let batch = self.last_batch;
                // One more, so that it does not end before all have begun.
                let new = Batch { answers: String::new(), held: 0, open: 1, ids: HashSet::new() };
                self.batches.insert(batch, new);
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
                if !self.requests.answer(response.id, response.outcome.map_err(Error::from)) {
                    self.methods.session().count_late();
                }
            }
            Ok(rpc::Message::Stray) => self.methods.session().count_late(),
            Ok(rpc::Message::Request(request)) if request.method == "rpc.cancel" => {
                self.open(batch);
                self.cancel(&request, batch);
                // What was given up makes room for the next request.
                self.answers(context);
            }
            Ok(rpc::Message::Request(request)) => {
                self.open(batch);
                self.begin(&request, batch, context);
            }
        }
    }

    fn begin(&mut self, request: &Request<'_>, batch: Option<u32>, context: &mut Context<'_>) {
        let id = request.id.clone();
        // In a batch, answers that others hold count, too: with one slow entry each they would pile up without a bound.
        let held = batch.and_then(|batch| self.batches.get(&batch)).map_or(0, |own| self.held - own.held);
        let used = self.under_way.len() + held;
        if used >= self.max_batch {
            let (used, allowed) = (used as u64 + 1, self.max_batch as u64);
            let error = Error::LimitExceeded { name: "in-flight".into(), used, allowed };
            return self.answer(Answered { id, batch, outcome: Err(error.into()) });
        }
        if id.as_ref().is_some_and(|id| self.is_in_use(id)) {
            return self.answer(Answered { id, batch, outcome: Err(RpcError::id_in_use()) });
        }
        if let (Some(id), Some(batch)) = (&id, batch.and_then(|batch| self.batches.get_mut(&batch))) {
            batch.ids.insert(id.clone());
        }
        let mut work = match self.methods.begin(request) {
            Begun::Now(outcome) => return self.answer(Answered { id, batch, outcome }),
            Begun::Later(work) => work,
        };
        // Most of it is done at once.
        match work.as_mut().poll(context) {
            Poll::Ready(outcome) => self.answer(Answered { id, batch, outcome }),
            Poll::Pending => {
                self.under_way.add(id.clone(), async move { Answered { id, batch, outcome: work.await } });
            }
        }
    }

    /// Whether an answer to this id is still to come, or waits for the rest of its batch.
    fn is_in_use(&self, id: &Id) -> bool {
        self.under_way.has(id) || self.batches.values().any(|batch| batch.ids.contains(id))
    }

    fn cancel(&mut self, request: &Request<'_>, batch: Option<u32>) {
        // A notification has no answer, also when it is wrong.
        if let Some(id) = rpc::cancelled(request.params)
            && self.under_way.cancel(&id)
            && let Some(own) =
                self.batches.iter_mut().find_map(|(own, batch)| batch.ids.remove(&id).then_some(*own))
        {
            // Its batch waits for the others alone.
            self.end_batch(Some(own));
        }
        self.answer(Answered { id: request.id.clone(), batch, outcome: Ok(Reply::Job(None)) });
    }

    fn answer(&mut self, Answered { id, batch, outcome }: Answered) {
        let outcome = match outcome {
            // Nobody would hear of the job: it goes back.
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

    fn refuse(&mut self, batch: Option<u32>, refusal: &Refusal) {
        let out = self.answer_text(batch);
        rpc::write_refusal(out, refusal);
        self.end_answer(batch);
        self.end_batch(batch);
    }

    /// Where the next answer is written.
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

    fn end_answer(&mut self, batch: Option<u32>) {
        if batch.is_none() {
            self.output.end_text();
        }
    }

    fn open(&mut self, batch: Option<u32>) {
        if let Some(batch) = batch.and_then(|batch| self.batches.get_mut(&batch)) {
            batch.open += 1;
        }
    }

    /// One of a batch has ended. Sends the answers of the batch once all are there.
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

    /// Ends subscriptions of which the grant was taken back.
    fn drop_subscriptions(&mut self) {
        for (_, pattern, form) in self.outbox.subscriptions() {
            if self.methods.session().may_subscribe(&pattern).is_ok() {
                continue;
            }
            self.methods.leave(&pattern, &form);
            rpc::write_ended(self.output.text(), &pattern);
            self.output.end_text();
        }
    }
}

enum What {
    Regranted,
    Ping,
    Close(Option<Close>),
}

/// Waits for the next tick of all pings; for ever without pings.
async fn next_ping(pings: &mut Option<watch::Receiver<()>>) {
    if let Some(pings) = pings
        && pings.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// Writes the answer to a request.
pub(crate) fn write(out: &mut String, id: &Id, outcome: Outcome) {
    match outcome {
        Ok(Reply::Payload(payload)) => rpc::write_result(out, id, &payload),
        Ok(Reply::Value(value)) => rpc::write_value(out, id, &value),
        Ok(Reply::Job(_)) => rpc::write_value(out, id, &()),
        Err(error) => rpc::write_error(out, id, &error),
    }
}
