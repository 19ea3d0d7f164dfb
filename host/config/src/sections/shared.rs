//! What tables of several kinds have in common: classes, grants, paths, and names that the operator chooses.

use std::{fmt::Display, path::PathBuf};

use super::{CLASS, grants, named, plain_path};
use crate::{
    Grants,
    check::GrantLocations,
    classes::class_name,
    section::{Located, Section},
};

impl Section<'_, '_> {
    /// The key `class`: the name of a class of limits.
    pub fn class(&mut self) -> Option<Located<String>> {
        self.text("class", CLASS, class_name)
    }

    /// The table `grants`, and where its directories stand.
    pub fn grants(&mut self) -> (Grants, GrantLocations) {
        self.table("grants", grants::grants)
    }

    /// A path, made absolute by the directory of the file; `what` says what it is.
    pub fn path(&mut self, key: &'static str, what: &'static str) -> Option<Located<PathBuf>> {
        plain_path(self, key, what)
    }

    /// The name of a table of `[table.NAME]`. None if it cannot have it, which is reported.
    pub fn name<N, E: Display>(
        &mut self,
        table: &str,
        name: &Located<&str>,
        parse: impl Fn(&str) -> Result<N, E>,
    ) -> Option<Located<N>> {
        named(self, table, name, parse)
    }
}
