//! An extension: its state, its handlers, and its manifest.

use std::{fmt, process::ExitCode, rc::Rc};

use futures_util::future::LocalBoxFuture;

use crate::{
    AsTopic, Context, Error, Event, Manifest, Operation, Queue,
    codec::{Decode, Encode},
    host::Host,
    program::{EventHandler, Hook, Program},
};

/// A state of the author's own type, with the handlers that serve messages with it.
///
/// Handlers are async functions that take `&S`. Several can be under way at once while each waits, so the
/// state that they change lives in a `Cell` or `RefCell` (never borrowed across an `.await`). A handler that
/// does not wait runs to its end undisturbed.
///
/// ```
/// use std::cell::Cell;
/// use weir_sdk::{Context, Contract, Empty, Error, Extension, Operation};
///
/// const COUNTER: Contract = Contract::new("counter@1");
/// const NEXT: Operation<Empty, u64> = COUNTER.operation("next");
///
/// weir_sdk::manifest! { id: "counter", fulfills: &[COUNTER] }
///
/// #[derive(Default)]
/// struct Counter(Cell<u64>);
///
/// impl Counter {
///     async fn next(&self, _: &Context, _: Empty) -> Result<u64, Error> {
///         self.0.set(self.0.get() + 1);
///         Ok(self.0.get())
///     }
/// }
///
/// fn extension() -> Extension<Counter> {
///     Extension::new(MANIFEST, Counter::default()).on(NEXT, Counter::next)
/// }
///
/// // In the program itself: fn main() -> std::process::ExitCode { extension().run() }
/// # fn main() {
/// let main = weir_sdk::testing::Harness::new(extension());
/// assert_eq!(main.call(NEXT, &Empty {}), Ok(1));
/// # }
/// ```
pub struct Extension<S> {
    state: Rc<S>,
    program: Program,
}

