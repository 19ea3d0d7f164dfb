//! The device's settings, each with a fixed type.
//!
//! Written by `weir generate rust --for sidecar` from `settings@1`: changes here do not last.

#![allow(dead_code, reason = "a contract has more than one program uses")]

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_peer::Error;

use self::runtime::Connection;

/// The contract.
pub const CONTRACT: &str = "settings@1";

/// The device's settings, each with a fixed type.
#[derive(Clone, Debug)]
pub struct Client {
    connection: Connection,
}

impl Client {
    /// A client on a connection. Clones share it.
    #[must_use]
    pub fn new(connection: &Connection) -> Self {
        Self { connection: connection.clone() }
    }

    /// The same client, with at most this much time for each call and put.
    #[must_use]
    pub fn within(&self, timeout: Duration) -> Self {
        Self { connection: self.connection.within(timeout) }
    }

    /// The same client, which calls this extension or peer in place of the owner of the contract.
    #[must_use]
    pub fn of(&self, provider: impl Into<String>) -> Self {
        Self { connection: self.connection.of(provider) }
    }

    /// A setting.
    ///
    /// # Errors
    /// Those of [`Error`]. Codes of the contract's own:
    /// - `not-found`: No setting has this key.
    pub async fn get(&self, arguments: &Key) -> Result<Setting, Error> {
        self.connection.call(CONTRACT, "get", arguments).await
    }

    /// Gives a setting a value. Publishes the change if the value is new.
    ///
    /// # Errors
    /// Those of [`Error`]. Codes of the contract's own:
    /// - `invalid-argument`: A key is 1 to 128 letters, digits, `-` and `_`; a text has at most 4096 bytes.
    /// - `wrong-type`: The setting has a value of another type.
    /// - `full`: There are 1024 settings, their keys and texts have 262,144 bytes, or storage is full.
    /// - `io`: Storage failed to write. The change is not visible, but may be there after a restart.
    pub async fn set(&self, arguments: &Entry) -> Result<Previous, Error> {
        self.connection.call(CONTRACT, "set", arguments).await
    }

    /// The settings with a prefix of their keys.
    ///
    /// # Errors
    /// Those of [`Error`].
    pub async fn list(&self, arguments: &Prefix) -> Result<Settings, Error> {
        self.connection.call(CONTRACT, "list", arguments).await
    }

    /// Changes, each published under `settings.changed.<key>`: `CHANGED.at(key)`.
    ///
    /// # Errors
    /// If the topic is not granted, or subscribed to already.
    pub async fn subscribe_changed(&self) -> Result<runtime::Events<Changed>, Error> {
        self.connection.subscribe("settings.changed.>").await
    }

    /// As `subscribe_changed`, for topics that `settings.changed.>` covers: one, or a pattern.
    ///
    /// # Errors
    /// If the topics are not granted, or subscribed to already.
    pub async fn subscribe_changed_at(&self, topics: &str) -> Result<runtime::Events<Changed>, Error> {
        self.connection.subscribe(topics).await
    }
}

/// Arguments of `get`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// The key.
    pub key: String,
}

/// Arguments of `set`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// A boolean, a number or a string.
    pub value: serde_json::Value,
}

/// Arguments of `list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefix {
    /// The prefix. The default fits every key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

/// A setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Its value.
    pub value: serde_json::Value,
    /// Its type.
    pub r#type: Type,
}

/// The types of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Type {
    /// True or false.
    Bool,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// A text.
    String,
}

/// A setting before its change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Previous {
    /// Its value. None, in JSON `null`, if it had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<serde_json::Value>,
}

/// Some settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// By key.
    pub settings: BTreeMap<String, Setting>,
}

/// The event of a setting's new value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Changed {
    /// The key.
    pub key: String,
    /// The new value.
    pub value: serde_json::Value,
    /// The old value. None, in JSON `null`, if it had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<serde_json::Value>,
}

/// The connection, events and jobs.
pub mod runtime {
    use std::{
        future::{Ready, ready},
        time::Duration,
    };

    use serde::{Serialize, de::DeserializeOwned};
    use weir_peer::{Error, Peer};

    /// A session with Main. It ends with the session: then everything fails, and the program makes a new one.
    #[derive(Clone, Debug)]
    pub struct Connection {
        peer: Peer,
        timeout: Option<Duration>,
        provider: Option<String>,
    }

    impl Connection {
        /// The connection of a session.
        #[must_use]
        pub fn new(peer: Peer) -> Self {
            Self { peer, timeout: None, provider: None }
        }

        fn peer(&self) -> Ready<Result<Peer, Error>> {
            ready(Ok(self.peer.clone()))
        }

        async fn events<T>(
            &self,
            pattern: &str,
            read: fn(&[u8]) -> Result<T, Error>,
        ) -> Result<Events<T>, Error> {
            Ok(Events { subscription: self.peer.subscribe(pattern).await?, read })
        }
    }

    /// Events of a subscription. Dropped, it ends the subscription.
    #[derive(Debug)]
    #[must_use = "dropped, it ends the subscription"]
    pub struct Events<T> {
        subscription: weir_peer::Subscription,
        read: fn(&[u8]) -> Result<T, Error>,
    }

