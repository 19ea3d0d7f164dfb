//! Topics, as constants that publishers and subscribers share, the events that handlers get, and the receipts for
//! publishers.

use std::{fmt, marker::PhantomData};

use weir_names::{
    codec::{Bytes, Json},
    rules,
};

use crate::host::WitReceipt;

/// A topic, or a pattern of topics, with events of type `T` in the encoding `C`.
///
/// ```
/// use weir_sdk::{Context, Error, Event, Extension, Topic};
///
/// const VOLUME: Topic<u8> = Topic::new("audio.volume");
/// const LEVELS: Topic<f32> = Topic::new("audio.level.*");
///
/// weir_sdk::manifest! {
///     id: "mixer",
///     publishes: &[LEVELS.pattern()],
///     subscribes: &[VOLUME.pattern()],
/// }
///
/// async fn volume(_: &(), ctx: &Context, event: Event<u8>) -> Result<(), Error> {
///     ctx.publish(LEVELS.at("left"), &(f32::from(event.payload) / 100.0))?;
///     Ok(())
/// }
///
/// # fn main() {
/// let main = weir_sdk::testing::Harness::new(Extension::new(MANIFEST, ()).on_event(VOLUME, volume));
/// main.publish(VOLUME, &50);
/// assert_eq!(main.published()[0].topic, "audio.level.left");
/// # }
/// ```
pub struct Topic<T, C = Json, N = &'static str> {
    name: N,
    types: PhantomData<fn(C) -> T>,
}

/// A topic or pattern: a [`Topic`], which has a type of events, or text, whose events are JSON.
pub trait AsTopic<T: ?Sized> {
    /// The encoding of the events.
    type Codec;

    /// The topic, or the pattern.
    fn as_topic(&self) -> &str;
}

impl<T> Topic<T> {
    /// A topic with events in JSON: dotted segments of letters, digits, `-` and `_`, at most 256 bytes. In a
    /// pattern the segment `*` stands for any one segment, and `>`, at the end, for one or more.
    ///
    /// # Panics
    /// If the name is not well formed. In a `const`, that is a compile error.
    #[must_use]
    pub const fn new(pattern: &'static str) -> Self {
        Self::of(pattern)
    }
}

impl Topic<Vec<u8>, Bytes> {
    /// A topic with bytes as events.
    ///
    /// # Panics
    /// If the name is not well formed. In a `const`, that is a compile error.
    #[must_use]
    pub const fn bytes(pattern: &'static str) -> Self {
        Self::of(pattern)
    }
}

impl<T, C> Topic<T, C> {
    const fn of(pattern: &'static str) -> Self {
        assert!(
            rules::is_topic_pattern(pattern),
            "a topic is dotted segments of letters, digits, `-` and `_`; `*` stands for one, `>` for the rest"
        );
        Self { name: pattern, types: PhantomData }
    }

    /// The name, as the manifest lists it.
    #[must_use]
    pub const fn pattern(&self) -> &'static str {
        self.name
    }

    /// The topic with `segment` in place of the pattern's first wildcard.
    #[must_use]
    pub fn at(&self, segment: &str) -> Topic<T, C, String> {
        Topic { name: self.name.replacen(['*', '>'], segment, 1), types: PhantomData }
    }
}

impl<T, C, N: AsRef<str>> AsTopic<T> for Topic<T, C, N> {
    type Codec = C;

    fn as_topic(&self) -> &str {
        self.name.as_ref()
    }
}

impl<T: ?Sized> AsTopic<T> for str {
    type Codec = Json;

    fn as_topic(&self) -> &str {
        self
    }
}

impl<T: ?Sized> AsTopic<T> for String {
    type Codec = Json;

    fn as_topic(&self) -> &str {
        self
    }
}

impl<T: ?Sized, P: AsTopic<T> + ?Sized> AsTopic<T> for &P {
    type Codec = P::Codec;

    fn as_topic(&self) -> &str {
        P::as_topic(self)
    }
}

impl<T, C, N: Clone> Clone for Topic<T, C, N> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), types: PhantomData }
    }
}

impl<T, C, N: Copy> Copy for Topic<T, C, N> {}

impl<T, C, N: AsRef<str>> fmt::Debug for Topic<T, C, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Topic({self})")
    }
}

impl<T, C, N: AsRef<str>> fmt::Display for Topic<T, C, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name.as_ref())
    }
}

/// An event, with the envelope that Main stamped on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<T> {
    /// The topic that the event was published under.
    pub topic: String,
    /// The number of the event, which rises with each event of the topic. 0 if it was published to this extension
    /// alone.
    pub sequence: u64,
    /// Events of this subscription that were lost just before this one.
    pub lost: u64,
    /// Whether the event was published before this instance subscribed, as the last one of a topic that Main retains.
    pub retained: bool,
    /// The published value.
    pub payload: T,
}

/// Counts of the subscriptions that an event reached or missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Subscriptions that have the event in their inbox.
    pub delivered: u32,
    /// Events lost because an inbox was full: this one, or older ones in its place.
    pub shed: u32,
    /// Full subscriptions that refused it, or for which the publisher waited in vain.
    pub refused: u32,
}

impl From<WitReceipt> for Receipt {
    fn from(WitReceipt { delivered, shed, refused }: WitReceipt) -> Self {
        Self { delivered, shed, refused }
    }
}
