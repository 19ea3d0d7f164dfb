//! References to types with names.

use std::mem::MaybeUninit;

use super::Definition;

/// A reference to a type's definition.
///
/// The compiler follows every plain reference in a constant, and then finds that the constant of a recursive type
/// needs itself. It does not look into this one.
#[derive(Clone, Copy, Debug)]
pub struct Reference(MaybeUninit<&'static Definition>);

impl Reference {
    /// A reference to a definition. It may be a static whose own value is not known yet.
    #[must_use]
    pub const fn new(definition: &'static Definition) -> Self {
        Self(MaybeUninit::new(definition))
    }

    /// The definition.
    #[must_use]
    pub const fn get(self) -> &'static Definition {
        #[expect(unsafe_code, reason = "the only constructor initializes it")]
        // SAFETY: `new` is the only constructor, and it initializes the value.
        unsafe {
            self.0.assume_init()
        }
    }
}
