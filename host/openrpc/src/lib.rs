//! Contracts that describe themselves: OpenRPC documents parsed, written, shown, compared, and payloads checked
//! against them.
//!
//! A document comes from a component, so it is hostile: it is bounded, and its names are checked. Knows nothing of
//! components, of extensions that run, or of files.

mod check;
mod combined;
mod compare;
mod descriptions;
mod document;
mod json;
mod parse;
mod path;
mod schema;
mod show;
mod unused;
mod write;

pub use self::{
    check::{Misfit, Unknown},
    combined::combined,
    compare::{Finding, Severity, compare, needs},
    descriptions::Descriptions,
    document::{Arguments, Document, ErrorCode, Method, Payload, Queue, Topic},
    json::Json,
    parse::{
        DocumentError, MAX_DEPTH, MAX_DOCUMENT, MAX_DOCUMENTS, MAX_ENTRIES, MAX_SCHEMA_DEPTH, MAX_SECTION,
        SECTION,
    },
    schema::{Field, Schema, Shape, Word},
};
pub use weir_names::Role;
