//! Lists and tables within a table, also with names that the operator chooses.

use std::{collections::BTreeMap, fmt, ops::Range};

use toml::{
    Spanned,
    de::{DeArray, DeTable, DeValue},
};
use weir_names::ExtensionId;

use super::{Located, Section, child};
use crate::shape::{self, Shape, kind};

/// Stands for the operator's name in lists of keys.
pub(crate) const NAME: &str = "NAME";

impl Section<'_, '_> {
    /// Reads a list of strings with `parse`. Reports faulty ones and leaves them out. Empty if the key is missing.
    pub fn texts<T, E: fmt::Display>(
        &mut self,
        key: &'static str,
        what: &'static str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Vec<Located<T>> {
        let shape = Shape::Texts(what);
        let items = self.list(key, &shape).into_iter().flat_map(|list| list.iter());
        let path = self.path_of(key);
        items.filter_map(|item| self.parsed(&path, &shape, item, &parse)).collect()
    }

    /// Reads a list of strings with `parse`, and reports an empty one. `None` if the key is missing.
    pub fn some_texts<T, E: fmt::Display>(
        &mut self,
        key: &'static str,
        what: &'static str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<Vec<Located<T>>> {
        let texts = self.texts(key, what, parse);
        let value = self.table.get(key)?;
        if value.get_ref().as_array().is_some_and(|list| list.is_empty()) {
            self.wrong(&self.path_of(key), &Shape::Texts(what), value, "an empty one");
        }
        Some(texts)
    }

    /// Reads a list of tables. Messages show a table by its valid `id`, else by its position, from 1.
    pub fn tables(&mut self, key: &'static str, mut read: impl FnMut(&mut Section<'_, '_>)) {
        let list = self.list(key, &Shape::Tables);
        self.note_keys(self.path_of(key), &mut read);
        for (index, item) in list.into_iter().flat_map(|list| list.iter()).enumerate() {
            let Some(table) = self.as_table(&self.path_of(key), &Shape::Tables, item) else { continue };
            let id = table.get("id").and_then(|id| id.get_ref().as_str()?.parse::<ExtensionId>().ok());
            let name = id.map_or_else(|| (index + 1).to_string(), |id| id.to_string());
            self.item(key, &name, table, item.span(), &mut read);
        }
    }

    /// Reads a list of strings with `parse` and of tables with `read`, without faulty ones. Messages show tables by
    /// their position, from 1.
    pub fn texts_and_tables<T, E: fmt::Display>(
        &mut self,
        key: &'static str,
        what: &'static str,
        parse: impl Fn(&str) -> Result<T, E>,
        mut read: impl FnMut(&mut Section<'_, '_>) -> Option<T>,
    ) -> Vec<Located<T>> {
        let mut read = |section: &mut Section<'_, '_>| {
            let location = section.location();
            Some(Located { value: read(section)?, location })
        };
        let shape = Shape::TextsAndTables(what);
        let list = self.list(key, &shape);
        self.note_keys(self.path_of(key), |section| drop(read(section)));
        let path = self.path_of(key);
        let items = list.into_iter().flat_map(|list| list.iter()).enumerate();
        items
            .filter_map(|(index, item)| match item.get_ref().as_table() {
                Some(table) => self.item(key, &(index + 1).to_string(), table, item.span(), &mut read),
                None => self.parsed(&path, &shape, item, &parse),
            })
            .collect()
    }

    fn item<R>(
        &mut self,
        key: &'static str,
        name: &str,
        table: &DeTable<'_>,
        span: Range<usize>,
        read: impl FnOnce(&mut Section<'_, '_>) -> R,
    ) -> R {
        let path = format!("{}[{name}]", self.path_of(key));
        Section::read(self.reader, table, path, span, read)
    }

    /// Lists the keys that `read` asks for in a table with this path, if keys are listed.
    fn note_keys(&mut self, path: String, read: impl FnOnce(&mut Section<'_, '_>)) {
        if self.reader.keys.is_some() {
            Section::read(self.reader, &DeTable::new(), path, 0..0, read);
        }
    }

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

