//! Definitions of types in Rust.

use weir_openrpc::{Field, Schema, Shape, Word};

use super::{
    doc, field_name, rename, string,
    types::{Place, Types, kind},
    variants::Variants,
};
use crate::{
    contract::word_of,
    cycle::{Way, leads_to},
    names::{Scope, pascal, snake},
    text::Code,
    union::{NamedVariant, Union, Variant},
};

/// Writes the definition of a type. `named` is the type of the document that it is, or lies in.
pub(super) fn write(
    types: &mut Types<'_>,
    code: &mut Code,
    name: &str,
    named: Option<&str>,
    schema: &Schema,
) {
    let description = &schema.description;
    code.gap();
    match &schema.shape {
        Shape::Record { fields, strict } => {
            let default: &[_] = if fields.iter().all(|field| !field.required) { &["Default"] } else { &[] };
            types.derive(code, description, default);
            if *strict {
                code.line("#[serde(deny_unknown_fields)]");
            }
            record(types, code, &format!("pub struct {name}"), name, named, fields, "pub ");
        }
        Shape::Words { words, open } => self::words(types, code, name, description, words, *open),
        Shape::OneOf { options, open } => {
            let document = types.document;
            match Union::of(document, options) {
                Union::Tagged { tag, variants, strict } => {
                    types.derive(code, description, &[]);
                    let mut attributes = vec![format!("tag = {}", string(tag))];
                    attributes.extend(strict.then(|| "deny_unknown_fields".into()));
                    tagged(types, code, name, named, &variants, *open, attributes);
                }
                Union::Named(variants) => {
                    types.derive(code, description, &[]);
                    by_name(types, code, name, named, &variants, *open);
                }
                Union::Plain => untagged(types, code, name, named, schema),
            }
        }
        Shape::Never => undescribed(types, code, name, description, "", |code| {
            code.line(format!("pub enum {name} {{}}"));
        }),
        _ => match word_of(schema) {
            Some(word) => {
                let word = Word { word: word.into(), description: String::new() };
                words(types, code, name, description, &[word], false);
            }
            None => alias(types, code, name, named, schema),
        },
    }
}

fn record(
    types: &mut Types<'_>,
    code: &mut Code,
    head: &str,
    name: &str,
    named: Option<&str>,
    fields: &[Field],
    visibility: &str,
) {
    if fields.is_empty() {
        code.line(format!("{head} {{}}"));
        return;
    }
    code.line(format!("{head} {{"));
    code.inside("    ", |code| {
        let mut scope = Scope::default();
        for field in fields {
            let own = field_name(&mut scope, &field.name);
            let hint = format!("{name}{}", pascal(&snake(&field.name)));
            let of = types.of_field(field, Place { hint: &hint, inside: named });
            doc(code, &field.description);
            let mut attributes: Vec<String> = rename(&own, &field.name).into_iter().collect();
            if !field.required {
                attributes.push("skip_serializing_if = \"Option::is_none\"".into());
            }
            if !attributes.is_empty() {
                code.line(format!("#[serde({})]", attributes.join(", ")));
            }
            // Left out, but not null.
            if types.described
                && !field.required
                && !matches!(field.schema.shape, Shape::Any | Shape::Nullable(_))
                && let Some(of) = of.strip_prefix("Option<").and_then(|of| of.strip_suffix('>'))
            {
                code.line(format!("#[shape(as = {of:?})]"));
            }
            code.line(format!("{visibility}{own}: {of},"));
        }
    });
    code.line("}");
}

fn words(types: &Types<'_>, code: &mut Code, name: &str, description: &str, words: &[Word], open: bool) {
    types.derive(code, description, &["Copy", "Eq", "Hash"]);
    let mut variants = Variants::of(words.iter().map(|word| &*word.word));
    code.line_if_some(variants.attribute(Vec::new()));
    code.line(format!("pub enum {name} {{"));
    code.inside("    ", |code| {
        for (Word { word, description }, own) in words.iter().zip(variants.names()) {
            variants.begin(code, &own, word, description);
            code.line(format!("{own},"));
        }
        variants.end(code, open);
    });
    code.line("}");
}

