//! Keys that several kinds of tables share: classes, grants, paths, and names that the operator chooses.

use std::{fmt::Display, path::PathBuf};

use super::{CLASS, grants, named, plain_path};
use crate::{
    Grants,
    check::GrantLocations,
    classes::class_name,
    section::{Located, Section},
};

impl Section<'_, '_> {
    /// Reads the key `class`.
    pub fn class(&mut self) -> Option<Located<String>> {
        self.text("class", CLASS, class_name)
    }

    /// Reads the table `grants`, with the places of its directories.
    pub fn grants(&mut self) -> (Grants, GrantLocations) {
        self.table("grants", grants::grants)
    }

    /// Reads a path and makes it absolute from the file's directory. `what` describes it.
    pub fn path(&mut self, key: &'static str, what: &'static str) -> Option<Located<PathBuf>> {
        plain_path(self, key, what)
    }

    /// The name of a table of `[table.NAME]`. `None` after reporting a faulty one.
    pub fn name<N, E: Display>(
        &mut self,
        table: &str,
        name: &Located<&str>,
        parse: impl Fn(&str) -> Result<N, E>,
    ) -> Option<Located<N>> {
        named(self, table, name, parse)
    }
}