    /// Reads a table whose entries are strings, numbers, booleans or tables. `read` reads the tables.
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

    /// The text of a string, number or boolean. Reports any other value.
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

    /// Reads a table with `read`. A missing or faulty one is read as an empty one.
    pub fn table<R>(&mut self, key: &'static str, read: impl FnOnce(&mut Section<'_, '_>) -> R) -> R {
        let value = self.find(key, &Shape::Table);
        let path = self.path_of(key);
        let start = value.map_or_else(|| self.start.clone(), Spanned::span);
        let table = value.and_then(|value| self.as_table(&path, &Shape::Table, value));
        Section::read(self.reader, table.unwrap_or(&DeTable::new()), path, start, read)
    }

    /// Reads a table with `read`. `None` if it is missing, or not a table, which is reported.
    pub fn optional_table<R>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Section<'_, '_>) -> R,
    ) -> Option<R> {
        let value = self.find(key, &Shape::Table);
        let path = self.path_of(key);
        if self.reader.keys.is_some() {
            self.note_keys(path, |section| drop(read(section)));
            return None;
        }
        let table = self.as_table(&path, &Shape::Table, value?)?;
        Some(Section::read(self.reader, table, path, value?.span(), read))
    }

    /// Reads tables with names that the operator chooses.
    pub fn named(&mut self, key: &'static str, mut read: impl FnMut(&mut Section<'_, '_>, Located<&str>)) {
        let entries = self.entries(key, &Shape::Named);
        let name = Located { value: NAME, location: self.location() };
        self.note_keys(self.path_of_each(key), |section| read(section, name));
        for (Located { value: name, location }, path, value) in entries {
            if let Some(table) = self.as_table(&path, &Shape::Table, value) {
                let name = Located { value: &*name, location };
                Section::read(self.reader, table, path, value.span(), |section| read(section, name));
            }
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
            let Some(list) = self.as_list(&path, &shape, value) else { continue };
            if list.is_empty() {
                self.wrong(&path, &shape, value, "an empty one");
                continue;
            }
            let texts = list.iter().filter_map(|item| self.parsed(&path, &shape, item, &parse));
            read.push((name, texts.collect()));
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
                    self.parsed(&path, &Shape::Text(what), value, &parse).map(|at| at.value)
                }
                None => {
                    let found = kind(value.get_ref());
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
    fn list(&mut self, key: &'static str, shape: &Shape) -> Option<&'t DeArray<'t>> {
        let value = self.find(key, shape)?;
        self.as_list(&self.path_of(key), shape, value)
    }

    /// The entries of a table with free names: name, path and value of each.
    fn entries(
        &mut self,
        key: &'static str,
        shape: &Shape,
    ) -> Vec<(Located<String>, String, &'t Spanned<DeValue<'t>>)> {
        let path = self.path_of(key);
        let table = self.find(key, shape).and_then(|value| self.as_table(&path, shape, value));
        let entry = |(name, value): (&'t Spanned<_>, &'t Spanned<DeValue<'t>>)| {
            let text: &std::borrow::Cow<'_, str> = name.get_ref();
            let located = Located { value: text.to_string(), location: self.reader.location(name.span()) };
            (located, child(&path, text), value)
        };
        table.into_iter().flatten().map(entry).collect()
    }

    /// The value as a list. Reports a value that is none.
    fn as_list(
        &mut self,
        path: &str,
        shape: &Shape,
        value: &'t Spanned<DeValue<'t>>,
    ) -> Option<&'t DeArray<'t>> {
        let list = value.get_ref().as_array();
        if list.is_none() {
            self.wrong(path, shape, value, &kind(value.get_ref()));
        }
        list
    }

    /// The value as a table. Reports a value that is none.
    fn as_table(
        &mut self,
        path: &str,
        shape: &Shape,
        value: &'t Spanned<DeValue<'t>>,
    ) -> Option<&'t DeTable<'t>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.wrong(path, shape, value, &kind(value.get_ref()));
        }
        table
    }
}
