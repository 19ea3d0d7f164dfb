//! The manifest as JSON, written by the compiler. All its text was checked to need no escapes.

use super::{Dir, Manifest};
use crate::Contract;

impl Manifest {
    /// Bytes of [`section`](Self::section).
    #[doc(hidden)]
    #[must_use]
    pub const fn section_length(&self) -> usize {
        self.write(Writer { buffer: &mut [], length: 0 })
    }

    /// The content of the custom section `weir:manifest`: JSON, with `schema` 1.
    #[doc(hidden)]
    #[must_use]
    pub const fn section<const LENGTH: usize>(&self) -> [u8; LENGTH] {
        let mut buffer = [0; LENGTH];
        let length = self.write(Writer { buffer: &mut buffer, length: 0 });
        assert!(length == LENGTH);
        buffer
    }

    const fn write(&self, mut writer: Writer<'_>) -> usize {
        writer.text("{\"schema\":1,\"id\":");
        writer.string(self.id);
        writer.text(",\"version\":");
        writer.string(self.version);
        writer.text(",\"fulfills\":");
        writer.contracts(self.fulfills);
        writer.text(",\"requires\":");
        writer.contracts(self.requires);
        writer.text(",\"wants\":");
        writer.contracts(self.wants);
        writer.text(",\"publishes\":");
        writer.strings(self.publishes);
        writer.text(",\"subscribes\":");
        writer.strings(self.subscribes);
        writer.text(",\"puts\":");
        writer.strings(self.puts);
        writer.text(",\"takes\":");
        writer.strings(self.takes);
        writer.text(",\"grants\":{\"dirs\":");
        writer.dirs(self.dirs);
        writer.text(",\"env\":");
        writer.strings(self.env);
        writer.text(",\"net\":");
        writer.strings(self.net);
        writer.text("}}");
        writer.length
    }
}

/// Writes what fits and counts all: the first pass learns the length, the second fills the array.
struct Writer<'a> {
    buffer: &'a mut [u8],
    length: usize,
}

impl Writer<'_> {
    const fn contracts(&mut self, contracts: &[Contract]) {
        let mut rest = contracts;
        let mut separator = "[";
        while let [contract, tail @ ..] = rest {
            self.text(separator);
            self.string(contract.name());
            separator = ",";
            rest = tail;
        }
        self.end(contracts.is_empty());
    }

    const fn strings(&mut self, strings: &[&str]) {
        let mut rest = strings;
        let mut separator = "[";
        while let [string, tail @ ..] = rest {
            self.text(separator);
            self.string(string);
            separator = ",";
            rest = tail;
        }
        self.end(strings.is_empty());
    }

    const fn dirs(&mut self, dirs: &[Dir]) {
        let mut rest = dirs;
        let mut separator = "[";
        while let [dir, tail @ ..] = rest {
            self.text(separator);
            self.text("{\"guest\":");
            self.string(dir.guest);
            self.text(if dir.writable { ",\"mode\":\"rw\"}" } else { ",\"mode\":\"ro\"}" });
            separator = ",";
            rest = tail;
        }
        self.end(dirs.is_empty());
    }

    const fn end(&mut self, empty: bool) {
        self.text(if empty { "[]" } else { "]" });
    }

    const fn string(&mut self, text: &str) {
        self.text("\"");
        self.text(text);
        self.text("\"");
    }

    const fn text(&mut self, text: &str) {
        let mut rest = text.as_bytes();
        while let [byte, tail @ ..] = rest {
            if let Some((_, place)) = self.buffer.split_at_mut_checked(self.length)
                && let [place, ..] = place
            {
                *place = *byte;
            }
            self.length += 1;
            rest = tail;
        }
    }
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
