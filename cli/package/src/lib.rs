//! Packages of components: how they are written and read, what they say of a project's dependencies, and how a component
//! comes into an operator's file.
//!
//! This crate owns the form of a package, which is an OCI image layout, and edits of TOML as text. It must not know of
//! signatures' keys, of WebAssembly, of grants, or of the command line.

mod digest;
mod layout;
mod operators_file;
mod sbom;

pub use self::{
    digest::{Digest, DigestError, copy},
    layout::{
        Contents, Documents, Package, ReadError, WriteError,
        read::{open, read},
        unpack::unpack_private as unpack,
        write::write,
    },
    operators_file::{AskedGrant, EditError, Installed, OperatorsFile, asked_grants},
    sbom::{LockError, sbom},
};
