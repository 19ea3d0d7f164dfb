//! Tables within a table: values with free names, tables, and tables with free names.

use std::collections::BTreeMap;

use toml::de::DeTable;

use super::{Located, Section, child};
use crate::shape::{self, Found, Shape};

/// Stands for the operator's name in lists of keys.
const NAME: &str = "NAME";

impl Section<'_, '_> {
    /// Reads a table of strings, numbers and booleans. `check` may refuse entries.
    pub fn values(
        &mut self,
        key: &'static str,
        check: impl Fn(&str, &str) -> Result<(), String>,
    ) -> BTreeMap<String, String> {
        let shape = Shape::Values;
        let mut values = BTreeMap::new();
        let Some(value) = self.find(key, &shape) else {
            return values;
        };
        let Some(table) = value.get_ref().as_table() else {
            self.wrong(key, &shape, value, &Found::kind(value.get_ref()));
            return values;
        };
        for (name, value) in table {
            let path = child(&self.path_of(key), name.get_ref());
            let fault = match shape::scalar(value.get_ref()) {
                Ok(text) => match check(name.get_ref(), &text) {
                    Ok(()) => {
                        values.insert(name.get_ref().to_string(), text);
                        continue;
                    }
                    Err(fault) => format!("in `{path}`: {fault}"),
                },
                Err(found) if value.get_ref().is_table() => {
                    format!(
                        "`{path}` must be a string, a number or a boolean, not {found}: quote a name with dots"
                    )
                }
                Err(found) => format!("`{path}` must be a string, a finite number or a boolean, not {found}"),
            };
            self.error(path, fault, self.reader.location(value.span()));
        }
        values
    }

    /// Reads a table with `read`. A missing one is empty.
    pub fn table<R>(&mut self, key: &'static str, read: impl FnOnce(&mut Section<'_, '_>) -> R) -> R {
        let empty = DeTable::new();
        let path = self.path_of(key);
        let (table, start) = match self.find(key, &Shape::Table) {
            None => (&empty, self.start.clone()),
            Some(value) => match value.get_ref().as_table() {
                Some(table) => (table, value.span()),
                None => {
                    self.wrong(key, &Shape::Table, value, &Found::kind(value.get_ref()));
                    (&empty, value.span())
                }
            },
        };
        Section::read(self.reader, table, path, start, read)
    }

    /// Reads tables with names that the operator chooses.
    pub fn named(&mut self, key: &'static str, mut read: impl FnMut(&mut Section<'_, '_>, Located<&str>)) {
        let value = self.find(key, &Shape::Named);
        if self.reader.keys.is_some() {
            let name = Located { value: NAME, location: self.location() };
            let path = format!("{}.{NAME}", self.path_of(key));
            Section::read(self.reader, &DeTable::new(), path, 0..0, |section| read(section, name));
        }
        let Some(value) = value else {
            return;
        };
        let Some(tables) = value.get_ref().as_table() else {
            self.wrong(key, &Shape::Named, value, &Found::kind(value.get_ref()));
            return;
        };
        for (name, value) in tables {
            let path = child(&self.path_of(key), name.get_ref());
            let Some(table) = value.get_ref().as_table() else {
                let message =
                    format!("`{path}` must be {}, not {}", Shape::Table, Found::kind(value.get_ref()));
                self.error(path, message, self.reader.location(value.span()));
                continue;
            };
            let name =
                Located { value: name.get_ref().as_ref(), location: self.reader.location(name.span()) };
            Section::read(self.reader, table, path, value.span(), |section| read(section, name));
        }
    }
}
