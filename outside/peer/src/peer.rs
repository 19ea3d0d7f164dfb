//! A session as the program uses it, its calls, and why it ended.

use std::{fmt, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::sync::oneshot;
use weir_names::{
    Error, TraceContext, harmless,
    rules::{is_contract_name, is_operation_name, is_queue_name, is_topic, is_topic_pattern},
};

use crate::{
    ConnectError, Options, Queue, Receipt, Requests, Subscription,
    connect::connect,
    frame::FromPeer,
    session::{Handle, Mailbox, Pending, Session},
};

/// A session with Main, under the name of one peer. Clones share it.
///
/// The session ends when Main ends it, when the connection breaks, by [`leave`](Self::leave), and when all clones,
/// subscriptions, queues, jobs and requests are dropped. It does not begin again by itself.
#[derive(Clone)]
pub struct Peer {
    handle: Handle,
}

impl Peer {
    /// Connects to the socket that `main.peer-socket` names, and waits up to 10 s for the welcome.
    ///
    /// # Errors
    /// A socket that cannot be used, a refusal, or another side that does not speak the protocol.
    ///
    /// # Panics
    /// Outside a tokio runtime, or in one without I/O and time.
    pub async fn connect(path: impl AsRef<Path>, options: Options) -> Result<Self, ConnectError> {
        connect(path.as_ref(), &options).await
    }

    pub(crate) fn new(session: Arc<Session>) -> Self {
        Self { handle: Handle::new(session) }
    }

    /// The session, without a share in it that would keep it from its end.
    pub(crate) fn session_state(&self) -> Arc<Session> {
        self.handle.session()
    }

    /// Calls an operation of the owner of a contract, and waits for the answer as long as the operator's
    /// `request-timeout`. If the future is dropped, the call is given up.
    ///
    /// # Errors
    /// Those of [`Call::send`].
    pub async fn call(
        &self,
        contract: &str,
        operation: &str,
        payload: impl Into<Bytes>,
    ) -> Result<Bytes, Error> {
        self.operation(contract, operation).send(payload).await
    }

    /// Calls an operation of the owner of a contract, and waits for the answer no longer than `timeout`. If the future
    /// is dropped, the call is given up.
    ///
    /// # Errors
    /// Those of [`Call::send`].
    pub async fn call_within(
        &self,
        timeout: Duration,
        contract: &str,
        operation: &str,
        payload: impl Into<Bytes>,
    ) -> Result<Bytes, Error> {
        self.operation(contract, operation).timeout(timeout).send(payload).await
    }

    /// A call with options: a named provider, a timeout.
    pub fn operation<'c>(&'c self, contract: &'c str, operation: &'c str) -> Call<'c> {
        Call { peer: self, contract, operation, provider: None, timeout: None }
    }

    /// A handle of the session by which all that is called, published or put is part of this span. The span is the
    /// program's own, or that of a [request](crate::Request::trace) or [job](crate::Job::trace) in hand. `None` means
    /// no span.
    ///
    /// Main records what is done for recorded messages in hand, and other spans as often as `main.trace-one-in` says. A
    /// Main that speaks version 1 of the protocol is not told.
    #[must_use]
    pub fn part_of(&self, span: Option<TraceContext>) -> Self {
        Self { handle: self.handle.part_of(span) }
    }

    /// Publishes an event to every subscriber of its topic, and waits for the receipt.
    ///
    /// # Errors
    /// A topic that is not granted or malformed, a payload that is too large, too much under way, or the end of the
    /// session.
    pub async fn publish(&self, topic: &str, payload: impl Into<Bytes>) -> Result<Receipt, Error> {
        self.publish_event(0, None, topic, payload.into()).await
    }

    /// Publishes an event to one extension or peer alone.
    ///
    /// # Errors
    /// Those of [`publish`](Self::publish), and [`Error::NoProvider`] if the receiver has not subscribed.
    pub async fn publish_to(
        &self,
        receiver: &str,
        topic: &str,
        payload: impl Into<Bytes>,
    ) -> Result<Receipt, Error> {
        check_receiver(receiver)?;
        self.publish_event(0, Some(receiver), topic, payload.into()).await
    }

    /// Publishes an event before which `lost` others were lost on their way to Main. Each
    /// subscriber sees them in `lost`, unless Main speaks a version of the protocol before 3.
    ///
    /// # Errors
    /// Those of [`publish`](Self::publish).
    pub async fn publish_after(
        &self,
        lost: u64,
        topic: &str,
        payload: impl Into<Bytes>,
    ) -> Result<Receipt, Error> {
        self.publish_event(lost, None, topic, payload.into()).await
    }

    async fn publish_event(
        &self,
        lost: u64,
        to: Option<&str>,
        topic: &str,
        payload: Bytes,
    ) -> Result<Receipt, Error> {
        check(is_topic(topic), topic, "topic")?;
        let size = payload.len();
        let frame = |id| FromPeer::Publish { id, timeout_ms: 0, to, topic, payload };
        let receipt = self.handle.ask_counted(lost, size, frame).await?;
        Receipt::read(&receipt).ok_or_else(|| wrong_payload(&self.handle, "PUBLISH"))
    }

    /// Publishes an event without waiting for its receipt. What becomes of it is not told.
    ///
    /// # Errors
    /// A malformed topic, a payload that is too large, or the end of the session.
    pub async fn announce(&self, topic: &str, payload: impl Into<Bytes>) -> Result<(), Error> {
        check(is_topic(topic), topic, "topic")?;
        let payload = payload.into();
        self.handle.check_size(payload.len())?;
        self.handle.outgoing.room().await?;
        self.handle.push_as_part(0, &FromPeer::Publish { id: 0, timeout_ms: 0, to: None, topic, payload });
        Ok(())
    }

    /// Subscribes to the topics that match a pattern. The last values of topics that Main retains come first.
    ///
    /// # Errors
    /// A pattern that is not granted, malformed or subscribed to already in this session; too many subscriptions; too
    /// much under way; or the end of the session.
    pub async fn subscribe(&self, pattern: &str) -> Result<Subscription, Error> {
        check(is_topic_pattern(pattern), pattern, "pattern of topics")?;
        self.handle.outgoing.room().await?;
        let (events, (sender, receiver)) = (Arc::new(Mailbox::new()), oneshot::channel());
        let id = self.handle.register(Pending::Subscribe(events.clone(), sender))?;
        self.handle.outgoing.push(&FromPeer::Subscribe { id, pattern });
        let number = receiver.await.unwrap_or(Err(Error::PeerGone))?;
        Ok(Subscription::new(self.handle.clone(), number, events))
    }

    /// A shared queue, to put jobs into and to take them from. Main checks the grants at each put and each take.
    ///
    /// # Errors
    /// A malformed name.
    pub fn queue(&self, name: &str) -> Result<Queue, Error> {
        check(is_queue_name(name), name, "name of a queue")?;
        Ok(Queue::new(self.handle.clone(), name))
    }

    /// Serves a contract from now on, with these operations: all that it has.
    ///
    /// # Errors
    /// A contract that is not granted, malformed or served already; too many operations; too much under way; or the end
    /// of the session.
    pub async fn serve(&self, contract: &str, operations: &[&str]) -> Result<Requests, Error> {
        check_contract(contract)?;
        operations.iter().try_for_each(|operation| check_operation(operation))?;
        let room: usize = operations.iter().map(|operation| operation.len() + 1).sum();
        if operations.len() > usize::from(u16::MAX) || room > crate::frame::ROOM_MIN {
            return Err(Error::Invalid("the contract has too many operations".to_owned()));
        }
        self.handle.outgoing.room().await?;
        let contract: Arc<str> = contract.into();
        let (requests, (sender, receiver)) = (Arc::new(Mailbox::new()), oneshot::channel());
        let id = self.handle.register(Pending::Serve(contract.clone(), requests.clone(), sender))?;
        let frame = FromPeer::Serve { id, contract: &contract, operations: operations.to_vec() };
        self.handle.outgoing.push(&frame);
        receiver.await.unwrap_or(Err(Error::PeerGone))?;
        Ok(Requests::new(self.handle.clone(), contract, requests))
    }

    /// Describes contracts that the session serves, once: an OpenRPC document as JSON, or a list of them, of at most
    /// 64 KiB. `weir describe`, `weir call` and apps then know their operations and types.
    ///
    /// # Errors
    /// A description that is malformed, too large, or of a contract that is not granted; a second one; too much under
    /// way; a Main that speaks version 1 of the protocol, which takes none; or the end of the session.
    pub async fn describe(&self, documents: impl Into<Bytes>) -> Result<(), Error> {
        if !self.handle.speaks_version_2() {
            return Err(Error::Invalid("this Main takes no descriptions".to_owned()));
        }
        let documents = documents.into();
        self.handle.ask(documents.len(), |id| FromPeer::Describe { id, documents }).await.map(drop)
    }

    /// Waits for the end of the session, and says why it ended.
    pub async fn closed(&self) -> Ended {
        self.handle.ended().await
    }

    /// Why the session ended; `None` while it goes on.
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
        self.handle.why_ended()
    }

    /// Ends the session, and waits until what was sent before is written, for at most a second. Says why it ended, if it
    /// had ended already.
    pub async fn leave(self) -> Ended {
        self.handle.finish(Ended::Left);
        self.handle.over().await
    }

    /// The version of the protocol that Main chose, 1 to 3. [`describe`](Self::describe) and
    /// [`part_of`](Self::part_of) need 2. [`publish_after`](Self::publish_after),
    /// [`Queue::put_until_done_after`] and [`Request::refuse`](crate::Request::refuse) say more with 3.
    #[must_use]
    pub fn version(&self) -> u16 {
        self.handle.limits.version
    }

    /// Main's number of the session, as its log lines show it.
    #[must_use]
    pub fn session(&self) -> u64 {
        self.handle.limits.session
    }

    /// Bytes of the largest payload, either way.
    #[must_use]
    pub fn message_size(&self) -> u32 {
        self.handle.limits.message_size
    }

    /// Calls, puts and the like that may be under way at once.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.handle.limits.in_flight
    }

    /// Subscriptions that the session may have.
    #[must_use]
    pub fn subscriptions(&self) -> u32 {
        self.handle.limits.subscriptions
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("session", &self.session()).finish_non_exhaustive()
    }
}