    impl<T> Events<T> {
        /// The next event. None when the session has ended, or the operator has taken the grant back. A future that is
        /// dropped loses no event.
        ///
        /// # Errors
        /// An event that does not fit the contract. Further ones follow.
        pub async fn next(&mut self) -> Option<Result<Event<T>, Error>> {
            let event = self.subscription.next().await?;
            Some(Event::read(event, self.read))
        }
    }

    impl Connection {
        pub(super) fn within(&self, timeout: Duration) -> Self {
            Self { timeout: Some(timeout), ..self.clone() }
        }

        pub(super) fn of(&self, provider: impl Into<String>) -> Self {
            Self { provider: Some(provider.into()), ..self.clone() }
        }

        pub(super) async fn call<A: Serialize + ?Sized, R: DeserializeOwned>(
            &self,
            contract: &str,
            operation: &str,
            arguments: &A,
        ) -> Result<R, Error> {
            let answer = self.call_bytes(contract, operation, encode(arguments)?).await?;
            decode(&answer, "answer")
        }

        pub(super) async fn call_bytes(
            &self,
            contract: &str,
            operation: &str,
            payload: Vec<u8>,
        ) -> Result<Vec<u8>, Error> {
            let peer = self.peer().await?;
            let mut call = peer.operation(contract, operation);
            if let Some(provider) = &self.provider {
                call = call.provider(provider);
            }
            if let Some(timeout) = self.timeout {
                call = call.timeout(timeout);
            }
            call.send(payload).await.map(Into::into)
        }

        pub(super) async fn subscribe<T: DeserializeOwned>(&self, pattern: &str) -> Result<Events<T>, Error> {
            self.events(pattern, |payload| decode(payload, "event")).await
        }

        pub(super) async fn subscribe_bytes(&self, pattern: &str) -> Result<Events<Vec<u8>>, Error> {
            self.events(pattern, |payload| Ok(payload.to_vec())).await
        }

        pub(super) async fn put<T: Serialize + ?Sized>(&self, queue: &str, job: &T) -> Result<u64, Error> {
            self.put_bytes(queue, &encode(job)?).await
        }

        pub(super) async fn put_bytes(&self, queue: &str, job: &[u8]) -> Result<u64, Error> {
            let queue = self.peer().await?.queue(queue)?;
            match self.timeout {
                Some(timeout) => queue.put_within(timeout, job.to_vec()).await,
                None => queue.put(job.to_vec()).await,
            }
        }

        pub(super) async fn take<T: DeserializeOwned>(&self, queue: &str) -> Result<Job<T>, Error> {
            let job = self.peer().await?.queue(queue)?.take().await?;
            Ok(Job { payload: decode(job.payload(), "job")?, job })
        }

        pub(super) async fn take_bytes(&self, queue: &str) -> Result<Job<Vec<u8>>, Error> {
            let job = self.peer().await?.queue(queue)?.take().await?;
            Ok(Job { payload: job.payload().to_vec(), job })
        }
    }

    /// No arguments.
    #[derive(Debug, Serialize)]
    pub struct Nothing {}

    /// An event.
    #[derive(Clone, Debug)]
    pub struct Event<T> {
        /// The topic.
        pub topic: String,
        /// The publisher. It cannot be forged.
        pub sender: String,
        /// Rises with each event of the topic. 0 for an event published to this program alone.
        pub sequence: u64,
        /// Events of this subscription that were lost just before this one.
        pub lost: u64,
        /// Whether it is the last value of a topic that Main retains, from before the subscription.
        pub retained: bool,
        /// The published value.
        pub payload: T,
    }

    impl<T> Event<T> {
        fn read(event: weir_peer::Event, read: fn(&[u8]) -> Result<T, Error>) -> Result<Self, Error> {
            Ok(Self {
                payload: read(&event.payload)?,
                topic: event.topic,
                sender: event.sender,
                sequence: event.sequence,
                lost: event.lost,
                retained: event.retained,
            })
        }
    }

    /// A job in hand. Dropped before [`done`](Self::done), it goes back to its queue.
    #[derive(Debug)]
    #[must_use = "dropped, it goes back to the queue"]
    pub struct Job<T> {
        /// The value that was put.
        pub payload: T,
        job: weir_peer::Job,
    }

    impl<T> Job<T> {
        /// Says that the job is done.
        pub fn done(self) {
            self.job.done();
        }

        /// Main's number, sender and deliveries of the job.
        pub fn envelope(&self) -> &weir_peer::Job {
            &self.job
        }
    }

    fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Error> {
        serde_json::to_vec(value).map_err(|error| Error::handler("json", error))
    }

    /// The error has the code `invalid-answer`, `invalid-event` or `invalid-job`: it does not fit the contract.
    fn decode<T: DeserializeOwned>(payload: &[u8], what: &str) -> Result<T, Error> {
        let read = |text| serde_json::from_slice(text);
        match payload {
            // Nothing stands for null, or for an object without fields.
            b"" | b"null" => read(b"null").or_else(|_| read(b"{}")),
            payload => read(payload),
        }
        .map_err(|error| Error::handler(format!("invalid-{what}"), error))
    }
}
