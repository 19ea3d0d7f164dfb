//! A description as an OpenRPC document, on one line.

use super::{Description, Item, Kind, Payload, Role};
use crate::{
    Contract,
    json::Writer,
    shape::{Definitions, Field, Schema, Schemas, in_place},
};

impl Contract {
    /// Refuses a description that cannot become a document for Main. A contract without a description passes.
    ///
    /// # Panics
    /// If two operations, topics or queues of the contract have one name, or two of its types; if it has more than 256
    /// types; if a type cannot be described; or if the document is too long for Main.
    #[doc(hidden)]
    pub const fn check_description(self) {
        let mut counter = Writer::new(&mut []);
        self.write_document(Role::Provider, &mut counter);
        assert!(
            counter.length() <= Description::MOST_BYTES,
            "the description of this contract has more than 64 KiB"
        );
    }

    /// Writes the document of a contract and a line end. Writes nothing for a contract without a description.
    ///
    /// # Panics
    /// For the reasons of `check_description`, but for the length, which this function does not check.
    #[doc(hidden)]
    pub const fn write_document(self, role: Role, json: &mut Writer<'_>) {
        let Some(description) = self.description() else { return };
        description.refuse_twins();
        let with_docs = matches!(role, Role::Provider);
        json.text("{\"openrpc\":\"1.3.2\",\"info\":{\"title\":");
        json.string(self.name());
        json.text(",\"version\":");
        json.string(version(self.name()));
        if with_docs && !description.doc.is_empty() {
            json.text(",\"description\":");
            json.lines(description.doc);
        }
        json.text("},\"x-role\":");
        json.string(match role {
            Role::Provider => "provider",
            Role::Caller => "caller",
        });
        let definitions = &description.definitions();
        let mut document =
            Document { contract: self.name(), schemas: Schemas { json, definitions, with_docs } };
        document.list(",\"methods\":[", Kind::Operation, description.items);
        document.list(",\"x-topics\":[", Kind::Topic, description.items);
        document.list(",\"x-queues\":[", Kind::Queue, description.items);
        document.components();
        json.text("}\n");
    }
}

impl Description {
    /// The types with names that the document refers to. A struct of arguments is written as parameters, so only the
    /// types of its fields are among them.
    const fn definitions(&self) -> Definitions {
        let mut definitions = Definitions::new();
        each!(item in self.items => {
            match item {
                Item::Operation { arguments, result, .. } => {
                    match arguments {
                        Payload::Bytes => {}
                        Payload::Json(schema) => match fields(schema) {
                            Some((_, fields, _)) => definitions.add_fields(fields),
                            None => definitions.add(schema),
                        },
                    }
                    add(&mut definitions, result);
                }
                Item::Topic { payload, .. } | Item::Queue { payload, .. } => add(&mut definitions, payload),
            }
        });
        definitions
    }
}

struct Document<'a, 'b> {
    contract: &'static str,
    schemas: Schemas<'a, 'b>,
}

impl Document<'_, '_> {
    /// Writes the list of items of one kind. Writes an empty list only for `methods`, which a document must have.
    const fn list(&mut self, begin: &str, kind: Kind, items: &'static [Item]) {
        let mut is_begun = matches!(kind, Kind::Operation);
        if is_begun {
            self.text(begin);
        }
        let mut separator = "";
        each!(item in items => {
            if item.kind() as u8 != kind as u8 {
                continue;
            }
            if !is_begun {
                self.text(begin);
                is_begun = true;
            }
            self.text(separator);
            self.item(item);
            separator = ",";
        });
        if is_begun {
            self.text("]");
        }
    }

    const fn item(&mut self, item: &Item) {
        self.text("{\"name\":");
        match item {
            Item::Operation { name, .. } => self.schemas.json.string_of(&[self.contract, "/", name]),
            Item::Topic { name, .. } | Item::Queue { name, .. } => self.schemas.json.string(name),
        }
        if self.schemas.with_docs && !item.doc().is_empty() {
            self.text(",\"description\":");
            self.schemas.json.lines(item.doc());
        }
        match item {
            Item::Operation { arguments, result, errors, .. } => self.operation(arguments, result, errors),
            Item::Topic { payload, .. } => self.payload(",\"payload\":", payload),
            Item::Queue { payload, .. } => self.payload(",\"job\":", payload),
        }
        self.text("}");
    }

