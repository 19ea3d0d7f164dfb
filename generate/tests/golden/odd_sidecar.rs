//! Names and types that are hard to say.
//!
//! ``
//! panic!("*/ and \"\"\" and \u{202e}")
//! ``
//! indented()
//! >> import os
//!
//! Written from `odd.things@2` by `weir generate rust --for sidecar`: changes here do not last.

#![allow(dead_code, reason = "a contract has more than one program uses")]

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_peer::Error;

use self::runtime::{self, Connection};

/// The contract.
pub const CONTRACT: &str = "odd.things@2";

/// Names and types that are hard to say.
///
/// ``
/// panic!("*/ and \"\"\" and \u{202e}")
/// ``
/// indented()
/// >> import os
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

    /// Keywords.
    ///
    /// # Errors
    /// Those of [`Error`]. Codes of the contract's own:
    /// - `*/ "'`: The code
    /// is odd.
    /// - `plain`:
    pub async fn r#type(&self, arguments: &Self2) -> Result<Kind, Error> {
        self.connection.call(CONTRACT, "type", arguments).await
    }

    ///
    /// # Errors
    /// Those of [`Error`].
    pub async fn list(&self, argument: &Vec<Pair>) -> Result<Vec<Node>, Error> {
        self.connection.call(CONTRACT, "list", argument).await
    }

    ///
    /// # Errors
    /// Those of [`Error`].
    pub async fn str(&self, argument: &Option<String>) -> Result<BTreeMap<String, Kind>, Error> {
        self.connection.call(CONTRACT, "str", argument).await
    }

    ///
    /// # Errors
    /// Those of [`Error`].
    pub async fn constructor(&self, arguments: &ConstructorKind) -> Result<ConstructorResult, Error> {
        self.connection.call(CONTRACT, "constructor", arguments).await
    }

    ///
    /// # Errors
    /// Those of [`Error`].
    pub async fn _2nd_self(&self, bytes: impl Into<Vec<u8>>) -> Result<Vec<u8>, Error> {
        self.connection.call_bytes(CONTRACT, "2nd.Self", bytes.into()).await
    }

    /// Takes nothing, strictly.
    ///
    /// # Errors
    /// Those of [`Error`].
    pub async fn nothing(&self, arguments: &Nothing) -> Result<(), Error> {
        self.connection.call(CONTRACT, "nothing", arguments).await
    }

    ///
    /// # Errors
    /// Those of [`Error`].
    pub async fn never(&self) -> Result<Nobody, Error> {
        self.connection.call(CONTRACT, "never", &runtime::Nothing {}).await
    }

    /// Moves.
    ///
    /// # Errors
    /// If the topic is not granted, or subscribed to already.
    pub async fn subscribe_moved(&self) -> Result<runtime::Events<Shape2>, Error> {
        self.connection.subscribe("odd.things.*.moved.>").await
    }

    /// As `subscribe_moved`, for topics that `odd.things.*.moved.>` covers, by their name or a pattern.
    ///
    /// # Errors
    /// If the topics are not granted, or subscribed to already.
    pub async fn subscribe_moved_at(&self, topics: &str) -> Result<runtime::Events<Shape2>, Error> {
        self.connection.subscribe(topics).await
    }

    ///
    /// # Errors
    /// If the topic is not granted, or subscribed to already.
    pub async fn subscribe_pictures(&self) -> Result<runtime::Events<Vec<u8>>, Error> {
        self.connection.subscribe_bytes("pictures").await
    }

    ///
    /// # Errors
    /// If the topic is not granted, or subscribed to already.
    pub async fn subscribe_events(&self) -> Result<runtime::Events<Events>, Error> {
        self.connection.subscribe("odd.things.>").await
    }

    /// As `subscribe_events`, for topics that `odd.things.>` covers, by their name or a pattern.
    ///
    /// # Errors
    /// If the topics are not granted, or subscribed to already.
    pub async fn subscribe_events_at(&self, topics: &str) -> Result<runtime::Events<Events>, Error> {
        self.connection.subscribe(topics).await
    }

    /// Work.
    ///
    /// Puts a job into the queue, and gives Main's number of it.
    ///
    /// # Errors
    /// If the queue is not granted, not there or full.
    pub async fn put_jobs(&self, job: &Shape2) -> Result<u64, Error> {
        self.connection.put("jobs", job).await
    }

    /// Work.
    ///
    /// Takes a job, and waits for it without a limit.
    ///
    /// # Errors
    /// If the queue is not granted, or the session ends. A job that does not fit the contract goes back.
    pub async fn take_jobs(&self) -> Result<runtime::Job<Shape2>, Error> {
        self.connection.take("jobs").await
    }

    ///
    /// Puts a job into the queue, and gives Main's number of it.
    ///
    /// # Errors
    /// If the queue is not granted, not there or full.
    pub async fn put_raw_jobs(&self, job: &Vec<u8>) -> Result<u64, Error> {
        self.connection.put_bytes("raw-jobs", job).await
    }

    ///
    /// Takes a job, and waits for it without a limit.
    ///
    /// # Errors
    /// If the queue is not granted, or the session ends. A job that does not fit the contract goes back.
    pub async fn take_raw_jobs(&self) -> Result<runtime::Job<Vec<u8>>, Error> {
        self.connection.take_bytes("raw-jobs").await
    }
}

