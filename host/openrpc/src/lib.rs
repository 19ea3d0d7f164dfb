//! Contracts that describe themselves: OpenRPC documents parsed, written, shown, compared, and payloads checked
//! against them.
//!
//! A document comes from a component, so it is hostile: it is bounded, and its names are checked. Knows nothing of
//! components, of extensions that run, or of files.

mod check;
mod compare;
mod document;
mod json;
mod parse;
mod path;
mod schema;
mod show;
mod types;
mod write;

pub use self::{
    check::{Misfit, Unknown, nearest},
    compare::{Finding, Severity, compare, needs},
    document::{Arguments, Descriptions, Document, ErrorCode, Method, Payload, Queue, Topic},
    json::Json,
    parse::{
        DocumentError, MAX_DEPTH, MAX_DOCUMENT, MAX_DOCUMENTS, MAX_ENTRIES, MAX_SCHEMA_DEPTH, MAX_SECTION,
        SECTION,
    },
    path::{field as in_field, index as at_index, shown},
    schema::{Field, Schema, Shape, Word},
    types::combined,
};
pub use weir_names::Role;
