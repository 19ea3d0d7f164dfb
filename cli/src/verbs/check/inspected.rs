//! What components say of themselves, each read once.

use std::{collections::HashMap, path::Path, rc::Rc};

use weir_host::component::{self, Inspection};

/// The components that were read so far.
#[derive(Debug, Default)]
pub(super) struct Inspected<'c>(HashMap<&'c Path, Option<Rc<Inspection>>>);

impl<'c> Inspected<'c> {
    /// `None`: it cannot be read, which is an error of its own, or it is an artifact.
    pub(super) fn of(&mut self, path: &'c Path) -> Option<Rc<Inspection>> {
        self.0.entry(path).or_insert_with(|| component::inspect(path).ok().map(Rc::new)).clone()
    }
}
