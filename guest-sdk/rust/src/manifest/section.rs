//! The manifest as JSON, and the descriptions of its contracts, written by the compiler.

use weir_names::{Role, json::Writer};

use super::{Dir, Manifest};
use crate::{Contract, Description};

/// Writes the items of a list as a JSON list, each with `$write`.
macro_rules! list {
    ($writer:ident, $items:expr, $item:ident => $write:expr) => {{
        let mut rest = $items;
        let mut separator = "[";
        while let [$item, tail @ ..] = rest {
            $writer.text(separator);
            $write;
            separator = ",";
            rest = tail;
        }
        $writer.text(if $items.is_empty() { "[]" } else { "]" });
    }};
}

impl Manifest {
    /// The length of [`section`](Self::section) in bytes.
    #[doc(hidden)]
    #[must_use]
    pub const fn section_length(&self) -> usize {
        let mut counter = Writer::new(&mut []);
        self.write(&mut counter);
        counter.length()
    }

    /// The content of the custom section `weir:manifest`: JSON, with `schema` 1.
    #[doc(hidden)]
    #[must_use]
    pub const fn section<const LENGTH: usize>(&self) -> [u8; LENGTH] {
        let mut buffer = [0; LENGTH];
        self.write(&mut Writer::new(&mut buffer));
        buffer
    }

    /// The length of [`descriptions`](Self::descriptions) in bytes.
    ///
    /// # Panics
    /// If it is over [`Description::MOST_BYTES`], which Main would refuse.
    #[doc(hidden)]
    #[must_use]
    pub const fn descriptions_length(&self) -> usize {
        let mut counter = Writer::new(&mut []);
        self.describe(&mut counter);
        assert!(
            counter.length() <= Description::MOST_BYTES,
            "the descriptions of the contracts take more than 64 KiB"
        );
        counter.length()
    }

    /// The content of the custom section `weir:contracts`: one OpenRPC document a line, for each contract with a
    /// description.
    #[doc(hidden)]
    #[must_use]
    pub const fn descriptions<const LENGTH: usize>(&self) -> [u8; LENGTH] {
        let mut buffer = [0; LENGTH];
        self.describe(&mut Writer::new(&mut buffer));
        buffer
    }

    const fn describe(&self, writer: &mut Writer<'_>) {
        describe_all(self.fulfills, Role::Provider, writer);
        describe_all(self.requires, Role::Caller, writer);
        describe_all(self.wants, Role::Caller, writer);
    }

    const fn write(&self, writer: &mut Writer<'_>) {
        writer.text("{\"schema\":1,\"id\":");
        writer.string(self.id);
        writer.text(",\"version\":");
        writer.string(self.version);
        if let Some(since) = self.data_since {
            writer.text(",\"data-since\":");
            writer.string(since);
        }
        writer.text(",\"fulfills\":");
        contracts(writer, self.fulfills);
        writer.text(",\"requires\":");
        contracts(writer, self.requires);
        writer.text(",\"wants\":");
        contracts(writer, self.wants);
        writer.text(",\"publishes\":");
        strings(writer, self.publishes);
        writer.text(",\"subscribes\":");
        strings(writer, self.subscribes);
        writer.text(",\"puts\":");
        strings(writer, self.puts);
        writer.text(",\"takes\":");
        strings(writer, self.takes);
        writer.text(",\"grants\":{\"dirs\":");
        dirs(writer, self.dirs);
        writer.text(",\"env\":");
        strings(writer, self.env);
        writer.text(",\"net\":");
        strings(writer, self.net);
        writer.text("}}");
    }
}

const fn describe_all(contracts: &[Contract], role: Role, writer: &mut Writer<'_>) {
    let mut rest = contracts;
    while let [contract, tail @ ..] = rest {
        contract.write_document(role, writer);
        rest = tail;
    }
}

const fn contracts(writer: &mut Writer<'_>, contracts: &[Contract]) {
    list!(writer, contracts, contract => writer.string(contract.name()));
}

const fn strings(writer: &mut Writer<'_>, strings: &[&str]) {
    list!(writer, strings, string => writer.string(string));
}

const fn dirs(writer: &mut Writer<'_>, dirs: &[Dir]) {
    list!(writer, dirs, dir => {
        writer.text("{\"guest\":");
        writer.string(dir.guest);
        writer.text(if dir.writable { ",\"mode\":\"rw\"}" } else { ",\"mode\":\"ro\"}" });
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MANIFEST: Manifest = Manifest {
        fulfills: &[Contract::new("a@1"), Contract::new("b@2")],
        wants: &[Contract::new("c@3")],
        publishes: &["x.>"],
        puts: &["uploads"],
        takes: &["reports", "uploads-dead"],
        dirs: &[Dir::read_write("/data"), Dir::read_only("/proc")],
        net: &["metrics.example.com:443"],
        data_since: Some("0.1.0-rc.1"),
        ..Manifest::new("one", "0.1.0")
    }
    .checked();
    static SECTION: [u8; MANIFEST.section_length()] = MANIFEST.section();

    #[test]
    fn the_section_is_the_manifest_as_json() {
        let section: serde_json::Value = serde_json::from_slice(&SECTION).unwrap();
        assert_eq!(
            section,
            json!({
                "schema": 1,
                "id": "one",
                "version": "0.1.0",
                "data-since": "0.1.0-rc.1",
                "fulfills": ["a@1", "b@2"],
                "requires": [],
                "wants": ["c@3"],
                "publishes": ["x.>"],
                "subscribes": [],
                "puts": ["uploads"],
                "takes": ["reports", "uploads-dead"],
                "grants": {
                    "dirs": [{"guest": "/data", "mode": "rw"}, {"guest": "/proc", "mode": "ro"}],
                    "env": [],
                    "net": ["metrics.example.com:443"],
                },
            })
        );
    }
}
