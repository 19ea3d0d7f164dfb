//! One connection to NATS, from its beginning to its end.
//!
//! A connection that is lost is not used again: what waited in it is dropped with it, so no call is carried out long after its
//! caller has gone. The next connection subscribes anew.

mod connect;

use std::{collections::HashMap, fmt, sync::Arc};

use async_nats::{Client, HeaderMap, Message, StatusCode, Subject, Subscriber, client::PublishErrorKind};
use bytes::Bytes;
use futures_util::StreamExt;
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

pub(crate) use self::connect::keep;
use crate::subject::Subjects;

/// One connection to NATS. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Link(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client: Client,
    /// Subjects of answers begin with this.
    inbox: String,
    /// Requests that wait for an answer, by number. One that is dropped hears that the connection has ended.
    waiting: Mutex<HashMap<u128, Expected>>,
    /// The first thing that the server has refused, apart from requests.
    refused: Mutex<Option<String>>,
    has_ended: watch::Sender<bool>,
}

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoAnswer {
    /// Nobody has subscribed to the subject.
    #[error("nobody answers")]
    NoResponders,
    /// The connection ended. The request may have been carried out.
    #[error("the connection to NATS ended")]
    Ended,
    /// The server does not let this node publish on the subject.
    #[error("the permissions of this node at the server of NATS do not allow it")]
    Refused,
    /// The server takes no message of that size.
    #[error("a message of {bytes} bytes is over the server's limit of {allowed}")]
    TooLarge {
        /// Bytes of the payload.
        bytes: u64,
        /// Bytes that the server takes, headers included.
        allowed: u64,
    },
}

impl Link {
    /// Makes a link of a connection, and subscribes to the answers to its requests.
    async fn new(client: Client, subjects: &Subjects) -> anyhow::Result<(Self, Subscriber)> {
        let inbox = format!("{}.{:x}.", subjects.inbox(), rand::random::<u64>());
        let answers = client.subscribe(format!("{inbox}*")).await?;
        let link = Self(Arc::new(Inner {
            client,
            inbox,
            waiting: Mutex::default(),
            refused: Mutex::default(),
            has_ended: watch::Sender::new(false),
        }));
        Ok((link, answers))
    }

    /// Hands answers out until the connection ends.
    async fn hand_out(&self, mut answers: Subscriber) {
        while let Some(answer) = answers.next().await {
            let number = answer.subject.strip_prefix(&*self.0.inbox);
            let Some(number) = number.and_then(|number| u128::from_str_radix(number, 16).ok()) else {
                continue;
            };
            let expected = {
                let mut waiting = self.0.waiting.lock();
                let is_none = answer.status == Some(StatusCode::NO_RESPONDERS);
                // Other answers come late, from somebody else, or to no request at all.
                let is_expected =
                    waiting.get(&number).is_some_and(|expected| is_none || (expected.accepts)(&answer));
                if is_expected { waiting.remove(&number) } else { None }
            };
            if let Some(expected) = expected {
                drop(expected.sender.send(match answer.status {
                    Some(StatusCode::NO_RESPONDERS) => Err(NoAnswer::NoResponders),
                    _ => Ok(answer),
                }));
            }
        }
    }

    /// Ends the connection for all that use it.
    fn end(&self) {
        self.0.has_ended.send_replace(true);
        self.0.waiting.lock().clear();
    }

    /// The client of NATS.
    pub(crate) fn client(&self) -> &Client {
        &self.0.client
    }

    /// Waits for the end of the connection.
    pub(crate) async fn ended(&self) {
        // The wait cannot fail: the sender lives as long as the link.
        drop(self.0.has_ended.subscribe().wait_for(|has_ended| *has_ended).await);
    }

    /// Whether there is a link that has not ended. A link that has ended stays in place for a moment.
    pub(crate) fn is_there(link: &Option<Self>) -> bool {
        link.as_ref().is_some_and(|link| !link.has_ended())
    }

    /// Whether the connection has ended.
    pub(crate) fn has_ended(&self) -> bool {
        *self.0.has_ended.borrow()
    }

    /// Sends a request and waits for an answer that is accepted. Other answers come from somebody else, such as a
    /// stream that records the subject. There is no time limit: the caller ends the wait by dropping it.
    pub(crate) async fn request(
        &self,
        subject: String,
        headers: HeaderMap,
        payload: Bytes,
        accepts: impl Fn(&Message) -> bool + Send + 'static,
    ) -> Result<Message, NoAnswer> {
        self.request_told(subject, headers, payload, accepts, &mut None).await
    }

