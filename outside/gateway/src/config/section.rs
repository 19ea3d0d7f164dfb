//! The keys of the table `[gateway]`, and its part in the checks of a configuration.

use std::collections::BTreeMap;

use weir_host::{
    config::{
        ConfigError, Shape,
        extend::{
            ConfigSection, Facts, Judged, Located, Places, Section, Settling, facts,
            kind::{Kind, items},
        },
    },
    names::{PeerName, Topic},
};

use super::{
    ADDRESSES_MAX, Alias, GatewayConfig, Listen, ORIGINS_MAX, Origin,
    alias::{self, CALL},
    check::{self, path_of_origins},
    listen::ADDRESS,
    origin::ORIGIN,
};

const TOPIC: &str = "a topic, as in `device.name.changed`";

impl ConfigSection for GatewayConfig {
    const TABLE: &'static str = "gateway";
    const NEEDS_RESTART: bool = true;
    const ABOUT: (&'static str, &'static str) =
        ("Apps that reach Main by JSON-RPC, and plain streams: [below](#gateway).", "no gateway");
    type Draft = Vec<(Self, Places)>;
    type Locations = Places;

    fn read(draft: &mut Self::Draft, file: &mut Section<'_, '_>) {
        draft.extend(file.optional_table(Self::TABLE, |section| {
            if !section.has("listen") && !section.has("streams") {
                let message = "`gateway` listens nowhere: set `listen`, or `listen` in `[gateway.streams]`";
                section.error(Self::TABLE, message.to_owned(), section.location());
            }
            let mut config = Self::default();
            let places = section.keys(&mut config);
            (config, places)
        }));
    }

    fn settle(draft: Self::Draft, settling: &mut Settling<'_>) -> (Self, Self::Locations) {
        settling.only_one(Self::TABLE, draft).unwrap_or_default()
    }

    fn check_values(&self) -> Vec<ConfigError> {
        check::values(self)
    }

    fn check(&self, judged: &Judged<'_>, at: &Self::Locations, errors: &mut Vec<ConfigError>) {
        check::tls(self, at, cfg!(feature = "tls"), errors);
        check::addresses(self, judged.config(), at, errors);
        check::repeated(self, at, errors);
    }

    fn check_names(&self, judged: &Judged<'_>, at: &Self::Locations, errors: &mut Vec<ConfigError>) {
        check::peers(self, judged.config(), at, errors);
    }

    fn lets_peers_in(&self) -> bool {
        self.is_configured()
    }

    fn facts(&self) -> BTreeMap<String, Facts> {
        if self.is_empty() {
            return BTreeMap::new();
        }
        BTreeMap::from([(Self::TABLE.to_owned(), facts(self))])
    }
}

/// Addresses to listen on.
pub(super) fn addresses() -> Kind<Vec<Listen>> {
    let read = |section: &mut Section<'_, '_>, key, _: Option<&_>| {
        let dir = section.dir().to_owned();
        Some(items(section.some_texts(key, ADDRESS, |text| Listen::parse_in(&dir, text))?))
    };
    let tell = |addresses: &Vec<Listen>, key: &str, facts: &mut Facts| facts.texts(key, addresses);
    let kind = Kind::new(Shape::Texts(ADDRESS), read, tell);
    kind.at_most(ADDRESSES_MAX, |count| {
        format!("{count} addresses, but at most {ADDRESSES_MAX} are possible")
    })
}

/// The web pages that may log in as a peer, by its name.
pub(super) fn origins() -> Kind<BTreeMap<PeerName, Vec<Origin>>> {
    let read = |section: &mut Section<'_, '_>, key, _: Option<&_>| {
        let mut origins: BTreeMap<PeerName, (Vec<Origin>, Places)> = BTreeMap::new();
        for (Located { value: text, location }, mut found) in section.named_texts(key, ORIGIN, str::parse) {
            match text.parse::<PeerName>() {
                Ok(name) => {
                    if let Some(first) = found.get(ORIGINS_MAX) {
                        let (path, count) = (path_of_origins(&name), found.len());
                        let message =
                            format!("`{path}` lists {count} origins, but at most {ORIGINS_MAX} are possible");
                        section.error(path, message, first.location.clone());
                    }
                    found.truncate(ORIGINS_MAX);
                    let (values, at) = items(found);
                    origins.insert(name, (values, at.named_at(location)));
                }
                Err(error) => {
                    section.error("gateway.origins", format!("in `gateway.origins`: {error}"), location);
                }
            }
        }
        // Both are in the order of the names: the checks find the place of an entry by its index.
        let (origins, places) = origins.into_iter().map(|(name, (values, at))| ((name, values), at)).unzip();
        Some((origins, Places::of_items(places)))
    };
    Kind::new(Shape::NamedTexts(ORIGIN), read, |origins: &BTreeMap<_, _>, key, facts| {
        for (name, pages) in origins {
            facts.texts(&format!("{key}.\"{name}\""), pages);
        }
    })
}

/// The operator's own names of methods.
pub(super) fn aliases() -> Kind<BTreeMap<String, Alias>> {
    let read = |section: &mut Section<'_, '_>, key, _: Option<&_>| {
        let found = section.named_texts_and_tables(key, CALL, alias::call, |topic| {
            topic.explain_unknown("the key there is `topic`, and an alias with dots needs quotes");
            if topic.is_empty() {
                topic.require("topic", TOPIC);
            }
            topic.about("The topic.", || "");
            topic.text("topic", TOPIC, str::parse::<Topic>).map(|at| Alias::Topic(at.value))
        });
        let mut aliases = BTreeMap::new();
        for (name, alias) in found {
            match alias::name_fault(&name.value) {
                None => drop(aliases.insert(name.value, alias)),
                Some(fault) => {
                    section.error("gateway.alias", format!("in `gateway.alias`: {fault}"), name.location);
                }
            }
        }
        Some((aliases, Places::default()))
    };
    Kind::new(Shape::NamedTextsAndTables(CALL), read, |aliases: &BTreeMap<_, _>, key, facts| {
        for (name, alias) in aliases {
            facts.plain(&format!("{key}.{name:?}"), Some(alias));
        }
    })
}