/// A call of an operation, before it is sent: [`Peer::operation`].
#[derive(Clone, Copy, Debug)]
#[must_use = "`send` sends it"]
pub struct Call<'c> {
    peer: &'c Peer,
    contract: &'c str,
    operation: &'c str,
    provider: Option<&'c str>,
    timeout: Option<Duration>,
}

impl<'c> Call<'c> {
    /// Calls this extension, this peer or `main`, in place of the owner of the contract.
    pub fn provider(mut self, provider: &'c str) -> Self {
        self.provider = Some(provider);
        self
    }

    /// The time for the answer, in place of the operator's `request-timeout`. Less than 1 ms counts as 1 ms, and more
    /// than 49 days as 49 days.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sends the call, and waits for the answer. If the future is dropped, the call is given up.
    ///
    /// # Errors
    /// Every case of [`Error`]. After [`Error::Timeout`] and [`Error::PeerGone`] the request may have been carried out.
    pub async fn send(self, payload: impl Into<Bytes>) -> Result<Bytes, Error> {
        let Self { peer, contract, operation, provider, timeout } = self;
        check_contract(contract)?;
        check_operation(operation)?;
        provider.map_or(Ok(()), check_receiver)?;
        let (timeout_ms, payload) = (milliseconds(timeout), payload.into());
        let size = payload.len();
        peer.handle
            .ask(size, |id| FromPeer::Call { id, timeout_ms, contract, operation, provider, payload })
            .await
    }
}