    const fn operation(&mut self, arguments: &Payload, result: &Payload, errors: &[(&str, &str)]) {
        match (arguments, result) {
            (Payload::Json(arguments), Payload::Json(result)) => {
                self.arguments(arguments);
                self.text(",\"result\":{\"name\":");
                self.result_name(result);
                self.text(",\"schema\":");
                self.schemas.schema(result, "");
                self.text("}");
            }
            _ => self.text(",\"x-bytes\":true,\"params\":[],\"result\":{\"name\":\"bytes\",\"schema\":{}}"),
        }
        if self.schemas.with_docs && !errors.is_empty() {
            self.errors(errors);
        }
    }

    const fn arguments(&mut self, arguments: &'static Schema) {
        let Some((name, fields, strict)) = fields(arguments) else {
            self.text(",\"params\":[],\"x-argument\":");
            return self.schemas.schema(arguments, "");
        };
        self.text(",\"paramStructure\":\"by-name\",\"x-arguments\":");
        self.schemas.json.string(name);
        self.text(if strict { ",\"x-strict\":true,\"params\":[" } else { ",\"params\":[" });
        let mut rest = fields;
        while let [field, tail @ ..] = rest {
            self.parameter(field);
            if !tail.is_empty() {
                self.text(",");
            }
            rest = tail;
        }
        self.text("]");
    }

    const fn parameter(&mut self, field: &Field) {
        self.text("{\"name\":");
        self.schemas.json.string(field.name);
        if self.schemas.with_docs && !field.doc.is_empty() {
            self.text(",\"description\":");
            self.schemas.json.string(field.doc);
        }
        self.text(if field.optional { ",\"schema\":" } else { ",\"required\":true,\"schema\":" });
        self.schemas.schema(field.schema, "");
        self.text("}");
    }

    const fn result_name(&mut self, result: &Schema) {
        self.text("\"");
        match result {
            Schema::Named(reference) => {
                self.schemas.definitions.write_name(self.schemas.json, reference.get())
            }
            _ => self.text("result"),
        }
        self.text("\"");
    }

    const fn errors(&mut self, errors: &[(&str, &str)]) {
        let mut separator = ",\"errors\":[";
        each!((code, meaning) in errors => {
            self.text(separator);
            // The gateway's code for an error of the provider's own.
            self.text("{\"code\":-32010,\"message\":");
            self.schemas.json.string(code);
            self.text(",\"data\":");
            self.schemas.json.string(meaning);
            self.text("}");
            separator = ",";
        });
        self.text("]");
    }

    const fn payload(&mut self, key: &str, payload: &Payload) {
        match payload {
            Payload::Bytes => self.text(",\"x-bytes\":true"),
            Payload::Json(schema) => {
                self.text(key);
                self.schemas.schema(schema, "");
            }
        }
    }

    const fn components(&mut self) {
        let mut place = 0;
        while let Some(definition) = self.schemas.definitions.get(place) {
            self.text(if place == 0 { ",\"components\":{\"schemas\":{\"" } else { ",\"" });
            self.schemas.definitions.write_name(self.schemas.json, definition);
            self.text("\":");
            self.schemas.schema(definition.schema, definition.doc);
            place += 1;
        }
        if place > 0 {
            self.text("}}");
        }
    }

    const fn text(&mut self, text: &str) {
        self.schemas.json.text(text);
    }
}

const fn add(definitions: &mut Definitions, payload: &Payload) {
    match payload {
        Payload::Bytes => {}
        Payload::Json(schema) => definitions.add(schema),
    }
}

/// The name and the fields of a struct, and whether other fields are refused. `None` for other types.
const fn fields(schema: &'static Schema) -> Option<(&'static str, &'static [Field], bool)> {
    let Schema::Named(outer) = schema else { return None };
    match in_place(schema) {
        Schema::Record { fields, strict } => Some((outer.get().name, fields, *strict)),
        _ => None,
    }
}

/// The text after `@`.
const fn version(contract: &'static str) -> &'static str {
    let mut rest = contract.as_bytes();
    while let [byte, tail @ ..] = rest {
        rest = tail;
        if *byte == b'@' {
            break;
        }
    }
    match str::from_utf8(rest) {
        Ok(version) => version,
        Err(_) => "",
    }
}