    /// Does what [`request`](Self::request) does. `sent` gets the subject of the answer, for giving the request up.
    pub(crate) async fn request_told(
        &self,
        subject: String,
        headers: HeaderMap,
        payload: Bytes,
        accepts: impl Fn(&Message) -> bool + Send + 'static,
        sent: &mut Option<String>,
    ) -> Result<Message, NoAnswer> {
        let inner = &*self.0;
        let subject = Subject::from(subject);
        let (place, receiver) = self.wait(Some(subject.clone()), accepts);
        if self.has_ended() {
            return Err(NoAnswer::Ended);
        }
        let reply = place.subject();
        *sent = Some(reply.clone());
        let bytes = payload.len() as u64;
        let published = inner.client.publish_with_reply_and_headers(subject, reply, headers, payload).await;
        published.map_err(|error| match error.kind() {
            PublishErrorKind::MaxPayloadExceeded => {
                NoAnswer::TooLarge { bytes, allowed: inner.client.max_payload() as u64 }
            }
            PublishErrorKind::InvalidSubject | PublishErrorKind::Send => NoAnswer::Ended,
        })?;
        receiver.await.map_err(|_ended| NoAnswer::Ended)?
    }

    /// Waits until the server has read all that was sent before: it sends this link a message of its own.
    pub(crate) async fn settle(&self) -> Result<(), NoAnswer> {
        let (place, receiver) = self.wait(None, |_| true);
        let published = self.client().publish(place.subject(), Bytes::new()).await;
        published.map_err(|_ended| NoAnswer::Ended)?;
        receiver.await.map_err(|_ended| NoAnswer::Ended)?.map(drop)
    }

    /// Ends a subscription at the server. What is on its way still comes, before [`settle`](Self::settle) returns.
    ///
    /// The client's own ways drop what comes after they have told the server. This one asks for an end after more messages
    /// than there can be. So the client goes on, and the server, which reads no number of that size, ends it at once.
    pub(crate) async fn leave(subscriber: &mut Subscriber) {
        // A failure to send means that the link has ended.
        drop(subscriber.unsubscribe_after(u64::MAX).await);
    }

    /// Acts on a refusal by the server: requests on that subject fail, and the first refusal of anything else is kept.
    fn refused(&self, error: String) {
        let publish = error.split_once("Publish to \"").and_then(|(_, rest)| rest.split_once('"'));
        let mut is_request = false;
        if let Some((subject, _)) = publish {
            for (_, expected) in self.0.waiting.lock().extract_if(|_, expected| *expected.subject == *subject)
            {
                is_request = true;
                drop(expected.sender.send(Err(NoAnswer::Refused)));
            }
        }
        if !is_request {
            self.0.refused.lock().get_or_insert(error);
        }
    }

    /// The first thing that the server has refused, apart from requests.
    pub(crate) fn first_refused(&self) -> Option<String> {
        self.0.refused.lock().clone()
    }

    /// Makes a place for the answer to a request on `subject`. Without one, the request goes to the place itself. The
    /// number of the place cannot be guessed, so nobody answers that was not asked.
    fn wait(
        &self,
        subject: Option<Subject>,
        accepts: impl Fn(&Message) -> bool + Send + 'static,
    ) -> (Waiting<'_>, oneshot::Receiver<Result<Message, NoAnswer>>) {
        let (sender, receiver) = oneshot::channel();
        let place = Waiting { link: self, number: rand::random() };
        let subject = subject.unwrap_or_else(|| place.subject().into());
        self.0.waiting.lock().insert(place.number, Expected { subject, sender, accepts: Box::new(accepts) });
        (place, receiver)
    }
}

/// An answer that is waited for.
struct Expected {
    /// Where the request was published.
    subject: Subject,
    sender: oneshot::Sender<Result<Message, NoAnswer>>,
    /// Whether a message is the answer that is waited for.
    accepts: Box<dyn Fn(&Message) -> bool + Send>,
}

impl fmt::Debug for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expected").finish_non_exhaustive()
    }
}

/// A place in the table, which is free again after the wait.
struct Waiting<'l> {
    link: &'l Link,
    number: u128,
}

impl Waiting<'_> {
    fn subject(&self) -> String {
        format!("{}{:x}", self.link.0.inbox, self.number)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.link.0.waiting.lock().remove(&self.number);
    }
}