/// Why a session ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Ended {
    /// Main closed it.
    #[error("Main closed the session: `{code}`: {text}")]
    Closed {
        /// A code of [`frame::close`](crate::frame::close).
        code: String,
        /// The reason, for people.
        text: String,
    },
    /// Main broke the protocol, and the client left.
    #[error("Main broke the protocol: {0}")]
    Protocol(String),
    /// The connection ended without a word of Main's, or the runtime of the session ended.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// This program left: by [`Peer::leave`](crate::Peer::leave), or because it dropped everything of the session.
    #[error("the program left")]
    Left,
}

impl Ended {
    pub(crate) fn wrong_payload(frame: &str) -> Self {
        Self::Protocol(format!("the answer to {frame} has a payload of another size"))
    }
}

/// Ends the session, because Main's answer to such a frame has the wrong size. Returns the error for the caller.
pub(crate) fn wrong_payload(handle: &Handle, frame: &str) -> Error {
    handle.finish(Ended::wrong_payload(frame));
    Error::PeerGone
}

/// A timeout as a frame carries it. 0 stands for the default.
pub(crate) fn milliseconds(timeout: Option<Duration>) -> u32 {
    timeout.map_or(0, |timeout| u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX).max(1))
}

fn check_contract(contract: &str) -> Result<(), Error> {
    check(is_contract_name(contract), contract, "contract")
}

fn check_operation(operation: &str) -> Result<(), Error> {
    check(is_operation_name(operation), operation, "operation")
}

/// Checks that the name of a receiver fits a frame. Whether there is such a receiver, only Main knows.
fn check_receiver(name: &str) -> Result<(), Error> {
    check((1..=255).contains(&name.len()), name, "name of an extension or a peer")
}

fn check(is_good: bool, name: &str, kind: &str) -> Result<(), Error> {
    if is_good { Ok(()) } else { Err(Error::Invalid(format!("`{}` is no {kind}", harmless(name, 100)))) }
}