/// Arguments of `type`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Self2 {
    /// A keyword of Rust.
    pub r#type: Kind,
    /// A keyword of Python and JavaScript.
    pub class: Vec<String>,
    #[serde(rename = "self", skip_serializing_if = "Option::is_none")]
    pub self_: Option<String>,
    #[serde(rename = "größe", skip_serializing_if = "Option::is_none")]
    pub gr_e: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub _answer: Option<serde_json::Value>,
    #[serde(rename = "$base64", skip_serializing_if = "Option::is_none")]
    pub base64: Option<Tree>,
}

/// Arguments of `constructor`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConstructorKind {
    pub inner: ConstructorKindInner,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConstructorKindInner {
    pub deep: ConstructorKindInnerDeep,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConstructorKindInnerDeep {
    #[serde(rename = "x y", skip_serializing_if = "Option::is_none")]
    pub x_y: Option<f64>,
}

/// Arguments of `nothing`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// Words.
#[derive(Clone, Debug, Copy, Eq, Hash, PartialEq, Serialize, Deserialize)]
pub enum Kind {
    #[serde(rename = "self")]
    Self_,
    #[serde(rename = "Self")]
    Self_2,
    #[serde(rename = "1st")]
    _1st,
    #[serde(rename = "")]
    Unnamed,
    #[serde(rename = "a b")]
    AB,
    None,
    /// Not Latin.
    #[serde(rename = "größer")]
    GrEr,
    /// A value of a later version of the contract. It is not to be sent.
    #[serde(other)]
    Other,
}

/// A tree with its parts inside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<Box<Node>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<Box<Node>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<NodeParent>,
    pub children: Vec<Node>,
    pub value: Value,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeParent {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<Box<Node>>,
}

/// A list of such lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tree(pub Vec<Tree>);

pub type Pair = (f32, char);

/// Time.
pub type Seconds = u64;

/// By a field with its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum Shape2 {
    /// Round.
    #[serde(rename = "circle")]
    Circle {
        /// From the middle.
        radius: f64,
    },
    #[serde(rename = "group-of")]
    GroupOf {
        content: Vec<Shape2>,
        #[serde(skip_serializing_if = "Option::is_none")]
        r#for: Option<Seconds>,
    },
    #[serde(rename = "none")]
    None,
    /// A value of a later version of the contract. It is not to be sent.
    #[serde(other)]
    Other,
}

/// By its only field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Move {
    #[serde(rename = "stay")]
    Stay,
    #[serde(rename = "leave")]
    Leave,
    /// By so much.
    #[serde(rename = "by")]
    By(Pair),
    #[serde(rename = "to")]
    To {
        x: i32,
        y: i32,
    },
    #[serde(rename = "then")]
    Then(Box<Move>),
    #[serde(rename = "both")]
    Both(Box<Move>, bool),
}

/// By nothing but its JSON.
pub type Value = Option<ValueValue>;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ValueValue {
    Integer(i64),
    Number(f64),
    Auto(ValueValueAuto),
    Value7(i64),
    ValueTrue(bool),
    ValueList([Value; 3]),
    Move(Move),
    Object(ValueValueObject),
    BooleanList(Vec<Option<bool>>),
}

#[derive(Clone, Debug, Copy, Eq, Hash, PartialEq, Serialize, Deserialize)]
pub enum ValueValueAuto {
    #[serde(rename = "auto")]
    Auto,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValueValueObject {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub __odd: Option<String>,
    /// Has a space.
    #[serde(rename = "no name")]
    pub no_name: i128,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Nobody {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Empty {}

/// Any JSON.
pub type Anything = serde_json::Value;

pub type Maybe = Option<Empty>;

/// Has the name of something else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub r#const: EventConst,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promise: Option<Promise>,
}

#[derive(Clone, Debug, Copy, Eq, Hash, PartialEq, Serialize, Deserialize)]
pub enum EventConst {
    #[serde(rename = "only")]
    Only,
}

pub type Promise = BTreeMap<String, Anything>;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConstructorResult {
    pub made: bool,
}

#[derive(Clone, Debug, Copy, Eq, Hash, PartialEq, Serialize, Deserialize)]
pub enum Events {
    #[serde(rename = "on")]
    On,
    #[serde(rename = "off")]
    Off,
}

/// The connection, events and jobs.
pub mod runtime {
    use std::time::Duration;

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

        /// The session.
        ///
        /// # Errors
        /// None.
        pub async fn peer(&self) -> Result<Peer, Error> {
            Ok(self.peer.clone())
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

        pub(super) async fn call<A: Serialize, R: DeserializeOwned>(
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

        pub(super) async fn put<T: Serialize>(&self, queue: &str, job: &T) -> Result<u64, Error> {
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
        #[must_use]
        pub fn envelope(&self) -> &weir_peer::Job {
            &self.job
        }
    }

    fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, Error> {
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