impl<S: 'static> Extension<S> {
    /// An extension of this manifest, without handlers yet.
    #[must_use]
    pub fn new(manifest: Manifest, state: S) -> Self {
        Self { state: Rc::new(state), program: Program::new(manifest) }
    }

    /// Serves an operation. Arguments that do not decode are answered with the code `invalid-argument`.
    #[must_use]
    pub fn on<A, R, C, H>(mut self, operation: Operation<A, R, C>, handler: H) -> Self
    where
        A: 'static,
        R: 'static,
        C: Decode<A> + Encode<R> + 'static,
        H: AsyncFn(&S, &Context, A) -> Result<R, Error> + 'static,
    {
        let shared = Rc::new((self.state.clone(), handler));
        let handler = move |context: Context, payload: Vec<u8>| -> LocalBoxFuture<'static, _> {
            let shared = shared.clone();
            Box::pin(async move {
                let (state, handler) = &*shared;
                let args = C::decode(payload).map_err(Error::invalid_argument)?;
                C::encode_owned(handler(state, &context, args).await?)
            })
        };
        self.program.operations.push((operation.contract(), operation.name(), Rc::new(handler)));
        self
    }

    /// Subscribes at start to a [`Topic`](crate::Topic), or to a pattern of events in JSON. The handler
    /// gets the events one after the other, in the order in which they came.
    ///
    /// An event that does not decode is logged, and so is an error of the handler.
    ///
    /// A handler that does not wait gets each event straight from the inbox, under the operator's policy for
    /// the subscription. While a handler waits, the inbox is still read, because the answer may come from
    /// there. Up to 256 events then wait here for the handler, and beyond that the oldest are lost, under
    /// every policy: [`Event::lost`] counts them. So `block` and `reject` hold back no publisher for a
    /// handler that waits. Use a [`Queue`] for what such a handler must not lose.
    #[must_use]
    pub fn on_event<T, P, H>(self, pattern: P, handler: H) -> Self
    where
        T: 'static,
        P: AsTopic<T, Codec: Decode<T>> + 'static,
        H: AsyncFn(&S, &Context, Event<T>) -> Result<(), Error> + 'static,
    {
        self.on_event_bytes(
            pattern.as_topic(),
            async move |state: &S, context: &Context, event: Event<Vec<u8>>| {
                let Event { topic, sequence, lost, retained, payload } = event;
                let payload = P::Codec::decode(payload).map_err(Error::invalid_argument)?;
                handler(state, context, Event { topic, sequence, lost, retained, payload }).await
            },
        )
    }

    /// Subscribes at start like [`on_event`](Self::on_event), but the handler gets the payload as bytes.
    #[must_use]
    pub fn on_event_bytes<H>(mut self, pattern: &str, handler: H) -> Self
    where
        H: AsyncFn(&S, &Context, Event<Vec<u8>>) -> Result<(), Error> + 'static,
    {
        let handler = self.event_handler(handler);
        self.program.subscriptions.push((pattern.to_owned(), handler));
        self
    }

    /// Handles the events of patterns from [`Context::subscribe`].
    #[must_use]
    pub fn on_any_event<H>(mut self, handler: H) -> Self
    where
        H: AsyncFn(&S, &Context, Event<Vec<u8>>) -> Result<(), Error> + 'static,
    {
        self.program.any_event = Some(self.event_handler(handler));
        self
    }

    /// Takes jobs of a queue, one after the other. A job is done when its handler returns `Ok`. If the job does not
    /// decode, or its handler returns an error, that is logged and the job is given back.
    ///
    /// A job can come more than once: after it was given back, or after an extension died that had it in hand. On stop,
    /// the extension finishes the jobs in hand and takes no more.
    ///
    /// [`Context::take`](crate::Context::take) leaves it to the extension when to take a job and when it is
    /// done.
    #[must_use]
    pub fn on_job<T, C, H>(self, queue: Queue<T, C>, handler: H) -> Self
    where
        T: 'static,
        C: Decode<T> + 'static,
        H: AsyncFn(&S, &Context, T) -> Result<(), Error> + 'static,
    {
        self.on_jobs(queue, 1, handler)
    }

    /// Takes jobs of a queue like [`on_job`](Self::on_job), with up to `at_once` jobs in hand, from 1 to the
    /// operator's `in-flight`. This helps handlers that wait.
    #[must_use]
    pub fn on_jobs<T, C, H>(mut self, queue: Queue<T, C>, at_once: usize, handler: H) -> Self
    where
        T: 'static,
        C: Decode<T> + 'static,
        H: AsyncFn(&S, &Context, T) -> Result<(), Error> + 'static,
    {
        let shared = Rc::new((self.state.clone(), handler));
        let handler = move |context: Context, payload: Vec<u8>| -> LocalBoxFuture<'static, _> {
            let shared = shared.clone();
            Box::pin(async move {
                let (state, handler) = &*shared;
                handler(state, &context, C::decode(payload).map_err(Error::invalid_argument)?).await
            })
        };
        self.program.jobs.push((queue.name(), at_once, Rc::new(handler)));
        self
    }

    /// The hook runs before the extension declares itself ready, to load what it needs. It can call other contracts,
    /// but receives nothing yet. An error ends the extension.
    #[must_use]
    pub fn on_start<H>(mut self, hook: H) -> Self
    where
        H: AsyncFn(&S, &Context) -> Result<(), Error> + 'static,
    {
        self.program.on_start = Some(self.hook(hook));
        self
    }

    /// The hook runs on stop, when all handlers have ended. It does not run if a background task has failed.
    #[must_use]
    pub fn on_stop<H>(mut self, hook: H) -> Self
    where
        H: AsyncFn(&S, &Context) -> Result<(), Error> + 'static,
    {
        self.program.on_stop = Some(self.hook(hook));
        self
    }

    /// The task runs beside the handlers, from ready until stop, when it is dropped. Use it for work at intervals, or
    /// to read a socket. An error ends the extension.
    #[must_use]
    pub fn background<H>(mut self, task: H) -> Self
    where
        H: AsyncFn(&S, &Context) -> Result<(), Error> + 'static,
    {
        let task = self.hook(task);
        self.program.background.push(task);
        self
    }

    /// Serves until Main says stop: the whole of `main`.
    ///
    /// The exit code is a failure, and Main is told why, if the handlers do not fit the manifest, if the operator did
    /// not grant what they need, or if `on_start`, `on_stop` or a background task fails. It is also a failure outside a
    /// component, where there is no Main.
    #[must_use]
    pub fn run(self) -> ExitCode {
        Host::run(self.program)
    }

    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn into_program(self) -> Program {
        self.program
    }

    fn event_handler<H>(&self, handler: H) -> EventHandler
    where
        H: AsyncFn(&S, &Context, Event<Vec<u8>>) -> Result<(), Error> + 'static,
    {
        let shared = Rc::new((self.state.clone(), handler));
        Rc::new(move |context, event| {
            let shared = shared.clone();
            Box::pin(async move {
                let (state, handler) = &*shared;
                handler(state, &context, event).await
            })
        })
    }

    fn hook<H>(&self, hook: H) -> Hook
    where
        H: AsyncFn(&S, &Context) -> Result<(), Error> + 'static,
    {
        let state = self.state.clone();
        Box::new(move |context| Box::pin(async move { hook(&state, &context).await }))
    }
}

impl<S> fmt::Debug for Extension<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.program.fmt(f)
    }
}
