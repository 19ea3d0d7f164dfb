//! Writes an extension's needs as TOML for the operator's file, to be pasted, filled in and narrowed.

use std::fmt::Write;

use weir_names::ExtensionId;
use weir_openrpc::Role;

use super::{Inspection, Manifest, Needs};
use crate::exports::DescribedInterface;

/// Marks a value that only the operator knows.
const FILL_IN: &str = "FILL-IN";

impl Inspection {
    /// Returns an `[[extension]]` for the operator's file. Values that only the operator knows say `FILL-IN`. The hash
    /// is in a comment, because it would change with each version.
    #[must_use]
    pub fn stanza(&self) -> String {
        let mut stanza = String::from("[[extension]]\n");
        let mut line = |key: &str, value: String| {
            let _infallible = writeln!(stanza, "{key} = {value}");
        };
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let id = match &self.manifest {
            Some(manifest) => manifest.id.as_str(),
            None if stem.parse::<ExtensionId>().is_ok() => &stem,
            None => FILL_IN,
        };
        line("id", quoted(id));
        line("path", quoted(&self.path.file_name().unwrap_or_default().to_string_lossy()));
        line("# sha256", format!("\"{}\"  # pins exactly this file", self.sha256));
        if let Some(manifest) = &self.manifest {
            channels(manifest, &mut line);
            grants(&manifest.grants, &mut line);
        }
        if self.exports_functions() {
            let table = |it: &DescribedInterface| {
                let contract = it.document.as_ref().map(|document| document.contract.to_string());
                let contract = contract.unwrap_or_else(|| format!("{FILL_IN}@1"));
                format!("{{ contract = {}, export = {} }}", quoted(&contract), quoted(&it.name))
            };
            line("fulfills", list(self.exported().filter(|it| it.unmapped.is_none()).map(table)));
        }
        let imported = self.interfaces.iter().filter(|it| it.role == Role::Caller && it.has_functions);
        let answered: Vec<_> = imported.map(|it| format!("{} = \"{FILL_IN}@1\"", quoted(&it.name))).collect();
        if !answered.is_empty() {
            line("imports", format!("{{ {} }}", answered.join(", ")));
        }
        if !self.uses.features.is_empty() {
            line("limits.features", list(self.uses.features.words().map(quoted)));
        }
        if self.serves_http() {
            line("serves-http", format!("{{ path = \"/{FILL_IN}/\", peers = [\"{FILL_IN}\"] }}"));
        }
        if self.imports.iter().any(|name| name.starts_with("wasi:http/outgoing-handler@")) {
            line("grants.http", format!("[{{ to = \"https://{FILL_IN}\", methods = [\"GET\"] }}]"));
        }
        if self.imports.iter().any(|name| name.starts_with("wasi:keyvalue/")) {
            line("grants.stores", format!("[\"{FILL_IN}\"]"));
        }
        stanza
    }
}

/// Writes the contracts, topics and queues of the manifest.
fn channels(manifest: &Manifest, line: &mut impl FnMut(&str, String)) {
    let Manifest { fulfills, requires, wants, publishes, subscribes, puts, takes, .. } = manifest;
    for (key, contracts) in [("fulfills", fulfills), ("requires", requires), ("wants", wants)] {
        if !contracts.is_empty() {
            line(key, list(contracts.iter().map(|contract| quoted(contract.as_str()))));
        }
    }
    for (key, patterns) in [("publishes", publishes), ("subscribes", subscribes)] {
        if !patterns.is_empty() {
            line(key, list(patterns.iter().map(|pattern| quoted(pattern.as_str()))));
        }
    }
    for (key, queues) in [("puts", puts), ("takes", takes)] {
        if !queues.is_empty() {
            line(key, list(queues.iter().map(|queue| quoted(queue.as_str()))));
        }
    }
}

/// Writes what the manifest needs besides channels.
fn grants(needs: &Needs, line: &mut impl FnMut(&str, String)) {
    let Needs { dirs, env, net } = needs;
    if !dirs.is_empty() {
        let dirs = dirs.iter().map(|dir| {
            format!(
                "\n    {{ host = \"{FILL_IN}\", guest = {}, mode = {} }},",
                quoted(&dir.guest),
                quoted(&dir.mode)
            )
        });
        line("grants.dirs", format!("[{}\n]", dirs.collect::<String>()));
    }
    if !env.is_empty() {
        let env = env.iter().map(|name| format!("{} = \"{FILL_IN}\"", quoted(name)));
        line("grants.env", format!("{{ {} }}", env.collect::<Vec<_>>().join(", ")));
    }
    if !net.is_empty() {
        line("grants.net", list(net.iter().map(|address| quoted(address))));
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

/// Returns a basic string of TOML. Escapes everything that could confuse a terminal or a reader.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            character if weir_names::is_harmful(character) => {
                let _infallible = write!(quoted, "\\U{:08X}", u32::from(character));
            }
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}
