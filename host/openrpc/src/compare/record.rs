//! Fields of objects, and arguments.

use super::{
    change::Change,
    walk::{Place, Walk},
};
use crate::{Field, Shape, check::View, path};

impl<'a> Walk<'a> {
    pub(super) fn record(
        &mut self,
        place: &Place<'a>,
        (old, old_strict): (&'a [Field], bool),
        (new, new_strict): (&'a [Field], bool),
    ) {
        let new_reads = place.new_reads;
        let at = |field: &Field| format!("{}{}", place.path, path::field(&field.name));
        for field in old {
            match new.iter().find(|new| new.name == field.name) {
                None => {
                    let change = Change::Removed { required: field.required, new_strict };
                    self.changed_at(&at(field), new_reads, &change);
                }
                Some(new) => {
                    match (field.required, new.required) {
                        (false, true) => self.changed_at(&at(field), new_reads, &Change::NowRequired),
                        (true, false) => self.changed_at(&at(field), new_reads, &Change::NowOptional),
                        _ => {}
                    }
                    let pair = (given(field, new), given(new, field));
                    self.later(Place { pair, new_reads, path: at(field) });
                }
            }
        }
        for field in new.iter().filter(|new| !old.iter().any(|old| old.name == new.name)) {
            self.changed_at(&at(field), new_reads, &Change::Added { required: field.required, old_strict });
        }
        match (old_strict, new_strict) {
            (false, true) => self.changed(place, &Change::NowStrict),
            (true, false) => self.changed(place, &Change::NowLax),
            _ => {}
        }
    }
}

/// The type of a field. If the other one is required and this one is not, that it may be `null` goes without saying.
fn given<'a>(field: &'a Field, other: &Field) -> View<'a> {
    match &field.schema.shape {
        Shape::Nullable(inner) if other.required && !field.required => View::Schema(inner),
        _ => View::Schema(&field.schema),
    }
}
