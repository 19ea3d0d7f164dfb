//! The loop of an extension: takes messages, starts their handlers, and sends their answers.
//!
//! If a handler does not wait and nothing else is under way, its answer goes out in the same call to Main that takes
//! the next message. If handlers or tasks wait, the loop waits for them and the inbox together.

mod events;
mod jobs;

use std::{
    cell::Cell,
    future::{Future, poll_fn},
    pin::pin,
    rc::Rc,
    slice,
    task::{self, Poll, Waker},
    time::Duration,
};

use futures_util::future::LocalBoxFuture;

use self::{events::Events, jobs::Jobs};
use crate::{
    Context, Contract, Error,
    context::{InHand, Origin},
    error::into_answer,
    host::{Answer, Inbox, Message, MessageId, Request, WitError},
    link::Link,
    log,
    program::{EventHandler, JobHandler, RequestHandler},
    tasks::{Done, ROUNDS, Running, Tasks},
};

pub(crate) struct Server {
    link: Rc<Link>,
    /// The number of each contract's first operation, and the handlers from there on.
    contracts: Vec<(u32, Vec<RequestHandler>)>,
    events: Events,
    jobs: Jobs,
    tasks: Tasks,
    inbox: Option<Inbox>,
    /// Whether the extension stops. Then only answers to requests under way still come from the inbox.
    stopping: bool,
}

enum Next {
    Done(Done),
    Inbox,
    /// The last handler or task has ended, or the need to wait for the inbox has changed.
    Nothing,
}

impl Server {
    pub(crate) fn new(link: Rc<Link>, any_event: Option<EventHandler>) -> Self {
        Self {
            events: Events::new(any_event),
            tasks: Tasks::new(link.spawned.clone()),
            link,
            contracts: Vec::new(),
            jobs: Jobs::default(),
            inbox: None,
            stopping: false,
        }
    }

