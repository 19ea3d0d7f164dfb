//! Commands that a small device can do without: they look into components and contracts, or draw a terminal.

mod check_contract;
mod describe;
mod documents;
mod generate;
mod inspect;
mod symbolise;
mod top;

#[cfg(feature = "compiler")]
pub(crate) use self::documents::of_json;
pub(crate) use self::{
    check_contract::check_contract, describe::describe, generate::generate, inspect::inspect,
    symbolise::symbolise, top::top,
};
