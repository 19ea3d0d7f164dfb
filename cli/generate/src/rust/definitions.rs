//! Definitions of types in Rust.

use weir_openrpc::{Field, Schema, Shape, Word};

use super::{
    doc, field_name, rename, string,
    types::{Place, Types, Way, kind, leads_to},
};
use crate::{
    contract::word_of,
    names::{Scope, camel, pascal, snake},
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
        Shape::Never => undescribed(types, code, name, description, "", |_, code| {
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
    code.block(format!("{head} {{"), "    ", |code| {
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
            // The field may be left out, but not be null.
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
}

fn words(types: &Types<'_>, code: &mut Code, name: &str, description: &str, words: &[Word], open: bool) {
    types.derive(code, description, &["Copy", "Eq", "Hash"]);
    let variants: Vec<_> = words.iter().map(|word| (&*word.word, &*word.description, ())).collect();
    enumeration(code, name, Vec::new(), open, &variants, |code, own, ()| code.line(format!("{own},")));
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
    let variants: Vec<_> =
        variants.iter().map(|variant| (variant.word, variant.description, &variant.fields)).collect();
    enumeration(code, name, attributes, open, &variants, |code, own, fields| {
        if fields.is_empty() {
            return code.line(format!("{own},"));
        }
        let fields: Vec<Field> = fields.iter().map(|field| (*field).clone()).collect();
        record(types, code, own, &format!("{name}{own}"), named, &fields, "");
        code.append(",");
    });
}

fn by_name(
    types: &mut Types<'_>,
    code: &mut Code,
    name: &str,
    named: Option<&str>,
    variants: &[NamedVariant<'_>],
    open: bool,
) {
    let variants: Vec<_> =
        variants.iter().map(|variant| (variant.name, variant.description, variant.content)).collect();
    enumeration(code, name, Vec::new(), open, &variants, |code, own, content| {
        let hint = format!("{name}{own}");
        match content.map(|content| (content, &content.shape)) {
            None => code.line(format!("{own},")),
            Some((_, Shape::Record { fields, strict: false })) if !fields.is_empty() => {
                record(types, code, own, &hint, named, fields, "");
                code.append(",");
            }
            Some((content, _)) => {
                let of = types.of(content, Place { hint: &hint, inside: named });
                // A tuple becomes a variant with several values.
                let values = match &content.shape {
                    Shape::Tuple(places) if places.len() > 1 => {
                        of.strip_prefix('(').and_then(|of| of.strip_suffix(')'))
                    }
                    _ => None,
                };
                code.line(format!("{own}({}),", values.unwrap_or(&of)));
            }
        }
    });
}

/// Writes an enum. A variant has a word, a description, and what `write` writes by its name.
fn enumeration<V>(
    code: &mut Code,
    name: &str,
    mut attributes: Vec<String>,
    open: bool,
    variants: &[(&str, &str, V)],
    mut write: impl FnMut(&mut Code, &str, &V),
) {
    let mut scope = Scope::with("Self");
    let names: Vec<_> = variants.iter().map(|(word, ..)| (scope.take(&pascal(word)), *word)).collect();
    let rule = rule(&names);
    attributes.extend(rule.map(|rule| format!("rename_all = \"{rule}\"")));
    if !attributes.is_empty() {
        code.line(format!("#[serde({})]", attributes.join(", ")));
    }
    code.block(format!("pub enum {name} {{"), "    ", |code| {
        for ((own, word), (_, description, variant)) in names.iter().zip(variants) {
            doc(code, description);
            if let (None, Some(rename)) = (rule, rename(own, word)) {
                code.line(format!("#[serde({rename})]"));
            }
            write(code, own, variant);
        }
        if open {
            doc(code, LATER);
            code.line("#[serde(other)]");
            code.line(format!("{},", scope.take("Other")));
        }
    });
}

/// The description of the variant for values of a later version.
const LATER: &str = "A value of a later version of the contract. It is not to be sent.";

/// A rule of serde: its name, and how it makes the word of a variant from its name.
type Rule = (&'static str, fn(&str) -> String);

const RULES: &[Rule] = &[
    ("lowercase", str::to_ascii_lowercase),
    ("camelCase", camel),
    ("snake_case", snake),
    ("kebab-case", |name| snake(name).replace('_', "-")),
];

/// Returns the rule for these names and words, if one is needed and there is one.
fn rule(names: &[(String, &str)]) -> Option<&'static str> {
    // serde takes each capital letter for the beginning of a word.
    let is_plain = |name: &String| *name == pascal(&snake(name));
    let follow = |(_, rule): &&Rule| names.iter().all(|(name, word)| is_plain(name) && rule(name) == *word);
    let is_needed = names.iter().any(|(name, word)| name != word);
    RULES.iter().find(follow).filter(|_| is_needed).map(|(rule, _)| *rule)
}

fn untagged(types: &mut Types<'_>, code: &mut Code, name: &str, named: Option<&str>, schema: &Schema) {
    let Shape::OneOf { options, open } = &schema.shape else { return };
    undescribed(types, code, name, &schema.description, "#[serde(untagged)]", |types, code| {
        code.block(format!("pub enum {name} {{"), "    ", |code| {
            let mut scope = Scope::with("Self");
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
    });
}

/// Writes a type that cannot describe itself. In an extension's description of the contract it may be anything.
fn undescribed(
    types: &mut Types<'_>,
    code: &mut Code,
    name: &str,
    description: &str,
    attribute: &str,
    write: impl FnOnce(&mut Types<'_>, &mut Code),
) {
    doc(code, description);
    code.line("#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]");
    if !attribute.is_empty() {
        code.line(attribute);
    }
    write(types, code);
    if types.described {
        code.gap();
        code.line(format!("impl weir_sdk::Shape for {name} {{"));
        code.line("    const SCHEMA: &'static weir_sdk::shape::Schema = &weir_sdk::shape::Schema::Any;");
        code.line("}");
    }
}

/// Writes another name for a type. If the type is defined by itself, writes a struct around it instead.
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
