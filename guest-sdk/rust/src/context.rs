//! The context of a handler: other contracts, topics, its caller, time and configuration.

mod jobs;

use std::{
    cell::Cell,
    fmt,
    future::Future,
    rc::{Rc, Weak},
    time::Duration,
};

use crate::{
    AsTopic, Error, Operation, Receipt, Task,
    codec::{Decode, Encode},
    host::{MessageId, Options, Peer},
    link::Link,
};

/// What a handler can reach outside its own extension.
///
/// ```
/// # use weir_sdk::{Context, Contract, Error, Operation};
/// # const UPTIME: Operation<(), f64> = Contract::new("device.info@1").operation("uptime");
/// # struct Greeter;
/// impl Greeter {
///     async fn greet(&self, ctx: &Context, name: String) -> Result<String, Error> {
///         let seconds = ctx.call(UPTIME, &()).await?;
///         ctx.publish("greeter.greeted", &name)?;
///         Ok(format!("hello {name}, I am up since {seconds} s"))
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Context {
    link: Rc<Link>,
    origin: Origin,
    timeout: Option<Duration>,
}

/// The timeout and the provider of one call.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallOptions<'a> {
    timeout: Option<Duration>,
    provider: Option<&'a str>,
}

/// The message that a handler runs for.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// A request of this sender. The request is gone once it is answered, but tasks of its handler may go on.
    Request(Peer, Weak<InHand>),
    /// A job of this sender. The job is gone once its handler has ended.
    Job(Peer, Weak<MessageId>),
    /// An event of this sender.
    Sent(Peer),
    /// No message: the extension runs a hook or a background task.
    Itself,
}

/// A request in a handler's hands.
#[derive(Debug)]
pub(crate) struct InHand {
    pub(crate) id: MessageId,
    /// The time left for the answer at delivery.
    pub(crate) remaining: Duration,
    /// The moment from which `remaining` counts: when it was first needed after delivery, so that quick handlers read
    /// no clock. `None` until then.
    pub(crate) received: Cell<Option<Duration>>,
}

impl Origin {
    fn in_hand(&self) -> Option<Rc<InHand>> {
        if let Self::Request(_, request) = self { request.upgrade() } else { None }
    }
}

impl InHand {
    /// The deadline on the host's clock. `None` while `received` is not set.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        Some(self.received.get()?.saturating_add(self.remaining))
    }
}

impl<'a> CallOptions<'a> {
    /// Options for a call to the owner of the contract, with the operator's default timeout.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits at most this long. Main counts whole milliseconds: a fraction is cut off, and the least is 1.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// Calls the extension with this id, or `main`, even if another extension owns the contract.
    #[must_use]
    pub fn provider(self, id: &'a str) -> Self {
        Self { provider: Some(id), ..self }
    }
}

impl Context {
    pub(crate) fn new(link: Rc<Link>, origin: Origin) -> Self {
        Self { link, origin, timeout: None }
    }

    /// Calls another contract and waits for the answer. Meanwhile this extension serves other requests.
    ///
    /// A call made for a request has at most the time left for that request. Dropping the future cancels the
    /// call.
    ///
    /// # Errors
    /// Any [`Error`] of Main, and the provider's own as [`Error::Handler`]. The code `invalid-answer` means that
    /// the answer does not fit the contract.
    pub async fn call<A, R, C>(&self, operation: Operation<A, R, C>, args: &A) -> Result<R, Error>
    where
        C: Encode<A> + Decode<R>,
    {
        self.call_with(operation, args, CallOptions::new()).await
    }

    /// Calls another contract like [`call`](Self::call), with its own timeout, or to a named provider.
    ///
    /// # Errors
    /// The errors of [`call`](Self::call).
    pub async fn call_with<A, R, C>(
        &self,
        operation: Operation<A, R, C>,
        args: &A,
        options: CallOptions<'_>,
    ) -> Result<R, Error>
    where
        C: Encode<A> + Decode<R>,
    {
        let payload = C::encode(args)?;
        let target = (operation.contract(), operation.name());
        let answer =
            self.link.call(target, options.provider, &payload, self.options(options.timeout)).await?;
        C::decode(answer)
            .map_err(|error| Error::handler("invalid-answer", format_args!("`{operation}`: {error}")))
    }

    /// The same context, with at most this much time for each event, each job, and each call without a timeout of its
    /// own. Calls, events and jobs to put count whole milliseconds: a fraction is cut off, and the least is 1.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use weir_sdk::{Context, Error};
    /// fn announce(ctx: &Context) -> Result<(), Error> {
    ///     let receipt = ctx.within(Duration::from_millis(20)).publish("greeter.up", &())?;
    ///     println!("{} heard it, {} had no room in time", receipt.delivered, receipt.refused);
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn within(&self, timeout: Duration) -> Self {
        Self { link: self.link.clone(), origin: self.origin.clone(), timeout: Some(timeout) }
    }

    /// Publishes an event to all subscribers of a topic: a [`Topic`](crate::Topic), or text, with the value
    /// as JSON.
    ///
    /// This waits for room where the operator's policy for a full subscription is `block`: for the operator's
    /// default time or that of [`within`](Self::within), and at most for the time left for the request in
    /// hand. Nothing else of this extension runs meanwhile. The receipt counts the subscriptions without
    /// room.
    ///
    /// # Errors
    /// `PermissionDenied` if `publishes` does not cover the topic, `TooLarge`, `Invalid`, or `WouldDeadlock`
    /// if it would wait for a subscriber that waits for this extension.
    pub fn publish<T, P>(&self, topic: P, value: &T) -> Result<Receipt, Error>
    where
        T: ?Sized,
        P: AsTopic<T, Codec: Encode<T>>,
    {
        self.publish_bytes(topic.as_topic(), &P::Codec::encode(value)?)
    }

