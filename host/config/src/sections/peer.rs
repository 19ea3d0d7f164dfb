//! The keys of a peer's table.

use std::collections::BTreeMap;

use weir_names::{CallGrant, PeerName};

use super::{channels::channels, named, split};
use crate::{
    PeerConfig, PeerSessionLimits, TokenHash,
    check::PeerLocations,
    peer::{PEER_LIMIT_KEYS, PeerLimitKey, TOKENS_MAX, UID},
    section::{Located, Section},
};

const TOKEN: &str = "the hash of a token, `sha256:` and 64 hexadecimal digits";
const CALL: &str = "a contract or one operation of it, as in `settings@1` or `settings@1/get`";

/// `None` after reporting a faulty name.
pub(super) fn peer(
    section: &mut Section<'_, '_>,
    name: &Located<&str>,
) -> Option<(Located<PeerName>, (PeerConfig, PeerLocations))> {
    section.explain_tables("the name of a peer needs quotes, as in `[peer.\"app:player\"]`");
    let uid = section.count("uid", UID);
    let (tokens, tokens_at) = split(section.texts("tokens", TOKEN, str::parse::<TokenHash>));
    if let Some(third) = tokens_at.get(TOKENS_MAX) {
        let path = section.path_of("tokens");
        let message = format!("`{path}` lists {} tokens, but a peer has at most {TOKENS_MAX}", tokens.len());
        section.error(path, message, third.clone());
    }
    let (wants, wants_at) = split(section.texts("wants", CALL, str::parse::<CallGrant>));
    let (channels, channels_at) = channels(section);
    let limits = section.table("limits", limits);

    let name = named(section, "peer", name, peer_name)?;
    let new = PeerConfig::new(name.value.clone());
    let config = PeerConfig {
        uid: uid.map(Located::into_value),
        tokens,
        fulfills: channels.fulfills,
        wants,
        publishes: channels.publishes,
        subscribes: channels.subscribes,
        puts: channels.puts,
        takes: channels.takes,
        when_full: channels.when_full.unwrap_or(new.when_full),
        limits,
        ..new
    };
    let locations = PeerLocations {
        name: name.location.clone(),
        tokens: tokens_at,
        wants: wants_at,
        channels: channels_at,
    };
    Some((name, (config, locations)))
}

fn peer_name(text: &str) -> Result<PeerName, String> {
    text.parse::<PeerName>().map_err(|error| {
        let needs_quotes = !text.contains(':');
        let help =
            if needs_quotes { "; a header has it in quotes, as in `[peer.\"app:player\"]`" } else { "" };
        format!("{error}{help}")
    })
}

fn limits(section: &mut Section<'_, '_>) -> PeerSessionLimits {
    let errors = section.error_count();
    let mut limits = PeerSessionLimits::default();
    let mut places = BTreeMap::new();
    let mut set = |key: &'static PeerLimitKey, value: Option<Located<u64>>| {
        if let Some(Located { value, location }) = value {
            (key.set)(&mut limits, value);
            places.insert(key.name, location);
        }
    };
    for key in PEER_LIMIT_KEYS.iter().filter(|key| !key.name.contains('.')) {
        set(key, section.number(key.name, &key.shape));
    }
    section.table("inbox", |inbox| {
        for key in &PEER_LIMIT_KEYS {
            if let Some(name) = key.name.strip_prefix("inbox.") {
                set(key, inbox.number(name, &key.shape));
            }
        }
    });
    if let Some(message) = limits.contradiction().filter(|_| section.error_count() == errors) {
        let keys = ["message-size", "inbox.bytes"].map(|key| (key, places.remove(key)));
        section.contradiction(keys, &message);
    }
    limits
}
