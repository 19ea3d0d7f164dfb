//! What a component's bytes are: functions, data, custom sections.
//!
//! The file is hostile input: names are escaped, and few of them are shown.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
};

use addr2line::demangle_auto;
use anyhow::Context;
use serde::Serialize;
use wasmparser::{
    BinaryReaderError, ImportSectionReader, KnownCustom, Name, NameSectionReader, Parser, Payload, TypeRef,
};
use weir_host::names::harmless;

use crate::output::counted;

/// The most functions, and kinds of custom sections, that are listed.
const LISTED: usize = 20;

/// The most bytes of a name that are shown.
const MAX_NAME: usize = 120;

/// The sizes of a component's parts. They add up to the file's.
#[derive(Debug, Serialize)]
pub(super) struct Sizes {
    bytes: usize,
    /// The largest functions, largest first.
    functions: Vec<Part>,
    /// The other functions together.
    others: Part,
    /// The data of memories, the largest custom sections by name, and the rest.
    sections: Vec<Part>,
}

#[derive(Debug, Serialize)]
struct Part {
    name: String,
    bytes: usize,
}

/// Reads the component in a file, and returns its sizes.
pub(super) fn of(file: &Path) -> anyhow::Result<Sizes> {
    let bytes = fs::read(file).with_context(|| format!("cannot read `{}`", file.display()))?;
    measure(&bytes).with_context(|| format!("`{}` is damaged", file.display()))
}

impl Sizes {
    /// Returns lines for people.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        let parts = self.functions.iter().chain([&self.others]).chain(&self.sections);
        parts.filter(|part| part.bytes > 0).map(|Part { name, bytes }| {
            // The share is in tenths of a percent.
            let share = bytes.saturating_mul(1000) / self.bytes.max(1);
            format!("{bytes:>9} {:>3}.{}% {name}", share / 10, share % 10)
        })
    }
}

fn measure(bytes: &[u8]) -> Result<Sizes, BinaryReaderError> {
    let (mut customs, mut data) = (BTreeMap::new(), 0);
    let modules = modules(bytes, |module: &mut Module<'_>, payload| {
        match payload {
            Payload::ImportSection(imports) => module.imported += imported_functions(imports)?,
            Payload::CodeSectionEntry(body) => module.bodies.push(body.range().len()),
            Payload::DataSection(section) => data += section.range().len(),
            Payload::CustomSection(section) => {
                *customs.entry(section.name()).or_default() += section.range().len();
                if let KnownCustom::Name(names) = section.as_known() {
                    module.read(names);
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    let functions = modules.into_iter().flat_map(Module::functions).collect();
    Ok(sizes(bytes.len(), functions, data, customs))
}

/// Makes a value for each module and each component in a component, which `read` fills from its payloads. Returns the
/// values in the order in which the modules end.
pub(in crate::verbs) fn modules<'a, M: Default>(
    component: &'a [u8],
    mut read: impl FnMut(&mut M, Payload<'a>) -> Result<(), BinaryReaderError>,
) -> Result<Vec<M>, BinaryReaderError> {
    let (mut ended, mut open) = (Vec::new(), Vec::new());
    for payload in Parser::new(0).parse_all(component) {
        let payload = payload?;
        if let Payload::Version { .. } = payload {
            open.push(M::default());
        }
        match (payload, open.last_mut()) {
            (Payload::End(_), _) => ended.extend(open.pop()),
            (payload, Some(module)) => read(module, payload)?,
            (_, None) => {}
        }
    }
    Ok(ended)
}

/// Counts the functions among the imports.
pub(in crate::verbs) fn imported_functions(
    imports: ImportSectionReader<'_>,
) -> Result<u32, BinaryReaderError> {
    let mut functions = 0;
    for import in imports.into_imports() {
        functions += u32::from(matches!(import?.ty, TypeRef::Func(_) | TypeRef::FuncExact(_)));
    }
    Ok(functions)
}

/// A core module, or a component, which has no functions of its own.
#[derive(Default)]
struct Module<'a> {
    imported: u32,
    bodies: Vec<usize>,
    names: HashMap<u32, &'a str>,
}

impl<'a> Module<'a> {
    fn read(&mut self, names: NameSectionReader<'a>) {
        // Names that are damaged are left out.
        for names in names.into_iter().flatten() {
            if let Name::Function(names) = names {
                self.names.extend(names.into_iter().flatten().map(|name| (name.index, name.name)));
            }
        }
    }

    fn functions(self) -> impl Iterator<Item = Function<'a>> {
        let Self { imported, bodies, names } = self;
        bodies.into_iter().zip(imported..).map(move |(bytes, index)| Function {
            bytes,
            index,
            name: names.get(&index).copied(),
        })
    }
}

struct Function<'a> {
    bytes: usize,
    index: u32,
    name: Option<&'a str>,
}

impl Function<'_> {
    fn part(&self) -> Part {
        let name = match self.name {
            Some(name) => harmless(demangle_auto(name.into(), None), MAX_NAME),
            None => format!("function {}", self.index),
        };
        Part { name, bytes: self.bytes }
    }
}

