//! Documents for people.

mod markdown;
mod text;
mod types;

pub(crate) use self::types::type_text;
