//! Lists within a table: of strings, of tables, and of both.

use std::{fmt, ops::Range};

use toml::de::{DeArray, DeTable};
use weir_names::ExtensionId;

use super::{Located, Section};
use crate::shape::{Found, Shape};

impl Section<'_, '_> {
    /// Reads a list of strings with `parse`, without faulty ones.
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

    /// Reads a list that must not be empty. `None` if it is missing.
    pub fn some_texts<T, E: fmt::Display>(
        &mut self,
        key: &'static str,
        what: &'static str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<Vec<Located<T>>> {
        let texts = self.texts(key, what, parse);
        let value = self.table.get(key)?;
        if value.get_ref().as_array().is_some_and(|list| list.is_empty()) {
            self.wrong(self.path_of(key), &Shape::Texts(what), value, &Found::empty_list());
        }
        Some(texts)
    }

    /// Reads a list of tables. Messages show a table by its valid `id`, else by its position, from 1.
    pub fn tables(&mut self, key: &'static str, mut read: impl FnMut(&mut Section<'_, '_>)) {
        let list = self.list(key, &Shape::Tables);
        self.note_keys(self.path_of(key), &mut read);
        for (index, item) in list.into_iter().flat_map(|list| list.iter()).enumerate() {
            let Some(table) = item.get_ref().as_table() else {
                self.wrong(self.path_of(key), &Shape::Tables, item, &Found::kind(item.get_ref()));
                continue;
            };
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
    pub(super) fn note_keys(&mut self, path: String, read: impl FnOnce(&mut Section<'_, '_>)) {
        if self.reader.keys.is_some() {
            Section::read(self.reader, &DeTable::new(), path, 0..0, read);
        }
    }
}

impl<'t> Section<'_, 't> {
    fn list(&mut self, key: &'static str, shape: &Shape) -> Option<&'t DeArray<'t>> {
        let value = self.find(key, shape)?;
        let list = value.get_ref().as_array();
        if list.is_none() {
            self.wrong(self.path_of(key), shape, value, &Found::kind(value.get_ref()));
        }
        list
    }
}
