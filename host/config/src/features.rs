//! Parts of WebAssembly that are off unless a class of limits turns them on.

use serde::{Deserialize, Serialize};

use crate::{
    kind::{Kind, Words, items},
    shape::Shape,
    words,
};

/// The value of `features`, and the words for it in messages.
pub(super) const FEATURES: &str =
    "the name of a feature: `exceptions`, `gc`, `tail-calls`, `relaxed-simd` or `memory64`";

/// What the key means, in Markdown.
pub(super) const MEANING: &str = "Parts of WebAssembly that components may use beyond [what all may](languages.md#parts-of-webassembly). Each \
    distinct set costs an engine, and its code is compiled and kept by itself.";

/// A part of WebAssembly that is off unless a class turns it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Feature {
    /// Exceptions with `try_table`, as in WebAssembly 3.0.
    Exceptions,
    /// Objects in a heap that is collected, and typed references to functions.
    Gc,
    /// Calls in place of a return.
    TailCalls,
    /// Vector instructions with results that depend on the processor.
    RelaxedSimd,
    /// Memories and tables with addresses of 64 bits.
    Memory64,
}

words!(
    Feature, "a feature: ":
    "exceptions" = Exceptions, "gc" = Gc, "tail-calls" = TailCalls, "relaxed-simd" = RelaxedSimd, "memory64" = Memory64
);

/// A set of features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(from = "Vec<Feature>", into = "Vec<Feature>")]
pub struct Features(u8);

impl Features {
    /// None.
    pub const NONE: Self = Self(0);

    /// Whether the set has this feature.
    #[must_use]
    pub fn has(self, feature: Feature) -> bool {
        self.0 & (1 << feature as u8) != 0
    }

    /// Whether guests with these features have a heap of objects. Exceptions are objects, too.
    #[must_use]
    pub fn have_objects(self) -> bool {
        self.has(Feature::Exceptions) || self.has(Feature::Gc)
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::NONE
    }

    /// The features of this set that `other` lacks.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The features of either set.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The features, in the order of the documentation.
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::ALL.iter().map(|(_, feature)| *feature).filter(move |feature| self.has(*feature))
    }

    /// The words for the features.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        self.iter().map(Words::word)
    }
}

impl FromIterator<Feature> for Features {
    fn from_iter<I: IntoIterator<Item = Feature>>(features: I) -> Self {
        Self(features.into_iter().fold(0, |set, feature| set | 1 << feature as u8))
    }
}

impl From<Vec<Feature>> for Features {
    fn from(features: Vec<Feature>) -> Self {
        features.into_iter().collect()
    }
}

impl From<Features> for Vec<Feature> {
    fn from(features: Features) -> Self {
        features.iter().collect()
    }
}

/// A list of features.
pub(super) fn features() -> Kind<Features> {
    Kind::new(
        Shape::Texts(FEATURES),
        |section, key, _| {
            let found = section.texts(key, FEATURES, str::parse::<Feature>);
            section.has(key).then(|| {
                let (features, places) = items(found);
                (features.into_iter().collect(), places)
            })
        },
        |features: &Features, key, facts| facts.texts(key, features.words()),
    )
}
