//! The contracts that the interfaces of a WIT package are, as `docs/exports.md` says.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use anyhow::{Context, anyhow};
use weir_host::{
    component::inspect_bytes,
    openrpc::{Document, Role, Schema, Shape},
};
use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{
    Docs, Interface, InterfaceId, LiftLowerAbi, ManglingAndAbi, Resolve, Type, TypeDef, TypeDefKind, WorldId,
    WorldKey,
};

/// The package of a world that exports all interfaces of another. No other is likely to have its name.
const PACKAGE: &str = "weir-describes:all-of-a-package";

/// Describes the package in a file or directory: what a component of each of its worlds describes, and one that exports all
/// its interfaces, with the comments.
pub(super) fn of_wit(path: &Path) -> anyhow::Result<Vec<Document>> {
    let mut resolve = Resolve::default();
    let pushed = resolve.push_path(path);
    let (package, _) = pushed.map_err(|error| anyhow!(in_one_line(&resolve.render_error(&error))))?;
    let package = resolve.packages.get(package).context("it has no package")?;
    let has_functions =
        |id: &&InterfaceId| resolve.interfaces.get(**id).is_some_and(|it| !it.functions.is_empty());
    let own = package.interfaces.values().filter(has_functions).filter_map(|id| full_name(&resolve, *id));
    let exports: String = own.map(|name| format!("export {name};\n")).collect();
    let has_some = |id: &WorldId| {
        let world = resolve.worlds.get(*id);
        world.is_some_and(|world| !world.imports.is_empty() || !world.exports.is_empty())
    };
    let mut worlds: Vec<WorldId> = package.worlds.values().copied().filter(has_some).collect();
    if !exports.is_empty() {
        let all = resolve.push_str("all.wit", &format!("package {PACKAGE};\nworld all {{\n{exports}}}\n"));
        let all = all.map_err(|error| anyhow!(in_one_line(&resolve.render_error(&error))))?;
        worlds.insert(0, resolve.select_world(&[all], Some("all"))?);
    }
    let mut documents: Vec<Document> = Vec::new();
    for world in worlds {
        let of_world = of_world(&resolve, world)?;
        let is_there = |new: &Document| {
            documents
                .iter()
                .any(|it| it.role == new.role && it.export == new.export && it.methods == new.methods)
        };
        let new: Vec<_> = of_world.into_iter().filter(|new| !is_there(new)).collect();
        documents.extend(new);
    }
    // What the package has itself, nobody else is expected to have.
    let own: HashSet<_> =
        documents.iter().filter(|it| it.role == Role::Provider).filter_map(|it| it.export.clone()).collect();
    documents.retain(|it| it.role == Role::Provider || it.export.as_ref().is_none_or(|it| !own.contains(it)));
    Ok(documents)
}

/// What a component of this world describes.
fn of_world(resolve: &Resolve, id: WorldId) -> anyhow::Result<Vec<Document>> {
    let mut module = dummy_module(resolve, id, ManglingAndAbi::Legacy(LiftLowerAbi::Sync));
    embed_component_metadata(&mut module, resolve, id, StringEncoding::UTF8, false)?;
    let component = ComponentEncoder::default().module(&module)?.encode()?;
    let inspection = inspect_bytes(&component)?;
    let undescribed = inspection.undescribed();
    anyhow::ensure!(undescribed.is_empty(), "{}", undescribed.join("; "));
    let world = resolve.worlds.get(id).context("it has no world")?;
    let keys = world.imports.keys().chain(world.exports.keys());
    let interfaces: HashMap<String, InterfaceId> = keys
        .filter_map(|key| match key {
            WorldKey::Interface(id) => Some((resolve.id_of(*id)?, *id)),
            WorldKey::Name(_) => None,
        })
        .collect();
    let mut documents = inspection.contracts;
    for document in &mut documents {
        let interface = document.export.as_ref().and_then(|export| interfaces.get(export));
        if let Some(interface) = interface.and_then(|id| resolve.interfaces.get(*id)) {
            add_comments(document, resolve, interface);
        }
    }
    Ok(documents)
}

/// The name of an interface as it stands in WIT, where some names are words of the language.
fn full_name(resolve: &Resolve, id: InterfaceId) -> Option<String> {
    let interface = resolve.interfaces.get(id)?;
    let (name, package) = (interface.name.as_ref()?, &resolve.packages.get(interface.package?)?.name);
    let version = package.version.as_ref().map(|version| format!("@{version}")).unwrap_or_default();
    Some(format!("%{}:%{}/%{name}{version}", package.namespace, package.name))
}

/// The message of an error, with its place before it. What is rendered has the place and a part of the file below.
fn in_one_line(rendered: &str) -> String {
    let mut lines = rendered.lines().map(str::trim).filter(|line| !line.is_empty());
    let message = lines.next().unwrap_or_default();
    match lines.find_map(|line| line.strip_prefix("--> ")) {
        Some(place) => format!("{place}: {message}"),
        None => {
            [message].into_iter().chain(rendered.lines().map(str::trim).skip(1)).collect::<Vec<_>>().join(" ")
        }
    }
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
        let mut found = resolve.types.get(*id);
        // A type of another interface is there under a name of its own.
        while let Some(TypeDef { kind: TypeDefKind::Type(Type::Id(id)), .. }) = found {
            found = resolve.types.get(*id);
        }
        let (Some((_, schema)), Some(ty)) = (described, found) else { continue };
        schema.description = text(&ty.docs);
        let parts: Vec<(&str, &Docs)> = match &ty.kind {
            TypeDefKind::Record(record) => {
                record.fields.iter().map(|field| (&*field.name, &field.docs)).collect()
            }
            TypeDefKind::Variant(variant) => {
                variant.cases.iter().map(|case| (&*case.name, &case.docs)).collect()
            }
            TypeDefKind::Enum(cases) => cases.cases.iter().map(|case| (&*case.name, &case.docs)).collect(),
            TypeDefKind::Flags(flags) => flags.flags.iter().map(|flag| (&*flag.name, &flag.docs)).collect(),
            _ => Vec::new(),
        };
        add_to_parts(schema, &parts.into_iter().collect());
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
        Shape::OneOf { options, .. } => {
            for option in options {
                match &option.shape {
                    Shape::Record { fields, .. } if let [case] = &**fields => {
                        option.description = of(&case.name)
                    }
                    _ => add_to_parts(option, comments),
                }
            }
        }
        _ => {}
    }
}

/// Whether a type of a description, such as `FileInfo`, is this one of WIT: `file-info`.
fn is_name_of(described: &str, name: &str) -> bool {
    let letters = name.chars().filter(|letter| *letter != '-');
    letters.map(|letter| letter.to_ascii_lowercase()).eq(described.chars().map(|it| it.to_ascii_lowercase()))
}

fn text(docs: &Docs) -> String {
    docs.contents.clone().unwrap_or_default()
}
