//! `rpc.discover`: one OpenRPC document of all that an app may reach.

use std::collections::{BTreeSet, HashMap};

use weir_host::openrpc::{self, Json};

use super::{Methods, Reply};
use crate::{Alias, rpc};

impl Methods {
    pub(super) fn discover(&self) -> Reply {
        let callable = self.session.callable().into_iter();
        let callable: BTreeSet<String> =
            callable.map(|(contract, operation)| format!("{contract}/{operation}")).collect();
        let described = openrpc::combined(&self.shared.control.contracts_for(&self.session));
        let known = described.get("methods").and_then(Json::as_array).unwrap_or_default();
        let known: HashMap<&str, &Json> =
            known.iter().filter_map(|method| Some((method.get("name")?.as_str()?, method))).collect();

        let method =
            |name: &str, of: &str| known.get(of).map_or_else(|| bare(name), |known| named(known, name));
        let aliases = self.shared.config.aliases.iter().filter_map(|(name, target)| match target {
            Alias::Call { contract, operation } => {
                let target = format!("{contract}/{operation}");
                callable.contains(&target).then(|| method(name, &target))
            }
            Alias::Topic(topic) => self.session.may_subscribe(topic.as_str()).is_ok().then(|| bare(name)),
        });
        let methods = rpc::BUILT_IN.iter().map(|name| bare(name)).chain(aliases);
        let methods = methods.chain(callable.iter().map(|name| method(name, name))).collect();
        let info = [("title", "Weir"), ("version", env!("CARGO_PKG_VERSION"))];
        let parts = ["x-topics", "x-queues", "components"].iter();
        let parts = parts.filter_map(|part| Some((*part, described.get(part)?.clone())));
        let document = [
            ("openrpc", "1.3.2".into()),
            ("info", object(info.map(|(name, value)| (name, value.into())))),
            ("methods", Json::Array(methods)),
        ];
        Reply::value(&object(document.into_iter().chain(parts)))
    }
}

/// A method of which only the name is known: its parameters and its result may be anything.
fn bare(name: &str) -> Json {
    object([
        ("name", name.into()),
        ("paramStructure", "by-name".into()),
        ("params", Json::Array(Vec::new())),
        ("result", object([("name", "result".into()), ("schema", object([]))])),
    ])
}

/// A copy of a method under another name.
fn named(method: &Json, name: &str) -> Json {
    let Json::Object(fields) = method else { return bare(name) };
    let fields = fields.iter().map(|(field, value)| match field.as_str() {
        "name" => (field.clone(), name.into()),
        _ => (field.clone(), value.clone()),
    });
    Json::Object(fields.collect())
}

fn object<'n>(fields: impl IntoIterator<Item = (&'n str, Json)>) -> Json {
    Json::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}
