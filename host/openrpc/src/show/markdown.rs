//! Documents as Markdown.

use std::fmt::Write;

use weir_names::harmless;

use super::type_text;
use crate::{Arguments, Document, ErrorCode, Field, Payload, Schema, Shape, Word};

/// The most bytes that are shown of a line of a description, of a cell, or of a type.
const MAX_DESCRIPTION: usize = 8 << 10;

impl Document {
    /// The document as a section of a page of Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut page = Page(String::new());
        page.block(&format!("## {}", code(self.contract.as_str())));
        page.description(&self.description);
        for method in &self.methods {
            page.block(&format!("### {}", code(&method.name)));
            page.description(&method.description);
            page.arguments(&method.arguments);
            page.payload("Answers", &method.result);
            page.errors(&method.errors);
        }
        for topic in &self.topics {
            page.block(&format!("### Topic {}", code(&topic.pattern)));
            page.description(&topic.description);
            page.payload("Carries", &topic.payload);
        }
        for queue in &self.queues {
            page.block(&format!("### Queue {}", code(&queue.name)));
            page.description(&queue.description);
            page.payload("Holds", &queue.job);
        }
        for (name, schema) in &self.types {
            page.block(&format!("### Type {}", code(name)));
            page.description(&schema.description);
            page.named(schema);
        }
        page.0
    }
}

struct Page(String);

impl Page {
    /// Adds a paragraph, a heading or a table.
    fn block(&mut self, text: &str) {
        let before = if self.0.is_empty() { "" } else { "\n" };
        // Writing to a string cannot fail.
        let _fits = writeln!(self.0, "{before}{text}");
    }

    fn description(&mut self, description: &str) {
        if !description.is_empty() {
            let lines: Vec<String> = description.lines().map(plain).collect();
            self.block(&lines.join("\n"));
        }
    }

    fn arguments(&mut self, arguments: &Arguments) {
        match arguments {
            Arguments::Bytes => self.block("Takes bytes."),
            Arguments::Value(schema) => self.block(&format!("Takes {}.", code(&type_text(schema)))),
            Arguments::Fields { fields, .. } if fields.is_empty() => self.block("Takes no arguments."),
            Arguments::Fields { fields, strict, .. } => {
                self.fields("argument", fields);
                if *strict {
                    self.block("Other arguments are refused.");
                }
            }
        }
    }

    fn payload(&mut self, verb: &str, payload: &Payload) {
        match payload {
            Payload::Bytes => self.block(&format!("{verb} bytes.")),
            Payload::Json { schema, .. } => {
                let description = one_line(&schema.description);
                let colon = if description.is_empty() { "." } else { ": " };
                self.block(&format!("{verb} {}{colon}{description}", code(&type_text(schema))));
            }
        }
    }

    fn errors(&mut self, errors: &[ErrorCode]) {
        let row = |error: &ErrorCode| format!("| {} | {} |", code(&error.code), cell(&error.description));
        self.table("| error | |\n| --- | --- |", errors.iter().map(row));
    }

    fn fields(&mut self, what: &str, fields: &[Field]) {
        let row = |field: &Field| {
            let optional = if field.required { "" } else { ", optional" };
            let kind = cell(&code(&type_text(&field.schema)));
            format!("| {} | {kind}{optional} | {} |", cell(&code(&field.name)), cell(&field.description))
        };
        self.table(&format!("| {what} | type | |\n| --- | --- | --- |"), fields.iter().map(row));
    }

    fn named(&mut self, schema: &Schema) {
        match &schema.shape {
            Shape::Record { fields, .. } if !fields.is_empty() => self.fields("field", fields),
            Shape::Words { words, open } => {
                let row =
                    |word: &Word| format!("| {} | {} |", cell(&code(&word.word)), cell(&word.description));
                self.table("| word | |\n| --- | --- |", words.iter().map(row));
                self.more(*open);
            }
            Shape::OneOf { options, open } => {
                let row = |option: &Schema| {
                    format!("| {} | {} |", cell(&code(&type_text(option))), cell(&option.description))
                };
                self.table("| one of | |\n| --- | --- |", options.iter().map(row));
                self.more(*open);
            }
            _ => self.block(&format!("{}.", code(&type_text(schema)))),
        }
    }

    fn table(&mut self, head: &str, rows: impl Iterator<Item = String>) {
        let rows: Vec<String> = rows.collect();
        if !rows.is_empty() {
            self.block(&format!("{head}\n{}", rows.join("\n")));
        }
    }

    fn more(&mut self, open: bool) {
        if open {
            self.block("A later version may have more.");
        }
    }
}

fn plain(line: &str) -> String {
    harmless(line, MAX_DESCRIPTION)
}

fn one_line(text: &str) -> String {
    plain(&text.lines().map(str::trim).collect::<Vec<_>>().join(" "))
}

/// The text of a table's cell: on one line, and without characters that end a cell.
fn cell(text: &str) -> String {
    one_line(text).replace('|', "\\|")
}

/// A code span of any text.
fn code(text: &str) -> String {
    let text = plain(text);
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}
