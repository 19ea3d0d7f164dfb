//! The contracts that the interfaces of a WIT package are, as `docs/exports.md` says.

use std::{collections::HashMap, path::Path};

use anyhow::Context;
use weir_host::{
    component::inspect_bytes,
    openrpc::{Document, Schema, Shape},
};
use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{Docs, Interface, InterfaceId, ManglingAndAbi, Resolve, TypeDefKind, WorldItem};

/// Describes the interfaces with functions of the package in a file or directory, and those of others that its worlds
/// export: what a component that exports all of them describes, with the comments.
pub(super) fn of_wit(path: &Path) -> anyhow::Result<Vec<Document>> {
    let mut resolve = Resolve::default();
    let pushed = resolve.push_path(path);
    let (package, _) = pushed.map_err(|error| anyhow::anyhow!("{}", resolve.render_error(&error)))?;
    let package = resolve.packages.get(package).context("it has no package")?;
    let exported = package.worlds.values().filter_map(|id| resolve.worlds.get(*id)).flat_map(|world| {
        world.exports.values().filter_map(|item| match item {
            WorldItem::Interface { id, .. } => Some(*id),
            _ => None,
        })
    });
    let named = |id: InterfaceId| {
        let has_functions = resolve.interfaces.get(id).is_some_and(|it| !it.functions.is_empty());
        has_functions.then(|| resolve.id_of(id)).flatten().map(|name| (name, id))
    };
    let interfaces: HashMap<String, InterfaceId> =
        package.interfaces.values().copied().chain(exported).filter_map(named).collect();
    let exports: String = interfaces.keys().map(|name| format!("export {name};\n")).collect();
    let world = format!("package weir:described;\nworld described {{\n{exports}}}\n");
    let world = resolve.push_str("described.wit", &world)?;
    let world = resolve.select_world(&[world], Some("described"))?;
    let mut module = dummy_module(&resolve, world, ManglingAndAbi::Standard32);
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false)?;
    let component = ComponentEncoder::default().module(&module)?.encode()?;
    let inspection = inspect_bytes(&component)?;
    let undescribed = inspection.undescribed();
    let mut documents = inspection.contracts;
    anyhow::ensure!(undescribed.is_empty(), "{}", undescribed.join("; "));
    for document in &mut documents {
        let interface = document.export.as_ref().and_then(|export| interfaces.get(export));
        if let Some(interface) = interface.and_then(|id| resolve.interfaces.get(*id)) {
            add_comments(document, &resolve, interface);
        }
    }
    Ok(documents)
}

/// Adds the comments of an interface to its description.
fn add_comments(document: &mut Document, resolve: &Resolve, interface: &Interface) {
    document.description = text(&interface.docs);
    for method in &mut document.methods {
        if let Some(function) = interface.functions.get(&method.name) {
            method.description = text(&function.docs);
        }
    }
    for (name, id) in &interface.types {
        let described = document.types.iter_mut().find(|(known, _)| is_name_of(known, name));
        let (Some((_, schema)), Some(ty)) = (described, resolve.types.get(*id)) else { continue };
        schema.description = text(&ty.docs);
        match &ty.kind {
            TypeDefKind::Record(record) => {
                let fields = record.fields.iter().map(|field| (&*field.name, &field.docs));
                add_to_parts(schema, &fields.collect());
            }
            TypeDefKind::Variant(variant) => {
                let cases = variant.cases.iter().map(|case| (&*case.name, &case.docs));
                add_to_parts(schema, &cases.collect());
            }
            TypeDefKind::Enum(cases) => {
                add_to_parts(schema, &cases.cases.iter().map(|case| (&*case.name, &case.docs)).collect());
            }
            TypeDefKind::Flags(flags) => {
                add_to_parts(schema, &flags.flags.iter().map(|flag| (&*flag.name, &flag.docs)).collect());
            }
            _ => {}
        }
    }
}

/// Adds comments to the fields, words and cases of a type.
fn add_to_parts(schema: &mut Schema, comments: &HashMap<&str, &Docs>) {
    let of = |name: &str| comments.get(name).map(|docs| text(docs)).unwrap_or_default();
    match &mut schema.shape {
        Shape::Record { fields, .. } => {
            fields.iter_mut().for_each(|field| field.description = of(&field.name))
        }
        Shape::Words { words, .. } => words.iter_mut().for_each(|word| word.description = of(&word.word)),
        Shape::List { items, .. } => add_to_parts(items, comments),
        Shape::OneOf { options, .. } => options.iter_mut().for_each(|option| add_to_parts(option, comments)),
        _ => {}
    }
}

/// Whether a type of a description, such as `FileInfo`, is this one of WIT: `file-info`.
fn is_name_of(described: &str, name: &str) -> bool {
    name.split('-')
        .flat_map(str::chars)
        .map(|letter| letter.to_ascii_lowercase())
        .eq(described.chars().map(|letter| letter.to_ascii_lowercase()))
}

fn text(docs: &Docs) -> String {
    docs.contents.clone().unwrap_or_default()
}
