//! The custom sections of an author, in a component that is built already: the manifest, and the description of
//! contracts.

use std::{fs, io::Write, path::Path};

use anyhow::{Context, ensure};
use serde::Deserialize;
use serde_json::Value;
use tempfile::NamedTempFile;
use wasmparser::BinaryReader;
use weir_host::{
    component::Manifest,
    openrpc::{self, Document},
};

use crate::contracts::of_json;

/// A custom section: its name and its content.
pub(super) type Section = (&'static str, Vec<u8>);

const MANIFEST: &str = "weir:manifest";

/// The version of the manifest's schema.
const SCHEMA: u32 = 1;

/// Magic number and version, at the start of a component.
const HEADER: usize = 8;

/// The id of a custom section.
const CUSTOM: u8 = 0;

/// Reads the manifest in a file. Errors name the file as `shown`.
pub(super) fn manifest(path: &Path, shown: &str) -> anyhow::Result<Section> {
    let text = fs::read(path).with_context(|| format!("cannot read `{shown}`"))?;
    let json: Value = serde_json::from_slice(&text).with_context(|| format!("`{shown}` is not JSON"))?;
    ensure!(
        json.get("schema") == Some(&SCHEMA.into()),
        "`{shown}` is no manifest: it needs `\"schema\": {SCHEMA}`"
    );
    Manifest::deserialize(&json).with_context(|| format!("`{shown}` is no manifest"))?;
    Ok((MANIFEST, serde_json::to_vec(&json)?))
}

/// Reads the documents in a file, and makes the section with one document a line. Errors name the file as `shown`.
pub(super) fn contracts(path: &Path, shown: &str) -> anyhow::Result<Section> {
    let lines: String = of_json(path, shown)?.iter().map(|document| document.line() + "\n").collect();
    Document::parse_section(lines.as_bytes())
        .with_context(|| format!("`{shown}` does not fit a component"))?;
    Ok((openrpc::SECTION, lines.into_bytes()))
}

/// Puts sections into a component, in place of its sections of the same names. Those of components inside it stay.
pub(super) fn embed(component: &Path, sections: &[Section]) -> anyhow::Result<()> {
    let shown = component.display();
    let bytes = fs::read(component).with_context(|| format!("cannot read `{shown}`"))?;
    let described = sections
        .iter()
        .try_fold(bytes.clone(), |component, (name, contents)| replace(&component, name, contents))
        .with_context(|| format!("`{shown}` is no WebAssembly component"))?;
    if described == bytes {
        return Ok(());
    }
    write_over(component, &described)
}

/// Replaces what is in a file. A reader sees the whole old file or the whole new one.
pub(super) fn write_over(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let written = NamedTempFile::new_in(directory.unwrap_or(Path::new("."))).and_then(|mut file| {
        file.write_all(content)?;
        file.as_file().set_permissions(fs::metadata(path)?.permissions())?;
        file.persist(path)?;
        Ok(())
    });
    written.with_context(|| format!("cannot write `{}`", path.display()))
}

/// Returns the component with one custom section of this name, at its end.
fn replace(component: &[u8], name: &str, contents: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut reader = BinaryReader::new(component, 0);
    let header = reader.read_bytes(HEADER).ok().context("it is too short")?;
    ensure!(header.starts_with(b"\0asm"), "it does not start with `\\0asm`");
    let mut replaced = header.to_vec();
    while !reader.eof() {
        let start = reader.current_position();
        let id = reader.read_u8()?;
        let mut body = reader.read_reader().ok().context("a section is cut off")?;
        if id != CUSTOM || body.read_string().ok() != Some(name) {
            replaced.extend_from_slice(component.get(start..reader.current_position()).unwrap_or_default());
        }
    }
    let body = [&leb128(name.len()), name.as_bytes(), contents].concat();
    replaced.push(CUSTOM);
    replaced.extend(leb128(body.len()));
    replaced.extend(body);
    Ok(replaced)
}

fn leb128(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or_default();
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use wasmparser::{Parser, Payload};

    use super::{openrpc::SECTION, *};

    fn sections(component: &[u8]) -> Vec<(String, Vec<u8>)> {
        let payloads = Parser::new(0).parse_all(component).map(Result::unwrap);
        let custom = payloads.filter_map(|payload| match payload {
            Payload::CustomSection(section) => Some((section.name().to_owned(), section.data().to_vec())),
            _ => None,
        });
        custom.collect()
    }

    #[test]
    fn a_description_takes_the_place_of_an_older_one_and_of_nothing_else() {
        let component = wat::parse_str("(component (@custom \"other\" \"kept\"))").unwrap();
        let long = "x".repeat(300);
        let first = replace(&component, SECTION, long.as_bytes()).unwrap();
        assert_eq!(
            sections(&first),
            [("other".into(), b"kept".to_vec()), (SECTION.into(), long.into_bytes())]
        );
        let second = replace(&first, SECTION, b"new\n").unwrap();
        assert_eq!(
            sections(&second),
            [("other".into(), b"kept".to_vec()), (SECTION.into(), b"new\n".to_vec())]
        );
        assert_eq!(replace(&second, SECTION, b"new\n").unwrap(), second);
    }

    #[test]
    fn a_cut_off_file_is_refused() {
        let component = wat::parse_str("(component (@custom \"other\" \"kept\"))").unwrap();
        for length in (0..component.len()).filter(|length| *length != HEADER) {
            assert!(replace(&component[..length], SECTION, b"").is_err(), "{length}");
        }
    }
}
