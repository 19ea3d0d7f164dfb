//! Contracts whose operations are functions that a component exports, and contracts that answer its imports.
//!
//! Owns the names in the operator's file. Knows nothing of components and their types.

use std::{collections::BTreeMap, str::FromStr};

use weir_names::{ContractName, InterfaceName, NameError};

use super::{
    ExtensionConfig,
    differences::{Facts, quoted},
    error::ConfigError,
    key::{Key, Places, Table, inline},
    kind::{Kind, text, texts_and_tables},
    section::Section,
    sections::CONTRACT,
    shape::Shape,
};
use crate::keys;

const EXPORT: &str = "an exported interface, as in `acme:greeter/api@1.0.0`, or `*`";
pub(super) const IMPORT: &str = "an imported interface, as in `acme:store/kv@1.0.0`";
const COUNT_OR_PER_CALL: Shape = Shape::CountOr(1..=64, "per-call");

/// An item of `fulfills`: a contract that the extension serves itself, or one that an export stands for.
#[derive(Clone)]
struct Fulfilled {
    contract: ContractName,
    export: Option<InterfaceName>,
}

impl FromStr for Fulfilled {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Ok(Self { contract: text.parse()?, export: None })
    }
}

impl Table for Fulfilled {
    keys! {
        Fulfilled;
        /// A contract that it owns.
        "contract" contract = text(CONTRACT, str::parse), required(CONTRACT);
        /// The interface that its component exports, whose functions are the operations of the contract. `*` are the
        /// functions that the component exports by themselves: [exports as operations](exports.md).
        "export" export = text(EXPORT, str::parse).optional(), required(EXPORT);
    }

    fn as_text(&self) -> Option<String> {
        self.export.is_none().then(|| quoted(&self.contract))
    }
}

/// The contracts that an extension owns, and the exports that stand for them.
pub(super) fn fulfills() -> Key<ExtensionConfig> {
    let Kind { shape, read, .. } =
        texts_and_tables::<Fulfilled, _>(CONTRACT, str::parse, || "none@0".parse().ok());
    let read = move |section: &mut Section<'_, '_>, key, it: &mut ExtensionConfig| {
        let (found, places) = read(section, key, None)?;
        let export = |own: &Fulfilled| Some((own.contract.clone(), own.export.clone()?));
        it.exports = found.iter().filter_map(export).collect();
        it.fulfills = found.into_iter().map(|own| own.contract).collect();
        Some(places)
    };
    let tell = |it: &ExtensionConfig, key: &str, facts: &mut Facts| {
        if it.exports.is_empty() {
            return facts.texts(key, &it.fulfills);
        }
        let own = |contract: &ContractName| Fulfilled {
            contract: contract.clone(),
            export: it.exports.get(contract).cloned(),
        };
        facts.list(key, it.fulfills.iter().map(own).map(|own| inline(&own)));
    };
    Key::new(shape, read, tell)
}

/// A table with the contract that answers each import.
pub(super) fn imports() -> Kind<BTreeMap<InterfaceName, ContractName>> {
    let check = |name: &str, contract: &str| {
        let name: InterfaceName = name.parse().map_err(|error: NameError| error.to_string())?;
        if name.is_root() {
            return Err(format!("`*` is not {IMPORT}"));
        }
        contract.parse::<ContractName>().map(drop).map_err(|error| error.to_string())
    };
    let read = move |section: &mut Section<'_, '_>, key, _: Option<&_>| {
        let values = section.values(key, check);
        let parsed =
            values.iter().filter_map(|(name, contract)| Some((name.parse().ok()?, contract.parse().ok()?)));
        section.has(key).then(|| (parsed.collect(), Places::default()))
    };
    let tell = |imports: &BTreeMap<InterfaceName, ContractName>, key: &str, facts: &mut Facts| {
        for (name, contract) in imports {
            facts.text(&format!("{key}.{name}"), Some(contract));
        }
    };
    Kind::new(Shape::Values, read, tell)
}

/// How many instances, or that each call has its own.
pub(super) fn instances() -> Key<ExtensionConfig> {
    let read = |section: &mut Section<'_, '_>, key, it: &mut ExtensionConfig| {
        let found = section.number(key, &COUNT_OR_PER_CALL)?;
        // 0 stands for the word.
        it.per_call = found.value == 0;
        it.instances = u32::try_from(found.value).unwrap_or(u32::MAX).max(1);
        Some(Places::at(found.location))
    };
    // Differences compare instances one by one.
    let tell = |it: &ExtensionConfig, key: &str, facts: &mut Facts| {
        facts.text(key, it.per_call.then_some("per-call"));
    };
    let judge = |it: &ExtensionConfig, path: &str, errors: &mut Vec<ConfigError>| {
        if !COUNT_OR_PER_CALL.has(it.instances.into()) {
            errors.push(super::kind::must_be(path, &COUNT_OR_PER_CALL.to_string()));
        }
    };
    Key::new(COUNT_OR_PER_CALL, read, tell).judged(judge)
}
