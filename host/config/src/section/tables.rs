//! Tables within a table: values with free names, tables, and tables with free names.

use std::{collections::BTreeMap, fmt};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{Located, Section, child};
use crate::shape::{self, Found, Shape};

/// Stands for the operator's name in lists of keys.
pub(crate) const NAME: &str = "NAME";

impl Section<'_, '_> {
    /// Reads a table of strings, numbers and booleans. `check` may refuse entries.
    pub fn values(
        &mut self,
        key: &'static str,
        check: impl Fn(&str, &str) -> Result<(), String>,
    ) -> BTreeMap<String, String> {
        let mut values = BTreeMap::new();
        for (name, path, value) in self.entries(key, &Shape::Values) {
            let Some(text) = self.scalar(&path, value) else { continue };
            match check(&name.value, &text) {
                Ok(()) => drop(values.insert(name.value, text)),
                Err(fault) => {
                    self.error(&path, format!("in `{path}`: {fault}"), self.reader.location(value.span()));
                }
            }
        }
        values
    }

    /// Reads a table of strings, numbers, booleans, and tables, those with `read`.
    pub fn values_and_tables<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&mut Section<'_, '_>) -> Option<T>,
    ) -> (BTreeMap<String, String>, BTreeMap<String, T>) {
        let entries = self.entries(key, &Shape::ValuesAndTables);
        self.note_keys(self.path_of_each(key), |section| drop(read(section)));
        let (mut values, mut tables) = (BTreeMap::new(), BTreeMap::new());
        for (name, path, value) in entries {
            match value.get_ref().as_table() {
                Some(table) => {
                    let read = Section::read(self.reader, table, path, value.span(), &mut read);
                    tables.extend(read.map(|read| (name.value, read)));
                }
                None => values.extend(self.scalar(&path, value).map(|text| (name.value, text))),
            }
        }
        (values, tables)
    }

    /// The path of a table with a free name, in lists of keys.
    fn path_of_each(&self, key: &str) -> String {
        format!("{}.{NAME}", self.path_of(key))
    }

    /// A value that becomes a string. Reports any other.
    fn scalar(&mut self, path: &str, value: &Spanned<DeValue<'_>>) -> Option<String> {
        let fault = match shape::scalar(value.get_ref()) {
            Ok(text) => return Some(text),
            Err(found) if value.get_ref().is_table() => {
                format!(
                    "`{path}` must be a string, a number or a boolean, not {found}: quote a name with dots"
                )
            }
            Err(found) => format!("`{path}` must be a string, a finite number or a boolean, not {found}"),
        };
        self.error(path, fault, self.reader.location(value.span()));
        None
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
                    self.wrong(self.path_of(key), &Shape::Table, value, &Found::kind(value.get_ref()));
                    (&empty, value.span())
                }
            },
        };
        Section::read(self.reader, table, path, start, read)
    }

    /// Reads a table with `read`. `None` if it is missing.
    pub fn optional_table<R>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Section<'_, '_>) -> R,
    ) -> Option<R> {
        let value = self.find(key, &Shape::Table);
        if self.reader.keys.is_some() {
            Section::read(self.reader, &DeTable::new(), self.path_of(key), 0..0, read);
            return None;
        }
        let value = value?;
        let path = self.path_of(key);
        match value.get_ref().as_table() {
            Some(table) => Some(Section::read(self.reader, table, path, value.span(), read)),
            None => {
                self.wrong(path, &Shape::Table, value, &Found::kind(value.get_ref()));
                None
            }
        }
    }

    /// Reads tables with names that the operator chooses.
    pub fn named(&mut self, key: &'static str, mut read: impl FnMut(&mut Section<'_, '_>, Located<&str>)) {
        let value = self.find(key, &Shape::Named);
        let name = Located { value: NAME, location: self.location() };
        self.note_keys(self.path_of_each(key), |section| read(section, name));
        let Some(value) = value else {
            return;
        };
        let Some(tables) = value.get_ref().as_table() else {
            self.wrong(self.path_of(key), &Shape::Named, value, &Found::kind(value.get_ref()));
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

    /// Reads lists of strings with `parse`, with names that the operator chooses. No list can be empty. Leaves out
    /// faulty lists and strings.
    pub fn named_texts<T, E: fmt::Display>(
        &mut self,
        key: &'static str,
        what: &'static str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Vec<(Located<String>, Vec<Located<T>>)> {
        let shape = Shape::Texts(what);
        let mut read = Vec::new();
        for (name, path, value) in self.entries(key, &Shape::NamedTexts(what)) {
            match value.get_ref().as_array() {
                None => self.wrong(path, &shape, value, &Found::kind(value.get_ref())),
                Some(list) if list.is_empty() => self.wrong(path, &shape, value, &Found::empty_list()),
                Some(list) => {
                    let texts = list.iter().filter_map(|item| self.parsed(&path, &shape, item, &parse));
                    read.push((name, texts.collect()));
                }
            }
        }
        read
    }

    /// Reads strings with `parse` and tables with `read`, with names that the operator chooses. Leaves out faulty
    /// ones.
    pub fn named_texts_and_tables<T, E: fmt::Display>(
        &mut self,
        key: &'static str,
        what: &'static str,
        parse: impl Fn(&str) -> Result<T, E>,
        mut read: impl FnMut(&mut Section<'_, '_>) -> Option<T>,
    ) -> Vec<(Located<String>, T)> {
        let entries = self.entries(key, &Shape::NamedTextsAndTables(what));
        self.note_keys(self.path_of_each(key), |section| drop(read(section)));
        let items = entries.into_iter().filter_map(|(name, path, value)| {
            let item = match value.get_ref().as_table() {
                Some(table) => Section::read(self.reader, table, path, value.span(), &mut read),
                None if value.get_ref().is_str() => {
                    self.parsed(&path, &Shape::Text(what), value, &parse).map(Located::into_value)
                }
                None => {
                    let found = Found::kind(value.get_ref());
                    let message = format!("`{path}` must be a string, {what}, or a table, not {found}");
                    self.error(path, message, self.reader.location(value.span()));
                    None
                }
            };
            Some((name, item?))
        });
        items.collect()
    }
}

impl<'t> Section<'_, 't> {
    /// The entries of a table with free names: name, path and value of each.
    fn entries(
        &mut self,
        key: &'static str,
        shape: &Shape,
    ) -> Vec<(Located<String>, String, &'t Spanned<DeValue<'t>>)> {
        let Some(value) = self.find(key, shape) else {
            return Vec::new();
        };
        let Some(table) = value.get_ref().as_table() else {
            self.wrong(self.path_of(key), shape, value, &Found::kind(value.get_ref()));
            return Vec::new();
        };
        let path = self.path_of(key);
        let entry = |(name, value): (&'t Spanned<_>, &'t Spanned<DeValue<'t>>)| {
            let text: &std::borrow::Cow<'_, str> = name.get_ref();
            let located = Located { value: text.to_string(), location: self.reader.location(name.span()) };
            (located, child(&path, text), value)
        };
        table.iter().map(entry).collect()
    }
}