    /// Publishes an event with these bytes as its payload.
    ///
    /// # Errors
    /// The errors of [`publish`](Self::publish).
    pub fn publish_bytes(&self, topic: &str, payload: &[u8]) -> Result<Receipt, Error> {
        self.link.host.publish(None, topic, payload, self.options(None))
    }

    /// Publishes an event to one extension alone. That extension must have subscribed to the topic.
    ///
    /// # Errors
    /// The errors of [`publish`](Self::publish); `NoProvider` if the extension does not run or has not subscribed;
    /// `Overloaded`, or `Timeout` after waiting, if it has no room.
    pub fn publish_to<T, P>(&self, extension: &str, topic: P, value: &T) -> Result<Receipt, Error>
    where
        T: ?Sized,
        P: AsTopic<T, Codec: Encode<T>>,
    {
        let payload = P::Codec::encode(value)?;
        self.link.host.publish(Some(extension), topic.as_topic(), &payload, self.options(None))
    }

    /// Subscribes to a pattern that is known only at run time, such as one from the configuration. Its events
    /// reach the handler of [`on_any_event`](crate::Extension::on_any_event). Without that handler they are dropped.
    ///
    /// # Errors
    /// `PermissionDenied` if `subscribes` does not cover the pattern, `Invalid`, or `LimitExceeded`.
    pub fn subscribe(&self, pattern: &str) -> Result<(), Error> {
        self.link.subscribe(pattern).map(drop)
    }

    /// Ends the subscription to exactly this pattern. Its events that still wait in the inbox are dropped.
    ///
    /// # Errors
    /// `Invalid` if there is no such subscription.
    pub fn unsubscribe(&self, pattern: &str) -> Result<(), Error> {
        self.link.unsubscribe(pattern)
    }

    /// The sender of the request, event or job in hand: an extension's id, the name of a program outside Main as in
    /// `app:player`, or `main`. Main vouches for it. `None` in hooks and background tasks.
    #[must_use]
    pub fn sender(&self) -> Option<String> {
        let peer = match &self.origin {
            Origin::Request(peer, _) | Origin::Job(peer, _) | Origin::Sent(peer) => *peer,
            Origin::Itself => return None,
        };
        self.link.host.name_of(peer)
    }

    /// The time left to answer the request in hand. `None` if there is no request, or it is answered already.
    ///
    /// When that time has passed, the caller has been told `timeout`. The handler is then dropped where it waits.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        let request = self.origin.in_hand()?;
        let now = self.link.host.now();
        request.received.set(request.received.get().or(Some(now)));
        Some(request.deadline()?.saturating_sub(now))
    }

    /// Runs a future beside the handlers. Awaiting the [`Task`] gives its result; dropping the task cancels it.
    ///
    /// The task runs when the handler waits or ends. On stop it goes on for as long as handlers and `on_stop`
    /// run. When the last handler has ended, calls of the task that are under way fail with `PeerGone`. A task that
    /// does not wait costs no call to Main.
    ///
    /// A clone of the context lets the task call and publish. As long as the request in hand is not answered,
    /// its deadline also holds for what the task does with that clone.
    ///
    /// ```
    /// # use weir_sdk::{Context, Contract, Error, Operation};
    /// # const UPTIME: Operation<(), f64> = Contract::new("device.info@1").operation("uptime");
    /// async fn twice(_: &(), ctx: &Context, _: ()) -> Result<f64, Error> {
    ///     let own = ctx.clone();
    ///     let first = ctx.spawn(async move { own.call(UPTIME, &()).await });
    ///     let second = ctx.call(UPTIME, &()).await?;
    ///     Ok(first.await? + second)
    /// }
    /// ```
    pub fn spawn<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> Task<T> {
        Task::spawn(Box::pin(future), &self.link.spawned)
    }

    /// Waits. Meanwhile this extension serves other requests.
    pub async fn sleep(&self, duration: Duration) {
        self.link.host.sleep(duration).await;
    }

    /// A value of this extension's `config` table in the operator's file. `None` if the table lacks the key.
    ///
    /// # Errors
    /// The code `config` if Main cannot read it.
    pub fn config(&self, key: &str) -> Result<Option<String>, Error> {
        self.link.host.config(key)
    }

    /// The id under which the operator runs this extension.
    #[must_use]
    pub fn own_name(&self) -> String {
        self.link.host.own_name()
    }

    /// Declares that this extension serves again after [`interrupted`](Self::interrupted). The SDK itself declares the
    /// extension ready when `on_start` is over.
    pub fn ready(&self) {
        self.link.host.ready();
    }

    /// Declares that this extension cannot serve for now, and why. Requests to it fail with `not-ready` until
    /// [`ready`](Self::ready).
    pub fn interrupted(&self, reason: &str) {
        self.link.host.interrupted(reason);
    }

    /// The options of an operation for Main: its timeout, and the request or job in hand. Main caps the timeout by the
    /// time left for a request.
    fn options(&self, timeout: Option<Duration>) -> Options {
        let parent = match &self.origin {
            Origin::Request(_, request) => request.upgrade().map(|request| request.id),
            Origin::Job(_, job) => job.upgrade().map(|id| *id),
            Origin::Sent(_) | Origin::Itself => None,
        };
        let timeout_ms = timeout.or(self.timeout).map(|timeout| {
            // Main's least timeout is 1 ms, so a shorter one is raised to that.
            u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX).max(1)
        });
        Options { timeout_ms, parent }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("origin", &self.origin).finish_non_exhaustive()
    }
}
