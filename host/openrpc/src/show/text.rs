//! Documents as text for a terminal.

use std::fmt::Write;

use weir_names::harmless;

use super::{field_text, type_text};
use crate::{Arguments, Document, ErrorCode, Field, Payload, Role, Schema, Shape, path::shown};

/// The most bytes that are shown of a line of a description.
const MAX_DESCRIPTION: usize = 8 << 10;

impl Document {
    /// The document for people, in lines that end with `\n`. All of it is safe to show.
    #[must_use]
    pub fn text(&self) -> String {
        let mut page = Page(String::new());
        let role = if self.role == Role::Caller { " (what a caller expects)" } else { "" };
        page.line(0, &format!("{}{role}", self.contract));
        page.description(1, &self.description);
        for method in &self.methods {
            page.line(0, "");
            page.line(0, &shown(&method.name));
            page.description(1, &method.description);
            page.arguments(&method.arguments);
            page.payload("answers", &method.result);
            page.errors(&method.errors);
        }
        for topic in &self.topics {
            page.line(0, "");
            page.line(0, &format!("topic {}", shown(&topic.pattern)));
            page.description(1, &topic.description);
            page.payload("carries", &topic.payload);
        }
        for queue in &self.queues {
            page.line(0, "");
            page.line(0, &format!("queue {}", shown(&queue.name)));
            page.description(1, &queue.description);
            page.payload("holds", &queue.job);
        }
        for (name, schema) in &self.types {
            page.line(0, "");
            page.named(name, schema);
        }
        page.0
    }
}

struct Page(String);

impl Page {
    fn line(&mut self, depth: usize, text: &str) {
        let indent = if text.is_empty() { 0 } else { depth * 4 };
        // Writing to a string cannot fail.
        let _fits = writeln!(self.0, "{:indent$}{text}", "");
    }

    fn description(&mut self, depth: usize, description: &str) {
        for line in description.lines() {
            self.line(depth, &harmless(line, MAX_DESCRIPTION));
        }
    }

    fn arguments(&mut self, arguments: &Arguments) {
        match arguments {
            Arguments::Bytes => self.line(1, "takes bytes"),
            Arguments::Value(schema) => self.line(1, &format!("takes {}", type_text(schema))),
            Arguments::Fields { fields, .. } if fields.is_empty() => {}
            Arguments::Fields { fields, .. } => {
                self.line(1, "takes");
                self.fields(2, fields);
            }
        }
    }

    fn payload(&mut self, verb: &str, payload: &Payload) {
        match payload {
            Payload::Bytes => self.line(1, &format!("{verb} bytes")),
            Payload::Json { schema, .. } => {
                let description = first_line(&schema.description);
                self.line(1, &format!("{verb} {}{description}", type_text(schema)));
            }
        }
    }

    fn errors(&mut self, errors: &[ErrorCode]) {
        if !errors.is_empty() {
            self.line(1, "errors");
        }
        let rows = errors.iter().map(|error| (shown(&error.code), &*error.description));
        self.pairs(2, usize::MAX, rows.collect());
    }

    fn fields(&mut self, depth: usize, fields: &[Field]) {
        let rows = fields.iter().map(|field| (field_text(field), &*field.description));
        self.pairs(depth, 40, rows.collect());
    }

    /// Adds rows of two columns. The first column is as wide as its widest text of up to `max_width` characters.
    fn pairs(&mut self, depth: usize, max_width: usize, rows: Vec<(String, &str)>) {
        let widths = rows.iter().map(|(left, _)| left.chars().count());
        let width = widths.filter(|width| *width <= max_width).max().unwrap_or(0);
        for (left, right) in rows {
            self.pair(depth, width, &left, right);
        }
    }

    /// Adds a row of two columns. Further lines of the second column are below its first line.
    fn pair(&mut self, depth: usize, width: usize, left: &str, right: &str) {
        let mut lines = right.lines();
        let first = harmless(lines.next().unwrap_or_default(), MAX_DESCRIPTION);
        self.line(depth, format!("{left:width$}  {first}").trim_end());
        for line in lines {
            self.line(depth, format!("{:width$}  {}", "", harmless(line, MAX_DESCRIPTION)).trim_end());
        }
    }

    fn named(&mut self, name: &str, schema: &Schema) {
        let name = shown(name);
        match &schema.shape {
            Shape::Record { fields, .. } if !fields.is_empty() => {
                self.line(0, &format!("type {name}"));
                self.description(1, &schema.description);
                self.fields(1, fields);
            }
            Shape::Words { words, open } if words.iter().any(|word| !word.description.is_empty()) => {
                self.line(0, &format!("type {name}"));
                self.description(1, &schema.description);
                let rows = words.iter().map(|it| (format!("\"{}\"", shown(&it.word)), &*it.description));
                self.pairs(1, usize::MAX, rows.collect());
                self.more(*open);
            }
            Shape::OneOf { options, open } => {
                self.line(0, &format!("type {name}, one of"));
                self.description(1, &schema.description);
                for option in options {
                    self.pair(1, 0, &type_text(option), "");
                    self.description(2, &option.description);
                }
                self.more(*open);
            }
            _ => {
                self.line(0, &format!("type {name}: {}", type_text(schema)));
                self.description(1, &schema.description);
            }
        }
    }

    fn more(&mut self, open: bool) {
        if open {
            self.line(1, "… (a later version may have more)");
        }
    }
}

/// The first line of a description after a colon, or nothing if that line is empty.
fn first_line(description: &str) -> String {
    match description.lines().next() {
        Some(line) if !line.is_empty() => format!(": {}", harmless(line, MAX_DESCRIPTION)),
        _ => String::new(),
    }
}
