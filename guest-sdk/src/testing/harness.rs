//! The test's side of an extension that runs in memory.

use std::{
    cell::{Cell, RefCell},
    fmt,
    marker::PhantomData,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use futures_util::future::LocalBoxFuture;
use serde::{Serialize, de::DeserializeOwned};

use super::Clock;
use crate::{
    Error, Extension, Operation,
    codec::{Decode, Encode},
    host::{Host, MessageId, memory::Publication},
};

/// Runs an extension in memory and plays everyone else: those who call it, the owners of the
/// contracts that it calls, publishers and subscribers.
///
/// The manifest is what is granted, so that a contract or topic that is missing in it is refused as
/// Main would. Time is the harness's own, see [`Clock`].
///
/// ```
/// use weir_sdk::{Context, Contract, Error, Extension, Operation, testing::Harness};
///
/// const STORAGE: Contract = Contract::new("storage@1");
/// const GET: Operation<String, Option<String>> = STORAGE.operation("get");
/// const GREETER: Contract = Contract::new("greeter@1");
/// const GREET: Operation<String, String> = GREETER.operation("greet");
///
/// weir_sdk::manifest! { id: "greeter", fulfills: &[GREETER], requires: &[STORAGE] }
///
/// async fn greet(_: &(), ctx: &Context, name: String) -> Result<String, Error> {
///     let greeting = ctx.call(GET, &"greeting".to_owned()).await?;
///     Ok(format!("{} {name}", greeting.as_deref().unwrap_or("hello")))
/// }
///
/// # fn main() {
/// let main = Harness::new(Extension::new(MANIFEST, ()).on(GREET, greet));
/// main.fake(GET, async |key: String| Ok((key == "greeting").then(|| "good morning".to_owned())));
///
/// assert_eq!(main.call(GREET, &"Ada".to_owned()), Ok("good morning Ada".to_owned()));
/// # }
/// ```
pub struct Harness(Rc<Inner>);

struct Inner {
    host: Host,
    extension: RefCell<Option<LocalBoxFuture<'static, Result<(), Error>>>>,
    outcome: RefCell<Option<Result<(), Error>>>,
    lost: Cell<u64>,
    woken: Arc<Woken>,
}

/// A request that the extension has not been waited for.
#[must_use = "an answer that nobody looks at proves nothing"]
pub struct Pending<R, C> {
    main: Rc<Inner>,
    id: MessageId,
    types: PhantomData<fn(C) -> R>,
}

/// An event that the extension published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// The topic.
    pub topic: String,
    /// The one extension that it was meant for, if not everyone.
    pub to: Option<String>,
    /// What was published.
    pub payload: Vec<u8>,
}