fn sizes(
    bytes: usize,
    mut functions: Vec<Function<'_>>,
    data: usize,
    customs: BTreeMap<&str, usize>,
) -> Sizes {
    functions.sort_by_key(|function| Reverse(function.bytes));
    let others = functions.split_off(functions.len().min(LISTED));
    let count = counted(others.len() as u64, "smaller function");
    let others = Part { name: count, bytes: others.iter().map(|function| function.bytes).sum() };
    let functions: Vec<_> = functions.iter().map(Function::part).collect();

    let mut customs: Vec<_> = customs.into_iter().collect();
    customs.sort_by_key(|(_, bytes)| Reverse(*bytes));
    customs.truncate(LISTED);
    let custom =
        |(name, bytes)| Part { name: format!("custom section `{}`", harmless(name, MAX_NAME)), bytes };
    let data = Part { name: "data of memories".to_owned(), bytes: data };
    let mut sections: Vec<_> = [data].into_iter().chain(customs.into_iter().map(custom)).collect();
    let parts = functions.iter().chain([&others]).chain(&sections);
    let rest = bytes.saturating_sub(parts.map(|part| part.bytes).sum());
    sections.push(Part { name: "the rest: types, imports, tables, headers".to_owned(), bytes: rest });
    Sizes { bytes, functions, others, sections }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component() -> Vec<u8> {
        let functions: String = (0..25).map(|n| format!("(func $f{n} {})", "nop ".repeat(n))).collect();
        let text = format!(
            r#"(component (core module $m
                (func $_ZN8settings6handle17h0123456789abcdefE {})
                (func (param i32))
                {functions}
                (memory 1) (data (i32.const 0) "{}")
                (@custom "evil\1b[2J" "12345"))
            (core instance (instantiate $m)))"#,
            "nop ".repeat(90),
            "x".repeat(500),
        );
        wat::parse_str(text).unwrap()
    }

    #[test]
    fn the_parts_add_up_to_the_file_and_the_largest_function_comes_first() {
        let component = component();
        let sizes = measure(&component).unwrap();
        let parts = sizes.functions.iter().chain([&sizes.others]).chain(&sizes.sections);
        assert_eq!(parts.map(|part| part.bytes).sum::<usize>(), component.len());
        assert_eq!(sizes.functions[0].name, "settings::handle");
        assert_eq!(sizes.functions.len(), LISTED);
        assert_eq!(sizes.others.name, "7 smaller functions");
        assert!(sizes.sections[0].bytes > 500 && sizes.sections[0].name == "data of memories");
    }

    #[test]
    fn names_from_a_file_cannot_play_with_the_terminal() {
        let lines: String = measure(&component()).unwrap().lines().collect();
        assert!(!lines.contains('\x1b') && lines.contains("evil"), "{lines}");
    }

    #[test]
    fn a_function_without_a_name_has_its_number() {
        let module = wat::parse_str("(component (core module (func (export \"a\") nop)))").unwrap();
        let sizes = measure(&module).unwrap();
        assert_eq!(sizes.functions[0].name, "function 0");
        assert!(measure(&module[..module.len() - 1]).is_err());
    }
}
