//! The test's side of an extension that runs in memory.

use std::{cell::Cell, fmt, rc::Rc, time::Duration};

use futures_util::future::LocalBoxFuture;

use super::{Clock, JobState, Pending, Published, run::Run};
use crate::{
    AsTopic, Error, Extension, JobId, Operation, Queue,
    codec::{Decode, Encode},
};

/// Runs an extension in memory and plays everything around it: callers, owners of the contracts that it
/// calls, publishers and subscribers.
///
/// The manifest is the grants: a contract or topic that it lacks is refused as Main would refuse it. The
/// harness has its own time, see [`Clock`].
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
pub struct Harness {
    run: Rc<Run>,
    lost: Cell<u64>,
}

impl Harness {
    /// An extension that starts when the test first calls it, sends it something, looks at what it did or lets time
    /// pass. Set its fakes and configuration before that.
    ///
    /// # Panics
    /// If the manifest does not fit the handlers, or a contract that it fulfils describes an operation without one.
    #[must_use]
    pub fn new<S: 'static>(extension: Extension<S>) -> Self {
        let program = extension.into_program();
        if let Err(fault) = program.check() {
            panic!("{fault}");
        }
        Self { run: Rc::new(Run::new(program)), lost: Cell::new(0) }
    }

    /// Answers an operation in place of its owner. The fake may wait, and may fail with any [`Error`], as
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
        self.run.host.set_fake(operation.contract(), operation.name(), Rc::new(fake));
    }

    /// Sets a value of the extension's `config` table.
    pub fn config(&self, key: &str, value: &str) {
        self.run.host.set_config(key, value);
    }

    /// Sets the extension's `message-size`: larger answers, arguments and events are refused.
    pub fn message_size(&self, bytes: u64) {
        self.run.host.set_message_size(bytes);
    }

    /// The name under which the test calls and publishes from now on. The first is `test`.
    pub fn sender(&self, name: &str) {
        self.run.host.set_sender(name);
    }

    /// Starts the extension and waits until it is ready. The first call, event or job does so, too.
    ///
    /// # Errors
    /// The extension's error.
    ///
    /// # Panics
    /// If the extension never becomes ready, because `on_start` waits without end.
    pub fn start(&self) -> Result<(), Error> {
        self.run.run_until(|host| host.is_ready());
        self.run.outcome().unwrap_or(Ok(()))
    }

    /// Calls the extension and waits for its answer.
    ///
    /// # Errors
    /// The extension's own as [`Error::Handler`]; `Timeout` after 5 s of the [`Clock`]; and the others that
    /// Main gives a caller.
    pub fn call<A, R, C>(&self, operation: Operation<A, R, C>, args: &A) -> Result<R, Error>
    where
        C: Encode<A> + Decode<R>,
    {
        self.send(operation, args, None)?.wait()
    }

    /// Calls the extension without waiting, with a timeout of 5 s or the given one.
    ///
    /// # Errors
    /// Arguments that cannot be encoded. Also errors that Main gives at once, such as `Invalid` for an operation
    /// without a handler, `NoProvider` if the extension has ended, and the extension's own error if it failed.
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

    /// Calls the extension like [`send`](Self::send), with arguments as bytes, without the operation's codec.
    ///
    /// # Errors
    /// The errors of [`send`](Self::send), without those of the codec.
    pub fn send_bytes<A, R, C>(
        &self,
        operation: Operation<A, R, C>,
        payload: &[u8],
        timeout: Option<Duration>,
    ) -> Result<Pending<R, C>, Error> {
        self.start()?;
        if self.run.outcome().is_some() {
            return Err(Error::NoProvider(self.run.host.own_name()));
        }
        let id = self.run.host.ask(operation.contract(), operation.name(), payload.to_owned(), timeout)?;
        self.run.run_until_idle();
        Ok(Pending::new(self.run.clone(), id))
    }

    /// Publishes an event. Returns the number of the extension's subscriptions that it reached.
    ///
    /// # Panics
    /// If the value does not encode, or the extension never becomes ready.
    pub fn publish<T, P>(&self, topic: P, value: &T) -> u32
    where
        T: ?Sized,
        P: AsTopic<T, Codec: Encode<T>>,
    {
        self.publish_bytes(topic.as_topic(), &payload::<T, P::Codec>(value))
    }

    /// Publishes an event with these bytes as its payload. Returns the number of the extension's subscriptions that it
    /// reached.
    ///
    /// # Panics
    /// If the extension never becomes ready.
    pub fn publish_bytes(&self, topic: &str, payload: &[u8]) -> u32 {
        self.run.run_until(|host| host.is_ready());
        let delivered = self.run.host.deliver_from_test(topic, payload, self.lost.take());
        self.run.run_until_idle();
        delivered
    }

    /// Has Main retain a topic, with this as its last value. A new subscription gets it first, as
    /// [retained](crate::Event::retained).
    ///
    /// # Panics
    /// If the value does not encode.
    pub fn retain<T, P>(&self, topic: P, value: &T)
    where
        T: ?Sized,
        P: AsTopic<T, Codec: Encode<T>>,
    {
        self.run.host.retain(topic.as_topic(), &payload::<T, P::Codec>(value));
    }

    /// Makes the next event arrive as if this many before it had been lost.
    pub fn lose(&self, events: u64) {
        self.lost.set(events);
    }

    /// The events that the extension has published since the last call of this.
    #[must_use]
    pub fn published(&self) -> Vec<Published> {
        self.run.run_until_idle();
        self.run.host.take_published()
    }

    /// Puts a job into a queue. The extension gets the job when it takes from that queue.
    ///
    /// # Panics
    /// If the value does not encode, or the extension never becomes ready.
    pub fn put<T, C: Encode<T>>(&self, queue: Queue<T, C>, job: &T) -> JobId {
        self.put_bytes(queue, &payload::<T, C>(job))
    }

    /// Puts a job into a queue like [`put`](Self::put), with a payload as bytes, without the queue's codec.
    ///
    /// # Panics
    /// If the extension never becomes ready, or there are more than `u32::MAX` queues.
    pub fn put_bytes<T, C>(&self, queue: Queue<T, C>, payload: &[u8]) -> JobId {
        self.run.run_until(|host| host.is_ready());
        match self.run.host.put_from_test(queue.name(), payload) {
            Ok(job) => {
                self.run.run_until_idle();
                job
            }
            Err(error) => panic!("nothing can be put into `{queue}`: {error}"),
        }
    }

    /// The state of a job.
    ///
    /// # Panics
    /// If it was never put into a queue of this harness.
    #[must_use]
    pub fn job(&self, job: JobId) -> JobState {
        self.run.run_until_idle();
        match self.run.host.job(job) {
            Some(state) => state,
            None => panic!("there is no job {job}"),
        }
    }

    /// Takes all waiting jobs of a queue, as another reader would: for example, the jobs that the extension
    /// puts. They then count as done.
    ///
    /// # Panics
    /// If a job does not decode.
    #[must_use]
    pub fn take_all<T, C: Decode<T>>(&self, queue: Queue<T, C>) -> Vec<T> {
        self.run.run_until_idle();
        let decoded = self.run.host.drain(queue.name()).into_iter().map(|payload| match C::decode(payload) {
            Ok(job) => job,
            Err(error) => panic!("a job of `{queue}` is not what was expected: {error}"),
        });
        decoded.collect()
    }

    /// The number of calls to fakes without an answer. Calls made in `on_start` and `on_stop` are not counted.
    #[must_use]
    pub fn calls_under_way(&self) -> usize {
        self.run.run_until_idle();
        self.run.host.requests_under_way()
    }

    /// The time of this harness, for fakes that wait.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.run.host.clock().clone()
    }

    /// Lets time pass.
    pub fn advance(&self, duration: Duration) {
        self.run.run_until_idle();
        let clock = self.run.host.clock();
        let end = clock.now().saturating_add(duration);
        while let Some(next) = clock.next().filter(|next| *next <= end) {
            clock.advance_to(next);
            self.run.run_until_idle();
        }
        clock.advance_to(end);
    }

    /// Tells the extension to stop, and waits until it has stopped.
    ///
    /// # Errors
    /// The extension's error.
    ///
    /// # Panics
    /// If it never stops, because a handler waits without end.
    pub fn stop(&self) -> Result<(), Error> {
        self.run.run_until_idle();
        self.run.host.stop();
        self.run.run_until(|_| false);
        self.run.outcome().unwrap_or(Ok(()))
    }
}

fn payload<T: ?Sized, C: Encode<T>>(value: &T) -> Vec<u8> {
    match C::encode(value) {
        Ok(payload) => payload.into_owned(),
        Err(error) => panic!("the value has no form as a payload: {error}"),
    }
}

impl fmt::Debug for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Harness").field(&self.run.host).finish()
    }
}