fn tagged(
    types: &mut Types<'_>,
    code: &mut Code,
    name: &str,
    named: Option<&str>,
    variants: &[Variant<'_>],
    open: bool,
    attributes: Vec<String>,
) {
    let mut names = Variants::of(variants.iter().map(|variant| variant.word));
    code.line_if_some(names.attribute(attributes));
    code.line(format!("pub enum {name} {{"));
    code.inside("    ", |code| {
        for (Variant { word, description, fields }, own) in variants.iter().zip(names.names()) {
            names.begin(code, &own, word, description);
            if fields.is_empty() {
                code.line(format!("{own},"));
            } else {
                let fields: Vec<Field> = fields.iter().map(|field| (*field).clone()).collect();
                let hint = format!("{name}{own}");
                struct_variant(types, code, &own, &hint, named, &fields);
            }
        }
        names.end(code, open);
    });
    code.line("}");
}

fn by_name(
    types: &mut Types<'_>,
    code: &mut Code,
    name: &str,
    named: Option<&str>,
    variants: &[NamedVariant<'_>],
    open: bool,
) {
    let mut names = Variants::of(variants.iter().map(|variant| variant.name));
    code.line_if_some(names.attribute(Vec::new()));
    code.line(format!("pub enum {name} {{"));
    code.inside("    ", |code| {
        for (NamedVariant { name: word, description, content }, own) in variants.iter().zip(names.names()) {
            names.begin(code, &own, word, description);
            let hint = format!("{name}{own}");
            match content.map(|content| (content, &content.shape)) {
                None => code.line(format!("{own},")),
                Some((_, Shape::Record { fields, strict: false })) if !fields.is_empty() => {
                    struct_variant(types, code, &own, &hint, named, fields);
                }
                Some((content, _)) => {
                    let of = types.of(content, Place { hint: &hint, inside: named });
                    // A tuple is a variant with several values.
                    let values = match &content.shape {
                        Shape::Tuple(places) if places.len() > 1 => {
                            of.strip_prefix('(').and_then(|of| of.strip_suffix(')'))
                        }
                        _ => None,
                    };
                    code.line(format!("{own}({}),", values.unwrap_or(&of)));
                }
            }
        }
        names.end(code, open);
    });
    code.line("}");
}

fn struct_variant(
    types: &mut Types<'_>,
    code: &mut Code,
    own: &str,
    hint: &str,
    named: Option<&str>,
    fields: &[Field],
) {
    let mut inner = Code::default();
    record(types, &mut inner, own, hint, named, fields, "");
    let text = inner.into_text();
    code.lines(text.trim_end());
    code.append(",");
}

fn untagged(types: &mut Types<'_>, code: &mut Code, name: &str, named: Option<&str>, schema: &Schema) {
    let Shape::OneOf { options, open } = &schema.shape else { return };
    let mut variants = Code::default();
    variants.line(format!("pub enum {name} {{"));
    variants.inside("    ", |code| {
        let mut scope = Scope::with(&["Self"]);
        for option in options {
            doc(code, &option.description);
            let own = scope.take(&kind(option));
            let of = types.of(option, Place { hint: &format!("{name}{own}"), inside: named });
            code.line(format!("{own}({of}),"));
        }
        if *open {
            doc(code, "A value of a later version of the contract.");
            code.line(format!("{}(serde_json::Value),", scope.take("Other")));
        }
    });
    variants.line("}");
    let text = variants.into_text();
    undescribed(types, code, name, &schema.description, "#[serde(untagged)]", |code| {
        code.lines(text.trim_end())
    });
}

/// A type that cannot describe itself: a caller's description says that it may be anything.
fn undescribed(
    types: &Types<'_>,
    code: &mut Code,
    name: &str,
    description: &str,
    attribute: &str,
    write: impl FnOnce(&mut Code),
) {
    doc(code, description);
    code.line("#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]");
    if !attribute.is_empty() {
        code.line(attribute);
    }
    write(code);
    if types.described {
        code.gap();
        code.line(format!("impl weir_sdk::Shape for {name} {{"));
        code.line("    const SCHEMA: &'static weir_sdk::shape::Schema = &weir_sdk::shape::Schema::Any;");
        code.line("}");
    }
}

/// Another name for a type. A type that consists of itself needs a type of its own.
fn alias(types: &mut Types<'_>, code: &mut Code, name: &str, named: Option<&str>, schema: &Schema) {
    let recursive = named.is_some_and(|named| leads_to(types.document, schema, named, Way::Alias));
    let of = types.of(schema, Place { hint: &format!("{name}Value"), inside: named });
    if recursive {
        types.derive(code, &schema.description, &[]);
        code.line(format!("pub struct {name}(pub {of});"));
    } else {
        doc(code, &schema.description);
        code.line(format!("pub type {name} = {of};"));
    }
}