    pub(crate) fn serve(
        &mut self,
        contract: Contract,
        handlers: Vec<(&'static str, RequestHandler)>,
    ) -> Result<(), Error> {
        let (names, handlers): (Vec<_>, Vec<_>) =
            handlers.into_iter().map(|(name, handler)| (name.to_owned(), handler)).unzip();
        let first = self.link.host.serve(contract, &names)?;
        self.contracts.push((first, handlers));
        Ok(())
    }

    pub(crate) fn subscribe(&mut self, pattern: &str, handler: EventHandler) -> Result<(), Error> {
        let subscription = self.link.subscribe(pattern)?;
        self.events.add(subscription, handler);
        Ok(())
    }

    pub(crate) fn work_on(&mut self, job: (&'static str, usize, JobHandler)) -> Result<(), Error> {
        self.jobs.add(&self.link, job)
    }

    pub(crate) fn in_background(&mut self, task: LocalBoxFuture<'static, Result<(), Error>>) {
        self.tasks.push(Running::Background(task), &self.link.host);
    }

    /// Runs a hook to its end, and tasks beside it.
    pub(crate) async fn run_hook(
        &mut self,
        hook: LocalBoxFuture<'static, Result<(), Error>>,
    ) -> Result<(), Error> {
        self.in_background(hook);
        loop {
            if let Done::Background(outcome) = poll_fn(|cx| self.tasks.poll_next(cx, &self.link.host)).await {
                return outcome;
            }
        }
    }

    /// Serves until stop, or until a background task fails. Then finishes everything in hand.
    pub(crate) async fn run(&mut self) -> Result<(), Error> {
        self.link.start_receiving();
        self.jobs.take(&self.link)?;
        let outcome = self.receive_all().await;
        self.stopping = true;
        self.tasks.drop_background();
        self.link.jobs.close();
        if outcome.is_err() {
            // Without a stop from Main, the inbox may hold new requests.
            self.link.stop_receiving();
        }
        while self.tasks.has_handlers() {
            if let Some((id, answer)) = self.go_on().await? {
                self.respond(id, &answer);
            }
        }
        self.link.stop_receiving();
        outcome
    }

    async fn receive_all(&mut self) -> Result<(), Error> {
        let mut answer = None;
        let mut rounds: u32 = 0;
        while !self.stopping {
            if self.tasks.is_empty() {
                match self.answer_and_receive(answer.take()).await {
                    None => return Ok(()),
                    Some(message) => {
                        self.link.jobs.arrived(slice::from_ref(&message));
                        answer = self.handle(message);
                    }
                }
                continue;
            }
            if let Some((id, answer)) = answer.take() {
                self.respond(id, &answer);
            }
            answer = self.go_on().await?;
            rounds = rounds.wrapping_add(1);
            if rounds.is_multiple_of(ROUNDS) {
                yield_now().await;
            }
        }
        Ok(())
    }

    /// Waits for the next thing to happen: a handler or a background task ends, or messages come. Returns the answer if
    /// the handler of a request has ended. The error is that of a background task.
    async fn go_on(&mut self) -> Result<Option<(MessageId, Answer)>, Error> {
        match self.next().await {
            Next::Nothing => Ok(None),
            Next::Done(Done::Background(outcome)) => outcome.map(|()| None),
            Next::Done(Done::Request(request, outcome)) => {
                Ok(Some((request.id, outcome.map_err(into_answer))))
            }
            Next::Inbox => {
                match self.link.host.take() {
                    Ok(messages) if !messages.is_empty() => self.handle_all(messages),
                    Ok(_) if !self.stopping => self.stopping = true,
                    // The last answer has come, and no more messages will.
                    Ok(_) => self.link.stop_receiving(),
                    // The message was withdrawn.
                    Err(_) => {}
                }
                Ok(None)
            }
        }
    }

    /// Sends an answer, if there is one, and receives the next message, in one call to Main. The call may block, so
    /// nothing else may be in hand. Returns `None` on stop.
    async fn answer_and_receive(&self, answer: Option<(MessageId, Answer)>) -> Option<Message> {
        if let Some((id, answer)) = answer {
            match self.link.host.respond_and_receive(id, &answer).await {
                Ok(next) => return next,
                Err(error) => self.answer_refused(id, error),
            }
        }
        self.link.host.receive().await
    }

    fn handle_all(&mut self, messages: Vec<Message>) {
        self.link.jobs.arrived(&messages);
        for message in messages {
            if let Some((id, answer)) = self.handle(message) {
                self.respond(id, &answer);
            }
        }
    }

    /// Starts the handler of a message. Returns the answer to a request whose handler did not wait.
    fn handle(&mut self, message: Message) -> Option<(MessageId, Answer)> {
        let task = match message {
            Message::Request(request) => return self.request(request),
            Message::Response(response) => {
                self.link.answered(response);
                None
            }
            Message::Event(event) => self.events.start(&self.link, event),
            Message::Job(job) => self.jobs.start(&self.link, job),
        };
        if let Some(mut task) = task
            && poll_once(&mut task).is_pending()
        {
            self.tasks.push(Running::Unanswered(task), &self.link.host);
        }
        None
    }

    fn request(&mut self, request: Request) -> Option<(MessageId, Answer)> {
        let Some(handler) = self.handler(request.operation) else {
            let unknown =
                Error::Invalid(format!("operation number {} was never given out", request.operation));
            return Some((request.id, Err(into_answer(unknown))));
        };
        let in_hand = Rc::new(InHand {
            id: request.id,
            remaining: Duration::from_millis(request.remaining_ms.into()),
            received: Cell::new(None),
        });
        let context =
            Context::new(self.link.clone(), Origin::Request(request.sender, Rc::downgrade(&in_hand)));
        let mut future = handler(context, request.payload);
        match poll_once(&mut future) {
            Poll::Ready(outcome) => Some((request.id, outcome.map_err(into_answer))),
            Poll::Pending => {
                in_hand.received.set(in_hand.received.get().or_else(|| Some(self.link.host.now())));
                self.tasks.push(Running::Request(in_hand, future), &self.link.host);
                None
            }
        }
    }

    fn handler(&self, operation: u32) -> Option<&RequestHandler> {
        self.contracts
            .iter()
            .find_map(|(first, handlers)| handlers.get(usize::try_from(operation.checked_sub(*first)?).ok()?))
    }

    /// Waits for a handler, and for the inbox while messages can come.
    async fn next(&mut self) -> Next {
        let Self { link, tasks, inbox, stopping, .. } = self;
        let listens = || !*stopping || link.awaits_answers();
        let listening = listens();
        let readable = listening.then(|| inbox.get_or_insert_with(|| link.host.inbox()).readable());
        let mut readable = pin!(readable);
        poll_fn(|cx| {
            if let Poll::Ready(done) = tasks.poll_next(cx, &link.host) {
                return Poll::Ready(Next::Done(done));
            }
            let is_over = if *stopping { !tasks.has_handlers() } else { tasks.is_empty() };
            if is_over || listens() != listening {
                return Poll::Ready(Next::Nothing);
            }
            match readable.as_mut().as_pin_mut() {
                Some(readable) => readable.poll(cx).map(|()| Next::Inbox),
                None => Poll::Pending,
            }
        })
        .await
    }

    fn respond(&self, id: MessageId, answer: &Answer) {
        if let Err(error) = self.link.host.respond(id, answer) {
            self.answer_refused(id, error);
        }
    }

    /// An answer that is too large is replaced by an error. Other refusals have no remedy.
    fn answer_refused(&self, id: MessageId, error: WitError) {
        let too_large = matches!(error, WitError::TooLarge(_));
        let error = Error::from(error);
        log::warn("an answer was refused", &[("error", &error)]);
        if too_large && let Err(error) = self.link.host.respond(id, &Err(into_answer(error))) {
            log::warn("an answer was refused", &[("error", &Error::from(error))]);
        }
    }
}

/// Polls a new future without a waker. If it waits, it is polled again with one.
fn poll_once<T>(future: &mut LocalBoxFuture<'static, T>) -> Poll<T> {
    future.as_mut().poll(&mut task::Context::from_waker(Waker::noop()))
}

async fn yield_now() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
