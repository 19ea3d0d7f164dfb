//! The keys for messages that extensions and peers share.

use weir_names::{ContractName, QueueName, RequestPolicy, TopicPattern};

use super::{CONTRACT, QUEUE, TOPIC, split};
use crate::{
    SubscribeGrant,
    check::{ChannelLocations, SubscribeLocations},
    policy,
    section::{Located, Section},
    subscribe::{BYTES, MESSAGES},
};

/// What an extension or a peer serves, publishes, subscribes to, puts and takes.
#[derive(Debug)]
pub(super) struct Channels {
    pub(super) fulfills: Vec<ContractName>,
    pub(super) publishes: Vec<TopicPattern>,
    pub(super) subscribes: Vec<SubscribeGrant>,
    pub(super) puts: Vec<QueueName>,
    pub(super) takes: Vec<QueueName>,
    pub(super) when_full: Option<RequestPolicy>,
}

pub(super) fn channels(section: &mut Section<'_, '_>) -> (Channels, ChannelLocations) {
    let (fulfills, fulfills_at) = split(section.texts("fulfills", CONTRACT, str::parse::<ContractName>));
    let (publishes, _) = split(section.texts("publishes", TOPIC, str::parse::<TopicPattern>));
    let subscribes = section.texts_and_tables(
        "subscribes",
        TOPIC,
        |text| text.parse().map(|grant| (grant, SubscribeLocations::default())),
        subscribe,
    );
    let (subscribes, subscribes_at) = subscribes.into_iter().unzip();
    let (puts, puts_at) = split(section.texts("puts", QUEUE, str::parse::<QueueName>));
    let (takes, takes_at) = split(section.texts("takes", QUEUE, str::parse::<QueueName>));
    let when_full = section.text("when-full", policy::OF_REQUESTS, policy::of_requests);

    let when_full = when_full.map(Located::into_value);
    let locations =
        ChannelLocations { fulfills: fulfills_at, subscribes: subscribes_at, puts: puts_at, takes: takes_at };
    (Channels { fulfills, publishes, subscribes, puts, takes, when_full }, locations)
}

/// `None` after reporting a missing topic.
fn subscribe(section: &mut Section<'_, '_>) -> Option<(SubscribeGrant, SubscribeLocations)> {
    section.require("topic", TOPIC);
    let topic = section.text("topic", TOPIC, str::parse::<TopicPattern>);
    let policy = section.text("policy", policy::OF_EVENTS, policy::of_events);
    let (messages, messages_at) =
        section.count("messages", MESSAGES).map(|at| (at.value, at.location)).unzip();
    let (bytes, bytes_at) = section.number("bytes", &BYTES).map(|at| (at.value, at.location)).unzip();

    let new = SubscribeGrant::from(topic?.value);
    let policy = policy.map_or(new.policy, Located::into_value);
    let locations = SubscribeLocations { messages: messages_at, bytes: bytes_at };
    Some((SubscribeGrant { policy, messages, bytes, ..new }, locations))
}