impl Harness {
    /// An extension that starts with the first call, event or wait, so that its fakes and
    /// configuration can be set before.
    ///
    /// # Panics
    /// If the manifest does not fit the handlers.
    #[must_use]
    pub fn new<S: 'static>(extension: Extension<S>) -> Self {
        let program = extension.into_program();
        if let Err(fault) = program.check() {
            panic!("{fault}");
        }
        let host = Host::new(program.manifest);
        Self(Rc::new(Inner {
            extension: RefCell::new(Some(Box::pin(program.run(host.clone())))),
            host,
            outcome: RefCell::default(),
            lost: Cell::new(0),
            woken: Arc::new(Woken(AtomicBool::new(true))),
        }))
    }

    /// Answers an operation in place of its owner. It may wait, and may fail with any [`Error`], as
    /// Main or the owner would.
    pub fn fake<A, R, C, F>(&self, operation: Operation<A, R, C>, answer: F)
    where
        A: 'static,
        R: 'static,
        C: Decode<A> + Encode<R> + 'static,
        F: AsyncFn(A) -> Result<R, Error> + 'static,
    {
        let answer = Rc::new(answer);
        let fake = move |payload: Vec<u8>| -> LocalBoxFuture<'static, Result<Vec<u8>, Error>> {
            let answer = answer.clone();
            Box::pin(async move {
                let args = C::decode(payload).map_err(Error::invalid_argument)?;
                C::encode_owned(answer(args).await?)
            })
        };
        self.0
            .host
            .set_fake(operation.contract(), operation.name(), Rc::new(fake));
    }

    /// Sets a value of the extension's `config` table.
    pub fn config(&self, key: &str, value: &str) {
        self.0.host.set_config(key, value);
    }

    /// The name under which the test calls and publishes from here on; at first it is `test`.
    pub fn sender(&self, name: &str) {
        self.0.host.set_sender(name);
    }

    /// Starts the extension and waits until it is ready, or has failed to become so.
    ///
    /// # Errors
    /// What the extension failed with.
    pub fn start(&self) -> Result<(), Error> {
        self.0.run_until_idle();
        self.0.outcome.borrow().clone().unwrap_or(Ok(()))
    }

    /// Calls the extension and waits for its answer.
    ///
    /// # Errors
    /// The extension's own as [`Error::Handler`]; `Timeout` after 5 s of the [`Clock`], and the
    /// others that Main gives a caller.
    pub fn call<A, R, C>(&self, operation: Operation<A, R, C>, args: &A) -> Result<R, Error>
    where
        C: Encode<A> + Decode<R>,
    {
        self.send(operation, args, None)?.wait()
    }

    /// Calls the extension without waiting, with a timeout of 5 s or of its own.
    ///
    /// # Errors
    /// Those that Main gives at once, such as `Invalid` for an operation without a handler.
    pub fn send<A, R, C>(
        &self,
        operation: Operation<A, R, C>,
        args: &A,
        timeout: Option<Duration>,
    ) -> Result<Pending<R, C>, Error>
    where
        C: Encode<A>,
    {
        self.send_bytes(operation, &C::encode(args)?, timeout)
    }

    /// [`send`](Self::send) with arguments as they travel, whatever the operation says they are.
    ///
    /// # Errors
    /// As `send`.
    pub fn send_bytes<A, R, C>(
        &self,
        operation: Operation<A, R, C>,
        payload: &[u8],
        timeout: Option<Duration>,
    ) -> Result<Pending<R, C>, Error> {
        self.start()?;
        let id = self.0.host.ask(
            operation.contract(),
            operation.name(),
            payload.to_owned(),
            timeout,
        )?;
        self.0.run_until_idle();
        Ok(Pending {
            main: self.0.clone(),
            id,
            types: PhantomData,
        })
    }

    /// Publishes an event, as JSON; returns how many of the extension's subscriptions it reached.
    ///
    /// # Panics
    /// If the value has no form in JSON.
    pub fn publish<T: Serialize + ?Sized>(&self, topic: &str, value: &T) -> u32 {
        match serde_json::to_vec(value) {
            Ok(payload) => self.publish_bytes(topic, &payload),
            Err(error) => panic!("the event of `{topic}` has no form in JSON: {error}"),
        }
    }

    /// Publishes an event whose payload is bytes as they are.
    pub fn publish_bytes(&self, topic: &str, payload: &[u8]) -> u32 {
        self.0.run_until_idle();
        let delivered = self
            .0
            .host
            .deliver_from_test(topic, payload, self.0.lost.take());
        self.0.run_until_idle();
        delivered
    }

    /// Lets the next event arrive as if this many before it had been lost.
    pub fn lose(&self, events: u64) {
        self.0.lost.set(events);
    }

    /// What the extension has published since it was last asked.
    #[must_use]
    pub fn published(&self) -> Vec<Published> {
        self.0.run_until_idle();
        let published = self.0.host.take_published().into_iter();
        published
            .map(|Publication { topic, to, payload }| Published { topic, to, payload })
            .collect()
    }

    /// How many calls to fakes have not been answered.
    #[must_use]
    pub fn calls_under_way(&self) -> usize {
        self.0.run_until_idle();
        self.0.host.requests_under_way()
    }

    /// The time of this harness, for fakes that wait.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.0.host.clock().clone()
    }

    /// Lets time pass.
    pub fn advance(&self, duration: Duration) {
        self.0.run_until_idle();
        let clock = self.0.host.clock();
        let end = clock.now().saturating_add(duration);
        while let Some(next) = clock.next().filter(|next| *next <= end) {
            clock.advance_to(next);
            self.0.run_until_idle();
        }
        clock.advance_to(end);
    }

    /// Tells the extension to stop, and waits until it has.
    ///
    /// # Errors
    /// What the extension failed with.
    ///
    /// # Panics
    /// If it never stops, because a handler waits for what never comes.
    pub fn stop(&self) -> Result<(), Error> {
        self.0.run_until_idle();
        self.0.host.stop();
        let clock = self.0.host.clock();
        loop {
            self.0.run_until_idle();
            if let Some(outcome) = &*self.0.outcome.borrow() {
                return outcome.clone();
            }
            match clock.next() {
                Some(next) => clock.advance_to(next),
                None => panic!("the extension never stops: a handler waits for what never comes"),
            }
        }
    }
}

impl<R, C> Pending<R, C> {
    /// Whether the answer is there already.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.main.run_until_idle();
        self.main.host.is_answered(self.id)
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// As [`Harness::call`].
    pub fn wait(self) -> Result<R, Error>
    where
        C: Decode<R>,
    {
        let payload = self.main.wait_for(self.id)?;
        C::decode(payload).map_err(|error| Error::handler("invalid-answer", error))
    }
}

impl Published {
    /// The payload, read as JSON.
    ///
    /// # Panics
    /// If it is something else.
    #[must_use]
    pub fn json<T: DeserializeOwned>(&self) -> T {
        match serde_json::from_slice(&self.payload) {
            Ok(value) => value,
            Err(error) => panic!(
                "the event of `{}` is not what was expected: {error}",
                self.topic
            ),
        }
    }
}

impl Inner {
    fn wait_for(&self, id: MessageId) -> Result<Vec<u8>, Error> {
        let clock = self.host.clock();
        loop {
            self.run_until_idle();
            if let Some(answer) = self.host.answer(id) {
                return answer;
            }
            let deadline = self.host.deadline(id).ok_or(Error::PeerGone)?;
            clock.advance_to(clock.next().map_or(deadline, |next| next.min(deadline)));
        }
    }

    /// Runs the extension and the fakes until all of them wait for something else.
    fn run_until_idle(&self) {
        let waker = Waker::from(self.woken.clone());
        let mut cx = Context::from_waker(&waker);
        while self.woken.0.swap(false, Ordering::AcqRel) {
            let mut extension = self.extension.borrow_mut();
            if let Some(running) = &mut *extension
                && let Poll::Ready(outcome) = running.as_mut().poll(&mut cx)
            {
                *extension = None;
                self.outcome.replace(Some(outcome));
                self.host.gone();
            }
            self.host.poll_fakes(&mut cx);
        }
    }
}

/// Whether something can go on.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

impl fmt::Debug for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Harness").field(&self.0.host).finish()
    }
}

impl<R, C> fmt::Debug for Pending<R, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pending({})", self.id)
    }
}
