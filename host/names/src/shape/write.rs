//! Writes schemas as JSON: JSON Schema 2020-12, in the form that schemars gives them.

use super::{Definitions, Described, Field, Schema, definitions::in_place};
use crate::json::Writer;

/// Writes schemas that refer to definitions.
pub(crate) struct Schemas<'a, 'b> {
    pub(crate) json: &'a mut Writer<'b>,
    pub(crate) definitions: &'a Definitions,
    /// Whether descriptions for people are written.
    pub(crate) with_docs: bool,
}

impl Schemas<'_, '_> {
    /// Writes the schema of a value. `doc` says what the value is in its place.
    pub(crate) const fn schema(&mut self, schema: &Schema, doc: &str) {
        self.value(schema, doc, false);
    }

    /// Writes the schema of a value. With `nullable`, which only schemas of one JSON type allow, the value may be
    /// `null`.
    const fn value(&mut self, schema: &Schema, doc: &str, nullable: bool) {
        match schema {
            Schema::Any if doc.is_empty() || !self.with_docs => return self.json.text("true"),
            Schema::Any => {
                self.json.text("{\"description\":");
                self.json.string(doc);
                return self.json.text("}");
            }
            Schema::Nullable(inner) => return self.nullable(inner, doc),
            Schema::Simple { kind, keywords } => {
                self.kind(kind, nullable);
                self.json.text(keywords);
            }
            Schema::Word(word) => self.word(word),
            Schema::Words { words, open } => {
                self.json.text("{\"type\":\"string\",\"enum\":[");
                self.words(words);
                self.json.text(if *open { "],\"x-open\":true" } else { "]" });
            }
            Schema::List(items) => self.list(items, nullable),
            Schema::Set(items) => {
                self.list(items, nullable);
                self.json.text(",\"uniqueItems\":true");
            }
            Schema::Array(_, 0) => self.places(&[], nullable),
            Schema::Array(items, length) => {
                self.list(items, nullable);
                self.lengths(*length);
            }
            Schema::Map(values) => {
                self.kind("object", nullable);
                self.json.text(",\"additionalProperties\":");
                self.schema(values, "");
            }
            Schema::Tuple(places) => self.places(places, nullable),
            Schema::Record { fields, strict } => {
                self.kind("object", nullable);
                self.record(None, fields, *strict);
            }
            Schema::Tagged { tag, word, content } => return self.tagged(tag, word, content, doc),
            Schema::OneOf { options, open } => {
                self.json.text("{\"oneOf\":[");
                self.options(options);
                self.json.text(if *open { "],\"x-open\":true" } else { "]" });
            }
            Schema::Named(reference) => {
                self.json.text("{\"$ref\":\"#/components/schemas/");
                self.definitions.write_name(self.json, reference.get());
                self.json.text("\"");
            }
        }
        self.end(doc);
    }

    const fn nullable(&mut self, inner: &Schema, doc: &str) {
        match inner {
            Schema::Word(_)
            | Schema::Words { .. }
            | Schema::Tagged { .. }
            | Schema::OneOf { .. }
            | Schema::Named(_) => {
                self.json.text("{\"anyOf\":[");
                self.schema(inner, "");
                self.json.text(",{\"type\":\"null\"}]");
                self.end(doc);
            }
            _ => self.value(inner, doc, true),
        }
    }

    /// Begins the schema of a JSON type.
    const fn kind(&mut self, kind: &str, nullable: bool) {
        let nullable = nullable && !matches!(kind.as_bytes(), b"null");
        self.json.text(if nullable { "{\"type\":[\"" } else { "{\"type\":\"" });
        self.json.text(kind);
        self.json.text(if nullable { "\",\"null\"]" } else { "\"" });
    }

    /// Ends a schema.
    const fn end(&mut self, doc: &str) {
        if self.with_docs && !doc.is_empty() {
            self.json.text(",\"description\":");
            self.json.string(doc);
        }
        self.json.text("}");
    }

    const fn list(&mut self, items: &Schema, nullable: bool) {
        self.kind("array", nullable);
        self.json.text(",\"items\":");
        self.schema(items, "");
    }

    const fn lengths(&mut self, length: usize) {
        self.json.text(",\"minItems\":");
        self.json.number(length);
        self.json.text(",\"maxItems\":");
        self.json.number(length);
    }

    const fn places(&mut self, places: &[Described], nullable: bool) {
        self.kind("array", nullable);
        if places.is_empty() {
            return self.json.text(",\"maxItems\":0");
        }
        self.json.text(",\"prefixItems\":[");
        self.options(places);
        self.json.text("]");
        self.lengths(places.len());
    }

    /// Writes schemas, separated by commas.
    const fn options(&mut self, options: &[Described]) {
        let mut rest = options;
        while let [option, tail @ ..] = rest {
            self.schema(option.schema, option.doc);
            if !tail.is_empty() {
                self.json.text(",");
            }
            rest = tail;
        }
    }

    /// Begins the schema of a word.
    const fn word(&mut self, word: &str) {
        self.json.text("{\"type\":\"string\",\"const\":");
        self.json.string(word);
    }

    const fn words(&mut self, words: &[&str]) {
        let mut rest = words;
        while let [word, tail @ ..] = rest {
            self.json.string(word);
            if !tail.is_empty() {
                self.json.text(",");
            }
            rest = tail;
        }
    }

    const fn tagged(&mut self, tag: &str, word: &str, content: &'static Schema, doc: &str) {
        let own_doc = match content {
            Schema::Named(reference) if doc.is_empty() => reference.get().doc,
            _ => doc,
        };
        self.kind("object", false);
        match in_place(content) {
            Schema::Record { fields, strict } => self.record(Some((tag, word)), fields, *strict),
            Schema::Map(values) => {
                self.record(Some((tag, word)), &[], false);
                self.json.text(",\"additionalProperties\":");
                self.schema(values, "");
            }
            _ => panic!("beside a tag, only the fields of a struct or the entries of a map can be described"),
        }
        self.end(own_doc);
    }

    const fn record(&mut self, tag: Option<(&str, &str)>, fields: &[Field], strict: bool) {
        if tag.is_some() || !fields.is_empty() {
            self.properties(tag, fields);
            self.required(tag, fields);
        }
        if strict {
            self.json.text(",\"additionalProperties\":false");
        }
    }

    const fn properties(&mut self, tag: Option<(&str, &str)>, fields: &[Field]) {
        self.json.text(",\"properties\":");
        let mut separator = "{";
        if let Some((tag, word)) = tag {
            self.json.text(separator);
            self.json.string(tag);
            self.json.text(":");
            self.word(word);
            self.json.text("}");
            separator = ",";
        }
        each!(field in fields => {
            self.json.text(separator);
            self.json.string(field.name);
            self.json.text(":");
            self.schema(field.schema, field.doc);
            separator = ",";
        });
        self.json.text("}");
    }

    const fn required(&mut self, tag: Option<(&str, &str)>, fields: &[Field]) {
        const BEGIN: &str = ",\"required\":[";
        let mut separator = BEGIN;
        if let Some((tag, _)) = tag {
            self.json.text(separator);
            self.json.string(tag);
            separator = ",";
        }
        each!(field in fields => {
            if !field.optional {
                self.json.text(separator);
                self.json.string(field.name);
                separator = ",";
            }
        });
        if separator.len() < BEGIN.len() {
            self.json.text("]");
        }
    }
}
